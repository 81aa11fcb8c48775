//! The arguments of `adjutant sessions` and `adjutant replay`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{At, How};

/// The commands for sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    List(List),
    Show(Show),
    Fork(Fork),
    Diff(Diff),
    Export(Export),
    Import(Import),
    Verify(Verify),
    Delete(Delete),
    Rename(Rename),
    Label(Label),
    /// Shows the parent of a session, and all its forks.
    Tree(Named),
    /// Removes unreferenced texts, and the remains of interrupted operations.
    Sweep(At),
    Stop(Stop),
    Tell(Tell),
}

/// Lists sessions, the most recently changed first.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only the sessions of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Only the sessions with this label.
    #[arg(long)]
    pub(crate) label: Option<String>,

    /// The maximum number of sessions to list.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,

    /// Continues after the page that ended with this cursor.
    #[arg(long, value_name = "MARK")]
    pub(crate) after: Option<String>,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Shows the messages and calls of a session in order.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The session.
    pub(crate) name: String,

    /// Starts with this record.
    #[arg(long, value_name = "SEQ", default_value = "1")]
    pub(crate) from: u64,

    /// The maximum number of items to show.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Shows everything, then new records, until no process uses the session.
    #[arg(long, conflicts_with = "limit")]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Copies a session, or its first records, into a new one.
#[derive(Debug, clap::Args)]
pub(crate) struct Fork {
    /// The session.
    pub(crate) name: String,
    /// The name of the new session.
    pub(crate) new: String,

    /// The last record that is copied; by default, all records.
    #[arg(long = "at", value_name = "SEQ")]
    pub(crate) seq: Option<u64>,

    /// Also copies the files of its directory into this new or empty one, which becomes the directory of the new
    /// session; files that the agent changed have their state at that record.
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Shows where two sessions diverge, and their differences from there.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// One session.
    pub(crate) one: String,
    /// The other one.
    pub(crate) other: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Writes a complete session to a file.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The session.
    pub(crate) name: String,
    /// The new file; `-` for standard output. An existing file is not overwritten.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Reads a session from a file, and verifies every byte of it first.
///
/// The directory and the model are not imported: `adjutant resume` needs --root and --model for it.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file; `-` for standard input.
    pub(crate) file: PathBuf,

    /// Another name for the session.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Checks that sessions are undamaged; the exit code is 1 if one is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// The session.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,

    /// All sessions.
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Deletes sessions; their forks are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// The sessions.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Skips the confirmation; required if standard input is not a terminal.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Renames a session.
#[derive(Debug, clap::Args)]
pub(crate) struct Rename {
    /// The session.
    pub(crate) from: String,
    /// Its new name.
    pub(crate) to: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Adds and removes labels of a session, and lists them.
#[derive(Debug, clap::Args)]
pub(crate) struct Label {
    /// The session.
    pub(crate) name: String,

    /// Labels to add, with `+` before each, and to remove, with `-`.
    #[arg(value_name = "+LABEL|-LABEL", allow_hyphen_values = true)]
    pub(crate) changes: Vec<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Sends a message to the agent of a session: the model gets it before its next answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Tell {
    /// The session.
    pub(crate) name: String,
    /// The text of the message.
    pub(crate) text: String,

    /// Sends it to a sub-agent: its name, path or thread, as `adjutant agents list` shows them.
    #[arg(long, value_name = "AGENT")]
    pub(crate) to: Option<String>,

    /// Waits for the next text of the agent, and prints it.
    #[arg(long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Stops the run of a session, or one of its agents.
#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    /// The session.
    pub(crate) name: String,

    /// Stops only this sub-agent: its name, path or thread, as `adjutant agents list` shows them.
    #[arg(long, value_name = "AGENT")]
    pub(crate) only: Option<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// A session.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The session.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Replays a session from its log: no request is sent to a model, and no tool runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// The session.
    pub(crate) name: String,

    /// Stops after this record.
    #[arg(long, value_name = "SEQ")]
    pub(crate) until: Option<u64>,

    /// Lists the differences between current requests and the log, field by field, instead of a replay; exit code 1 if
    /// there are any.
    #[arg(long)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) how: How,
}
