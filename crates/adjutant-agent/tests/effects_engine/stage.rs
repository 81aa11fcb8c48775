//! The stage of the engine's tests: a scripted model, a tool, and short views of requests and records.

use std::sync::Arc;

use adjutant_agent::{Agent, Journal, MemoryJournal, Record, Seq};
use adjutant_llm::{CallResult, Entry, FixedWorld, Request, Script, ScriptedModel};
use adjutant_tool::{CallContext, ErasedTool, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A model that says these replies, and an agent with it.
pub(crate) fn agent(scripts: impl IntoIterator<Item = Script>) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(scripts));
    (Arc::clone(&model), Agent::new(model))
}

/// The same, with a fixed world and a log that can be read.
pub(crate) fn logged(
    scripts: impl IntoIterator<Item = Script>,
) -> (Arc<ScriptedModel>, Agent, MemoryJournal) {
    let (model, agent) = agent(scripts);
    let journal = MemoryJournal::default();
    let agent = agent
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    (model, agent, journal)
}

/// What a tool says about itself when its arguments may be any object.
pub(crate) fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "A tool.", json!({"type": "object"}))
}

/// A tool of that name that says it is done.
pub(crate) fn named(name: &str) -> impl ErasedTool + 'static {
    tool_fn(spec(name), |_: Value, _: CallContext| async {
        Ok(CallResult::ok("done"))
    })
}

/// The tool `step`.
pub(crate) fn step() -> impl ErasedTool + 'static {
    named("step")
}

/// What a request shows, in short.
pub(crate) fn shown(request: &Request) -> Vec<String> {
    let short = |entry: &Entry| match entry {
        Entry::User(message) => message.content[0].as_text().unwrap_or_default().to_owned(),
        Entry::Turn(_) => "<turn>".into(),
        Entry::Summary(summary) => format!("[{}]", summary.text),
        Entry::Custom(custom) => format!("<{}>", custom.kind),
        other => unreachable!("no such entry here: {other:?}"),
    };
    request
        .entries
        .iter()
        .map(|stored| short(&stored.entry))
        .collect()
}

/// The records of the agent's session.
pub(crate) async fn records(journal: &MemoryJournal, agent: &Agent) -> Vec<Record> {
    let records = journal.read(agent.session_id(), Seq(0));
    records
        .map(|stamped| stamped.expect("memory does not fail").record.clone())
        .collect()
        .await
}
