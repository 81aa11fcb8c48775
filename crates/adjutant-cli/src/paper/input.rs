//! The input line below the printed output. A separate thread reads it.

use std::{
    borrow::Cow,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::{
    Cmd, ColorMode, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, ExternalPrinter, Helper, KeyEvent, Movement, RepeatCount,
    completion::Completer,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::style::{Style, cut};
use crate::{exit::Exit, problem::Problem};

/// The status row, and the input line.
const PROMPT: &str = "\n› ";
/// The time after which Esc is not the start of another key sequence.
const ESC_WITHIN_MS: u16 = 40;
/// The maximum number of texts that are queued for printing.
const MAX_PRINTS: usize = 256;
/// The time for the last output to be displayed at the end.
const PRINTED_WITHIN: Duration = Duration::from_millis(500);
/// Disables bracketed paste.
const PASTE_OFF: &[u8] = b"\x1b[?2004l";
/// Causes the row above the line to be drawn again, without printing anything: one row up, and down again.
const REDRAW: &str = "\x1b[A\n";

/// An input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A line.
    Line {
        text: String,
        /// The number of the question that was displayed when the line was started, which is the only one it can
        /// answer; 0 for none.
        answers: u64,
        /// True if it is the edited arguments of a call.
        edited: bool,
    },
    /// Esc: stop the current work.
    Stop,
    /// Ctrl-C: stop the current work, or leave if it is pressed again.
    Interrupt,
    /// Leave.
    End,
}

/// The state that the input thread and the conversation share.
#[derive(Debug)]
pub(crate) struct Board {
    style: Style,
    status: Mutex<String>,
    /// The arguments of the call in question; empty without a call.
    args: Mutex<String>,
    /// The number of the displayed question; 0 without one.
    question: AtomicU64,
    /// The number of the question that was displayed when the line was started.
    begun: AtomicU64,
    /// True while a run is active.
    busy: AtomicBool,
    /// True if nothing is typed.
    blank: AtomicBool,
    /// True while a typed line is being processed: its status row is hidden.
    taken: AtomicBool,
}

/// The input line, and the printer above it.
pub(crate) struct Input {
    pub(crate) board: Arc<Board>,
    typed: UnboundedReceiver<Typed>,
    pub(crate) sender: UnboundedSender<Typed>,
    pub(crate) pen: Pen,
    /// The original settings of the terminal.
    terminal: Option<Termios>,
    /// The reader of lines; `None` once it has started.
    reader: Option<Box<LineReader>>,
}

/// Prints above the line.
#[derive(Debug, Clone)]
pub(crate) struct Pen(mpsc::SyncSender<Sheet>);

/// The messages to the printer's thread.
#[derive(Debug)]
enum Sheet {
    Lines(String),
    /// Signals that all previous messages are printed.
    Printed(mpsc::Sender<()>),
}

impl Pen {
    /// Prints whole lines.
    pub(crate) fn print(&self, lines: String) {
        // Without a receiver, the conversation is ending.
        let _ = self.0.send(Sheet::Lines(lines));
    }

    /// Waits until everything is printed.
    fn flush(&self) {
        let (printed, is_printed) = mpsc::channel();
        // Without a receiver, nothing remains to be printed.
        if self.0.send(Sheet::Printed(printed)).is_ok() {
            let _ = is_printed.recv_timeout(PRINTED_WITHIN);
        }
    }

    /// Draws the status row again.
    pub(crate) fn redraw(&self) {
        // One queued redraw is enough.
        let _ = self.0.try_send(Sheet::Lines(REDRAW.to_owned()));
    }
}

impl Board {
    /// Sets the status, without drawing it.
    pub(crate) fn set_status(&self, status: String) {
        *lock(&self.status) = status;
    }

    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Relaxed);
    }

    /// Records that the question with this number was displayed, for a call with these arguments; 0 without a question.
    /// A line that was started before does not answer it.
    pub(crate) fn ask(&self, question: u64, args: String) {
        *lock(&self.args) = args;
        self.question.store(question, Relaxed);
    }

    /// Records the typed text.
    fn typed(&self, line: &str) {
        if self.blank.swap(line.is_empty(), Relaxed) || line.is_empty() {
            self.begun.store(self.question.load(Relaxed), Relaxed);
        }
    }
}

impl Input {
    /// Creates an input line with this history file and these commands; reads nothing yet.
    ///
    /// # Errors
    /// `Usage` if the terminal does not support it.
    pub(crate) fn new(
        style: Style,
        history: Option<PathBuf>,
        commands: &'static [(&str, &str)],
        is_end: fn(&str) -> bool,
    ) -> Result<Self, Problem> {
        let wrong = |error: ReadlineError| {
            let problem = Problem::new(
                Exit::Usage,
                "a conversation needs a terminal on which a line can be edited",
            );
            problem
                .cause(&error)
                .hint("`adjutant run PROMPT` needs none")
        };
        let board = Arc::new(Board {
            style,
            status: Mutex::default(),
            args: Mutex::default(),
            question: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            blank: AtomicBool::new(true),
            taken: AtomicBool::new(false),
        });
        let (sender, typed) = unbounded_channel();
        let config = Config::builder()
            .auto_add_history(false)
            // `Style` decides about colors.
            .color_mode(ColorMode::Forced)
            .keyseq_timeout(Some(ESC_WITHIN_MS))
            .build();
        let mut editor = Editor::<InputLine, FileHistory>::with_config(config).map_err(wrong)?;
        editor.set_helper(Some(InputLine {
            board: Arc::clone(&board),
            commands,
        }));
        let keys = || {
            Box::new(Keys {
                board: Arc::clone(&board),
                sender: sender.clone(),
            })
        };
        editor.bind_sequence(KeyEvent::from('\x1b'), EventHandler::Conditional(keys()));
        editor.bind_sequence(KeyEvent::ctrl('c'), EventHandler::Conditional(keys()));
        editor.bind_sequence(KeyEvent::alt('\r'), EventHandler::Simple(Cmd::Newline));
        if let Some(history) = &history {
            // The history does not exist yet.
            let _ = editor.load_history(history);
        }
        let mut printer = editor.create_external_printer().map_err(wrong)?;
        let (pen, prints) = mpsc::sync_channel::<Sheet>(MAX_PRINTS);
        thread::spawn(move || {
            for sheet in prints {
                match sheet {
                    Sheet::Lines(lines) => drop(printer.print(lines)),
                    Sheet::Printed(printed) => drop(printed.send(())),
                }
            }
        });
        let reader = LineReader {
            editor,
            board: Arc::clone(&board),
            sender: sender.clone(),
            history,
            is_end,
        };
        Ok(Self {
            board,
            typed,
            sender,
            pen: Pen(pen),
            terminal: tcgetattr(io::stdin()).ok(),
            reader: Some(Box::new(reader)),
        })
    }

    /// Starts to read lines below the printed output.
    pub(crate) fn begin(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.pen.flush();
            thread::spawn(move || reader.read());
        }
    }

    /// Waits for the next input.
    pub(crate) async fn next(&mut self) -> Typed {
        self.typed.recv().await.unwrap_or(Typed::End)
    }

    /// Waits until everything is printed, and restores the terminal, even if a line is being read.
    pub(crate) fn finish(&self) {
        self.pen.flush();
        if let Some(terminal) = &self.terminal {
            // If the terminal is gone, there is nothing to restore.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
            let _ = io::stdout()
                .write_all(PASTE_OFF)
                .and_then(|()| io::stdout().flush());
        }
    }
}

/// The thread that reads lines.
struct LineReader {
    editor: Editor<InputLine, FileHistory>,
    board: Arc<Board>,
    sender: UnboundedSender<Typed>,
    history: Option<PathBuf>,
    /// True for a line that ends the conversation.
    is_end: fn(&str) -> bool,
}

impl LineReader {
    /// Reads lines until the user leaves.
    fn read(mut self) {
        let (mut initial, mut is_leaving) = (None::<String>, false);
        loop {
            let edited = initial.is_some();
            let board = &self.board;
            board.blank.store(true, Relaxed);
            board.taken.store(false, Relaxed);
            let line = match initial.take() {
                Some(text) => self.editor.readline_with_initial(PROMPT, (&text, "")),
                None => self.editor.readline(PROMPT),
            };
            let typed = match line {
                Ok(text) if (self.is_end)(&text) => Typed::End,
                Ok(text) => {
                    if text.is_empty() {
                        self.board.typed("");
                    }
                    let answers = self.board.begun.load(Relaxed);
                    let is_answer = answers != 0 && answers == self.board.question.load(Relaxed);
                    if is_answer && matches!(text.trim(), "e" | "edit") {
                        initial =
                            Some(lock(&self.board.args).clone()).filter(|args| !args.is_empty());
                        if initial.is_some() {
                            continue;
                        }
                    }
                    self.keep(&text, edited);
                    Typed::Line {
                        text,
                        answers,
                        edited,
                    }
                }
                Err(ReadlineError::Interrupted) if is_leaving => Typed::End,
                Err(ReadlineError::Interrupted) => Typed::Interrupt,
                Err(_) => Typed::End,
            };
            is_leaving = typed == Typed::Interrupt;
            let is_over = typed == Typed::End;
            if self.sender.send(typed).is_err() || is_over {
                return;
            }
        }
    }

    /// Adds a line to the history, except for an answer.
    fn keep(&mut self, text: &str, edited: bool) {
        let is_answer = self.board.question.load(Relaxed) != 0 || edited;
        // A history that cannot be stored is ignored.
        if !is_answer
            && self
                .editor
                .add_history_entry(text)
                .is_ok_and(|is_new| is_new)
            && let Some(path) = &self.history
        {
            let _ = self.editor.append_history(path);
        }
    }
}

/// The handler of Esc and Ctrl-C.
struct Keys {
    board: Arc<Board>,
    sender: UnboundedSender<Typed>,
}

impl ConditionalEventHandler for Keys {
    fn handle(&self, event: &Event, _: RepeatCount, _: bool, cx: &EventContext<'_>) -> Option<Cmd> {
        let is_escape = event
            .get(0)
            .is_some_and(|key| *key == KeyEvent::from('\x1b'));
        if self.board.busy.load(Relaxed) {
            // The typed text stays.
            let _ = self.sender.send(if is_escape {
                Typed::Stop
            } else {
                Typed::Interrupt
            });
            return Some(Cmd::Noop);
        }
        Some(match (is_escape, cx.line().is_empty()) {
            (true, _) => Cmd::Noop,
            (false, false) => Cmd::Kill(Movement::WholeBuffer),
            (false, true) => Cmd::Interrupt,
        })
    }
}

/// The appearance of the line.
struct InputLine {
    board: Arc<Board>,
    /// The commands with their descriptions.
    commands: &'static [(&'static str, &'static str)],
}

impl Helper for InputLine {}

impl Hinter for InputLine {
    type Hint = String;

    /// Returns no hint: this callback only tracks the typed text.
    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.board.typed(line);
        None
    }
}

impl Highlighter for InputLine {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, _: &'p str, _: bool) -> Cow<'b, str> {
        let status = if self.board.taken.load(Relaxed) {
            String::new()
        } else {
            lock(&self.board.status).clone()
        };
        let style = self.board.style;
        let width = style.width().saturating_sub(1);
        Cow::Owned(format!(
            "{}\n{} ",
            style.dim(&cut(&status, width)),
            style.bold("›")
        ))
    }
}

impl Validator for InputLine {
    fn validate(&self, _: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        self.board.taken.store(true, Relaxed);
        // A message causes the line to be drawn once more.
        Ok(ValidationResult::Valid(Some(String::new())))
    }
}

impl Completer for InputLine {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..pos).unwrap_or_default();
        let found = self
            .commands
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| name.starts_with(typed));
        Ok((
            0,
            if typed.starts_with('/') {
                found.map(str::to_owned).collect()
            } else {
                Vec::new()
            },
        ))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
