//! Answers of the model of the agent that calls, for tools that need one.

use std::sync::Arc;

use adjutant_llm::{Reply, Request};
use async_trait::async_trait;

use crate::ToolError;

/// Sends requests to the model of the calling agent; a tool gets it from its context, with `cx.get::<dyn Sampler>()`.
///
/// It exists only within a run. Code that acts for a third party, such as a client of an MCP server, requests a
/// person's approval first: [`CallContext::confirm`](crate::CallContext::confirm).
#[async_trait]
pub trait Sampler: Send + Sync {
    /// Requests one answer outside any conversation. Its usage counts as the call's, in the log and in every budget
    /// above, also if it fails or is cancelled.
    ///
    /// Of the request count the system prompt, the entries and, of the options, `max_output_tokens` (1,024 without it),
    /// `temperature`, `top_p` and `stop`. The model has no tools.
    ///
    /// Cancel: the request ends; its usage until then counts.
    ///
    /// # Errors
    /// `InvalidArguments` if the request is empty or does not fit the model's window, `Denied` if a limit of the run
    /// leaves no room for it, `Cancelled` if the call was cancelled or has ended, `Failed` if the model fails.
    async fn sample(&self, request: Request) -> Result<Arc<Reply>, ToolError>;
}
