//! The stage of the effects' tests: a scripted model, a tool that says what it is told, and what the requests showed.

use std::sync::Arc;

use adjutant_agent::{Agent, Floor};
use adjutant_llm::{Content, Entry, ModelInfo, Origin, Request, Script, ScriptedModel};
use adjutant_tool::{Replay, ToolError, ToolSpec, tool_fn};
use serde_json::{Value, json};

/// A model of this window, and an agent with it and the tool `say`; no floor, so that each effect is alone.
///
/// The tool takes `{"text", "times"?, "fail"?}` and gives the text, repeated, as its result or as its failure.
pub(crate) fn agent(
    window: u64,
    scripts: impl IntoIterator<Item = Script>,
) -> (Arc<ScriptedModel>, Agent) {
    let info = ModelInfo {
        context_window: window,
        ..ModelInfo::new("scripted/model")
    };
    let model = Arc::new(ScriptedModel::new(scripts).info(info));
    let spec = ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new("say", "Says something.", json!({ "type": "object" }))
    };
    let say = tool_fn(spec, |args: Value, _| async move {
        let text = args["text"].as_str().unwrap_or_default();
        let text = text
            .repeat(usize::try_from(args["times"].as_u64().unwrap_or(1)).expect("a small number"));
        match args["fail"].as_bool() {
            Some(true) => Err(ToolError::failed(text)),
            _ => Ok(adjutant_llm::CallResult::ok(text)),
        }
    });
    (
        Arc::clone(&model),
        Floor::off().install(Agent::new(model).tool(say)),
    )
}

/// A reply that calls `say`.
pub(crate) fn say(args: Value) -> Script {
    Script::new().call("say", args)
}

/// The answer that ends a run.
pub(crate) fn done() -> Script {
    Script::new().text("Done.")
}

/// What each request showed, a line for each message, call and summary: `user: …`, `[reminder] …`, `tool = result`,
/// `tool ! error`, `agent: …`, `summary: …`.
pub(crate) fn shown(model: &ScriptedModel) -> Vec<Vec<String>> {
    model.requests().iter().map(lines).collect()
}

fn lines(request: &Request) -> Vec<String> {
    let mut lines = Vec::new();
    for stored in request.entries.iter() {
        match &stored.entry {
            Entry::User(message) => {
                let text: String = message
                    .content
                    .iter()
                    .filter_map(Content::as_text)
                    .collect();
                lines.push(match &message.origin {
                    Origin::Reminder { by } => format!("[{by}] {text}"),
                    _ => format!("user: {text}"),
                });
            }
            Entry::Turn(turn) => {
                if !turn.reply().text().is_empty() {
                    lines.push(format!("agent: {}", turn.reply().text()));
                }
                for (call, result) in turn.pairs() {
                    let sign = if result.is_error() { '!' } else { '=' };
                    lines.push(format!("{} {sign} {}", call.name, result.text()));
                }
            }
            Entry::Summary(summary) => lines.push(format!("summary: {}", summary.text)),
            other => unreachable!("no request shows {other:?}"),
        }
    }
    lines
}
