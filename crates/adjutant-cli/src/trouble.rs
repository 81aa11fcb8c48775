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
pub(crate) fn of_journal(error: &JournalError) -> Problem {
    use JournalErrorKind::{Corrupt, Fenced, Io};
    match error.kind {
        Corrupt => {
            Problem::of(Exit::Failed, error).hint("`adjutant sessions verify` lists the damage")
        }
        Fenced | Io => Problem::of(Exit::Failed, error),
        _ => Problem::of(Exit::Usage, error),
    }
}

/// Converts an error of a journal, for commands that use or change a session.
pub(crate) fn of_session(error: &JournalError, name: &str) -> Problem {
    if error.kind != JournalErrorKind::Owned {
        return of_journal(error);
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
pub(crate) fn of_memory(error: &MemoryError) -> Problem {
    match error.kind {
        MemoryErrorKind::Missing | MemoryErrorKind::Invalid => Problem::of(Exit::Usage, error),
        _ => Problem::of(Exit::Failed, error),
    }
}

/// Converts an error of a board.
pub(crate) fn of_board(error: &orchestration::Error) -> Problem {
    use orchestration::ErrorKind::{Conflict, Invalid, Missing};
    match error.kind() {
        Missing => Problem::of(Exit::Usage, error).hint("`adjutant board list` shows the ids"),
        Conflict | Invalid => Problem::of(Exit::Usage, error),
        _ => Problem::of(Exit::Failed, error),
    }
}

/// Converts an error of the runtime.
pub(crate) fn of_runtime(error: &runtime::Error) -> Problem {
    use runtime::ErrorKind::{
        Busy, Config, Conflict, Denied, Exists, Invalid, Manifest, Missing, Model, Pull, Readiness,
        TimedOut, Untrusted,
    };
    match error.kind() {
        Manifest | Invalid | Missing | Exists | Conflict | Busy => Problem::of(Exit::Usage, error),
        Model => Problem::of(Exit::Usage, error)
            .hint("set the variable in this terminal, and start the agent again"),
        Pull | Config => Problem::of(Exit::Failed, error)
            .hint("`adjutant agent provenance NAME --verify` lists the changes"),
        Untrusted => Problem::of(Exit::Usage, error)
            .hint("`adjutant trust` lists the permissions that it requests, and trusts it"),
        Denied => {
            Problem::of(Exit::Failed, error).hint("the agent was restarted meanwhile; try again")
        }
        Readiness | TimedOut => {
            Problem::of(Exit::Failed, error).hint("`adjutant agent logs NAME` shows its output")
        }
        _ => Problem::of(Exit::Failed, error),
    }
}
