//! A lead with three specialists and a board: three tasks at once over real files; one fails, and its second attempt
//! gets the lessons of the first.
//!
//! Offline, on real files: `cargo run -p adjutant-examples --example lead -- crates/adjutant-tool`

use std::sync::Arc;

use adjutant::{
    Agent, EventKind,
    agent::kv::MemoryKvStore,
    llm::{CallResult, Entry, Request, Script, ScriptedModel, Usage},
    orchestration::{
        AgentTree, Delegation, Profile, Reflections, Registry,
        board::{Board, BoardTools, TaskQuery},
    },
    toolkit::Files,
};
use serde_json::{Value, json};

/// The three tasks and their agents.
const TASKS: [(&str, &str); 3] = [
    ("counter", "Count the Rust files"),
    ("reader", "Read what the crate says of itself"),
    ("finder", "Find where the trait Toolbox is defined"),
];
/// The text that the finder looks for.
const SOUGHT: &str = "pub trait Toolbox";

/// A model with these replies; each request uses 100 tokens.
fn model(replies: impl IntoIterator<Item = Script>) -> ScriptedModel {
    let used = Usage {
        input_uncached: 80,
        output: 20,
        ..Usage::default()
    };
    ScriptedModel::new(replies.into_iter().map(|reply| reply.usage(used)))
}

/// A reply that is computed from the request.
fn compute_reply(think: impl FnOnce(&Request) -> Script + Send + 'static) -> Script {
    Script::from_fn(move |request| {
        think(request).usage(Usage {
            input_uncached: 80,
            output: 20,
            ..Usage::default()
        })
    })
}

/// The name, purpose and model of an agent.
type Specialist = (&'static str, &'static str, fn() -> ScriptedModel);

/// The results of the newest calls.
fn results(request: &Request) -> Vec<Arc<CallResult>> {
    let mut turns = request
        .entries
        .iter()
        .rev()
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(turn.results().to_vec()),
            _ => None,
        });
    turns.next().unwrap_or_default()
}

fn text(request: &Request) -> String {
    results(request)
        .first()
        .map(|result| result.text())
        .unwrap_or_default()
}

fn report(status: &str, summary: impl Into<String>) -> Script {
    Script::new().call(
        "task_complete",
        json!({ "status": status, "summary": summary.into() }),
    )
}

/// Counts the entries of a listing.
fn counter() -> ScriptedModel {
    let count = |request: &Request| {
        let files = text(request)
            .lines()
            .filter(|line| line.contains(".rs"))
            .count();
        report("completed", format!("There are {files} Rust files."))
    };
    model([
        Script::new().call("list_files", json!({ "path": "src", "depth": 1 })),
        compute_reply(count),
    ])
}

/// Reads the manifest.
fn reader() -> ScriptedModel {
    let quote = |request: &Request| {
        let manifest = text(request);
        let about = manifest
            .lines()
            .find_map(|line| line.split_once("description = "));
        report(
            "completed",
            format!("It says: {}", about.map_or("nothing", |(_, about)| about)),
        )
    };
    model([
        Script::new().call("read_file", json!({ "path": "Cargo.toml" })),
        compute_reply(quote),
    ])
}

/// Guesses a file; with the lesson of a failure it searches instead.
fn finder() -> ScriptedModel {
    let begin = |request: &Request| {
        let is_told = request
            .entries
            .iter()
            .any(|it| format!("{:?}", it.entry).contains("<prior_reflections>"));
        match is_told {
            true => Script::new().call("search_text", json!({ "pattern": SOUGHT })),
            false => Script::new().call("read_file", json!({ "path": "src/traits.rs" })),
        }
    };
    let end = |request: &Request| {
        let found = text(request);
        let line = found
            .lines()
            .find(|line| line.contains("src/") && line.contains(".rs"));
        match line.filter(|_| !results(request).iter().any(|result| result.is_error())) {
            Some(line) => report("completed", format!("It is in {}", path(line))),
            None => report(
                "failed",
                format!("There is no src/traits.rs; search for {SOUGHT:?} instead of guessing."),
            ),
        }
    };
    model([compute_reply(begin), compute_reply(end)])
}

/// The path in a line of search results.
fn path(line: &str) -> &str {
    line.split(|c: char| c.is_whitespace() || c == ':')
        .find(|word| word.ends_with(".rs"))
        .unwrap_or(line)
}

/// A task of the board, for its agent.
fn order(created: &Value) -> Value {
    let title = created["title"].as_str().unwrap_or_default();
    let agent = TASKS
        .iter()
        .find(|(_, task)| *task == title)
        .map_or("nobody", |(agent, _)| agent);
    json!({ "agent": agent, "task": title, "context": "The crate is in your folder.", "task_id": created["id"] })
}

/// Creates the tasks, delegates them in one call, and delegates again what failed.
fn lead() -> ScriptedModel {
    let create = TASKS.into_iter().fold(Script::new(), |it, (_, title)| {
        it.call("create_task", json!({ "title": title }))
    });
    let delegate = |request: &Request| {
        let tasks: Vec<Value> = results(request)
            .iter()
            .map(|created| order(&created.details))
            .collect();
        Script::new().call("delegate", json!({ "tasks": tasks }))
    };
    let failed = |_: &Request| Script::new().call("list_tasks", json!({ "status": "failed" }));
    let retry = |request: &Request| {
        let listed = results(request)[0].details["tasks"].clone();
        let all = listed.as_array().cloned().unwrap_or_default();
        all.iter().fold(Script::new(), |script, task| {
            script.call("retry_task", json!({ "task_id": task["id"] }))
        })
    };
    model([
        create,
        compute_reply(delegate),
        compute_reply(failed),
        compute_reply(retry),
        compute_reply(delegate),
        Script::new().text("All three are done."),
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = Files::new(std::env::args().nth(1).unwrap_or_else(|| ".".into()))?;
    let notes = std::env::temp_dir().join(format!("adjutant-lead-{}", std::process::id()));
    let board = Board::new(Arc::new(MemoryKvStore::default()));
    let registry = Registry::new();
    let specialists: [Specialist; 3] = [
        ("counter", "Counts files.", counter),
        ("reader", "Reads files.", reader),
        ("finder", "Finds definitions.", finder),
    ];
    for (name, about, model) in specialists {
        let files = files.clone();
        registry.register(Profile::new(name, about), move || {
            Agent::new(model()).toolbox(files.toolbox())
        });
    }
    let delegation = Delegation::new(registry).max_depth(1).board(board.clone());
    let delegation = delegation.reflections(Reflections::in_dir(&notes));
    let lead = Agent::new(lead())
        .name("lead")
        .toolbox(board.tools(BoardTools::new()));

    let mut running = delegation
        .install(lead)
        .run("What is this crate?")
        .stream()?;
    let (mut tree, mut told) = (AgentTree::new(), Vec::new());
    while let Some(event) = running.next().await {
        tree.see(&event);
        if let EventKind::EntryAdded { content: entry, .. } = &event.kind {
            told.extend(find_lesson(&event.who.name, entry));
        }
    }
    print!("{tree}");
    for listed in board.list(&TaskQuery::new()).await?.tasks {
        let task = listed.task;
        let (tries, result) = (task.attempts, task.result.as_deref().unwrap_or_default());
        println!(
            "[{}, attempt {tries}] {}: {result}",
            task.status.name(),
            task.title
        );
    }
    told.iter().for_each(|line| println!("{line}"));
    std::fs::remove_dir_all(notes)?;
    Ok(())
}

/// The lessons of earlier failures in an agent's context.
fn find_lesson(who: &str, entry: &Entry) -> Option<String> {
    let Entry::User(message) = entry else {
        return None;
    };
    let text: String = message
        .content
        .iter()
        .filter_map(|content| content.as_text())
        .collect();
    let line = text
        .lines()
        .find(|line| line.starts_with("What happened: "))?;
    text.starts_with("<prior_reflections>")
        .then(|| format!("{who} was told: {line}"))
}
