//! Errors of the runtime, as problems of the command.

use adjutant::runtime::{Error, ErrorKind};

use crate::{exit::Exit, problem::Problem};

/// The problem that an error of the runtime is.
pub(crate) fn of_runtime(error: &Error) -> Problem {
    use ErrorKind::{
        Busy, Config, Conflict, Denied, Exists, Invalid, Manifest, Missing, Model, Pull, Readiness, TimedOut, Untrusted,
    };
    match error.kind() {
        Manifest | Invalid | Missing | Exists | Conflict | Busy => Problem::of(Exit::Usage, error),
        Model => Problem::of(Exit::Usage, error).hint("set the variable in this terminal, and start the agent again"),
        Pull | Config => {
            Problem::of(Exit::Failed, error).hint("`adjutant agent provenance NAME --verify` tells what was changed")
        }
        Untrusted => Problem::of(Exit::Usage, error).hint("`adjutant trust` lists what it wants, and trusts it"),
        Denied => Problem::of(Exit::Failed, error).hint("the agent was started anew meanwhile; try again"),
        Readiness | TimedOut => Problem::of(Exit::Failed, error).hint("`adjutant agent logs NAME` shows what it wrote"),
        _ => Problem::of(Exit::Failed, error),
    }
}
