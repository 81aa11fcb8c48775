//! The arguments of a conversation: `adjutant` without a command.

use std::path::PathBuf;

use adjutant::toolkit::AccessMode;
use clap::Parser;
use clap_complete::Shell;

use super::{At, How, sandbox::SandboxArgs};

/// The options of a conversation.
#[derive(Debug, clap::Args)]
pub(crate) struct Talk {
    /// Continues the most recently changed session of this directory, even if its run was interrupted.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) newest: bool,

    /// Continues the session of this name, or creates it.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// Stores nothing.
    #[arg(long, conflicts_with_all = ["newest", "session", "store"])]
    pub(crate) ephemeral: bool,

    /// The directory of the agent; by default `.`.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// The model, as provider/name; further models after commas are used if it fails. See also `adjutant run --help`.
    #[arg(
        short,
        long = "model",
        value_name = "NAME[,NAME…]",
        value_delimiter = ','
    )]
    pub(crate) models: Vec<String>,

    /// Requires approval for calls of these tools.
    #[arg(long, value_name = "TOOL[,TOOL…]", value_delimiter = ',')]
    pub(crate) ask: Vec<String>,

    /// The calls that run without approval: plan (read only, the rest is denied), ask (read only; the default), edits
    /// (also changes of files), all (everything, in the sandbox).
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<AccessMode>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Uses the configuration of the directory: its skills, its agents, its servers, and its `allow` rules.
    #[arg(long)]
    pub(crate) trust: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// The default options of an agent.
#[derive(Debug, Parser)]
struct Usual {
    #[command(flatten)]
    how: How,
}

impl Talk {
    /// Returns the options of an agent in this conversation, with these models.
    pub(crate) fn how(&self, models: &[String]) -> How {
        let Usual { mut how } = Usual::parse_from(["adjutant"]);
        how.root = Some(self.root.clone().unwrap_or_else(|| PathBuf::from(".")));
        how.models = models.to_vec();
        how.ask = self.ask.clone();
        how.mode = self.mode;
        how.sandbox = self.sandbox.clone();
        how.taught.trust = self.trust;
        how.at.store = self.at.store.clone();
        how
    }
}

/// Prints a script that completes the command line in a shell, for example `source <(adjutant completions bash)`.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Restores the files of a session's directory to their state before its agent changed them.
///
/// Only the changes of its file tools are undone, and nothing if another program changed one of the files since. The
/// restored files are written to standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct Undo {
    /// The session; by default, the most recently changed one of the directory.
    pub(crate) name: Option<String>,

    /// Restores the state at this record, 0 for the beginning; by default, the state before the latest run that changed
    /// files.
    #[arg(long, value_name = "RECORD")]
    pub(crate) to: Option<u64>,

    #[command(flatten)]
    pub(crate) at: At,
}
