//! The stage of compaction's tests: a small window, a worker with many calls, and a summariser of its own.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{Agent, EventKind, Floor, Running};
use adjutant_llm::{
    CallResult, Entry, Estimate, Model, ModelInfo, Request, Script, ScriptedModel, Status, model_fn,
};
use adjutant_tool::{CallContext, ErasedTool, ToolSpec, tool_fn};
use serde_json::{Value, json};

/// How many tokens the models here take.
pub(crate) const WINDOW: u64 = 8_000;

/// A worker that calls `read` so many times and then answers; it checks every request that it gets.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) model: Arc<ScriptedModel>,
}

pub(crate) fn info(name: &str) -> ModelInfo {
    ModelInfo {
        context_window: WINDOW,
        max_output_tokens: 1_000,
        ..ModelInfo::new(name)
    }
}

impl Worker {
    pub(crate) fn new(calls: usize) -> Self {
        let step = |at: usize| Script::new().call("read", json!({"page": at}));
        let scripts = (0..calls).map(step).chain([Script::new().text("Done.")]);
        Self {
            model: Arc::new(ScriptedModel::new(scripts).info(info("test/worker"))),
        }
    }

    pub(crate) fn of(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            model: Arc::new(ScriptedModel::new(scripts).info(info("test/worker"))),
        }
    }

    /// An agent whose `read` gives so many characters; no floor, so that each effect is alone.
    pub(crate) fn agent(&self, chars: usize) -> Agent {
        Floor::off().install(
            Agent::new(Arc::clone(&self.model))
                .max_turns(1_000)
                .tool(read(chars)),
        )
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.model.requests()
    }

    /// The largest request, by estimate.
    pub(crate) fn largest(&self) -> u64 {
        self.requests()
            .iter()
            .map(|request| request.entries.tokens())
            .max()
            .unwrap_or_default()
    }
}

pub(crate) fn read(chars: usize) -> impl ErasedTool + 'static {
    let spec = ToolSpec::new("read", "Reads a page.", json!({"type": "object"}));
    tool_fn(spec, move |args: Value, _: CallContext| async move {
        let page = args["page"].as_u64().unwrap_or_default();
        if page % 7 == 6 {
            return Ok(CallResult::new(
                Status::Failed,
                format!("page {page} is torn"),
            ));
        }
        Ok(CallResult::ok(format!(
            "page {page}: {}",
            "words ".repeat(chars / 6)
        )))
    })
}

/// A model that writes what `write` says of the number of the summary, and keeps what it was asked.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) asked: Arc<Mutex<Vec<Request>>>,
    pub(crate) model: Arc<dyn Model>,
}

pub(crate) fn writer(write: impl Fn(usize) -> Script + Send + Sync + 'static) -> Writer {
    let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
    let (kept, number) = (Arc::clone(&asked), AtomicUsize::new(0));
    let model = model_fn(info("test/writer"), move |request: Request| {
        kept.lock()
            .expect("nobody panics inside")
            .push(request.clone());
        let number = number.fetch_add(1, Ordering::Relaxed);
        ScriptedModel::new([write(number)])
            .info(info("test/writer"))
            .stream(request)
    });
    Writer {
        asked,
        model: Arc::new(model),
    }
}

impl Writer {
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.asked.lock().expect("nobody panics inside").clone()
    }
}

/// The size of a request to a summariser, by estimate.
pub(crate) fn size(request: &Request) -> u64 {
    request.entries.tokens() + Estimate.count(&request.system)
}

/// What a request shows, in short.
pub(crate) fn shown(request: &Request) -> Vec<String> {
    let short = |entry: &Entry| match entry {
        Entry::User(message) => message.content[0].as_text().unwrap_or_default().to_owned(),
        Entry::Turn(_) => "<turn>".into(),
        Entry::Summary(summary) => format!("[{}]", summary.text),
        other => unreachable!("no such entry here: {other:?}"),
    };
    request
        .entries
        .iter()
        .map(|stored| short(&stored.entry))
        .collect()
}

/// How many summaries a request shows.
pub(crate) fn summaries(request: &Request) -> usize {
    request
        .entries
        .iter()
        .filter(|stored| matches!(stored.entry, Entry::Summary(_)))
        .count()
}

/// What the effect told about itself in a run.
pub(crate) async fn reports(running: &mut Running) -> Vec<Value> {
    let mut reports = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::Report { by, data } = event.kind {
            assert_eq!(&*by, "compact");
            reports.push(*data);
        }
    }
    reports
}
