//! A background task: a researcher searches a folder while the lead continues, and reports to the lead when it is
//! done.
//!
//! Run it with a folder: `cargo run -p adjutant-examples --example background -- examples`

use std::error::Error;

use adjutant::{
    Agent, EventKind,
    llm::{Entry, Gate, Request, Script, ScriptedModel, Usage},
    orchestration::{AgentTree, AtEnd, Background, BackgroundOptions},
    toolkit::Files,
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let files = Files::new(folder)?;
    // The researcher is slow here: it begins to answer when the lead has done something else.
    let slow = Gate::default();
    let until = slow.clone();
    let research = [
        Script::new()
            .call("search_text", json!({"pattern": "^\\[package\\]"}))
            .usage(token_usage(400, 30)),
        Script::from_fn(move |request| {
            Script::new()
                .text(newest(request))
                .usage(token_usage(600, 50))
                .wait_at(0, &until)
        }),
    ];
    let researcher = Agent::new(ScriptedModel::new(research))
        .name("researcher")
        .toolbox(files.toolbox());
    let background = Background::new(BackgroundOptions::new().at_end(AtEnd::Wait));
    let background = background.agent("researcher", "Searches the files.", researcher);

    let task = json!({"agent": "researcher", "task": "Where do packages begin?"});
    let script = [
        Script::new()
            .call("launch_task", task)
            .usage(token_usage(900, 40)),
        Script::new()
            .call("read_file", json!({"path": "Cargo.toml", "end_line": 2}))
            .usage(token_usage(1_000, 40)),
        Script::new()
            .text("I have read the manifest. The research is still on its way.")
            .usage(token_usage(1_100, 20)),
        Script::from_fn(|request| {
            Script::new()
                .text(newest(request))
                .usage(token_usage(1_300, 60))
        }),
    ];
    let lead = Agent::new(ScriptedModel::new(script))
        .name("lead")
        .toolbox(files.toolbox());
    let lead = background.install(lead);

    let (mut running, mut tree) = (lead.run("Look around.").stream()?, AgentTree::new());
    while let Some(event) = running.next().await {
        tree.see(&event);
        match &event.kind {
            EventKind::ToolFinished { result, .. } if event.who.depth == 0 => {
                println!("> {}", result.text().trim_end())
            }
            EventKind::ReplyFinished { reply, .. }
                if event.who.depth == 0 && reply.calls().next().is_none() =>
            {
                println!("{}", reply.text());
                slow.open();
            }
            EventKind::App { kind, data, .. } => println!("{kind}: {}", data["task_id"]),
            _ => {}
        }
    }
    print!("{tree}");
    Ok(())
}

/// The newest results of calls, or the newest message.
fn newest(request: &Request) -> String {
    match request.entries.last().map(|stored| &stored.entry) {
        Some(Entry::Turn(turn)) => turn
            .results()
            .iter()
            .map(|result| result.text().trim_end().to_owned())
            .collect(),
        Some(Entry::User(message)) => message
            .content
            .iter()
            .filter_map(|content| content.as_text())
            .collect(),
        _ => String::new(),
    }
}

fn token_usage(input_uncached: u64, output: u64) -> Usage {
    Usage {
        input_uncached,
        output,
        ..Usage::default()
    }
}
