//! The arguments of the page.

use std::path::PathBuf;

use super::{At, agent::Homed};

/// Shows sessions on a page in a browser of this machine: what was said and done, what waits, what it cost; until Ctrl-C.
///
/// It listens on loopback alone, and whoever opens the page needs the address that is printed, with the token in it. The
/// sessions are those of a store, or, with --agents, those of the agents that `adjutant up` runs.
#[derive(Debug, clap::Args)]
pub(crate) struct ViewPage {
    /// The port; any other one if it is taken, any at all without it.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) port: u16,

    /// Opens no browser.
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Shows the agents of `adjutant up`, which serves the page itself.
    #[arg(long, conflicts_with_all = ["store", "port"])]
    pub(crate) agents: bool,

    /// The directory that `adjutant up` was given.
    #[arg(long, value_name = "DIR", default_value = ".", requires = "agents")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) homed: Homed,

    #[command(flatten)]
    pub(crate) at: At,
}
