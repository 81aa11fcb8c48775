//! The arguments of `adjutant acp`.

use std::path::PathBuf;

use super::How;

/// Serves an agent to an editor by the Agent Client Protocol, on standard input and output: what an editor begins.
///
/// Without MANIFEST it is the agent of `adjutant run` with these options, in the directory that the editor has open.
/// What a call waits for is asked in the editor, where the mode is chosen too. Sessions are kept: an editor can load
/// them again. Warnings go to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Acp {
    /// Serves the agent of a manifest, which works where its manifest says.
    #[arg(value_name = "MANIFEST", conflicts_with_all = [
        "models", "retries", "model_timeouts", "thinking", "web_search", "max_turns", "timeout", "ask", "mode", "kind", "network", "allow_read", "allow_write", "env", "durability",
        "take_over", "memory", "folders", "trust_skills", "agents", "agent", "depth", "board", "store",
    ])]
    pub(crate) manifest: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) how: How,
}
