//! The arguments of workers and of their sessions.

use std::{path::PathBuf, time::Duration};

use clap::Subcommand;

use super::{At, GivenAnswers, seconds};

/// Drives the sessions of a store which are due, until Ctrl-C or SIGTERM; any number of workers may share a store.
///
/// A session is due when its run is open without a process that drives it, when a message is posted to it, or when a
/// time comes that its run waits for. If a worker dies, its sessions go to another worker: at once on one machine,
/// within 15 s on PostgreSQL. A session that loses five workers in a row is set aside.
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// The manifest of the agent that works in the sessions.
    #[arg(long, value_name = "FILE", default_value = "adjutant.yaml")]
    pub(crate) manifest: PathBuf,

    /// The maximum number of sessions that are driven at a time.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,

    /// The time for sessions to stop when the worker ends; then another worker continues them.
    #[arg(long, value_name = "SECS", default_value = "30", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Trusts what the manifest wants, after it was listed: programs, directories, addresses and keys; with a digest,
    /// only that.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// The commands for the sessions of workers.
#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    /// Shows the numbers of sessions that are due, running, waiting and set aside, and lists those that wait or were
    /// set aside.
    Status(StatusOfFleet),
    Post(PostDue),
    Answer(AnswerDue),
    Retry(Retry),
}

/// The listed sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusOfFleet {
    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Posts a message to a session, which is created if it does not exist: a worker receives it, and its agent answers.
#[derive(Debug, clap::Args)]
pub(crate) struct PostDue {
    /// The session.
    pub(crate) name: String,
    /// The text of the message.
    pub(crate) text: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Answers a pause of the run of a session: a worker continues it.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerDue {
    /// The session.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) given: GivenAnswers,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Lets workers drive a session again that was set aside.
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// The session.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) at: At,
}
