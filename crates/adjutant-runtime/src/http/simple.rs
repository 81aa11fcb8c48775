//! The simple event format with seven names: the activity of the prompted agent, and its answer.
//!
//! | name | made of | data |
//! |---|---|---|
//! | `step.start` | `turn_started` | `turn` |
//! | `text.delta` | `text_delta` | `turn`, `text` |
//! | `tool.call` | `tool_started` | `turn`, `call`, `name`, `args` |
//! | `tool.result` | `tool_finished` | `turn`, `call`, `name`, `text`, `is_error`, `duration_ms` |
//! | `step.finish` | `turn_finished` | `turn` |
//! | `message.create` | the last `run_finished`, if the run has an answer or reached a limit | `text`, `outcome` |
//! | `error` | the last `run_finished` or `run_paused` otherwise, or what broke the stream off | `error` |

use adjutant_agent::{Event, EventKind, Outcome, RunResult};
use serde_json::{Value, json};

use super::error::Wire;
use crate::{Error, ErrorKind};

/// The state of the events emitted so far.
#[derive(Default)]
pub(super) struct Simple {
    /// The last frame.
    last: Option<(&'static str, Value)>,
}

impl Simple {
    /// Returns the frame for an event, if it has one.
    pub(super) fn tell(&mut self, event: &Event) -> Option<(&'static str, Value)> {
        if event.who.depth > 0 {
            return None;
        }
        let turn = event.turn.0;
        match &event.kind {
            EventKind::TurnStarted => Some(("step.start", json!({ "turn": turn }))),
            EventKind::TextDelta { text, .. } => {
                Some(("text.delta", json!({ "turn": turn, "text": text })))
            }
            EventKind::ToolStarted {
                call, name, args, ..
            } => Some((
                "tool.call",
                json!({ "turn": turn, "call": call, "name": name, "args": args }),
            )),
            EventKind::ToolFinished {
                call,
                name,
                result,
                duration,
            } => {
                let (text, duration_ms) = (result.text(), duration.as_millis() as u64);
                let is_error = result.is_error();
                let data = json!({
                    "turn": turn, "call": call, "name": name, "text": text, "is_error": is_error,
                    "duration_ms": duration_ms,
                });
                Some(("tool.result", data))
            }
            EventKind::TurnFinished => Some(("step.finish", json!({ "turn": turn }))),
            EventKind::RunFinished { result } | EventKind::RunPaused { result } => {
                self.last = Some(last(result));
                None
            }
            _ => None,
        }
    }

    /// Returns the last frame.
    pub(super) fn end(self) -> (&'static str, Value) {
        self.last
            .unwrap_or_else(|| error_event(ErrorKind::Agent, "the run ended without a result"))
    }
}

fn last(result: &RunResult) -> (&'static str, Value) {
    match &result.outcome {
        Outcome::Finished { .. } | Outcome::Limit { .. } => (
            "message.create",
            json!({ "text": result.text(), "outcome": result.outcome.kind() }),
        ),
        Outcome::Failed { failure } => error_event(ErrorKind::Agent, &failure.to_string()),
        Outcome::Cancelled { by } => {
            error_event(ErrorKind::Closed, &format!("the run was cancelled by {by}"))
        }
        Outcome::Paused { .. } => error_event(
            ErrorKind::Conflict,
            "the run waits for an answer: see /v1/resume",
        ),
    }
}

fn error_event(kind: ErrorKind, message: &str) -> (&'static str, Value) {
    (
        super::sse::ERROR,
        serde_json::to_value(Wire::from_error(&Error::new(kind, message))).unwrap_or_default(),
    )
}
