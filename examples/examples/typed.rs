//! A run with a struct as its answer: the agent uses its tools, and is asked for two corrections in the same run. Scripted.

use adjutant::{
    Agent,
    agent::{Caps, Limits},
    llm::{Script, ScriptedModel},
    tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// A bill.
#[derive(Debug, Deserialize, JsonSchema)]
struct Invoice {
    customer: String,
    cents: u32,
}

/// Looks up the orders of a customer.
#[tool(replay = "pure")]
fn order(customer: String) -> String {
    format!("{customer}: one kettle, 12 dollars")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        Script::new().call("order", json!({"customer": "Ada"})),
        Script::new().text(r#"{"customer": "Ada", "cents": "twelve hundred"}"#),
        Script::new().text(r#"{"customer": "Ada", "cents": 12}"#),
        Script::new().text(r#"{"customer": "Ada", "cents": 1200}"#),
    ]);
    let caps = Caps {
        requests: Some(4),
        ..Caps::default()
    };
    let agent = Agent::new(model).tool(order).limits(Limits {
        caps,
        ..Limits::default()
    });
    let fair = |invoice: Invoice| async move {
        if invoice.cents < 100 {
            Err("nothing costs less than a dollar".to_owned())
        } else {
            Ok(())
        }
    };
    let came = agent
        .run("What does Ada owe?")
        .output::<Invoice>()
        .validate(fair)
        .await?;
    println!(
        "{} owes {} cents, after {} requests",
        came.value.customer, came.value.cents, came.result.turns
    );
    Ok(())
}
