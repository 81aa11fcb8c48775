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

/// The owner of the memories.
#[derive(Debug, clap::Args)]
pub(crate) struct Whose {
    /// The owner of the memories.
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

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) whose: Whose,
}

/// Searches the memories by words, best matches first.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The words to search for.
    pub(crate) query: String,

    /// The maximum number of facts to find.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) whose: Whose,
}

/// Deletes facts.
#[derive(Debug, clap::Args)]
pub(crate) struct Forget {
    /// The facts.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) whose: Whose,
}
