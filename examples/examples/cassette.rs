//! A model that is recorded once and played ever after: the same agent, without the provider.

use std::{error::Error, fs::File, io::BufReader};

use adjutant::{
    Agent, Model,
    llm::{Cassette, Recorder, Replay, Script, ScriptedModel},
    tool,
};
use serde_json::json;

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// The agent: it takes any model.
fn adder(model: impl Model + 'static) -> Agent {
    Agent::new(model)
        .instructions("You are a calculator.")
        .tool(add)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("adjutant-{}.cassette", std::process::id()));
    // In its place: adjutant::model("anthropic/claude-sonnet-5")?.
    let model = ScriptedModel::new([
        Script::new().call("add", json!({"a": 17, "b": 25})),
        Script::new().text("It is 42."),
    ]);
    println!(
        "recorded: {}",
        adder(Recorder::new(model, File::create(&path)?))
            .run("What is 17 plus 25?")
            .await?
            .text()
    );

    let cassette = Cassette::read(BufReader::new(File::open(&path)?))?;
    std::fs::remove_file(&path)?;
    println!("{} exchanges", cassette.exchanges.len());
    println!(
        "played: {}",
        adder(Replay::new(cassette.clone()))
            .run("What is 17 plus 25?")
            .await?
            .text()
    );

    // A request that was not recorded is an error that shows the difference.
    match adder(Replay::new(cassette))
        .run("What is 17 plus 24?")
        .await
    {
        Ok(result) => Err(format!("it was not recorded: {}", result.text()).into()),
        Err(error) => {
            println!("another question: {error}");
            Ok(())
        }
    }
}
