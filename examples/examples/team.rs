//! A team with messages: a reader searches a folder and reports to a writer, who asks the lead for a title before
//! writing.
//!
//! Run it with a folder: `cargo run -p adjutant-examples --example team -- examples`

use std::{collections::BTreeMap, error::Error};

use adjutant::{
    Agent, EventKind,
    llm::{Entry, Request, Script, ScriptedModel, Usage},
    orchestration::team::Team,
    toolkit::Files,
};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let files = Files::new(folder)?;
    let team = Team::new("catalogue")
        .template("reader", reader().toolbox(files.toolbox()))
        .template("writer", writer())
        .templates_only()
        .coordinator();
    let lead = team.install(lead());

    let mut running = lead
        .run("Write down which packages this folder holds.")
        .stream()?;
    let (mut said, mut results) = (
        BTreeMap::<String, Vec<String>>::new(),
        BTreeMap::<String, String>::new(),
    );
    while let Some(event) = running.next().await {
        let EventKind::App { kind, data, .. } = &event.kind else {
            continue;
        };
        let text = |field: &str| data[field].as_str().unwrap_or_default().to_owned();
        match &**kind {
            "team.message" => {
                let line = format!(
                    "to {}: {}",
                    text("to"),
                    text("content").replace('\n', " | ")
                );
                said.entry(text("from")).or_default().push(line);
            }
            "team.completed" => {
                drop(results.insert(text("name"), text("text").replace('\n', " | ")))
            }
            _ => {}
        }
    }
    let result = running
        .result()
        .ok_or("it has ended")?
        .map_err(Clone::clone)?;
    println!("lead: {} tokens with its team", result.total_usage.total());
    said.remove("lead")
        .into_iter()
        .flatten()
        .for_each(|line| println!("├─ {line}"));
    for (name, result) in results {
        println!("├─ {name}");
        said.remove(&name)
            .into_iter()
            .flatten()
            .for_each(|line| println!("│  ├─ {line}"));
        println!("│  └─ ended with: {result}");
    }
    println!("└─ {}", result.text().replace('\n', "\n   "));
    Ok(())
}

/// Spawns both, answers the writer, and gives its text.
fn lead() -> Agent {
    let spawn = |name, task| turn().call("spawn_teammate", json!({"name": name, "task": task}));
    let script = [
        spawn(
            "writer",
            "Write the list that the reader sends you, under a title that I choose.",
        ),
        spawn("reader", "Find the packages, and tell the writer."),
        turn().call(
            "wait_for_message",
            json!({"from": "writer", "timeout_s": 60}),
        ),
        turn().call(
            "send_message",
            json!({"to": "writer", "content": "Call it: What is here"}),
        ),
        turn().call("wait_for_team", json!({"timeout_s": 60})),
        turn().call("read_messages", json!({})),
        Script::from_fn(|request| turn().text(message_of("writer", request))),
    ];
    Agent::new(ScriptedModel::new(script)).name("lead")
}

/// Searches, and sends the result to the writer.
fn reader() -> Agent {
    let script = [
        turn().call("search_text", json!({"pattern": "^name = "})),
        Script::from_fn(|request| {
            turn().call(
                "send_message",
                json!({"to": "writer", "content": newest(request)}),
            )
        }),
        turn().text("I have told the writer."),
    ];
    Agent::new(ScriptedModel::new(script))
}

/// Waits for the search result and the title.
fn writer() -> Agent {
    // The reader may join later, so the first message can come from any member.
    let script = [
        turn().call("wait_for_message", json!({"timeout_s": 60})),
        turn().call(
            "send_message",
            json!({"to": "lead", "content": "What title shall it have?"}),
        ),
        turn().call("wait_for_message", json!({"from": "lead", "timeout_s": 60})),
        Script::from_fn(|request| {
            let title = message_of("lead", request);
            let title = title.trim_start_matches("Call it: ");
            turn().text(format!("{title}\n{}", message_of("reader", request)))
        }),
    ];
    Agent::new(ScriptedModel::new(script))
}

/// A reply that uses 200 tokens.
fn turn() -> Script {
    Script::new().usage(Usage {
        input_uncached: 180,
        output: 20,
        ..Usage::default()
    })
}

/// The results of all calls so far, newest first.
fn results(request: &Request) -> Vec<String> {
    let turns = request
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(
                turn.results()
                    .iter()
                    .map(|result| result.text())
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        });
    let mut all: Vec<String> = turns.flatten().collect();
    all.reverse();
    all
}

fn newest(request: &Request) -> String {
    results(request).into_iter().next().unwrap_or_default()
}

/// The newest message from a sender that was read.
fn message_of(from: &str, request: &Request) -> String {
    let messages = |text: String| serde_json::from_str::<Vec<Value>>(&text).unwrap_or_default();
    let mut all = results(request).into_iter().flat_map(messages);
    let found = all.find(|message| message["from"] == from);
    found
        .and_then(|message| message["content"].as_str().map(str::to_owned))
        .unwrap_or_default()
}
