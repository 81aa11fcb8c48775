//! Approval across a restart: the run waits in a file until an approval, days later and in another process.
//!
//! `approval <file>` starts and parks; `approval <file> approve` or `deny` resumes from the file.

#[path = "approval/file.rs"]
mod file;

use adjutant::{
    Agent, Outcome,
    agent::LogId,
    llm::{Script, ScriptedModel},
    tool,
    tools::Answer,
};
use serde_json::json;

/// Sends money.
#[tool(approval)]
fn pay(amount: u64, to: String) -> String {
    format!("paid {amount} to {to}")
}

/// The same agent in every process: the pending call is in the file.
fn treasurer(script: impl IntoIterator<Item = Script>, path: &str) -> Agent {
    let agent = Agent::new(ScriptedModel::new(script))
        .instructions("You pay bills.")
        .tool(pay);
    agent
        .journal(file::FileJournal::new(path))
        .session(LogId("bills".into()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which file?")?;
    let Some(word) = args.next() else {
        let agent = treasurer(
            [Script::new().call("pay", json!({"amount": 40, "to": "Ada"}))],
            &path,
        );
        let result = agent.run("Pay Ada her 40.").await?;
        let Outcome::Paused { pauses } = &result.outcome else {
            return Err("it should have asked".into());
        };
        for pause in pauses {
            let call = pause.call.as_ref().ok_or("a call waits")?;
            println!("{} waits: {} {}", pause.id, call.name, call.args);
        }
        return Ok(());
    };
    let agent = treasurer([Script::new().text("That is done.")], &path);
    let answer = if word == "approve" {
        Answer::approve()
    } else {
        Answer::deny("not this month")
    };
    agent.log().open().await?;
    let answers = agent
        .log()
        .pauses()
        .into_iter()
        .map(|pause| pause.with_answer(answer.clone()));
    let result = agent.resume(answers.collect()).await?;
    println!(
        "{:?}: {}",
        result.calls[0].result.status,
        result.calls[0].result.text()
    );
    println!("{}", result.text());
    Ok(())
}
