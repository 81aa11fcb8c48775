//! The runs that docs/events.md draws, and others that a page may see: agents, and what is done while one runs.

use std::{
    panic::{self, PanicHookInfo},
    sync::Arc,
    time::Duration,
};

use adjutant::{
    Agent, CallContext, CancelBy, EventKind, Limits, ToolError,
    agent::{Caps, MemoryJournal, Spawn, Stopper},
    llm::{Entry, Error, ErrorKind, Gate, Request, Script, ScriptedModel, Thinking},
    runtime::prompt::LocalPrompter,
    tool,
    tools::{Progress, ToolErrorKind, ToolSpec, external_tool},
};
use serde_json::json;
use tokio::sync::Notify;

/// The cases that docs/events.md draws, in order.
pub const DRAWN: [&str; 9] = [
    "text only",
    "one tool",
    "parallel tools finishing in reverse",
    "unknown tool",
    "invalid arguments",
    "panic",
    "cancel in mid-stream",
    "cancel in mid-batch",
    "max turns",
];
/// What else a page may see.
pub const MORE: [&str; 9] = [
    "thinking and progress",
    "reply retracted",
    "run failed",
    "approval",
    "two approvals",
    "question",
    "call run by the page",
    "agents below",
    "approval below",
];

/// Lets `slow` end; set by the reader of the events.
static RELEASE: Notify = Notify::const_new();

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Ends when it is let go.
#[tool]
async fn slow() -> &'static str {
    RELEASE.notified().await;
    "slow"
}

/// Ends at once.
#[tool]
async fn quick() -> &'static str {
    "quick"
}

/// Breaks.
#[tool]
fn broken() -> String {
    "no number"
        .parse::<u8>()
        .expect("this tool always breaks")
        .to_string()
}

/// Waits until someone wishes to stop.
#[tool]
async fn wait(cx: CallContext) -> Result<String, ToolError> {
    cx.cancel.cancelled().await;
    Err(ToolError::new(ToolErrorKind::Cancelled, "stopped early"))
}

/// Sends money.
#[tool(approval)]
fn pay(amount: u64) -> String {
    format!("paid {amount}")
}

/// Asks for a name.
#[tool(replay = "resumable")]
async fn greet(cx: CallContext) -> Result<String, ToolError> {
    Ok(format!(
        "Hello, {}!",
        cx.ask("name", "Who is there?")
            .await?
            .as_str()
            .unwrap_or("nobody")
    ))
}

/// Tells how far it is.
#[tool]
fn look(cx: CallContext) -> &'static str {
    cx.progress(Progress::text("half of it"));
    "all of it"
}

/// Lets an agent pay, or two agents look.
#[tool(replay = "resumable")]
async fn research(may_pay: bool, cx: CallContext) -> Result<String, ToolError> {
    let spawn = cx
        .get::<dyn Spawn>()
        .ok_or_else(|| ToolError::failed("no agents can be opened here"))?;
    let mut found = Vec::new();
    for name in if may_pay {
        &["payer"][..]
    } else {
        &["ants", "bees"]
    } {
        // The call's body begins anew once it is answered: what its agent says goes by what it has heard.
        let next = move |request: &Request| match request.entries.len() {
            1 if may_pay => Script::new().call("pay", json!({"amount": 3})),
            1 => Script::new().text(format!("All about {name}.")),
            _ => Script::new().text("It is paid."),
        };
        let script = [Script::from_fn(next), Script::from_fn(next)];
        let child = Agent::new(ScriptedModel::new(script)).name(*name).tool(pay);
        found.push(
            spawn
                .open(name, child.into())
                .await?
                .run("Go.")
                .await?
                .text(),
        );
    }
    Ok(found.join(" "))
}

/// The model of a case, with what it is going to say; none if no case is called so.
pub fn model(name: &str) -> Option<ScriptedModel> {
    let done = || Script::new().text("All done.");
    let call = |name: &str| Script::new().call(name, json!({}));
    let sum = |b: serde_json::Value| Script::new().call("add", json!({"a": 2, "b": b}));
    let pays = || Script::new().call("pay", json!({"amount": 40}));
    Some(ScriptedModel::new(match name {
        "text only" => vec![done()],
        "one tool" => vec![sum(json!(3)), done()],
        "parallel tools finishing in reverse" => {
            vec![call("slow").call("quick", json!({})), done()]
        }
        "unknown tool" => vec![call("subtract"), done()],
        "invalid arguments" => vec![sum(json!("many")), done()],
        "panic" => vec![call("broken"), done()],
        "cancel in mid-stream" => vec![
            Script::new()
                .text("A long answer, of which")
                .wait_at(1, &Gate::default()),
        ],
        "cancel in mid-batch" => {
            vec![
                call("quick")
                    .call("wait", json!({}))
                    .call("wait", json!({}))
                    .call("quick", json!({})),
            ]
        }
        "max turns" => vec![sum(json!(3))],
        "thinking and progress" => vec![
            Script::new()
                .thinking(Thinking::new("They ask for a look."))
                .text("Let me see.")
                .call("look", json!({})),
            done(),
        ],
        "reply retracted" => {
            let first = Script::new().text("I shall").call("quick", json!({}));
            vec![done().after_retracted(first, Error::new(ErrorKind::Overloaded, "overloaded"))]
        }
        "run failed" => vec![
            Script::new()
                .text("I")
                .fail(Error::new(ErrorKind::Auth, "no such key")),
        ],
        "approval" => vec![
            Script::new()
                .text("I pay.")
                .call("pay", json!({"amount": 40})),
            done(),
        ],
        "two approvals" => vec![
            pays()
                .call("pay", json!({"amount": 2}))
                .call("quick", json!({})),
            done(),
        ],
        "question" => vec![call("greet"), done()],
        "call run by the page" => vec![call("locate"), done()],
        "agents below" => vec![
            Script::new().call("research", json!({"may_pay": false})),
            done(),
        ],
        // What it says goes by what it was told: another process begins with its first script again.
        "left while it asks" => vec![pays_once(), pays_once(), pays_once()],
        "approval below" => vec![
            Script::new().call("research", json!({"may_pay": true})),
            done(),
        ],
        _ => return None,
    }))
}

/// The agent of a case; none if no case is called so.
pub fn agent(name: &str) -> Option<Agent> {
    let agent = of(model(name)?);
    Some(match name {
        "cancel in mid-batch" => agent.limits(Limits {
            max_parallel_tools: 2,
            ..Limits::default()
        }),
        "max turns" => agent.max_turns(1),
        _ => agent,
    })
}

/// The agent of a case as one that stays, if nobody has to do something while it runs.
pub fn staying(name: &str) -> Option<LocalPrompter> {
    let is_heeded = [
        "parallel tools finishing in reverse",
        "cancel in mid-stream",
        "cancel in mid-batch",
    ];
    let model = Arc::new(model(name).filter(|_| !is_heeded.contains(&name))?);
    Some(LocalPrompter::new(
        agent(name)?,
        model,
        Arc::new(MemoryJournal::default()),
    ))
}

/// Lets a tool of a case go on when one of its events is seen.
pub fn release(case: &str, kind: &EventKind) {
    if let ("parallel tools finishing in reverse", EventKind::ToolFinished { name, .. }) =
        (case, kind)
        && name.as_str() == "quick"
    {
        RELEASE.notify_one();
    }
}

/// Does what belongs to a case when one of its events is seen.
pub fn heed(name: &str, kind: &EventKind, stopper: &Stopper) {
    release(name, kind);
    match (name, kind) {
        ("cancel in mid-stream", EventKind::TextDelta { .. }) => stopper.stop(CancelBy::User),
        ("cancel in mid-batch", EventKind::ToolStarted { call, .. }) if call.block == 2 => {
            stopper.stop(CancelBy::User)
        }
        _ => {}
    }
}

/// Pays, unless it has paid.
fn pays_once() -> Script {
    Script::from_fn(|request: &Request| {
        match request
            .entries
            .iter()
            .any(|entry| matches!(entry.entry, Entry::Turn(_)))
        {
            false => Script::new()
                .text("I pay.")
                .call("pay", json!({"amount": 40})),
            true => Script::new().text("All done."),
        }
    })
}

fn of(model: ScriptedModel) -> Agent {
    let caps = Caps {
        depth: Some(1),
        agents: Some(8),
        ..Caps::default()
    };
    let agent = Agent::new(model).limits(Limits {
        caps,
        ..Limits::default()
    });
    let locate = ToolSpec::new(
        "locate".to_owned(),
        "Where the page is.",
        json!({"type": "object"}),
    );
    let agent = agent
        .tool(add)
        .tool(slow)
        .tool(quick)
        .tool(broken)
        .tool(wait)
        .tool(pay)
        .tool(greet)
        .tool(look);
    let agent = agent.tool(research).tool(external_tool(locate));
    agent.calls(|calls| calls.grace = Duration::from_secs(60))
}

/// The panic of `broken` is meant: its message would only disturb the output of the tests.
pub fn hush_panics_of_tools() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let meant = info
            .payload_as_str()
            .is_some_and(|text| text.contains("this tool always breaks"));
        if !meant {
            usual(info);
        }
    }));
}
