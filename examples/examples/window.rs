//! A model with a small window and a conversation twenty times as large: no request passes what fits. Scripted.

use std::sync::Arc;

use adjutant::{
    Agent,
    llm::{Estimate, Model, ModelInfo, Script, ScriptedModel},
    tool,
};
use serde_json::json;

/// Reads a chapter.
#[tool(replay = "pure")]
fn read_chapter(n: u64) -> String {
    format!("line of chapter {n}\n").repeat(1_000)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let info = ModelInfo {
        context_window: 20_000,
        max_output_tokens: 4_000,
        ..ModelInfo::new("scripted/small")
    };
    let reads = (1..=20).map(|n| Script::new().call("read_chapter", json!({ "n": n })));
    let model = Arc::new(
        ScriptedModel::new(reads.chain([Script::new().text("They are all much the same.")]))
            .info(info),
    );
    let agent = Agent::new(Arc::clone(&model))
        .instructions("You read books.")
        .tool(read_chapter);
    let result = agent.run("What do the chapters say?").await?;

    let said: usize = result
        .calls
        .iter()
        .map(|call| call.result.text().len())
        .sum();
    let tokens = |request: &adjutant::llm::Request| {
        request.entries.tokens() + Estimate.count(&request.system)
    };
    let largest = model
        .requests()
        .iter()
        .map(tokens)
        .max()
        .unwrap_or_default();
    let room = model.info().context_window - model.info().max_output_tokens;
    println!(
        "{} KB in {} turns; every request fits: {}",
        said / 1_000,
        result.turns,
        largest <= room
    );
    println!("{}", result.text());
    Ok(())
}
