//! Guardrails: an input check, an output check, a hook that denies calls, and a log of all events.

use std::sync::Arc;

use adjutant::{
    Agent,
    agent::{HookContext, InputGuardrail, Logger, OutputGuardrail, Verdict, points::BeforeTool},
    llm::{Entry, Reply, Script, ScriptedModel},
    tool,
};
use serde_json::json;

/// Deletes a file.
#[tool]
fn delete(path: String) -> String {
    format!("deleted {path}")
}

/// Prompts must not ask for a password.
async fn clean(prompts: Arc<[Entry]>) -> Result<(), Arc<str>> {
    let asks = |entry: &Entry| matches!(entry, Entry::User(message) if format!("{message:?}").contains("password"));
    if prompts.iter().any(asks) {
        Err("it asks for a password".into())
    } else {
        Ok(())
    }
}

/// No answer may name a customer.
async fn anonymous(reply: Arc<Reply>) -> Result<(), Arc<str>> {
    if reply.text().contains("Ada") {
        Err("it names a customer".into())
    } else {
        Ok(())
    }
}

fn build_agent(script: impl IntoIterator<Item = Script>) -> Agent {
    Agent::new(ScriptedModel::new(script))
        .tool(delete)
        .on(|_: HookContext, point: BeforeTool| async move {
            match point.args["path"].as_str() {
                Some(path) if path.starts_with("/etc") => {
                    Verdict::Deny("the system stays as it is".into())
                }
                _ => Verdict::Pass(point),
            }
        })
        .middleware(Logger)
        .middleware(InputGuardrail::new("no secrets", clean))
        .middleware(OutputGuardrail::new("no names", anonymous))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let refused = build_agent([])
        .run("What is my password?")
        .await
        .expect_err("the guardrail rejects it");
    println!("{refused}");

    let script = [
        Script::new().call("delete", json!({"path": "/etc/hosts"})),
        Script::new().text("I may not."),
    ];
    let result = build_agent(script).run("Clean up.").await?;
    println!(
        "{:?}: {}",
        result.calls[0].result.status,
        result.calls[0].result.text()
    );
    println!("{}", result.text());

    let refused = build_agent([Script::new().text("Ada owes 40.")])
        .run("Who owes what?")
        .await;
    println!("{}", refused.expect_err("the guardrail rejects the answer"));
    Ok(())
}
