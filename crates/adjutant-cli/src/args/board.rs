//! The arguments of `adjutant board`.

use adjutant::orchestration::board::TaskStatus;
use clap::{Subcommand, builder::PossibleValuesParser};

use super::At;

/// The commands for a board.
#[derive(Debug, Subcommand)]
pub(crate) enum Board {
    List(ListTasks),
    Show(ShowTask),
    /// Retries tasks that failed or were cancelled.
    Retry(TheseTasks),
    /// Cancels unfinished tasks, and stops the agents that work on them.
    Cancel(TheseTasks),
}

/// The choice of a board.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The name of the board.
    #[arg(long, value_name = "NAME", default_value = "board")]
    pub(crate) board: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Lists tasks, oldest first, with the tasks that block them.
#[derive(Debug, clap::Args)]
pub(crate) struct ListTasks {
    /// Only tasks with this status.
    #[arg(long, value_parser = PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::name)))]
    pub(crate) status: Option<String>,

    /// Only tasks that this agent works on, or was the last to work on.
    #[arg(long, value_name = "AGENT")]
    pub(crate) assignee: Option<String>,

    /// Only tasks that are blocked by a dependency.
    #[arg(long)]
    pub(crate) blocked: bool,

    /// The maximum number of tasks to list.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,

    /// Continues after this task.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: Which,
}

/// Shows all fields of a task.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowTask {
    /// The task.
    pub(crate) id: String,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: Which,
}

/// Some tasks.
#[derive(Debug, clap::Args)]
pub(crate) struct TheseTasks {
    /// The tasks.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Prints one JSON object per line: the task after the change.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: Which,
}
