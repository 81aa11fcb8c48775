//! Answers of the model of the agent that calls, for tools that need one.

use std::sync::Arc;

use adjutant_llm::{Reply, Request};
use async_trait::async_trait;

use crate::ToolError;

/// Asks the model of the agent that calls; a tool gets it from its context, with `cx.get::<dyn Sampler>()`.
///
/// Outside a run there is none. Who speaks for a stranger, as a client of an MCP server does, asks a person first:
/// [`CallContext::confirm`](crate::CallContext::confirm).
#[async_trait]
pub trait Sampler: Send + Sync {
    /// Asks for one answer. It stands in no conversation; what it uses counts as the call's, in the log and in every budget
    /// above, also if it fails or is given up.
    ///
    /// Of the request count the system prompt, the entries and, of the options, `max_output_tokens` (1,024 without it),
    /// `temperature`, `top_p` and `stop`. The model has no tools.
    ///
    /// Cancel: the request ends; what it used by then counts.
    ///
    /// # Errors
    /// `InvalidArguments` if nothing is asked or it does not fit the model's window, `Denied` if a limit of the run leaves
    /// no room for it, `Cancelled` if the call was stopped or has ended, `Failed` if the model fails.
    async fn sample(&self, request: Request) -> Result<Arc<Reply>, ToolError>;
}
