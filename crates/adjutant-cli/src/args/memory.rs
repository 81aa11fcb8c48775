//! The arguments of `adjutant memory`.

use clap::Subcommand;

use super::At;

/// The commands for memories.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    List(ListFacts),
    Search(Search),
    Forget(Forget),
}

/// Whose memory it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Whose {
    /// Whose memory it is.
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: String,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Lists the memories, oldest first.
#[derive(Debug, clap::Args)]
pub(crate) struct ListFacts {
    /// The maximum number of facts to list.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,

    /// Continues after this fact.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) whose: Whose,
}

/// Finds memories by words, best first.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The words to look for.
    pub(crate) query: String,

    /// The maximum number of facts to find.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) whose: Whose,
}

/// Forgets facts.
#[derive(Debug, clap::Args)]
pub(crate) struct Forget {
    /// The facts.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) whose: Whose,
}
