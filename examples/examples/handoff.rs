//! A chain of handoffs: a desk hands the conversation to a librarian, who reads a folder and hands it to a writer.
//!
//! Offline, on real files: `cargo run -p adjutant-examples --example handoff -- crates/adjutant-tool`

use std::sync::Arc;

use adjutant::{
    Agent,
    llm::{Entry, Request, Script, ScriptedModel, Usage},
    orchestration::{AgentTree, HandoffChain, HandoffTarget},
    toolkit::Files,
};
use serde_json::json;

/// An agent with these replies; each of its requests uses 100 tokens.
fn speaker(replies: Vec<Script>) -> Agent {
    let used = Usage {
        input_uncached: 80,
        output: 20,
        ..Usage::default()
    };
    Agent::new(ScriptedModel::new(
        replies.into_iter().map(|reply| reply.usage(used)),
    ))
}

/// The results of the last two turns: the listing, and the content of the manifest.
fn last_results(request: &Request) -> Vec<String> {
    let turns = request
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(Arc::clone(turn.results().first()?)),
            _ => None,
        });
    turns.map(|result| result.text()).collect()
}

/// The writer's answer, made of what the librarian found.
fn write_answer(request: &Request) -> Script {
    let used = Usage {
        input_uncached: 80,
        output: 20,
        ..Usage::default()
    };
    let found = last_results(request).join("\n");
    let files = found.lines().filter(|line| line.contains(".rs")).count();
    let about = found
        .lines()
        .find_map(|line| line.split_once("description = "))
        .map_or("nothing", |(_, it)| it);
    Script::new()
        .text(format!(
            "It has {files} Rust files at hand and says of itself: {about}"
        ))
        .usage(used)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let desk = speaker(vec![Script::new().call(
        "transfer_to_librarian",
        json!({"reason": "someone must look"}),
    )]);
    let librarian = speaker(vec![
        Script::new().call("list_files", json!({"depth": 2})),
        Script::new().call("read_file", json!({"path": "Cargo.toml"})),
        Script::new().call(
            "transfer_to_writer",
            json!({"reason": "everything was read"}),
        ),
    ]);
    let writer = Agent::new(ScriptedModel::new([Script::from_fn(write_answer)]));
    let relay = HandoffChain::new([
        HandoffTarget::new("desk", "Whatever nobody else is for.", desk).to(["librarian"]),
        HandoffTarget::new(
            "librarian",
            "Looks things up in the folder.",
            librarian.toolbox(Files::new(folder)?.toolbox()),
        ),
        HandoffTarget::new("writer", "Writes answers of what was found.", writer),
    ])?;
    let mut run = relay.stream("What is this crate?");
    let mut tree = AgentTree::new();
    while let Some(event) = run.next().await {
        tree.see(&event);
    }
    let result = run.finish().await?;
    print!("{tree}");
    println!("{}", result.text());
    println!("the conversation stays with the {}", relay.active().await?);
    Ok(())
}
