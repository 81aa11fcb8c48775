//! Work that lasts days: a run with a template and state waits in a file, its process is killed, and another one answers.
//!
//! `days <file> begin` waits and is killed; `days <file> answer` is refused first, because a hook takes no such sum.

use adjutant::{
    Agent,
    agent::{
        Error, HookContext, Verdict,
        instructions::{Instructions, Template},
        points::BeforeTool,
    },
    llm::{Script, ScriptedModel},
    store::Sqlite,
    tool,
    tools::Answer,
};
use serde_json::json;

/// Sends money.
#[tool(approval)]
fn pay(amount: u64, to: String) -> String {
    format!("paid {amount} to {to}")
}

/// The same agent in every process; its customer was set when the run began, and is in the file.
fn clerk(file: &str, script: Script) -> Result<Agent, Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([script]);
    let instructions =
        Instructions::default().template(Template::new("You pay the bills of {{ client }}.")?);
    let policy = |_: HookContext, point: BeforeTool| async {
        if point.args["amount"].as_u64() > Some(100) {
            Verdict::Deny("more than 100".into())
        } else {
            Verdict::Pass(point)
        }
    };
    let agent = Agent::new(model)
        .name("clerk")
        .instructions(instructions)
        .tool(pay)
        .on(policy);
    Ok(agent
        .journal(Sqlite::open(file)?.journal())
        .session("bills".into()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (file, word) = (
        args.next().ok_or("which file?")?,
        args.next().ok_or("begin, or answer?")?,
    );
    if word == "begin" {
        let agent = clerk(
            &file,
            Script::new().call("pay", json!({"amount": 40, "to": "Ada"})),
        )?;
        let waiting = agent
            .run("Pay Ada her 40.")
            .state("client", "Ada Ltd")
            .await?;
        for pause in waiting.pauses() {
            let call = pause.call.as_ref().ok_or("a call waits")?;
            println!("{} asks for {} {}", pause.agent, call.name, call.args);
        }
        std::process::abort();
    }
    let agent = clerk(
        &file,
        Script::from_fn(|request| Script::new().text(format!("Done. {}", request.system))),
    )?;
    for amount in [4_000, 44] {
        agent.log().open().await?;
        let edited = Answer::approve_with(json!({"amount": amount, "to": "Ada"}).to_string());
        let answers = agent
            .log()
            .pauses()
            .iter()
            .map(|pause| pause.with_answer(edited.clone()))
            .collect();
        let result = agent
            .resume(answers)
            .await
            .map_err(|error: Error| error.to_string())?;
        match result.pauses() {
            [] => println!("{}: {}", result.calls[0].result.text(), result.text()),
            pauses => println!("{amount} was refused: {}", pauses[0].refused.join(", ")),
        }
    }
    Ok(())
}
