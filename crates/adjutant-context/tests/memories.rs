//! Memories: what they keep and find, what models may do with them, what is learned, and who pays.

#[path = "memories/background.rs"]
mod background;
#[path = "memories/decisions.rs"]
mod decisions;
#[path = "memories/double.rs"]
mod double;
#[path = "memories/injected.rs"]
mod injected;
#[path = "memories/learned.rs"]
mod learned;
#[path = "memories/operations.rs"]
mod operations;
#[path = "memories/quality.rs"]
mod quality;
#[path = "memories/runs.rs"]
mod runs;
#[path = "memories/tooled.rs"]
mod tooled;

use std::sync::Arc;

use adjutant_agent::memory::{Fact, Metadata};
use adjutant_context::Memories;
use adjutant_llm::{FixedWorld, Script, Transcript, UserMessage};
use double::Double;
use serde_json::{Value, json};

/// When everything happens: 2023-11-14T22:13:20Z.
const NOW: u64 = 1_700_000_000_000;

/// Memories of Ada in a new store, in a fixed world.
fn ada() -> (Arc<Double>, Memories) {
    let store = Arc::new(Double::default());
    (Arc::clone(&store), of(&store, "ada"))
}

/// Memories of an owner in a store.
fn of(store: &Arc<Double>, owner: &str) -> Memories {
    Memories::new(Arc::clone(store), owner).world(FixedWorld::at_ms(NOW))
}

/// Adds facts.
async fn add(memories: &Memories, texts: &[&str]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for text in texts {
        facts.push(
            memories
                .add(*text, Metadata::new())
                .await
                .expect("there is room"),
        );
    }
    facts
}

/// The texts of all facts, in the order of the alphabet: those of one moment are in no other.
async fn texts(memories: &Memories) -> Vec<String> {
    let facts = memories.list(None, 1_000).await.expect("the store works");
    let mut texts: Vec<String> = facts.iter().map(|fact| fact.text.to_string()).collect();
    texts.sort();
    texts
}

/// The model says that it found these facts.
fn finds(facts: &[&str]) -> Script {
    Script::new().text(json!({ "facts": facts }).to_string())
}

/// The model decides.
fn decides(decisions: Value) -> Script {
    Script::new().text(json!({ "decisions": decisions }).to_string())
}

/// A conversation in which a person says these texts.
fn said(texts: &[&str]) -> Transcript {
    let mut history = Transcript::new();
    say(&mut history, texts);
    history
}

fn say(history: &mut Transcript, texts: &[&str]) {
    for text in texts {
        history.push(adjutant_llm::Entry::User(UserMessage::text(*text)));
    }
}
