//! The arguments of the page.

use std::path::PathBuf;

use super::{At, agent::Homed};

/// Shows sessions on a page in a browser of this machine: messages, calls, pauses and costs; until Ctrl-C.
///
/// It listens on loopback only, and the page requires the printed address with its token. The sessions are those of a
/// store, or, with --agents, those of the agents that `adjutant up` runs.
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
