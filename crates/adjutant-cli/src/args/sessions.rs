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
    /// Shows what a session was forked from, and all that was forked from it.
    Tree(Named),
    /// Removes texts that no session refers to any more, and what crashes left of sessions that were being made.
    Sweep(At),
    Stop(Stop),
    Tell(Tell),
}

/// Lists sessions, the one that changed last first.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Only those with this label.
    #[arg(long)]
    pub(crate) label: Option<String>,

    /// The largest number of sessions to list.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,

    /// Goes on behind the page that ended with this mark.
    #[arg(long, value_name = "MARK")]
    pub(crate) after: Option<String>,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Shows what was said and done in a session, one thing after the other.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The session.
    pub(crate) name: String,

    /// Begins with this record.
    #[arg(long, value_name = "SEQ", default_value = "1")]
    pub(crate) from: u64,

    /// The largest number of things to show.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Shows everything, then what comes, until nobody works in the session any more.
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
    /// The name of the new one.
    pub(crate) new: String,

    /// The last record that is copied; all of them without it.
    #[arg(long = "at", value_name = "SEQ")]
    pub(crate) seq: Option<u64>,

    /// Copies the files of its directory too, into this new or empty one, where the new session works; those that the
    /// agent changed are as it had them at that record.
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Shows where two sessions part, and how they differ from there on.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// One session.
    pub(crate) one: String,
    /// The other one.
    pub(crate) other: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Writes a session into a file, which holds it whole.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The session.
    pub(crate) name: String,
    /// The new file; `-` for standard output. A file that exists is not overwritten.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Reads a session from a file, and checks every byte of it first.
///
/// Where it works is not taken over: `adjutant resume` of it wants --root and --model.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file; `-` for standard input.
    pub(crate) file: PathBuf,

    /// Another name than the one in the file.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Checks that sessions are what was written; the exit code is 1 if one is damaged.
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

/// Deletes sessions; what was forked from them stays whole.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// The sessions.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Does not ask; needed when standard input is no terminal.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Gives a session another name.
#[derive(Debug, clap::Args)]
pub(crate) struct Rename {
    /// The session.
    pub(crate) from: String,
    /// Its new name.
    pub(crate) to: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Adds and removes labels of a session, and shows those that it has.
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

/// Says something to whoever works in a session: the model hears it before its next answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Tell {
    /// The session.
    pub(crate) name: String,
    /// The text to tell.
    pub(crate) text: String,

    /// Says it to an agent at work under the first one: its name, path or thread, as `adjutant agents list` shows them.
    #[arg(long, value_name = "AGENT")]
    pub(crate) to: Option<String>,

    /// Waits for the first words that are said after it, and shows them.
    #[arg(long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Asks whoever works in a session to stop, or one of the agents at work there.
#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    /// The session.
    pub(crate) name: String,

    /// Stops this agent under the first one alone: its name, path or thread, as `adjutant agents list` shows them.
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

/// Shows a session once more, from its log: no model is asked, and no tool runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// The session.
    pub(crate) name: String,

    /// Stops after this record.
    #[arg(long, value_name = "SEQ")]
    pub(crate) until: Option<u64>,

    /// Lists in what today's requests would differ, field by field, in place of the replay; exit code 1 if they do.
    #[arg(long)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) how: How,
}
