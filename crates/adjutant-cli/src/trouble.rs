//! Converts errors of journals, memories, boards and the runtime to problems of the command.

use adjutant::{
    agent::{
        JournalError, JournalErrorKind,
        memory::{MemoryError, MemoryErrorKind},
    },
    orchestration, runtime,
};

use crate::{exit::Exit, plain, problem::Problem};

/// Converts an error of a journal.
pub(crate) fn journal_problem(error: &JournalError) -> Problem {
    use JournalErrorKind::{Corrupt, Fenced, Io};
    match error.kind {
        Corrupt => Problem::from_error(Exit::Failed, error)
            .hint("`adjutant sessions verify` lists the damage"),
        Fenced | Io => Problem::from_error(Exit::Failed, error),
        _ => Problem::from_error(Exit::Usage, error),
    }
}

/// Converts an error of a journal, for commands that use or change a session.
pub(crate) fn session_problem(error: &JournalError, name: &str) -> Problem {
    if error.kind != JournalErrorKind::Owned {
        return journal_problem(error);
    }
    let hint = format!(
        "`adjutant sessions stop {}` requests its end; runs may --take-over",
        plain::word(name)
    );
    // The cause contains the owner, and the remaining time.
    Problem::new(
        Exit::Usage,
        format!("another process works in the session: {name}"),
    )
    .hint(hint)
    .cause_of(error)
}

/// Converts an error of a memory.
pub(crate) fn memory_problem(error: &MemoryError) -> Problem {
    match error.kind {
        MemoryErrorKind::Missing | MemoryErrorKind::Invalid => {
            Problem::from_error(Exit::Usage, error)
        }
        _ => Problem::from_error(Exit::Failed, error),
    }
}

/// Converts an error of a board.
pub(crate) fn board_problem(error: &orchestration::Error) -> Problem {
    use orchestration::ErrorKind::{Conflict, Invalid, Missing};
    match error.kind() {
        Missing => {
            Problem::from_error(Exit::Usage, error).hint("`adjutant board list` shows the ids")
        }
        Conflict | Invalid => Problem::from_error(Exit::Usage, error),
        _ => Problem::from_error(Exit::Failed, error),
    }
}

/// Converts an error of the runtime.
pub(crate) fn runtime_problem(error: &runtime::Error) -> Problem {
    use runtime::ErrorKind::{
        Busy, Config, Conflict, Denied, Exists, Invalid, Manifest, Missing, Model, Pull, Readiness,
        TimedOut, Untrusted,
    };
    match error.kind() {
        Manifest | Invalid | Missing | Exists | Conflict | Busy => {
            Problem::from_error(Exit::Usage, error)
        }
        Model => Problem::from_error(Exit::Usage, error)
            .hint("set the variable in this terminal, and start the agent again"),
        Pull | Config => Problem::from_error(Exit::Failed, error)
            .hint("`adjutant agent provenance NAME --verify` lists the changes"),
        Untrusted => Problem::from_error(Exit::Usage, error)
            .hint("`adjutant trust` lists the permissions that it requests, and trusts it"),
        Denied => Problem::from_error(Exit::Failed, error)
            .hint("the agent was restarted meanwhile; try again"),
        Readiness | TimedOut => Problem::from_error(Exit::Failed, error)
            .hint("`adjutant agent logs NAME` shows its output"),
        _ => Problem::from_error(Exit::Failed, error),
    }
}
