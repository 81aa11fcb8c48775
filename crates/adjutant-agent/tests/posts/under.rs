//! Agents under the first one while they work: found by name, steered, asked and stopped, here and by post.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Error, EventKind, Journal, Lane, MemoryJournal, Outcome, Post, Record, Spawn,
};
use adjutant_llm::{CallResult, Gate, Request, Script, ScriptedModel, UserMessage};
use adjutant_tool::{CallContext, Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::{
    crashes::{Slow, copy, id, log},
    steer, until,
};

/// A lead whose call keeps an agent `writer` at work: it looks first, and says what it was told after that.
fn lead(gate: &Gate) -> (Arc<ScriptedModel>, Agent) {
    lead_on(MemoryJournal::default(), gate)
}

fn lead_on(journal: impl Journal + 'static, gate: &Gate) -> (Arc<ScriptedModel>, Agent) {
    let last = |request: &Request| {
        Script::new().text(json!(request.entries.last().map(|it| it.entry.clone())).to_string())
    };
    let first = Script::new().call("look", json!({})).wait_at(0, gate);
    let model = Arc::new(ScriptedModel::new([
        first,
        Script::from_fn(last),
        Script::from_fn(last),
    ]));
    let looks = tool_fn(
        ToolSpec::new("look", "Looks.", json!({"type": "object"})),
        |_: Value, _: CallContext| async { Ok(CallResult::ok("seen")) },
    );
    let writer = Agent::new(Arc::clone(&model)).name("writer").tool(looks);
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("write", "Writes.", json!({"type": "object"}))
    };
    let write = tool_fn(spec, move |_: Value, cx: CallContext| {
        let writer = writer.clone();
        async move {
            let spawn = cx.get::<dyn Spawn>().expect("it is a call of a run");
            let result = spawn
                .open("writer", writer.into())
                .await?
                .run("Write.")
                .await?;
            Ok(CallResult::ok(match result.outcome {
                Outcome::Cancelled { by } => format!("stopped by {by}"),
                _ => result.text(),
            }))
        }
    });
    let script = [
        Script::new().call("write", json!({})),
        Script::new().text("Done."),
    ];
    (
        model,
        Agent::new(ScriptedModel::new(script))
            .name("lead")
            .tool(write)
            .journal(journal),
    )
}

/// What is done with the agent under the first one, and what its call comes to then.
async fn check(doing: impl AsyncFnOnce(&Agent), expect: &str) {
    let gate = Gate::default();
    let (_, agent) = lead(&gate);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |it| {
        matches!(it, EventKind::ChildOpened { .. })
    })
    .await;
    let run = tokio::spawn(running.finish());
    gate.wait_until_reached().await;
    doing(&agent).await;
    gate.open();
    let result = run
        .await
        .expect("it does not panic")
        .expect("the run finishes");
    let text = result.calls[0].result.text();
    assert!(text.contains(expect), "{text}");
}

#[tokio::test]
async fn agent_at_work_hears_what_it_is_told_by_name() {
    check(
        async |agent| {
            let names: Vec<_> = agent
                .queue()
                .agents()
                .iter()
                .map(|it| it.who.path.to_string())
                .collect();
            assert_eq!(names, ["lead/writer"]);
            agent
                .queue()
                .agent("writer")
                .expect("it is at work")
                .steer(UserMessage::text("Hurry."))
                .expect("it is heard");
        },
        "Hurry.",
    )
    .await;
}

#[tokio::test]
async fn agent_at_work_answers_when_it_is_asked() {
    let gate = Gate::default();
    let (_, agent) = lead(&gate);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |it| {
        matches!(it, EventKind::ChildOpened { .. })
    })
    .await;
    let run = tokio::spawn(running.finish());
    gate.wait_until_reached().await;
    let writer = agent.queue().agent("lead/writer").expect("it is at work");
    let (answer, ()) = tokio::join!(writer.ask(UserMessage::text("How far are you?")), async {
        gate.open()
    });
    assert!(answer.expect("it answers").contains("How far are you?"));
    run.await
        .expect("it does not panic")
        .expect("the run finishes");
    let error = agent.queue().agent("writer").expect_err("it has ended");
    assert!(
        matches!(&error, Error::Agent(name, _) if &**name == "writer"),
        "{error}"
    );
}

#[tokio::test]
async fn agent_at_work_is_stopped_alone() {
    check(
        async |agent| agent.queue().agent("writer").expect("it is at work").stop(),
        "stopped by the user",
    )
    .await;
}

#[tokio::test]
async fn post_reaches_the_agent_whose_thread_it_names() {
    let to = |said: Post| Post::To {
        thread: "main/c1_0_0/writer".into(),
        said: Box::new(said),
    };
    check(
        async |agent| assert!(agent.queue().post(to(steer("Hurry."))).await.is_ok()),
        "Hurry.",
    )
    .await;
    check(
        async |agent| assert!(agent.queue().post(to(Post::Cancel)).await.is_ok()),
        "stopped by the user",
    )
    .await;
}

#[tokio::test]
async fn post_to_an_agent_is_heard_once_when_the_log_ends_at_any_append() {
    let to = Post::To {
        thread: "main/c1_0_0/writer".into(),
        said: Box::new(steer("Hurry.")),
    };
    let (journal, gate) = (Slow::default(), Gate::default());
    let (_, agent) = lead_on(journal.clone(), &gate);
    let agent = agent.session(id());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |it| {
        matches!(it, EventKind::ChildOpened { .. })
    })
    .await;
    let run = tokio::spawn(running.finish());
    gate.wait_until_reached().await;
    agent.queue().post(to.clone()).await.expect("it is posted");
    gate.open();
    run.await
        .expect("it does not panic")
        .expect("the run finishes");
    let (records, ends) = (log(&journal.0).await, journal.ends());
    let opened = records
        .iter()
        .position(|it| matches!(it.record, Record::ChildOpened { .. }))
        .expect("it was opened");
    let heeded = records
        .iter()
        .rposition(|it| matches!(it.record, Record::Heeded { .. }))
        .expect("it was heeded");
    let ends: Vec<_> = ends
        .into_iter()
        .filter(|end| (opened + 1..=heeded).contains(end))
        .collect();
    assert!(ends.len() > 2, "{ends:?}");
    for end in ends {
        let (left, gate) = (
            copy(&records[..end], std::slice::from_ref(&to)).await,
            Gate::default(),
        );
        gate.open();
        let (_, again) = lead_on(left.clone(), &gate);
        again
            .session(id())
            .resume(Vec::new())
            .await
            .expect("the run finishes");
        let log = log(&left.0).await;
        let heard = log
            .iter()
            .filter(|it| matches!(it.record, Record::Queued { .. }))
            .count();
        assert_eq!(
            heard,
            1,
            "cut at {end} {:#?}",
            log.iter()
                .map(|it| format!(
                    "{} {} {:.90}",
                    it.seq,
                    it.thread,
                    format!("{:?}", it.record)
                ))
                .collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn post_is_passed_over_when_no_such_agent_is_at_work() {
    let nobody = Post::To {
        thread: "main/c9_0_0/nobody".into(),
        said: Box::new(steer("Hurry.")),
    };
    let later = Post::Message {
        lane: Lane::Steering,
        content: UserMessage::text("Go on.").into(),
    };
    check(
        async |agent| {
            agent.queue().post(nobody).await.expect("it is posted");
            agent.queue().post(later).await.expect("it is posted");
        },
        "seen",
    )
    .await;
}
