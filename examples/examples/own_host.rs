//! A program with its own toolbox, effect and model, which a manifest names: host and operator in one.
//!
//! `own_host <folder>` creates an agent there, in a separate process of this program.

use std::{path::Path, process::ExitCode, sync::Arc};

use adjutant::{
    agent::{Action, Effect, EffectContext, EffectError},
    llm::{Script, ScriptedModel},
    runtime::{
        Backend, Manifest, Overrides, Parts,
        backend::{Process, ProcessOptions},
        host,
        prompt::PromptRequest,
    },
    tool,
    tools::Tools,
};
use async_trait::async_trait;
use serde_json::json;
use uuid::Uuid;

const MANIFEST: &str = "
adjutant: 1
name: clerk
model: house/small
toolboxes: [till]
effects: [{ kind: closing_time, params: { hour: 18 } }]
";

/// Counts the money in the till.
#[tool]
fn count_till() -> String {
    "40 euros".to_owned()
}

/// Reminds of the hour at which the shop is closed.
#[derive(serde::Deserialize)]
struct ClosingTime {
    hour: u8,
}

#[async_trait]
impl Effect for ClosingTime {
    fn kind(&self) -> &str {
        "closing_time"
    }

    async fn act(&self, _: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        Ok(vec![Action::Remind(
            format!("The shop is closed at {}.", self.hour).into(),
        )])
    }
}

fn parts() -> Parts {
    let closing = Script::from_fn(|request| {
        let told = request
            .entries
            .iter()
            .any(|it| it.entry.to_text().contains("closed at 18"));
        let hour = if told {
            "18"
        } else {
            "an hour that nobody knows"
        };
        Script::new().text(format!("There are 40 euros, and we close at {hour}."))
    });
    let model = ScriptedModel::new([Script::new().call("count_till", json!({})), closing]);
    let till = Tools::new("till").tool(count_till);
    Parts::new()
        .toolbox("till", till)
        .effect::<ClosingTime>("closing_time")
        .model("house/small", model)
}

fn main() -> ExitCode {
    if let Some(code) = host::main(parts) {
        return code;
    }
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    match operate(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn operate(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let file = folder.join("adjutant.yaml");
    std::fs::write(&file, MANIFEST)?;
    let none = |_: &str| None;
    // An unknown name is refused, with the closest known one.
    let wrong = Manifest::load(&file, none)
        .err()
        .ok_or("the parts are needed")?;
    wrong
        .iter()
        .take(1)
        .for_each(|problem| println!("without them: {}", problem.message));
    let loaded = Manifest::load_with(&file, none, &parts().names())?;
    let backend = Process::new(folder.join("home"), None, ProcessOptions::new())?;
    let clerk = backend
        .create(Uuid::new_v4(), loaded.resolve(Overrides::default())?)
        .await?;
    clerk.prepare().await?;
    clerk.start().await?;
    let prompter = clerk.prompter().await?;
    let reply = Arc::clone(&prompter)
        .prompt(PromptRequest::new("What is in the till?"))
        .await?;
    println!("{}", reply.text);
    clerk.stop().await?;
    Ok(())
}
