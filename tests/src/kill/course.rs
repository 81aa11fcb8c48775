//! What the model of the kill test says: the same calls at the same place of the conversation, in words it never repeats.

use std::sync::atomic::{AtomicU64, Ordering};

use adjutant::{
    Model,
    llm::{ChunkStream, Entry, ModelInfo, Request, Script, ScriptedModel},
};
use serde_json::json;

/// How many turns with calls there are.
pub const TURNS: usize = 30;
/// What the agent says in the end.
pub const ANSWER: &str = "All thirty steps are done.";
/// How many words a reply has besides its calls.
const WORDS: usize = 40;

/// A model that goes thirty steps, each with a call of every replay class, and then answers.
#[derive(Debug)]
pub struct Course {
    info: ModelInfo,
    /// How often it was asked. What was acknowledged of one reply is in no other one, so it can be missed.
    asked: AtomicU64,
}

impl Default for Course {
    fn default() -> Self {
        Self { info: ModelInfo::new("loopback/course"), asked: AtomicU64::new(0) }
    }
}

impl Model for Course {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let is_step = |entry: &Entry| matches!(entry, Entry::Turn(turn) if !turn.results().is_empty());
        let done = request.entries.iter().filter(|stored| is_step(&stored.entry)).count();
        ScriptedModel::new([said(done, self.asked.fetch_add(1, Ordering::Relaxed))]).stream(request)
    }
}

fn said(done: usize, asked: u64) -> Script {
    if done >= TURNS {
        return Script::new().text(ANSWER);
    }
    let step = done + 1;
    let words: String = (0..WORDS).map(|word| format!("word{step}x{word}of{asked} ")).collect();
    let args = json!({"step": step});
    Script::new()
        .text(words)
        .delta_chars(7)
        .call("look", args.clone())
        .call("set", args.clone())
        .call("pay", args.clone())
        .call("travel", args)
}
