//! A run as a stream of events: text as it comes, tools as they start and finish. Scripted, so it needs no key.

use adjutant::{
    Agent, EventKind, Outcome,
    llm::{Script, ScriptedModel},
    tool,
};
use serde_json::json;

/// Counts the words of a text.
#[tool]
fn count_words(text: String) -> usize {
    text.split_whitespace().count()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        Script::new()
            .text("Let me count.")
            .call("count_words", json!({"text": "to be or not to be"})),
        Script::new().text("There are six words."),
    ]);
    let agent = Agent::new(model).tool(count_words);
    let mut running = agent
        .run("How many words are in `to be or not to be`?")
        .stream()?;
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::TextDelta { text, .. } => print!("{text}"),
            EventKind::ReplyFinished { .. } => println!(),
            EventKind::ToolStarted { name, args, .. } => println!("> {name} {args}"),
            EventKind::ToolFinished { name, result, .. } => println!("< {name} {}", result.text()),
            EventKind::RunFinished { result } => match &result.outcome {
                Outcome::Finished { .. } => println!("finished after {} turns", result.turns),
                other => println!("ended: {other:?}"),
            },
            _ => {}
        }
    }
    Ok(())
}
