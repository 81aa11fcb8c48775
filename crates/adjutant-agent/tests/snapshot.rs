//! Snapshots: what an agent is and does at one moment, idle and at work.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::sync::Arc;

use adjutant_agent::{Agent, AtLimit, EventKind, Limits, Snapshot};
use adjutant_llm::{
    CallResult, Effort, Error, ErrorKind, Gate, ModelInfo, Options, Script, ScriptedModel, Usage,
};
use serde_json::json;
use stage::tool;

fn used(input: u64, cache: u64, output: u64) -> Usage {
    Usage {
        input_uncached: input,
        cache_read: cache,
        output,
        ..Usage::default()
    }
}

#[tokio::test]
async fn snapshot_tells_the_configuration_when_the_agent_is_idle() {
    let (_, agent) = stage::agent([]);
    let agent = agent
        .instructions("Be kind.")
        .options(Options {
            thinking: Some(Effort::High),
            ..Options::default()
        })
        .tool(tool("one", |_, _| async { Ok(CallResult::ok("")) }))
        .tool(tool("two", |_, _| async { Ok(CallResult::ok("")) }));
    let seen = agent.snapshot();
    assert_eq!(
        (&*seen.system, seen.thinking),
        ("Be kind.", Some(Effort::High))
    );
    assert_eq!(
        seen.tools
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(
        (
            seen.entries.len(),
            seen.is_running,
            seen.partial,
            seen.error
        ),
        (0, false, None, None)
    );
    assert_eq!(
        (seen.calls.len(), seen.pauses.len(), seen.queued),
        (0, 0, 0)
    );
    assert_eq!(seen.usage, Usage::default());
}

#[tokio::test]
async fn snapshot_shows_the_partial_reply_when_the_model_is_speaking() {
    let gate = Gate::default();
    let (_, agent) = stage::agent([Script::new()
        .text("Hello, world!")
        .delta_chars(5)
        .wait_at(1, &gate)]);
    let running = agent.run("Hi.").stream().expect("the session is free");
    let running = tokio::spawn(running.finish());
    gate.wait_until_reached().await;
    let seen = agent.snapshot();
    assert_eq!(
        seen.partial.map(|reply| reply.text()).as_deref(),
        Some("Hello")
    );
    assert!(seen.is_running);
    gate.open();
    running.await.expect("no panic").expect("the run finishes");
    let after = agent.snapshot();
    assert_eq!(
        (after.partial, after.is_running, after.entries.len()),
        (None, false, 2)
    );
}

#[tokio::test]
async fn snapshot_lists_pending_calls_when_tools_are_at_work() {
    let script = Script::new()
        .call("waits", json!({"n": 0}))
        .call("waits", json!({"n": 1}));
    let (_, agent) = stage::agent([script, Script::new().text("Done.")]);
    let gates = [
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(tokio::sync::Notify::new()),
    ];
    let waits = gates.clone();
    let agent = agent.tool(tool("waits", move |args, _| {
        let gate = Arc::clone(&waits[usize::from(args["n"] == 1)]);
        async move {
            gate.notified().await;
            Ok(CallResult::ok("waited"))
        }
    }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut begun, mut seen) = (0, Vec::new());
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::ToolStarted { .. } => {
                begun += 1;
                if begun == 2 {
                    seen.push(
                        agent
                            .snapshot()
                            .calls
                            .iter()
                            .map(|call| call.block)
                            .collect::<Vec<_>>(),
                    );
                    gates[0].notify_one();
                }
            }
            EventKind::ToolFinished { .. } => {
                seen.push(
                    agent
                        .snapshot()
                        .calls
                        .iter()
                        .map(|call| call.block)
                        .collect::<Vec<_>>(),
                );
                gates[1].notify_one();
            }
            _ => {}
        }
    }
    assert_eq!(seen, [vec![0, 1], vec![1], vec![]]);
}

#[tokio::test]
async fn snapshot_tells_the_last_error_when_a_run_failed() {
    let failed = Error::new(ErrorKind::Auth, "the key is wrong");
    let (_, agent) = stage::agent([Script::new().fail(failed), Script::new().text("Good.")]);
    agent.run("Go.").await.expect_err("the model fails");
    assert_eq!(agent.snapshot().error.as_deref(), Some("the key is wrong"));
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(agent.snapshot().error, None);
}

#[tokio::test]
async fn snapshot_stays_when_the_agent_goes_on() {
    let (_, agent) = stage::agent([Script::new().text("One."), Script::new().text("Two.")]);
    agent.run("Go.").await.expect("the run finishes");
    let mut seen = agent.snapshot();
    let same = seen.clone();
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(seen, same);
    seen.entries.push(adjutant_llm::Entry::User("Mine.".into()));
    assert_eq!(
        (
            agent.snapshot().entries.len(),
            agent.log().transcript().len()
        ),
        (4, 4)
    );
}

#[tokio::test]
async fn snapshot_can_be_taken_when_the_run_is_on_another_task() {
    fn shared<T: Send + Sync>() {}
    shared::<Agent>();
    shared::<Snapshot>();
    let gate = Gate::default();
    let (_, agent) = stage::agent([Script::new().text("Hi.").wait_at(0, &gate)]);
    let running = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    let other = agent.clone();
    let seen = tokio::spawn(async move { (other.snapshot(), other.log().transcript().len()) })
        .await
        .expect("no panic");
    assert_eq!(
        (seen.0.entries.len(), seen.0.is_running, seen.1),
        (1, true, 0)
    );
    gate.open();
    running.await.expect("no panic").expect("the run finishes");
}

#[tokio::test]
async fn snapshot_tells_the_usage_when_runs_have_ended() {
    let one = Script::new()
        .call("spends", json!({}))
        .usage(used(10, 0, 1));
    let (_, agent) = stage::agent([
        one,
        Script::new().text("A.").usage(used(20, 0, 2)),
        Script::new().text("B.").usage(used(30, 0, 3)),
    ]);
    let agent = agent.tool(tool("spends", |_, cx| async move {
        cx.backend.charge(used(100, 0, 0));
        Ok(CallResult::ok("spent"))
    }));
    agent.run("Go.").await.expect("the run finishes");
    agent.run("Go.").await.expect("the run finishes");
    let seen = agent.snapshot();
    assert_eq!(
        (seen.usage, seen.total_usage),
        (used(60, 0, 6), used(160, 0, 6))
    );
}

#[tokio::test]
async fn context_follows_the_newest_reply_when_it_reports_usage() {
    let table = [
        (used(500, 0, 90), 500, 50),
        (used(100, 400, 0), 500, 50),
        (used(334, 0, 0), 334, 33),
        (used(335, 0, 0), 335, 34),
    ];
    for (usage, tokens, percent) in table {
        check_context(usage, 1_000, (tokens, percent)).await;
    }
}

#[tokio::test]
async fn context_percent_stays_within_bounds_when_the_numbers_are_odd() {
    check_context(used(5_000, 0, 0), 1_000, (5_000, 100)).await;
    check_context(used(5_000, 0, 0), 0, (5_000, 0)).await;
    let (_, agent) = stage::agent([]);
    assert_eq!(agent.snapshot().context.percent, 0);
}

async fn check_context(usage: Usage, window: u64, expect: (u64, u8)) {
    let info = ModelInfo {
        context_window: window,
        ..ModelInfo::new("x/y")
    };
    let model = ScriptedModel::new([Script::new().text("Hi.").usage(usage)]).info(info);
    let agent = Agent::new(model).tool(tool("spends", |_, _| async { Ok(CallResult::ok("")) }));
    agent.run("Go.").await.expect("the run finishes");
    let context = agent.snapshot().context;
    assert_eq!(
        ((context.used, context.percent), context.window),
        (expect, window)
    );
}

#[tokio::test]
async fn context_is_the_sum_of_its_parts_when_no_reply_tells_it() {
    let (_, agent) = stage::agent([Script::new()
        .text("Some words of an answer.")
        .usage(Usage::default())]);
    assert_eq!(agent.snapshot().context.used, 0);
    let told = agent.clone().instructions("Be kind to everyone.");
    let system = told.snapshot().context.used;
    assert!(system > 0);
    let tooled = told
        .clone()
        .tool(tool("one", |_, _| async { Ok(CallResult::ok("")) }));
    assert!(tooled.snapshot().context.used > system);
    told.run("Go.").await.expect("the run finishes");
    let said: u64 = told.snapshot().entries.tokens();
    assert_eq!(told.snapshot().context.used, system + said);
}

#[tokio::test]
async fn snapshot_lists_what_is_asked_when_a_run_waits() {
    let (_, agent) = stage::agent([Script::new().text("Hi.")]);
    let agent = agent.limits(Limits {
        max_turns: Some(0),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    agent.run("Go.").await.expect("a pause is no error");
    let seen = agent.snapshot();
    assert_eq!((seen.pauses.len(), seen.is_running), (1, false));
}

#[tokio::test]
async fn snapshot_shows_the_log_when_a_run_of_another_agent_is_read() {
    let journal = adjutant_agent::MemoryJournal::default();
    let (_, one) = stage::agent([Script::new().text("One.").usage(used(1, 0, 1))]);
    let one = one.journal(journal.clone());
    one.run("Go.").await.expect("the run finishes");
    let (_, two) = stage::agent([Script::new().text("Two.").usage(used(1, 0, 1))]);
    let two = two
        .journal(journal)
        .session(one.session_id().clone())
        .take_over();
    two.run("Go.").await.expect("the run finishes");
    let seen = two.snapshot();
    assert_eq!((seen.entries.len(), seen.usage), (4, used(2, 0, 2)));
}
