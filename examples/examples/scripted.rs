//! How to test an agent: a scripted model returns fixed replies and records its requests.

use std::sync::Arc;

use adjutant::{
    Agent, Completion, Model, Outcome,
    llm::{Entry, Script, ScriptedModel, Status},
    tool,
};
use serde_json::json;

/// Divides one whole number by another.
#[tool]
fn divide(a: i64, b: i64) -> Result<i64, String> {
    a.checked_div(b)
        .ok_or_else(|| "cannot divide by zero".to_owned())
}

/// The agent under test: it takes any model.
fn calculator(model: impl Model + 'static) -> Agent {
    Agent::new(model)
        .instructions("You are a calculator.")
        .tool(divide)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Arc::new(ScriptedModel::new([
        Script::new().call("divide", json!({"a": 1, "b": 0})),
        Script::new().text("That cannot be divided."),
    ]));
    let result = calculator(Arc::clone(&model))
        .run("What is one divided by zero?")
        .await?;

    assert!(matches!(
        result.outcome,
        Outcome::Finished {
            why: Completion::Answer,
            ..
        }
    ));
    assert_eq!(
        (result.text().as_str(), result.turns),
        ("That cannot be divided.", 2)
    );
    let call = &result.calls[0].result;
    assert_eq!(
        (call.status, call.text().as_str()),
        (Status::Failed, "cannot divide by zero")
    );

    let requests = model.requests();
    assert_eq!(
        (requests.len(), &*requests[1].system),
        (2, "You are a calculator.")
    );
    let Some(Entry::Turn(turn)) = requests[1].entries.last().map(|stored| &stored.entry) else {
        return Err("the second request ends with the turn of the call".into());
    };
    assert_eq!(turn.results(), [Arc::clone(call)]);
    model.assert_done();
    println!("the calculator tells the model that it cannot divide by zero");
    Ok(())
}
