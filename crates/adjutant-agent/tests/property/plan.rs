//! What the properties are tried with: scripts, tools and places to stop at, all chosen by chance.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_llm::{
    CallId, CallResult, Error, ErrorKind, FinishReason, Script, ScriptedModel, Terminate, Thinking,
    Usage, Warning, WarningKind,
};
use adjutant_tool::{CallContext, ErasedTool, Progress, Replay, ToolError, ToolSpec, tool_fn};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

/// One run: what the model says in it, and where it is stopped.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) lines: Vec<Line>,
    pub(crate) cut: Cut,
    pub(crate) max_turns: u32,
    pub(crate) parallel: u32,
}

/// One reply.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    parts: Vec<Part>,
    void: Vec<Vec<Part>>,
    stop: Option<FinishReason>,
    fails: bool,
}

#[derive(Debug, Clone)]
enum Part {
    Text,
    Thinking,
    Opaque,
    Call {
        tool: &'static str,
        args: &'static str,
    },
}

/// How a run is stopped, at an event counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cut {
    Never,
    Before,
    Handle(usize),
    Token(usize),
    Drop(usize),
}

/// The tools that a script may call; `nobody` is unknown on purpose.
const TOOLS: [&str; 12] = [
    "echo", "slow", "pure", "panics", "fails", "single", "hangs", "polite", "maybe", "enough",
    "talks", "nobody",
];
const ARGS: [&str; 5] = [
    r#"{"text":"a"}"#,
    "{}",
    r#"{"text":"#,
    r#"{"text":7,}"#,
    "[]",
];
const STOPS: [FinishReason; 5] = [
    FinishReason::Length,
    FinishReason::Refused,
    FinishReason::Filtered,
    FinishReason::Paused,
    FinishReason::End,
];

pub(crate) fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let cut = prop_oneof![
        3 => Just(Cut::Never),
        1 => Just(Cut::Before),
        2 => (0_usize..40).prop_map(Cut::Handle),
        2 => (0_usize..40).prop_map(Cut::Token),
        3 => (0_usize..40).prop_map(Cut::Drop),
    ];
    let plan = (vec(line(), 0..5), cut, 0_u32..5, 1_u32..4);
    vec(
        plan.prop_map(|(lines, cut, max_turns, parallel)| Plan {
            lines,
            cut,
            max_turns,
            parallel,
        }),
        1..4,
    )
}

fn line() -> impl Strategy<Value = Line> {
    let stop = prop_oneof![6 => Just(None), 1 => select(STOPS.to_vec()).prop_map(Some)];
    let void = prop_oneof![6 => Just(Vec::new()), 1 => vec(vec(part(), 0..3), 1..3)];
    (vec(part(), 0..6), void, stop, prop::bool::weighted(0.1)).prop_map(
        |(parts, void, stop, fails)| Line {
            parts,
            void,
            stop,
            fails,
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    let call = (select(TOOLS.to_vec()), select(ARGS.to_vec()));
    prop_oneof![
        2 => Just(Part::Text),
        1 => Just(Part::Thinking),
        1 => Just(Part::Opaque),
        6 => call.prop_map(|(tool, args)| Part::Call { tool, args }),
    ]
}

/// A model that says these lines, then that it is done; every chunk is waited for.
pub(crate) fn model(lines: &[Line]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(
        lines
            .iter()
            .map(script)
            .chain([Script::new().text("Done.")]),
    ))
}

fn script(line: &Line) -> Script {
    let broken = || Error::new(ErrorKind::Network, "the connection broke");
    let mut script = parts(&line.parts).warning(Warning {
        kind: WarningKind::Degraded,
        message: "a little less than asked for".into(),
    });
    for void in &line.void {
        script = script.after_retracted(
            parts(void).usage(Usage {
                output: 3,
                ..Usage::default()
            }),
            broken(),
        );
    }
    if let Some(stop) = line.stop {
        script = script.stop(stop);
    }
    if line.fails {
        script.fail(broken())
    } else {
        script
    }
}

fn parts(parts: &[Part]) -> Script {
    parts
        .iter()
        .fold(Script::new().delta_chars(3), |script, part| match part {
            Part::Text => script.text("some text"),
            Part::Thinking => script.thinking(Thinking {
                text: "hm, hm".into(),
                signature: Some("s".into()),
                redacted: false,
                extra: Default::default(),
            }),
            Part::Opaque => script.opaque("scripted", json!({"a": 1})),
            Part::Call { tool, args } => script.call_raw(*tool, *args),
        })
}

/// Which calls were run, as often as they were.
pub(crate) type Ran = Arc<Mutex<Vec<CallId>>>;

/// The tools; each notes that it was run.
pub(crate) fn tools(ran: &Ran) -> Vec<Box<dyn ErasedTool>> {
    let tool = |name: &'static str, change: fn(ToolSpec) -> ToolSpec| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let ran = Arc::clone(ran);
        let body = move |_: Value, cx: CallContext| {
            ran.lock()
                .expect("nobody panics inside")
                .extend(cx.who.call);
            body(name, cx)
        };
        Box::new(tool_fn(
            change(ToolSpec::new(name, "A tool.", schema)),
            body,
        )) as Box<dyn ErasedTool>
    };
    let plain = |name| tool(name, |spec| spec);
    vec![
        plain("echo"),
        plain("slow"),
        tool("pure", |spec| ToolSpec {
            replay: Replay::Pure,
            ..spec
        }),
        plain("panics"),
        plain("fails"),
        tool("single", |spec| ToolSpec {
            sequential: true,
            ..spec
        }),
        tool("hangs", |spec| ToolSpec {
            timeout: Some(Duration::from_secs(30)),
            ..spec
        }),
        plain("polite"),
        plain("maybe"),
        plain("enough"),
        tool("talks", |spec| ToolSpec {
            replay: Replay::Idempotent,
            ..spec
        }),
    ]
}

async fn body(name: &str, cx: CallContext) -> Result<CallResult, ToolError> {
    let done = CallResult::ok(name);
    match name {
        "slow" | "pure" | "single" => {
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
        }
        "panics" => std::panic::resume_unwind(Box::new("on purpose")),
        "fails" => return Err(ToolError::failed("it did not work")),
        "hangs" => std::future::pending().await,
        "polite" => {
            let cancelled =
                tokio::time::timeout(Duration::from_secs(5), cx.cancel.cancelled()).await;
            cancelled.map_err(|_| ToolError::failed("nobody came"))?;
        }
        "maybe" => {
            return Ok(CallResult {
                terminate: Terminate::IfAll,
                ..done
            });
        }
        "enough" => {
            return Ok(CallResult {
                terminate: Terminate::Now,
                ..done
            });
        }
        "talks" => {
            for step in ["one", "two"] {
                cx.progress(Progress::text(step));
                tokio::task::yield_now().await;
            }
            cx.backend.charge(Usage {
                output: 1,
                ..Usage::default()
            });
        }
        _ => {}
    }
    Ok(done)
}
