//! The final answer of one agent, from a stream of events that others speak in too.

use std::{pin::pin, sync::Arc};

use futures_core::Stream;
use futures_util::StreamExt;

use crate::{
    error::Error,
    event::{Event, EventKind},
    outcome::Outcome,
    report::RunResult,
};

/// Returns the final answer of the agent of the first event; text of its sub-agents is omitted.
///
/// If the stream is cut off before the run ends, returns the last text.
///
/// # Errors
/// `Failed` if the run failed, `Unanswered` if it was cancelled, waits, or ended without a text.
pub async fn collect_text(events: impl Stream<Item = Event>) -> Result<String, Error> {
    let mut events = pin!(events);
    let mut text = String::new();
    let mut agent: Option<Arc<str>> = None;
    while let Some(event) = events.next().await {
        if *agent.get_or_insert_with(|| Arc::clone(&event.who.agent_id)) != event.who.agent_id {
            continue;
        }
        match event.kind {
            EventKind::ReplyFinished { reply, .. } => {
                // Text from before a tool call is not an answer.
                text = if reply.calls().next().is_some() {
                    String::new()
                } else {
                    join_text_blocks(&reply)
                };
            }
            EventKind::RunFinished { result } | EventKind::RunPaused { result } => {
                return result.answer();
            }
            _ => {}
        }
    }
    if text.is_empty() {
        Err(Error::Unanswered(None))
    } else {
        Ok(text)
    }
}

impl RunResult {
    /// The text of the answer that the run came to; JSON if an answer of a form was wanted.
    ///
    /// # Errors
    /// `Failed` if the run failed, `Unanswered` if it was cancelled, waits, or ended without a text.
    pub fn answer(self: Arc<Self>) -> Result<String, Error> {
        let text = match &self.outcome {
            Outcome::Finished { .. } | Outcome::Limit { .. } if let Some(output) = &self.output => {
                output.to_string()
            }
            Outcome::Finished { reply, .. } => join_text_blocks(reply),
            Outcome::Limit { .. } => self
                .reply
                .as_deref()
                .map(join_text_blocks)
                .unwrap_or_default(),
            Outcome::Failed { .. } => {
                return Error::check_result(Self::clone(&self)).map(|_| String::new());
            }
            Outcome::Cancelled { .. } | Outcome::Paused { .. } => {
                return Err(Error::Unanswered(Some(self)));
            }
        };
        if text.is_empty() {
            Err(Error::Unanswered(Some(self)))
        } else {
            Ok(text)
        }
    }
}

/// The text blocks of a reply, with a blank line between them.
fn join_text_blocks(reply: &adjutant_llm::Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match &**block {
        adjutant_llm::Block::Text(said) if !said.text.is_empty() => Some(&*said.text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
