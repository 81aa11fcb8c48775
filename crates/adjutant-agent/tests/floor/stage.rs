//! The stage of the floor's tests: a small window, a tool that says much, and what each request must keep to.

use std::sync::Arc;

use adjutant_agent::Agent;
use adjutant_llm::{
    Block, CallId, CallResult, Entry, Estimate, FinishReason, ModelInfo, Reply, Script,
    ScriptedModel, ToolDecl, Turn, UserMessage,
};
use adjutant_tool::{Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

/// A model with this window; its replies have 8,192 tokens, as those of every model that says nothing else.
pub(crate) fn model(window: u64, scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    let info = ModelInfo {
        context_window: window,
        ..ModelInfo::new("scripted/model")
    };
    Arc::new(ScriptedModel::new(scripts).info(info))
}

/// The agent with the tool `say`, which gives so many kilobytes; a longer argument `text` is not looked at.
pub(crate) fn talking(agent: Agent) -> Agent {
    let spec = ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new("say", "Says something.", json!({ "type": "object" }))
    };
    agent.tool(tool_fn(spec, |args: Value, _| async move {
        let kilobytes =
            usize::try_from(args["kilobytes"].as_u64().unwrap_or(0)).expect("a small number");
        Ok(CallResult::ok(
            "line 0123456789\n".repeat(kilobytes * 1_000 / 16),
        ))
    }))
}

/// A reply that calls `say` once for each of these sizes.
pub(crate) fn say(kilobytes: &[u64]) -> Script {
    kilobytes.iter().fold(Script::new(), |script, size| {
        script.call("say", json!({ "kilobytes": size }))
    })
}

/// The answer that ends a run.
pub(crate) fn done() -> Script {
    Script::new().text("Done.")
}

/// So many questions with their answers, of 4 KB together each.
pub(crate) fn seeded(pairs: usize) -> Vec<Entry> {
    let pair = |n: usize| {
        let mut reply = Reply::new("scripted/model".into(), FinishReason::End);
        reply
            .blocks
            .push(Arc::new(Block::text(format!("answer {n:03} ").repeat(180))));
        let turn = Turn::open(Arc::new(reply))
            .close()
            .expect("it has no calls");
        [
            Entry::User(UserMessage::text(format!("question {n:03} ").repeat(150))),
            Entry::Turn(turn),
        ]
    };
    (0..pairs).flat_map(pair).collect()
}

/// Checks that every request fits, and shows the newest turn with all of its calls and results.
#[track_caller]
pub(crate) fn check(what: &str, model: &ScriptedModel, agent: &Agent) {
    let requests = model.requests();
    let history = agent.log().transcript();
    for (number, request) in (1..).zip(&requests) {
        let decl = |it: &ToolDecl| {
            [it.name.as_str(), &it.description, &it.schema.to_string()]
                .map(|text| Estimate.count(text))
                .iter()
                .sum::<u64>()
        };
        let tools: u64 = request.tools.iter().map(decl).sum();
        let format = request
            .options
            .format
            .as_ref()
            .map_or(0, |it| Estimate.count(&it.schema.to_string()));
        let tokens = request.entries.tokens() + Estimate.count(&request.system) + tools + format;
        let info = adjutant_llm::Model::info(model);
        let room = info.context_window - info.max_output_tokens;
        assert!(
            tokens <= room,
            "{what}: request {number} of {}: {tokens} tokens, and {room} fit",
            requests.len()
        );
        // In the middle of work, the newest turn has all of its calls and results.
        let calls = |entry: &Entry| match entry {
            Entry::Turn(turn) => turn.pairs().map(|(call, _)| call.id).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let newest =
            |ids: &Vec<CallId>| ids.first().is_some_and(|id| id.turn + 1 == request.turn());
        if let Some(done) = history
            .iter()
            .map(|stored| calls(&stored.entry))
            .find(newest)
        {
            let shown = request
                .entries
                .iter()
                .map(|stored| calls(&stored.entry))
                .find(newest);
            assert_eq!(
                shown,
                Some(done),
                "{what}: the newest turn of request {number}"
            );
        }
    }
}
