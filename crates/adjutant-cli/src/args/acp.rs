//! The arguments of `adjutant acp`.

use std::path::PathBuf;

use super::How;

/// Serves an agent to an editor over the Agent Client Protocol, on standard input and output. The editor starts this
/// command.
///
/// Without MANIFEST it serves the agent of `adjutant run` with these options, in the directory that the editor has
/// open. The editor shows the approval requests and selects the mode. Sessions are stored, and the editor can load them
/// again. Warnings go to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Acp {
    /// Serves the agent of a manifest, in the directory of the manifest.
    #[arg(value_name = "MANIFEST", conflicts_with_all = [
        "models", "retries", "model_timeouts", "thinking", "web_search", "max_turns", "timeout", "ask", "mode", "kind", "network", "allow_read", "allow_write", "env", "publish", "durability",
        "take_over", "memory", "folders", "trust_skills", "agents", "agent", "depth", "board", "store",
    ])]
    pub(crate) manifest: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) how: How,
}
