//! The exit code of the command.

use std::process::ExitCode;

use adjutant::{CancelBy, Outcome};

/// The table for `--help`.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  the run finished, or the reader of standard output went away
    1  the run failed: an error or a refusal of the model, output that cannot be written, a damaged session, a broken skill or agent
    2  usage or configuration: a bad option or file, no such model, no key, no such directory or session, an empty prompt
    3  a limit ended the run: --max-turns
    4  the run finished without an answer: its last reply says nothing, or none fits --schema
    5  the run waits for an answer: `adjutant resume` goes on
  124  the deadline of --timeout ended the run
  130  the user ended the run with Ctrl-C";

/// The exit code of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run finished.
    Finished = 0,
    /// The run failed.
    Failed = 1,
    /// The command line or the configuration is wrong; `clap` uses the same number.
    Usage = 2,
    /// A limit of the run was reached.
    Limit = 3,
    /// There is no answer: the last reply is empty, or does not match the schema.
    Unfit = 4,
    /// The run waits for an answer from outside.
    Waits = 5,
    /// The deadline was reached; the exit code of `timeout(1)`.
    Deadline = 124,
    /// The user stopped it; the exit code of a shell for SIGINT.
    Cancelled = 130,
}

impl Exit {
    /// Returns the exit code for the outcome of a run.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        match outcome {
            outcome if outcome.is_silent() => Exit::Unfit,
            Outcome::Finished { .. } => Exit::Finished,
            Outcome::Limit { .. } => Exit::Limit,
            Outcome::Cancelled {
                by: CancelBy::Deadline,
            } => Exit::Deadline,
            Outcome::Cancelled { .. } => Exit::Cancelled,
            Outcome::Paused { .. } => Exit::Waits,
            _ => Exit::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use adjutant::{
        Completion,
        agent::{Failure, Limit},
        llm::{Block, FinishReason, Reply},
    };

    use super::*;

    #[test]
    fn of_gives_the_code_of_the_table_when_a_run_ended() {
        let silent = Arc::new(Reply::new("p/m".into(), FinishReason::End));
        let mut reply = Reply::clone(&silent);
        reply.blocks.push(Block::text("Yes.").into());
        let cases = [
            (
                Outcome::Finished {
                    reply: reply.into(),
                    why: Completion::Answer,
                },
                Exit::Finished,
                0,
            ),
            (
                Outcome::Finished {
                    reply: Arc::clone(&silent),
                    why: Completion::Terminated,
                },
                Exit::Finished,
                0,
            ),
            (
                Outcome::Finished {
                    reply: Arc::clone(&silent),
                    why: Completion::Length,
                },
                Exit::Unfit,
                4,
            ),
            (
                Outcome::Finished {
                    reply: silent,
                    why: Completion::Answer,
                },
                Exit::Unfit,
                4,
            ),
            (
                Outcome::Failed {
                    failure: Failure::Refused { text: "no".into() },
                },
                Exit::Failed,
                1,
            ),
            (
                Outcome::Limit {
                    limit: Limit::Turns,
                },
                Exit::Limit,
                3,
            ),
            (Outcome::Paused { pauses: Vec::new() }, Exit::Waits, 5),
            (
                Outcome::Cancelled {
                    by: CancelBy::Deadline,
                },
                Exit::Deadline,
                124,
            ),
            (
                Outcome::Cancelled { by: CancelBy::User },
                Exit::Cancelled,
                130,
            ),
            (
                Outcome::Cancelled {
                    by: CancelBy::Shutdown,
                },
                Exit::Cancelled,
                130,
            ),
        ];
        for (outcome, exit, code) in cases {
            assert_eq!(
                (Exit::from_outcome(&outcome), exit as u8),
                (exit, code),
                "{outcome:?}"
            );
            assert!(TABLE.contains(&format!("\n{code:>5}  ")), "{code}");
        }
    }
}
