//! The arguments of `adjutant agents`, and the options of runs that concern agents.

use std::path::PathBuf;

use clap::Subcommand;

use super::{At, Taught};

/// The toolboxes of the default agent.
pub(crate) const BOXES: [&str; 7] = [
    "files", "edits", "shell", "git", "fetch", "plan", "ask_user",
];
/// The toolbox of the board.
pub(crate) const BOARD: &str = "board";

/// The commands for agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    List(ListAgents),
    Check(CheckAgents),
}

/// The agents that the agent of a run may delegate to, and its limits.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AgentChoice {
    /// Uses the agents of this directory instead of the project's; can be repeated.
    ///
    /// An agent is a file NAME.md: front matter between two lines `---`, then its instructions. Without this option,
    /// the agents in .adjutant/agents of the project are found, and used with --trust.
    #[arg(long = "agents", value_name = "DIR")]
    pub(crate) agents: Vec<PathBuf>,

    /// Runs this agent, with its instructions, tools, skills and model; it can delegate to the others.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The maximum number of levels of sub-agents; 1 by default, 0 disables delegation.
    ///
    /// A sub-agent may use as many levels as its own file states, within the remaining ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=32))]
    pub(crate) depth: Option<u16>,

    /// Works on a board of tasks in the store: the agent gets its tools, and delegated tasks are claimed and completed
    /// there.
    ///
    /// The default name of the board is `board`; `adjutant board` manages it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "board")]
    pub(crate) board: Option<String>,
}

/// Lists the agents: name, whether they are used, model, toolboxes, depth, description.
///
/// Errors of an agent are written to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct ListAgents {
    /// The project, whose .adjutant/agents is read.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,

    /// Lists the agents of this directory instead; can be repeated.
    #[arg(long = "agents", value_name = "DIR")]
    pub(crate) agents: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) taught: Taught,

    /// Lists the agents of this session instead: the state of each, its thread, name, task, and current work.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["root", "agents"])]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) at: At,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads agents as a run would, and prints every error as file:line:column.
///
/// The exit code is 1 if one of them cannot be used.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckAgents {
    /// An agent file, or a directory of agent files.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}
