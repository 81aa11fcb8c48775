//! The arguments of workers and of their sessions.

use std::{path::PathBuf, time::Duration};

use clap::Subcommand;

use super::{At, GivenAnswers, seconds};

/// Runs the queued sessions of a store until Ctrl-C or SIGTERM; any number of workers may share a store.
///
/// A session is queued when it has an unfinished run without a process, when it receives a message, or when the wake-up
/// time of its run has come. If a worker dies, other workers continue its sessions: immediately on one machine, within
/// 15 s on PostgreSQL. A session that loses five workers in a row is quarantined.
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// The manifest of the agent for these sessions.
    #[arg(long, value_name = "FILE", default_value = "adjutant.yaml")]
    pub(crate) manifest: PathBuf,

    /// The maximum number of sessions that run at the same time.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,

    /// The grace period for active sessions when the worker stops; then other workers continue them.
    #[arg(long, value_name = "SECS", default_value = "30", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Trusts the permissions that the manifest requests, after listing them: programs, directories, addresses and
    /// keys; with a digest, only that content.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// The commands for the sessions of workers.
#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    /// Shows the numbers of queued, running, waiting and quarantined sessions, and lists the waiting and quarantined
    /// ones.
    Status(StatusOfFleet),
    Post(PostDue),
    Answer(AnswerDue),
    Retry(Retry),
}

/// The listed sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusOfFleet {
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Sends a message to a session, which is created if it does not exist. A worker runs its agent with the message.
#[derive(Debug, clap::Args)]
pub(crate) struct PostDue {
    /// The session.
    pub(crate) name: String,
    /// The text of the message.
    pub(crate) text: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Answers a pause of a session; a worker continues the run.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerDue {
    /// The session.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) given: GivenAnswers,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Releases a session from quarantine, so that workers run it again.
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// The session.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) at: At,
}
