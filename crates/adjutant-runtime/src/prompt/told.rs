//! Converts errors of the lower crates for clients.

use adjutant_agent::{CancelBy, JournalError, JournalErrorKind, Outcome};

use crate::{Error, ErrorKind};

/// Converts an error of an agent.
pub(super) fn agent_error(error: adjutant_agent::Error) -> Error {
    use adjutant_agent::ErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Busy | Kind::Paused => ErrorKind::Conflict,
        Kind::Full => ErrorKind::Full,
        Kind::Prompt | Kind::Answers => ErrorKind::Invalid,
        Kind::Journal => error
            .journal_error()
            .map_or(ErrorKind::Storage, journal_error_kind),
        _ => ErrorKind::Agent,
    };
    Error::new(kind, error.to_string()).behind(error)
}

/// Converts an error of a handoff chain, which is mostly one of its agents.
pub(super) fn chain_error(error: adjutant_orchestration::Error) -> Error {
    match error.agent_error() {
        Some(agent) => agent_error(agent.clone()),
        None => Error::new(ErrorKind::Agent, error.to_string()).behind(error),
    }
}

/// The same, unless a run of one of its agents failed, as its last event has reported.
pub(super) fn filter_chain_error(error: adjutant_orchestration::Error) -> Option<Error> {
    let is_told = error
        .agent_error()
        .is_some_and(|agent| agent.result().is_some());
    (!is_told).then(|| chain_error(error))
}

/// Converts an error of a journal.
pub(super) fn journal_error(error: JournalError) -> Error {
    Error::new(journal_error_kind(&error), error.to_string()).behind(error)
}

/// Converts an error of a model request for an object.
pub(super) fn object_error(error: adjutant_llm::Error) -> Error {
    Error::new(ErrorKind::Agent, format!("no object: {error}")).behind(error)
}

/// Returns the reason why a finished run has no answer, if it has none: the agent was stopped, or the run timed out.
pub(super) fn check_outcome(outcome: &Outcome) -> Result<(), Error> {
    match outcome {
        Outcome::Cancelled {
            by: CancelBy::Shutdown,
        } => Err(stopped()),
        Outcome::Cancelled {
            by: CancelBy::Deadline,
        } => Err(Error::new(
            ErrorKind::TimedOut,
            "the run took longer than it may",
        )),
        _ => Ok(()),
    }
}

/// The agent is no longer running.
pub(super) fn stopped() -> Error {
    Error::new(ErrorKind::Closed, "the agent was stopped")
}

/// The agent is restarting.
pub(super) fn updated() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the agent begins anew with an update; its run goes on then",
    )
}

/// The contents of changed files are not saved.
pub(super) fn unkept() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "what agents change in files is not kept here",
    )
}

fn journal_error_kind(error: &JournalError) -> ErrorKind {
    match error.kind {
        JournalErrorKind::Missing => ErrorKind::Missing,
        JournalErrorKind::Exists => ErrorKind::Exists,
        JournalErrorKind::Owned => ErrorKind::Busy,
        JournalErrorKind::Invalid => ErrorKind::Invalid,
        _ => ErrorKind::Storage,
    }
}
