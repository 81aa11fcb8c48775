//! A conversation that changes its provider: the second model reads the history of the first. Scripted, without keys.

use std::sync::Arc;

use adjutant::{
    Agent,
    llm::{Entry, ModelInfo, Script, ScriptedModel},
    tool,
};
use serde_json::json;

/// Looks up how many people live in a city.
#[tool]
fn population(city: String) -> Result<u64, String> {
    match &*city {
        "Bamako" => Ok(2_713_000),
        _ => Err(format!("no such city: {city}")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In their place: adjutant::model("anthropic/claude-sonnet-5")? and adjutant::model("openai/gpt-5.4")?.
    let first = ScriptedModel::new([
        Script::new().call("population", json!({"city": "Bamako"})),
        Script::new().text("About 2.7 million."),
    ])
    .info(ModelInfo::new("anthropic/claude-sonnet-5"));
    let script = ScriptedModel::new([Script::new().text("That is 2,713,000, as the tool says.")]);
    let second = Arc::new(script.info(ModelInfo::new("openai/gpt-5.4")));

    let agent = Agent::new(first).tool(population);
    println!(
        "{}",
        agent.run("How many people live in Bamako?").await?.text()
    );
    println!(
        "{}",
        agent
            .run("Say it exactly.")
            .model(Arc::clone(&second))
            .await?
            .text()
    );

    // The history for the second model includes calls and results; a wire omits only content that another one signed.
    for stored in second.requests()[0].entries.iter() {
        match &stored.entry {
            Entry::User(message) => {
                println!("user: {}", message.content[0].as_text().unwrap_or_default())
            }
            Entry::Turn(turn) => {
                let reply = turn.reply();
                println!(
                    "{}: {:?}, {} results",
                    reply.model,
                    reply.text(),
                    turn.results().len()
                );
            }
            _ => {}
        }
    }
    Ok(())
}
