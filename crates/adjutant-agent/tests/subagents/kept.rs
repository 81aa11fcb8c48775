//! Children of a run: they outlive the call that opened them, and end before the run does.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, AtLimit, CancelBy, Child, EventKind, Flush, Journal, Limits, MemoryJournal, Outcome,
    Owner, Record, RunLine, Spawn,
};
use adjutant_llm::{CallResult, Gate, ScriptedModel, UserMessage};
use adjutant_tool::{CallContext, Replay, ToolError};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::Notify;

use super::desk::{
    calls, events, helper, last, parent, record, records, results, said, says, tool, work,
};

/// What outlives a call.
type Handles = (Arc<dyn Spawn>, RunLine);

/// Opens a child of the run.
async fn keep(cx: &CallContext, key: &str, agent: Agent) -> Result<Child, ToolError> {
    cx.get::<dyn Spawn>()
        .expect("a call of a run")
        .keep(key, agent.into())
        .await
}

/// An agent that says this as soon as the gate is open.
fn gated(text: &'static str, gate: &Gate) -> Agent {
    Agent::new(ScriptedModel::new([says(text).wait_at(0, gate)])).name("gated")
}

#[tokio::test(start_paused = true)]
async fn kept_child_goes_on_when_its_call_has_ended() {
    let (gate, heard) = (Gate::default(), Arc::new(Notify::new()));
    let (opened, hears) = (gate.clone(), Arc::clone(&heard));
    let begin = tool("work", Replay::Once, move |cx| {
        let (child, hears) = (gated("Found it.", &opened), Arc::clone(&hears));
        async move {
            let (child, line) = (keep(&cx, "a", child).await?, RunLine::from_context(&cx)?);
            let run = child.stream("Look.")?;
            tokio::spawn(async move {
                let result = run.finish().await.expect("the child finishes");
                line.app("told", 1, json!({"text": result.text()}));
                line.steer(UserMessage::text(format!("It said: {}", result.text())))
                    .expect("there is room");
                hears.notify_one();
            });
            Ok(CallResult::ok("Begun."))
        }
    });
    let more = tool("more", Replay::Once, move |_| {
        let (gate, heard) = (gate.clone(), Arc::clone(&heard));
        async move {
            gate.open();
            heard.notified().await;
            Ok(CallResult::ok("More."))
        }
    });
    let model = Arc::new(ScriptedModel::new([
        calls(&["work"]),
        calls(&["more"]),
        says("Thanks."),
    ]));
    let agent = Agent::new(Arc::clone(&model))
        .name("boss")
        .tool(begin)
        .tool(more);
    let events = events(&agent).await;
    let at = |find: &dyn Fn(&EventKind) -> bool| {
        events
            .iter()
            .position(|it| find(&it.kind))
            .expect("it happens")
    };
    let returned = at(&|kind| matches!(kind, EventKind::ToolFinished { .. }));
    let told = at(&|kind| matches!(kind, EventKind::ChildEnded { .. }));
    let app = at(&|kind| matches!(kind, EventKind::App { kind, .. } if &**kind == "told"));
    assert!(returned < told && told < app, "{returned} {told} {app}");
    let result = last(&events);
    assert_eq!(result.text(), "Thanks.");
    assert_eq!(
        (result.usage.total(), result.total_usage.total()),
        (330, 440),
        "the child counts once"
    );
    model.assert_done();
}

#[tokio::test(start_paused = true)]
async fn kept_child_ends_when_its_run_does() {
    let journal = MemoryJournal::default();
    let gate = Gate::default();
    let agent = parent(work(move |cx| {
        let gate = gate.clone();
        async move {
            drop(
                keep(&cx, "a", gated("Never.", &gate))
                    .await?
                    .stream("Look.")?,
            );
            gate.wait_until_reached().await;
            Ok(CallResult::ok("Begun."))
        }
    }))
    .journal(journal.clone());
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.text(), "Done.");
    let log = records(&journal, agent.session_id()).await;
    let first: Vec<String> = log
        .iter()
        .filter(|it| it.thread.as_str() == "main")
        .map(|it| record(&it.record))
        .collect();
    assert_eq!(first[first.len() - 2..], ["child_ended", "ended"]);
    let outcome = log.iter().find_map(|it| match &it.record {
        Record::ChildEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(
        outcome,
        Some(Outcome::Cancelled {
            by: CancelBy::Parent
        })
    );
    let next = agent.run("Again.").await;
    assert!(next.is_err(), "the script is over, but the session is free");
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_a_kept_child_ignores_the_wish_to_stop() {
    let agent = parent(work(|cx| async move {
        let stubborn = tool("stubborn", Replay::Once, |_| pending());
        let model = ScriptedModel::new([calls(&["stubborn"])]);
        let child = Agent::new(model)
            .tool(stubborn)
            .calls(|calls| calls.grace = Duration::from_secs(3_600))
            .name("stubborn");
        let mut run = keep(&cx, "a", child).await?.stream("Go.")?;
        while let Some(event) = run.next().await {
            if matches!(event.kind, EventKind::ToolStarted { .. }) {
                break;
            }
        }
        Ok(CallResult::ok("Left."))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (results(&result), result.total_usage.total()),
        (vec!["Left.".to_owned()], 330)
    );
}

#[tokio::test(start_paused = true)]
async fn kept_child_is_prompted_again_when_it_has_answered() {
    let child: Arc<Mutex<Option<Arc<Child>>>> = Arc::default();
    let made = Arc::clone(&child);
    let begin = tool("work", Replay::Once, move |cx| {
        let made = Arc::clone(&made);
        async move {
            let child = Arc::new(keep(&cx, "a", helper(&["One.", "Two."])).await?);
            let first = child.run("First?").await?;
            *made.lock().expect("nobody panics inside") = Some(child);
            Ok(said(&first))
        }
    });
    let again = tool("again", Replay::Once, move |_| {
        let child = child
            .lock()
            .expect("nobody panics inside")
            .clone()
            .expect("it was made");
        async move { Ok(said(&child.run("Second?").await?)) }
    });
    let model = ScriptedModel::new([calls(&["work"]), calls(&["again"]), says("Done.")]);
    let agent = Agent::new(model).tool(begin).tool(again);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["One.", "Two."]);
    assert_eq!(result.total_usage.total(), 550);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_when_the_run_has_ended() {
    let spawn: Arc<Mutex<Option<Handles>>> = Arc::default();
    let made = Arc::clone(&spawn);
    let agent = parent(work(move |cx| {
        let both = (
            cx.get::<dyn Spawn>().expect("a call"),
            RunLine::from_context(&cx).expect("a call"),
        );
        *made.lock().expect("nobody panics inside") = Some(both);
        async { Ok(CallResult::ok("Done.")) }
    }));
    agent.run("Go.").await.expect("the run finishes");
    let (spawn, line) = spawn
        .lock()
        .expect("nobody panics inside")
        .take()
        .expect("made");
    let late = spawn
        .keep("a", helper(&["Never."]).into())
        .await
        .expect_err("the run has ended");
    assert_eq!(
        &*late.message,
        "too late: the call that opens agents has ended"
    );
    line.app("late", 1, json!(null));
    line.steer(UserMessage::text("For later."))
        .expect("it waits for the next run");
    assert!(!agent.queue().is_empty());
    assert_eq!(
        &*RunLine::from_context(&CallContext::detached())
            .expect_err("no run")
            .message,
        "only a call of a run has a line to one"
    );
}

#[tokio::test(start_paused = true)]
async fn run_parks_when_its_kept_children_are_done() {
    let gate = Gate::default();
    let opened = gate.clone();
    let begin = tool("work", Replay::Once, move |cx| {
        let child = gated("Found it.", &opened);
        async move {
            drop(keep(&cx, "a", child).await?.stream("Look.")?);
            Ok(CallResult::ok("Begun."))
        }
    });
    let model = ScriptedModel::new([calls(&["work"]), says("Never.")]);
    let agent = Agent::new(model).tool(begin).limits(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut seen = Vec::new();
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::Paused { .. } => gate.open(),
            EventKind::ChildEnded { .. } => seen.push("child ended"),
            EventKind::RunPaused { .. } => seen.push("paused"),
            _ => {}
        }
    }
    assert_eq!(seen, ["child ended", "paused"]);
}

#[tokio::test(start_paused = true)]
async fn use_of_a_kept_child_is_counted_when_the_program_died() {
    let (journal, whole) = (MemoryJournal::default(), MemoryJournal::default());
    let agent = || {
        parent(work(|cx| async move {
            let child = Agent::new(ScriptedModel::new([calls(&["stubborn"])])).name("child");
            let stubborn = tool("stubborn", Replay::Once, |_| pending());
            let mut run = keep(&cx, "a", child.tool(stubborn)).await?.stream("Go.")?;
            while let Some(event) = run.next().await {
                if matches!(event.kind, EventKind::ToolStarted { .. }) {
                    break;
                }
            }
            Ok(CallResult::ok("Left."))
        }))
    };
    let first = agent().journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let log = records(&whole, first.session_id()).await;
    let returned = log
        .iter()
        .position(|it| matches!(it.record, Record::Returned { .. }))
        .expect("the call returns");
    let mut own = journal
        .own(first.session_id(), &Owner::default())
        .await
        .expect("nobody has it");
    own.append(&log[..=returned], Flush::Now)
        .await
        .expect("there is room");
    drop(own);
    let model = ScriptedModel::new([says("Done.")]);
    let again = agent()
        .model(model)
        .journal(journal.clone())
        .session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), result.total_usage.total()),
        ("Done.", 330)
    );
    let log = records(&journal, first.session_id()).await;
    let told = log
        .iter()
        .filter(|it| matches!(it.record, Record::ChildEnded { .. }))
        .count();
    assert_eq!(told, 1);
}

#[tokio::test]
async fn agent_continues_the_conversation_of_another_when_it_is_in_its_session() {
    let one = Agent::new(ScriptedModel::new([says("I am one.")]))
        .name("one")
        .instructions("One.");
    let model = Arc::new(ScriptedModel::new([says("I am two.")]));
    let two = Agent::new(Arc::clone(&model))
        .name("two")
        .instructions("Two.")
        .in_session_of(&one);
    one.run("Who?").await.expect("the run finishes");
    let result = two.run("And now?").await.expect("the run finishes");
    assert_eq!((&*result.agent.name, result.run.0), ("two", 2));
    assert_eq!(
        (
            &*model.requests()[0].system,
            model.requests()[0].entries.len()
        ),
        ("Two.", 3)
    );
    assert_eq!(one.log().transcript().iter().count(), 4);
    assert_eq!(one.session_id(), two.session_id());
}
