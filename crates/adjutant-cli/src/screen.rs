//! Where things are written: the answer to standard output, the rest to standard error, with a spinner on a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{exit::Exit, plain, problem::Problem, show::Line};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// What the spinner looks like: it never takes more than one line.
const SPINNER: &str = "{spinner} {wide_msg}";

/// What follows a reply on standard output that is taken back.
const VOID: &str = "[taken back: the reply so far is void and begins again]\n";

/// Where things are written.
#[derive(Debug)]
pub(crate) struct Screen {
    chatter: Chatter,
    /// Whether the answer goes to a terminal, which text of others must not steer.
    terminal: bool,
    spinner: Option<ProgressBar>,
}

/// What is written beside the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chatter {
    /// Nothing but errors.
    None,
    /// Lines.
    Lines,
    /// Lines, and a spinner while nothing happens.
    Spinner,
}

/// Whether someone reads what was written to standard output.
pub(crate) fn is_read(written: io::Result<()>) -> Result<bool, Problem> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Problem::new(Exit::Failed, "cannot write to standard output").cause(&error)),
    }
}

impl Screen {
    /// A screen; there is a spinner only on a terminal.
    pub(crate) fn new(chatter: Chatter) -> Self {
        let chatter = match chatter {
            Chatter::Spinner if !io::stderr().is_terminal() => Chatter::Lines,
            chatter => chatter,
        };
        Self { chatter, terminal: io::stdout().is_terminal(), spinner: None }
    }

    /// Shows a line.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub(crate) fn show(&mut self, line: &Line) -> io::Result<()> {
        match line {
            Line::Said(text) if self.terminal => self.write(&plain::stream(text)),
            Line::Said(text) => self.write(text),
            Line::Told(text) => {
                self.tell(text);
                Ok(())
            }
            // Who looks at the terminal is told beside it.
            Line::Void if self.terminal && self.chatter != Chatter::None => Ok(()),
            Line::Void => self.write(VOID),
            Line::Busy(what) => {
                self.wait(what);
                Ok(())
            }
        }
    }

    /// Writes to standard output, at once.
    ///
    /// # Errors
    /// If that is not possible.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.rest();
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a line to standard error, unless it shall be quiet.
    pub(crate) fn tell(&self, text: &str) {
        if self.chatter == Chatter::None {
            return;
        }
        // An answer is worth having without what stands beside it.
        let write = || drop(writeln!(io::stderr().lock(), "{text}"));
        match &self.spinner {
            Some(spinner) => spinner.suspend(write),
            None => write(),
        }
    }

    /// Takes the spinner away.
    pub(crate) fn rest(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// Turns the spinner while this is waited for, if there is one.
    pub(crate) fn wait(&mut self, what: &str) {
        if self.chatter != Chatter::Spinner {
            return;
        }
        let spinner = self.spinner.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(SPINNER).unwrap_or_else(|_| ProgressStyle::default_spinner());
            let spinner = ProgressBar::new_spinner().with_style(style);
            spinner.enable_steady_tick(TICK);
            spinner
        });
        spinner.set_message(what.to_owned());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.rest();
    }
}
