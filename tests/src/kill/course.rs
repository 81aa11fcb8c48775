//! What the model of the kill test says: the same calls at the same place of the conversation, in words it never repeats.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use adjutant::{
    Model,
    llm::{ChunkStream, Entry, ModelInfo, Request, Script, ScriptedModel, Stored},
};
use serde_json::{Value, json};

use super::team;

/// How many turns with calls there are.
pub const TURNS: usize = 30;
/// What the agent says in the end.
pub const ANSWER: &str = "All thirty steps are done.";
/// How many words a reply has besides its calls.
const WORDS: usize = 40;

/// A model that goes thirty steps, each with calls of several replay classes, and then answers.
#[derive(Debug)]
pub struct Course {
    info: ModelInfo,
    /// How often it was asked. What was acknowledged of one reply is in no other one, so it can be missed.
    asked: AtomicU64,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            info: ModelInfo::new("loopback/course"),
            asked: AtomicU64::new(0),
        }
    }
}

impl Model for Course {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        if let Some(said) = team::said(&request) {
            return ScriptedModel::new([said]).stream(request);
        }
        // The window is small: the turns before the newest one may be gone.
        let step = |stored: &Arc<Stored>| match &stored.entry {
            Entry::Turn(turn) => turn.reply().calls().find_map(|call| step_of(&call.args)),
            _ => None,
        };
        let done = request
            .entries
            .iter()
            .rev()
            .find_map(step)
            .unwrap_or_default();
        let is_sent_back = request
            .entries
            .last()
            .is_some_and(|it| json!(it.entry).to_string().contains("does not fit"));
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        ScriptedModel::new([said(done, is_sent_back, asked)]).stream(request)
    }
}

/// The step that a call was made in.
fn step_of(args: &str) -> Option<usize> {
    let args: Value = serde_json::from_str(args).ok()?;
    usize::try_from(args["step"].as_u64()?).ok()
}

fn said(done: usize, is_sent_back: bool, asked: u64) -> Script {
    if done >= TURNS {
        // The first answer is not what is wanted.
        return Script::new().text(
            if is_sent_back {
                json!({"answer": ANSWER})
            } else {
                json!({"answer": 30})
            }
            .to_string(),
        );
    }
    let step = done + 1;
    let words: String = (0..WORDS)
        .map(|word| format!("word{step}x{word}of{asked} "))
        .collect();
    let said = Script::new().text(words).delta_chars(7);
    calls(step)
        .iter()
        .fold(said, |said, name| said.call(*name, json!({"step": step})))
}

/// The calls of a step, counted from 1.
///
/// A resumable call saves the log as it works, so every other step has none: there it shows whether the intent to pay
/// was saved before the payment.
pub(super) fn calls(step: usize) -> &'static [&'static str] {
    match step {
        0 => &[],
        step if step > TURNS => &[],
        step if step.is_multiple_of(2) => &["look", "set", "pay", "travel"],
        _ => &["look", "set", "pay"],
    }
}
