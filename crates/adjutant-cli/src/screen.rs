//! The output of the command line: the answer goes to standard output, the rest to standard error, with a spinner on a
//! terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{exit::Exit, paper::Paper, plain, problem::Problem, show::DisplayLine};

/// The interval of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// The maximum number of redraws of live lines per second.
const DRAWS: u8 = 10;

/// The template of the spinner: it never takes more than one line.
const SPINNER: &str = "{spinner} {wide_msg}";
/// The template of the lines below the spinner.
const BELOW: &str = "  {wide_msg}";

/// The text on standard output after a reply that became void.
const VOID: &str = "[taken back: the reply so far is void and begins again]\n";

/// The output of the command line.
#[derive(Debug)]
pub(crate) struct Screen {
    chatter: Chatter,
    /// True if the answer goes to a terminal; then control characters are removed.
    terminal: bool,
    live: Option<LiveLines>,
    /// The output area of a conversation, which receives all output.
    paper: Option<Paper>,
}

/// Live lines below everything else; the first one has the spinner.
#[derive(Debug)]
struct LiveLines {
    all: MultiProgress,
    lines: Vec<ProgressBar>,
}

/// The output in addition to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chatter {
    /// Only errors.
    None,
    /// Lines.
    Lines,
    /// Lines, and a spinner while waiting.
    Spinner,
}

/// Writes to standard output immediately; returns false if it has no reader.
pub(crate) fn write(text: &str) -> Result<bool, Problem> {
    let mut out = io::stdout().lock();
    is_read(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes a list to standard output, and a message to standard error if it is empty.
pub(crate) fn write_or_tell(list: &str, nothing: &str) -> Result<bool, Problem> {
    if list.is_empty() {
        tell(nothing);
    }
    write(list)
}

/// Prints a message to standard error, without control characters.
pub(crate) fn tell(text: &str) {
    // There is no place to report it if standard error is closed.
    let _ = writeln!(io::stderr().lock(), "{}", plain::stream(text));
}

/// Returns false if standard output has no reader.
pub(crate) fn is_read(written: io::Result<()>) -> Result<bool, Problem> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(Problem::new(Exit::Failed, "cannot write to standard output").cause(&error))
        }
    }
}

impl Screen {
    /// Creates a screen; it has a spinner only on a terminal.
    pub(crate) fn new(chatter: Chatter) -> Self {
        let chatter = match chatter {
            Chatter::Spinner if !io::stderr().is_terminal() => Chatter::Lines,
            chatter => chatter,
        };
        Self {
            chatter,
            terminal: io::stdout().is_terminal(),
            live: None,
            paper: None,
        }
    }

    /// Creates the screen of a conversation.
    pub(crate) fn with_paper(paper: Paper) -> Self {
        Self {
            chatter: Chatter::Spinner,
            terminal: true,
            live: None,
            paper: Some(paper),
        }
    }

    /// Returns the output area, in a conversation.
    pub(crate) fn paper(&mut self) -> Option<&mut Paper> {
        self.paper.as_mut()
    }

    /// Prints a line.
    ///
    /// # Errors
    /// If standard output is not writable.
    pub(crate) fn show(&mut self, line: &DisplayLine) -> io::Result<()> {
        match line {
            DisplayLine::Said(text) if self.terminal => self.write(&plain::stream(text)),
            DisplayLine::Said(text) => self.write(text),
            DisplayLine::Told(text) => {
                self.tell(text);
                Ok(())
            }
            // On a terminal, the message is printed next to the answer.
            DisplayLine::Void if self.terminal && self.chatter != Chatter::None => Ok(()),
            DisplayLine::Void => self.write(VOID),
            DisplayLine::Busy(what) => {
                self.wait(what);
                Ok(())
            }
            DisplayLine::Agents(lines) => {
                self.draw(lines);
                Ok(())
            }
        }
    }

    /// Writes to standard output immediately.
    ///
    /// # Errors
    /// If standard output is not writable.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if let Some(paper) = &mut self.paper {
            paper.say(text);
            return Ok(());
        }
        self.rest();
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a line to standard error, unless output is suppressed.
    pub(crate) fn tell(&self, text: &str) {
        if self.chatter != Chatter::None {
            self.insist(text);
        }
    }

    /// Writes a line to standard error in any case.
    pub(crate) fn insist(&self, text: &str) {
        if let Some(paper) = &self.paper {
            return paper.tell(text);
        }
        // The answer is useful without the other messages, so errors are ignored.
        let write = || drop(writeln!(io::stderr().lock(), "{}", plain::stream(text)));
        match &self.live {
            Some(live) => live.all.suspend(write),
            None => write(),
        }
    }

    /// Removes the spinner, and the lines below it.
    pub(crate) fn rest(&mut self) {
        if let Some(paper) = &mut self.paper {
            paper.rest();
        }
        if let Some(live) = self.live.take() {
            live.lines
                .iter()
                .rev()
                .for_each(ProgressBar::finish_and_clear);
            // If a line cannot be cleared, the terminal is gone.
            let _ = live.all.clear();
        }
    }

    /// True if there are live lines.
    pub(crate) fn is_live(&self) -> bool {
        self.chatter == Chatter::Spinner
    }

    /// Shows the spinner with this text, if there is one.
    pub(crate) fn wait(&mut self, what: &str) {
        self.draw(&[what.to_owned()]);
    }

    /// Draws these lines instead of the previous ones, with the spinner in the first one.
    fn draw(&mut self, lines: &[String]) {
        if let Some(paper) = &mut self.paper {
            let more = if lines.len() > 1 {
                format!(", {} agents", lines.len() - 1)
            } else {
                String::new()
            };
            paper.wait(&format!(
                "{}{more}",
                lines.first().map_or("", String::as_str)
            ));
        } else if self.is_live() {
            self.live.get_or_insert_with(LiveLines::new).set(lines);
        }
    }
}

impl LiveLines {
    fn new() -> Self {
        Self {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS)),
            lines: Vec::new(),
        }
    }

    fn set(&mut self, lines: &[String]) {
        while self.lines.len() > lines.len()
            && let Some(line) = self.lines.pop()
        {
            line.finish_and_clear();
            self.all.remove(&line);
        }
        for (at, text) in lines.iter().enumerate() {
            if at == self.lines.len() {
                self.lines.push(self.all.add(bar(at == 0)));
                if let [first] = &self.lines[..] {
                    first.enable_steady_tick(TICK);
                }
            }
            // An unchanged line is not drawn again.
            if let Some(line) = self.lines.get(at).filter(|line| line.message() != *text) {
                line.set_message(text.clone());
            }
        }
    }
}

fn bar(turns: bool) -> ProgressBar {
    let template = if turns { SPINNER } else { BELOW };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.rest();
    }
}
