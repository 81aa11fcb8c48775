//! Fan-out: every file of a folder is read by its own agent, at most four at a time, and one agent summarizes.
//!
//! Run it with a folder: `cargo run -p adjutant-examples --example fan_out -- examples/src`

use std::{error::Error, fs, path::Path};

use adjutant::{
    Agent,
    llm::{Entry, Request, Script, ScriptedModel, Usage},
    orchestration::{AgentTree, FanOutOptions, fan_out_tool},
    toolkit::Files,
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let files = files(Path::new(&folder))?;
    let template = reader(files.len())
        .name("reader")
        .toolbox(Files::new(&folder)?.toolbox());
    let options = FanOutOptions::new().max_concurrency(4);
    let summarise = fan_out_tool(
        "summarise",
        "Sums up each of several files.",
        template,
        options,
    );
    let script = [
        Script::new()
            .call("summarise", json!({"tasks": files}))
            .usage(token_usage(900, 100)),
        Script::from_fn(|request| {
            Script::new()
                .text(results(request))
                .usage(token_usage(1_900, 100))
        }),
    ];
    let lead = Agent::new(ScriptedModel::new(script))
        .name("lead")
        .tool(summarise);

    let (mut running, mut tree) = (
        lead.run("What is in these files?").stream()?,
        AgentTree::new(),
    );
    while let Some(event) = running.next().await {
        tree.see(&event);
    }
    println!(
        "{}",
        running
            .result()
            .ok_or("it has ended")?
            .map_err(Clone::clone)?
            .text()
    );
    print!("{tree}");
    Ok(())
}

/// The files of a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// An agent that reads the given file and returns its first line: offline, instead of a model that can read.
fn reader(files: usize) -> Agent {
    let script = |_| {
        Script::from_fn(|request: &Request| {
            match request.entries.last().map(|stored| &stored.entry) {
                Some(Entry::User(message)) => {
                    let path: String = message
                        .content
                        .iter()
                        .filter_map(|content| content.as_text())
                        .collect();
                    Script::new()
                        .call("read_file", json!({"path": path, "end_line": 1}))
                        .usage(token_usage(400, 20))
                }
                _ => {
                    let text = results(request);
                    let line = text.lines().next().unwrap_or_default();
                    let line =
                        line.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit());
                    Script::new()
                        .text(line.trim_start_matches("//! "))
                        .usage(token_usage(500, 80))
                }
            }
        })
    };
    Agent::new(ScriptedModel::new((0..2 * files).map(script)))
}

/// The results of the newest calls.
fn results(request: &Request) -> String {
    match request.entries.last().map(|stored| &stored.entry) {
        Some(Entry::Turn(turn)) => turn
            .results()
            .iter()
            .map(|result| result.text().trim_end().to_owned())
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
