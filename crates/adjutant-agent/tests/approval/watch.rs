//! What happens on the stage: bodies that count, requests and events.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{EventKind, Running};
use adjutant_llm::{CallResult, Entry, ScriptedModel};
use adjutant_tool::{ErasedTool, ToolSpec, tool_fn};
use serde_json::Value;

/// Counts what bodies do, with their arguments.
#[derive(Clone, Default)]
pub(crate) struct Ran {
    times: Arc<AtomicUsize>,
    args: Arc<Mutex<Vec<Value>>>,
}

impl Ran {
    pub(crate) fn tool(&self, spec: ToolSpec) -> impl ErasedTool + 'static {
        let ran = self.clone();
        tool_fn(spec, move |args: Value, _| {
            ran.times.fetch_add(1, Ordering::SeqCst);
            let text = args.to_string();
            ran.args.lock().expect("nobody panics inside").push(args);
            async move { Ok(CallResult::ok(text)) }
        })
    }

    pub(crate) fn args(&self) -> Vec<Value> {
        assert_eq!(
            self.times.load(Ordering::SeqCst),
            self.args.lock().expect("nobody panics inside").len()
        );
        self.args.lock().expect("nobody panics inside").clone()
    }
}

/// What a request shows of the results of its newest turn.
pub(crate) fn shown(model: &ScriptedModel, request: usize) -> Vec<String> {
    let requests = model.requests();
    let mut turns = requests[request]
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
    turns.next_back().unwrap_or_default()
}

/// The names of all events of a drive that are no deltas.
pub(crate) async fn told(mut running: Running) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = running.next().await {
        let name = name(&event.kind);
        if !name.contains("delta") && !name.contains("block") {
            told.push(name);
        }
    }
    told
}

/// The name of an event, as it is stored.
pub(crate) fn name(kind: &EventKind) -> String {
    let value = serde_json::to_value(kind).expect("an event is JSON");
    value["event"].as_str().unwrap_or_default().to_owned()
}
