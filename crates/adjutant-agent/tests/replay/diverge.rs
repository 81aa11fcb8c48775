//! Bodies that do something else when they are entered again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::MemoryJournal;
use adjutant_llm::{CallResult, Status};
use adjutant_tool::{Answer, CallContext, ErasedTool, Replay, ToolError, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::{
    go_on,
    stage::{agent, answered, calls, names, script, spec},
};

/// A body that is entered twice: to ask for the name, and with the name.
async fn entered(cx: CallContext, first: &str, then: &str) -> Result<CallResult, ToolError> {
    for (at, step) in [first, then].into_iter().enumerate() {
        match step.strip_prefix('?') {
            Some(key) if at == 1 => {
                drop(cx.pause(key, adjutant_tool::Ask::approval("Really?")).await)
            }
            Some(key) => drop(cx.ask(key, "What?").await),
            None if step.is_empty() => {}
            // The body goes on whatever came of it: it has diverged all the same.
            None => drop(cx.once(step, || async { Ok(()) }).await),
        }
    }
    if then.is_empty() {
        return Ok(CallResult::ok("done"));
    }
    cx.ask("name", "What name?").await?;
    Ok(CallResult::ok("done"))
}

fn tool(first: &'static str, then: &'static str) -> impl ErasedTool + 'static {
    tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("tool")
        },
        move |_: Value, cx| entered(cx, first, then),
    )
}

#[tokio::test(start_paused = true)]
async fn call_fails_when_its_body_asks_for_something_else_than_before() {
    let table = [
        (
            ("a", "c"),
            "the body asks for \"c\", but \"b\" is noted next",
        ),
        (
            ("c", "a"),
            "the body asks for \"c\", but \"a\" is noted next",
        ),
        (("a", "name"), "\"name\" was noted as something else"),
        (("?a", "b"), "\"a\" was noted as something else"),
        (("a", "?b"), "\"b\" was noted as something else"),
        (
            ("a", ""),
            "the body ended without asking for \"b\", which is noted",
        ),
    ];
    for ((first, then), text) in table {
        let journal = MemoryJournal::default();
        let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
        let agent = agent.journal(journal.clone()).tool(tool("a", "b"));
        let parked = agent.run("Go.").await.expect("the run waits");
        let answers = vec![answered(&names(&parked)[0], Answer::give("Ada"))];
        let result = go_on(&journal, agent.session_id(), tool(first, then), answers).await;
        assert_eq!(
            calls(&result),
            [("tool".into(), Status::Failed, text.into())],
            "{first} {then}"
        );
        assert_eq!(result.text(), "Done.");
    }
}

#[tokio::test]
async fn call_goes_on_when_its_body_asks_for_more_than_before() {
    let journal = MemoryJournal::default();
    let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.journal(journal.clone()).tool(tool("a", "b"));
    let parked = agent.run("Go.").await.expect("the run waits");
    let answers = vec![answered(&names(&parked)[0], Answer::give("Ada"))];
    let more = tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("tool")
        },
        |_: Value, cx: CallContext| async move {
            // Another order is no other body: branches go at their own pace.
            for key in ["b", "a", "b"] {
                cx.once(key, || async { Ok(()) }).await?;
            }
            let name = cx.ask("name", "What name?").await?;
            let more = cx.once("more", || async { Ok(1) }).await?;
            Ok(CallResult::ok(format!("{name} {more}")))
        },
    );
    let result = go_on(&journal, agent.session_id(), more, answers).await;
    assert_eq!(
        calls(&result),
        [("tool".into(), Status::Ok, r#""Ada" 1"#.into())]
    );
}

/// Two branches at a time: each works a while, and then asks; what follows an answer is a step.
async fn branches(cx: CallContext, done: Arc<AtomicUsize>) -> Result<CallResult, ToolError> {
    let branch = |name: &'static str, works: Duration| {
        let (cx, done) = (cx.clone(), Arc::clone(&done));
        async move {
            let work = || async move {
                tokio::time::sleep(works).await;
                Ok(())
            };
            cx.once(&format!("{name} begins"), work).await?;
            let answer = cx.ask(name, "What?").await?;
            let end = || async move { Ok(done.fetch_add(1, Ordering::SeqCst)) };
            cx.once(&format!("{name} ends"), end).await?;
            Ok::<_, ToolError>(answer)
        }
    };
    // Time passes only when nothing else can move: the quick one has asked by then.
    let (slow, quick) = tokio::join!(
        branch("slow", Duration::from_millis(1)),
        branch("quick", Duration::ZERO)
    );
    Ok(CallResult::ok(format!("{} {}", slow?, quick?)))
}

#[tokio::test(start_paused = true)]
async fn body_does_not_diverge_when_its_branches_went_at_their_own_pace() {
    let done = Arc::new(AtomicUsize::new(0));
    let tool = || {
        let done = Arc::clone(&done);
        tool_fn(
            ToolSpec {
                replay: Replay::Resumable,
                ..spec("tool")
            },
            move |_: Value, cx| branches(cx, Arc::clone(&done)),
        )
    };
    let journal = MemoryJournal::default();
    let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.journal(journal.clone()).tool(tool());
    let mut result = agent.run("Go.").await.expect("the run waits");
    let mut drives = 0;
    while let adjutant_agent::Outcome::Paused { pauses } = &result.outcome {
        let answers = pauses
            .iter()
            .map(|pause| answered(&pause.id.0, Answer::give(&*pause.id.0)))
            .collect();
        result = go_on(&journal, agent.session_id(), tool(), answers).await;
        drives += 1;
    }
    assert_eq!(
        calls(&result),
        [(
            "tool".into(),
            Status::Ok,
            r#""main/c1_0_0/slow" "main/c1_0_0/quick""#.into()
        )]
    );
    assert!(
        drives <= 2 && done.load(Ordering::SeqCst) == 2,
        "{drives} drives"
    );
}
