//! The arguments of a conversation: `adjutant` without a command.

use std::path::PathBuf;

use adjutant::toolkit::AccessMode;
use clap::Parser;
use clap_complete::Shell;

use super::{At, How, sandbox::SandboxArgs};

/// The options of a conversation.
#[derive(Debug, clap::Args)]
pub(crate) struct Talk {
    /// Goes on with the session of this directory that changed last, also with a run that was left in its middle.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) newest: bool,

    /// Goes on with the session of this name, and begins it if there is none.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// Keeps nothing.
    #[arg(long, conflicts_with_all = ["newest", "session", "store"])]
    pub(crate) ephemeral: bool,

    /// The directory that is worked on; `.` without it.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// The model, as provider/name; after commas, those that are asked in its place. `adjutant run --help` tells more.
    #[arg(
        short,
        long = "model",
        value_name = "NAME[,NAME…]",
        value_delimiter = ','
    )]
    pub(crate) models: Vec<String>,

    /// Calls of these tools are asked about before they run.
    #[arg(long, value_name = "TOOL[,TOOL…]", value_delimiter = ',')]
    pub(crate) ask: Vec<String>,

    /// What is done without asking: plan (looking alone, the rest is denied), ask (looking; so it is without this), edits
    /// (changes of files too), all (everything, in the sandbox).
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<AccessMode>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Uses what came with the directory: its skills, its agents, its servers, and what its rules allow.
    #[arg(long)]
    pub(crate) trust: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// The options for the work of an agent, where nothing is said of them.
#[derive(Debug, Parser)]
struct Usual {
    #[command(flatten)]
    how: How,
}

impl Talk {
    /// The options for the work of an agent in this conversation, with these models.
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

/// Writes what a shell needs to complete the command line, for example `source <(adjutant completions bash)`.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Puts the files of a session's directory back as they were before its agent changed them.
///
/// Only what its tools for files changed is put back, and nothing at all if somebody else changed one of the files since.
/// The files that were put back are written to standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct Undo {
    /// The session; without it, that of the directory which changed last.
    pub(crate) name: Option<String>,

    /// Back to how it was at this record, 0 for the beginning; without it, to before the newest run that changed files.
    #[arg(long, value_name = "RECORD")]
    pub(crate) to: Option<u64>,

    #[command(flatten)]
    pub(crate) at: At,
}
