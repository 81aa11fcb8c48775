//! The result of a run.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{CallId, CallResult, Entry, NanoUsd, Reply, ToolName, Usage};
use adjutant_tool::Identity;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{number::RunNo, outcome::Outcome, pause::Pause};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The run.
    pub run: RunNo,
    /// The agent that ran.
    pub agent: Arc<Identity>,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The last reply, whole or interrupted, if one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Arc<Reply>>,
    /// The entries that the run added to the conversation, prompts included.
    pub entries: Vec<Entry>,
    /// The calls, in order.
    pub calls: Vec<CallReport>,
    /// The usage of the agent itself.
    pub usage: Usage,
    /// The usage of the agent and everything under it.
    pub total_usage: Usage,
    /// The cost of the agent's own replies, if the model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
    /// The cost of the agent and its children, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost: Option<NanoUsd>,
    /// The number of requests that were made.
    pub turns: u32,
    /// The time that it took.
    pub duration: Duration,
    /// The answer that was wanted of the run as JSON, if one was wanted and the run came to it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    pub output: Option<Arc<Value>>,
}

/// `null` is an answer like any.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::<Value>::deserialize(from).map(Some)
}

/// A report of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallReport {
    /// The call.
    pub call: CallId,
    /// The tool of the call.
    pub name: ToolName,
    /// The time that it ran; zero if it never did.
    pub duration: Duration,
    /// Its result.
    pub result: Arc<CallResult>,
}

impl RunResult {
    /// Returns the pauses that the run waits for; empty if it does not wait.
    ///
    /// Create the answer from the pause: `agent.resume(vec![result.pauses()[0].approve()])`. Unanswered pauses stay
    /// pending.
    pub fn pauses(&self) -> &[Arc<Pause>] {
        match &self.outcome {
            Outcome::Paused { pauses } => pauses,
            _ => &[],
        }
    }

    /// The result of a run that never began.
    pub fn never(agent: &Arc<Identity>, outcome: Outcome) -> Self {
        Self {
            run: RunNo(0),
            agent: Arc::clone(agent),
            outcome,
            reply: None,
            entries: Vec::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            total_usage: Usage::default(),
            cost: None,
            total_cost: None,
            turns: 0,
            duration: Duration::ZERO,
            output: None,
        }
    }

    /// The text of the last reply; empty if none came.
    pub fn text(&self) -> String {
        self.reply
            .as_ref()
            .map(|reply| reply.text())
            .unwrap_or_default()
    }

    /// The requested answer of the run, read as a type; `None` if none was requested, or the run did not produce it.
    ///
    /// # Errors
    /// The answer is not a value of that type.
    pub fn output_as<T: DeserializeOwned>(&self) -> Option<serde_json::Result<T>> {
        self.output.as_deref().map(T::deserialize)
    }

    /// True if the run completed.
    pub fn is_finished(&self) -> bool {
        matches!(self.outcome, Outcome::Finished { .. })
    }
}
