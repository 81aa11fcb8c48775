//! A run is one span, its model calls and its tools are spans in it, and nothing of it holds what was said.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use adjutant_agent::Agent;
use adjutant_llm::{
    CallResult, Error, ErrorKind, Script, ScriptedModel, Status, Usage,
    telemetry::{Contents, Traced},
};
use adjutant_tool::{ToolSpec, tool_fn};
use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// A subscriber that keeps each span as a line: the place of its parent, its name, and its fields.
#[derive(Debug, Clone, Default)]
struct Lines {
    spans: Arc<Mutex<Vec<(u64, String)>>>,
    inside: Arc<Mutex<Vec<u64>>>,
}

impl Lines {
    fn shown(&self) -> Vec<String> {
        let spans = self.spans.lock().expect("no panic");
        spans
            .iter()
            .map(|(under, fields)| format!("{under}:{fields}"))
            .collect()
    }
}

/// Writes the fields that these tests look at.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        const SHOWN: [&str; 6] = [
            "otel.name",
            "gen_ai.usage.input_tokens",
            "gen_ai.conversation.id",
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.call.result",
            "error.type",
        ];
        if SHOWN.contains(&field.name()) {
            self.0.push_str(&format!(
                " {}={value:?}",
                field.name().rsplit('.').next().unwrap_or_default()
            ));
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.is_span()
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let under = self
            .inside
            .lock()
            .expect("no panic")
            .last()
            .copied()
            .unwrap_or_default();
        let mut fields = String::new();
        span.record(&mut Fields(&mut fields));
        let mut spans = self.spans.lock().expect("no panic");
        spans.push((under, fields));
        span::Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        let mut spans = self.spans.lock().expect("no panic");
        values.record(&mut Fields(&mut spans[span.into_u64() as usize - 1].1));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &span::Id) {
        self.inside.lock().expect("no panic").push(span.into_u64());
    }

    fn exit(&self, span: &span::Id) {
        assert_eq!(
            self.inside.lock().expect("no panic").pop(),
            Some(span.into_u64())
        );
    }
}

/// The spans of one run that asks the model, calls a tool that fails, and then ends as the script says.
async fn spans(last: Script, contents: Contents) -> Vec<String> {
    let lines = Lines::default();
    let _listening = tracing::subscriber::set_default(lines.clone());
    let usage = |input_uncached| Usage {
        input_uncached,
        ..Usage::default()
    };
    let first = Script::new()
        .call("look", json!({"at": "it"}))
        .usage(usage(3));
    let model = Traced::new(ScriptedModel::new([first, last.usage(usage(4))]));
    let look = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
    let look = tool_fn(look, |_, _| async {
        Ok(CallResult::new(Status::Failed, "nothing there"))
    });
    let agent = Agent::new(model)
        .name("spy")
        .tool(look)
        .calls(|calls| calls.contents = contents);
    // How the run ended is what the spans say.
    let _ = agent.run("look").await;
    let id = agent.session_id().0.to_string();
    lines
        .shown()
        .into_iter()
        .map(|line| line.replace(&id, "S"))
        .collect()
}

#[tokio::test]
async fn run_is_one_span_with_its_calls_inside_when_somebody_listens() {
    let expect = [
        "0: name=invoke_agent spy id=\"S\" input_tokens=7",
        "1: name=chat model input_tokens=3",
        "1: name=execute_tool look type=\"failed\"",
        "1: name=chat model input_tokens=4",
    ];
    assert_eq!(
        spans(Script::new().text("Nothing."), Contents::Omitted).await,
        expect
    );
}

#[tokio::test]
async fn spans_hold_contents_and_failures_when_they_are_wanted() {
    let broken = Script::new().fail(Error::new(ErrorKind::Overloaded, "busy"));
    let expect = [
        "0: name=invoke_agent spy id=\"S\" input_tokens=7 type=\"model\"",
        "1: name=chat model input_tokens=3",
        "1: name=execute_tool look arguments=\"{\\\"at\\\":\\\"it\\\"}\" result=\"nothing there\" type=\"failed\"",
        "1: name=chat model type=\"overloaded\" input_tokens=4",
    ];
    let got = spans(broken, Contents::Recorded).await;
    assert_eq!(got, expect);
}
