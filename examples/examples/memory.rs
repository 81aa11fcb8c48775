//! Memory: facts from one session are available in the next; facts can be changed and forgotten.

use adjutant::{
    Agent, EventKind,
    agent::memory::{Fact, InMemory},
    context::{Extraction, Memories},
    llm::{Content, Entry, Request, Script, ScriptedModel},
};
use serde_json::json;

/// The model that finds facts and compares them: another one than the agent's, and a smaller one.
fn helper() -> ScriptedModel {
    let finds = |facts: &[&str]| Script::new().text(json!({ "facts": facts }).to_string());
    // It corrects the first of the facts in its context.
    let corrects = Script::from_fn(|request: &Request| {
        let shown: serde_json::Value =
            serde_json::from_str(&last_text(request)).unwrap_or_default();
        let text = "The user lives in Lisbon, and lived in Graz before.";
        let decision = json!({ "event": "update", "id": shown["known"][0]["id"], "text": text });
        Script::new().text(json!({ "decisions": [decision] }).to_string())
    });
    let facts = ["The user lives in Graz.", "The user has a dog named Rex."];
    ScriptedModel::new([
        finds(&facts),
        finds(&["The user lives in Lisbon now."]),
        corrects,
        finds(&[]),
    ])
}

/// The text of the last message of a request.
fn last_text(request: &Request) -> String {
    match request.entries.last().map(|stored| &stored.entry) {
        Some(Entry::User(message)) => message
            .content
            .iter()
            .filter_map(Content::as_text)
            .collect(),
        _ => String::new(),
    }
}

async fn show(memories: &Memories) -> Result<Vec<Fact>, Box<dyn std::error::Error>> {
    let facts = memories.list(None, 100).await?;
    let mut texts: Vec<&str> = facts.iter().map(|fact| &*fact.text).collect();
    texts.sort_unstable();
    texts.iter().for_each(|text| println!("  * {text}"));
    Ok(facts)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let memories = Memories::new(InMemory::default(), "ada").model(helper());
    let model = ScriptedModel::new([
        Script::new().text("Nice to meet you both."),
        Script::new().text("Lisbon, how lovely!"),
        Script::from_fn(|request| {
            Script::new().text(format!("I was shown: {}", last_text(request)))
        }),
    ]);
    let agent = Agent::new(model)
        .middleware(memories.extract(Extraction::Background))
        .effect(memories.recall());

    agent.run("I live in Graz, with my dog Rex.").await?;
    memories.flush().await;
    println!("after the first session:");
    show(&memories).await?;

    agent.new_session().run("We moved to Lisbon!").await?;
    memories.flush().await;
    println!("after the second session:");
    let facts = show(&memories).await?;

    let mut running = agent
        .new_session()
        .run("Tell me about my dog and Lisbon.")
        .stream()?;
    while let Some(event) = running.next().await {
        if let EventKind::Report { by, data } = event.kind {
            println!(
                "{by}: {} facts recalled",
                data["recalled"].as_array().map_or(0, Vec::len)
            );
        }
    }
    println!(
        "{}",
        running
            .result()
            .ok_or("it has ended")?
            .map_err(Clone::clone)?
            .text()
    );

    memories.flush().await;
    for fact in &facts {
        memories.delete(&fact.id).await?;
    }
    println!("forgotten: {}", memories.list(None, 1).await?.is_empty());
    println!(
        "spent on it: {}",
        if memories.spent().usage.total() > 0 {
            "something"
        } else {
            "nothing"
        }
    );
    Ok(())
}
