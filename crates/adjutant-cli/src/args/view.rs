//! The arguments of `adjutant view`.

use std::path::PathBuf;

use super::{At, agent::Homed};

/// Serves the web UI, which shows messages, calls, pauses and costs of sessions in a browser of this machine, until
/// Ctrl-C.
///
/// It listens on loopback only, and needs the printed address with its token. It shows the sessions of a store or, with
/// --agents, of the agents that `adjutant up` runs.
#[derive(Debug, clap::Args)]
pub(crate) struct ViewPage {
    /// The port; by default, any free one.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) port: u16,

    /// Opens no browser.
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Opens the web UI that `adjutant up` serves for its agents.
    #[arg(long, conflicts_with_all = ["store", "port"])]
    pub(crate) agents: bool,

    /// The directory of `adjutant up`.
    #[arg(long, value_name = "DIR", default_value = ".", requires = "agents")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) homed: Homed,

    #[command(flatten)]
    pub(crate) at: At,
}
