//! Compaction: one long run in a small window, and a summary that replaces its beginning.

use std::sync::Arc;

use adjutant::{
    Agent, EventKind, Limits,
    context::Compact,
    llm::{
        Block, Call, CallId, Chunk, FinishReason, Model, ModelInfo, Reply, Request, Script,
        ScriptedModel, model_fn,
    },
    tool,
};
use futures_util::stream;

/// The number of pages.
const PAGES: u64 = 60;

/// Reads a page.
#[tool(replay = "pure")]
fn read(page: u64) -> String {
    format!("page {page}: {}", "many words ".repeat(200))
}

/// Reads page after page, then answers; its window holds some twenty of them.
fn reader() -> impl Model {
    let mut info = ModelInfo::new("example/reader");
    info.context_window = 20_000;
    info.max_output_tokens = 1_000;
    model_fn(info, |request: Request| {
        let (turn, attempt) = (request.turn(), request.attempt);
        let mut reply = Reply::new("example/reader".into(), FinishReason::End);
        if turn <= PAGES {
            let id = CallId {
                turn,
                attempt,
                block: 0,
            };
            reply.blocks.push(Arc::new(Block::Call(Call::new(
                id,
                "read",
                format!("{{\"page\":{turn}}}"),
            ))));
            reply.stop = FinishReason::Calls;
        } else {
            reply
                .blocks
                .push(Arc::new(Block::text("That was the whole book.")));
        }
        let (model, reply) = (reply.model.clone(), Arc::new(reply));
        let start = Chunk::Start {
            attempt,
            model,
            limits: Box::default(),
            warnings: Vec::new(),
        };
        Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(reply))]))
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let summaries =
        (0..PAGES).map(|n| Script::new().text(format!("Summary {n}: the book goes on.")));
    let compact = Compact {
        keep_recent_tokens: 4_000,
        model: Some(Arc::new(ScriptedModel::new(summaries))),
        ..Compact::default()
    };
    let agent = Agent::new(reader())
        .tool(read)
        .effect(compact)
        .limits(Limits {
            max_turns: None,
            ..Limits::default()
        });
    let mut running = agent.run("Read the book.").stream()?;
    let mut times = 0;
    while let Some(event) = running.next().await {
        if let EventKind::Report { by, data } = event.kind {
            times += 1;
            if times == 1 {
                println!("{by}: {data}");
            }
        }
    }
    let result = running
        .result()
        .ok_or("it has ended")?
        .map_err(Clone::clone)?;
    println!(
        "{} after {} turns, compacted {} times",
        result.text(),
        result.turns,
        times
    );
    println!(
        "the history holds {} entries, the next request shows {}",
        agent.log().transcript().len(),
        count_entries(&agent).await?
    );
    Ok(())
}

async fn count_entries(agent: &Agent) -> Result<usize, adjutant::Error> {
    Ok(agent.log().preview("And now?").await?.entries.len())
}
