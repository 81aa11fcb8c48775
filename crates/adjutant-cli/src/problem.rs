//! The error type of the command: the message, its causes, and the hint if there is one.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
};

use crate::{exit::Exit, plain};

/// The separator before the hint in errors of the libraries.
const HINT: &str = "; hint: ";
/// The maximum number of causes in a message.
const MAX_CAUSES: usize = 8;

/// An error of the command line, ready to be printed.
///
/// Format: `error: …`, then one `caused by: …` for each source, then `hint: …`, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Problem {
    /// Creates a problem without a cause.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Converts an error of a library with its sources. Its hint is separated from its text.
    pub(crate) fn from_error(exit: Exit, error: &dyn Error) -> Self {
        let mut problem = Self::new(exit, "");
        problem.message = problem.take_hint(&error.to_string());
        let mut source = error.source();
        while let Some(error) = source.filter(|_| problem.causes.len() < MAX_CAUSES) {
            let cause = problem.take_hint(&error.to_string());
            let told = problem.causes.last().unwrap_or(&problem.message);
            if !told.contains(&cause) {
                problem.causes.push(cause);
            }
            source = error.source();
        }
        problem
    }

    /// Adds the context of the error; earlier messages become its cause.
    pub(crate) fn within(mut self, what: &str) -> Self {
        let message = std::mem::replace(&mut self.message, format!("{what} cannot be made"));
        self.causes.insert(0, message);
        self
    }

    /// Adds the error that caused it.
    pub(crate) fn cause(mut self, error: &dyn Error) -> Self {
        self.causes.push(error.to_string());
        self
    }

    /// Adds a cause as text.
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.causes.push(why.to_owned());
        self
    }

    /// Adds an error of a library that caused it, with its sources. Its hint is separated from its text.
    pub(crate) fn cause_of(mut self, error: &dyn Error) -> Self {
        let Self {
            message,
            causes,
            hint,
            ..
        } = Self::from_error(self.exit, error);
        self.causes.push(message);
        self.causes.extend(causes);
        self.hint = self.hint.or(hint);
        self
    }

    /// Sets the hint, unless there is one already.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }

    /// Returns the problem in one line, without its causes.
    pub(crate) fn line(&self) -> String {
        let hint = self
            .hint
            .as_ref()
            .map(|hint| format!("{HINT}{hint}"))
            .unwrap_or_default();
        plain::line(&format!("{}{hint}", self.message))
    }

    /// Prints it to standard error.
    pub(crate) fn report(&self) -> Exit {
        // There is no place to report it if standard error is closed.
        let _ = write!(io::stderr().lock(), "{self}");
        self.exit
    }

    fn take_hint(&mut self, text: &str) -> String {
        match text.split_once(HINT) {
            Some((message, hint)) => {
                self.hint.get_or_insert(hint.to_owned());
                message.to_owned()
            }
            None => text.to_owned(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", plain::line(&self.message))?;
        for cause in &self.causes {
            writeln!(f, "caused by: {}", plain::line(cause))?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {}", plain::line(hint))?;
        }
        Ok(())
    }
}

impl Error for Problem {}

#[cfg(test)]
mod tests {
    use adjutant::llm::{Error, ErrorKind};

    use super::*;

    #[test]
    fn of_tells_sources_and_the_hint_when_an_error_has_them() {
        let inner = Error::new(ErrorKind::Network, "nobody listens\n\x1b[31m");
        let same = Error::new(ErrorKind::Network, "nobody listens\n\x1b[31m").with_source(inner);
        let outer =
            Error::new(ErrorKind::Network, "could not connect; hint: start it").with_source(same);
        let problem = Problem::from_error(Exit::Failed, &outer).hint("another");
        let expect =
            "error: could not connect\ncaused by: nobody listens \u{fffd}[31m\nhint: start it\n";
        assert_eq!(problem.to_string(), expect);
    }
}
