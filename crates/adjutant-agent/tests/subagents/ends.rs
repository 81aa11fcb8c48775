//! How children end: before their call, whatever happens.

use std::{future::pending, sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, CancelBy, EventKind, Flush, Head, Journal, JournalError, Log, LogId, MemoryJournal,
    Outcome, Owner, Record, RecordStream, Seq, Stamped,
};
use adjutant_llm::{CallResult, Gate, Script, ScriptedModel};
use adjutant_tool::{CallContext, Replay, ToolErrorKind};
use async_trait::async_trait;
use futures_util::StreamExt;

use super::desk::{
    calls, events, helper, last, open, parent, record, records, results, said, says, tool, work,
};

/// An agent that speaks until it is stopped.
fn endless(gate: &Gate) -> Agent {
    let script = Script::new().text("I go on and on.").wait_at(1, gate);
    Agent::new(ScriptedModel::new([script])).name("endless")
}

#[tokio::test(start_paused = true)]
async fn children_end_before_their_call_when_it_returns() {
    let gate = Gate::default();
    let agent = parent(work(move |cx| {
        let gate = gate.clone();
        async move {
            let child = open(&cx, "a", endless(&gate)).await?;
            let run = child.stream("Speak.")?;
            gate.wait_until_reached().await;
            drop(run);
            Ok(CallResult::ok("Enough."))
        }
    }));
    let events = events(&agent).await;
    let at = |find: &dyn Fn(&EventKind) -> bool| {
        events
            .iter()
            .position(|it| find(&it.kind))
            .expect("it happens")
    };
    let child_end = events
        .iter()
        .position(|it| it.who.depth == 1 && matches!(it.kind, EventKind::RunFinished { .. }));
    let told = at(
        &|kind| matches!(kind, EventKind::ChildEnded { outcome, .. } if **outcome == Outcome::Cancelled { by: CancelBy::Parent }),
    );
    let finished = at(&|kind| matches!(kind, EventKind::ToolFinished { .. }));
    assert!(child_end.expect("the child ends") < told && told < finished);
    assert_eq!(results(&last(&events)), ["Enough."]);
}

#[tokio::test(start_paused = true)]
async fn call_ends_when_a_child_ignores_the_wish_to_stop() {
    let journal = MemoryJournal::default();
    let agent = parent(work(|cx| async move {
        let stubborn = tool("stubborn", Replay::Once, |_| pending());
        let model = ScriptedModel::new([calls(&["stubborn"])]);
        let child = Agent::new(model)
            .tool(stubborn)
            .calls(|calls| calls.grace = Duration::from_secs(3_600))
            .name("stubborn");
        let mut run = open(&cx, "a", child).await?.stream("Go.")?;
        while let Some(event) = run.next().await {
            if matches!(event.kind, EventKind::ToolStarted { .. }) {
                break;
            }
        }
        Ok(CallResult::ok("Left."))
    }))
    .journal(journal.clone());
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Left."]);
    assert_eq!(
        result.total_usage.total(),
        330,
        "what the child used is not lost"
    );
    let log = records(&journal, agent.session_id()).await;
    let ended = log.iter().find_map(|it| match &it.record {
        Record::ChildEnded {
            outcome: Outcome::Failed { failure },
            ..
        } => Some((it.seq, failure.to_string())),
        _ => None,
    });
    let (at, why) = ended.expect("it is told");
    assert_eq!(
        why,
        "the agent was abandoned: it did not end when its call did"
    );
    assert!(
        log.iter()
            .all(|it| it.seq < at || it.thread.as_str() == "main"),
        "late writes are fenced"
    );
}

#[tokio::test(start_paused = true)]
async fn children_are_cancelled_when_the_parent_is() {
    let (gate, journal) = (Gate::default(), MemoryJournal::default());
    let deep = gate.clone();
    let agent = parent(work(move |cx| {
        let gate = deep.clone();
        async move {
            let middle = parent(work(move |cx| {
                let gate = gate.clone();
                async move {
                    Ok(said(
                        &open(&cx, "leaf", endless(&gate))
                            .await?
                            .run("Speak.")
                            .await?,
                    ))
                }
            }));
            Ok(said(&open(&cx, "middle", middle).await?.run("Go.").await?))
        }
    }))
    .journal(journal.clone());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let (stop, reached) = (
        tokio::spawn(async move {
            gate.wait_until_reached().await;
            stopper.stop(CancelBy::User);
        }),
        &mut running,
    );
    let mut ends = Vec::new();
    while let Some(event) = reached.next().await {
        if let EventKind::RunFinished { result } = &event.kind {
            ends.push((event.who.depth, result.outcome.clone()));
        }
    }
    stop.await.expect("no panic");
    let by = |by| Outcome::Cancelled { by };
    assert_eq!(
        ends,
        [
            (2, by(CancelBy::Parent)),
            (1, by(CancelBy::Parent)),
            (0, by(CancelBy::User))
        ]
    );
    let log = records(&journal, agent.session_id()).await;
    assert_eq!(
        log.iter()
            .filter(|it| record(&it.record) == "ended")
            .count(),
        3
    );
}

#[tokio::test(start_paused = true)]
async fn child_is_cancelled_alone_when_it_is_stopped() {
    let gate = Gate::default();
    let inside = gate.clone();
    let agent = parent(work(move |cx| {
        let gate = inside.clone();
        async move {
            let one = open(&cx, "a", endless(&gate)).await?;
            let run = one.stream("Speak.")?;
            let two = open(&cx, "b", helper(&["Two."]))
                .await?
                .run("Well?")
                .await?;
            let one = run.finish().await?;
            Ok(CallResult::ok(format!("{:?} {}", one.outcome, two.text())))
        }
    }));
    let running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let stop = tokio::spawn(async move {
        gate.wait_until_reached().await;
        assert!(!stopper.stop_thread(&"main/c1_0_0/none".into(), CancelBy::User));
        assert!(stopper.stop_thread(&"main/c1_0_0/a".into(), CancelBy::User));
    });
    let result = running.finish().await.expect("the run finishes");
    stop.await.expect("no panic");
    assert_eq!(results(&result), ["Cancelled { by: User } Two."]);
    assert!(result.is_finished());
}

#[tokio::test(start_paused = true)]
async fn child_is_cancelled_when_its_handle_says_so() {
    let gate = Gate::default();
    let agent = parent(work(move |cx| {
        let gate = gate.clone();
        async move {
            let child = open(&cx, "a", endless(&gate)).await?;
            let run = child.stream("Speak.")?;
            gate.wait_until_reached().await;
            child.cancel();
            Ok(CallResult::ok(format!("{:?}", run.finish().await?.outcome)))
        }
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Cancelled { by: Parent }"]);
}

#[tokio::test(start_paused = true)]
async fn child_is_cancelled_when_nobody_waits_for_it_any_more() {
    let gate = Gate::default();
    let agent = parent(work(move |cx| {
        let gate = gate.clone();
        async move {
            let speech = Script::new().text("I go on and on.").wait_at(1, &gate);
            let child = open(
                &cx,
                "a",
                Agent::new(ScriptedModel::new([speech, says("Yes?")])),
            )
            .await?;
            tokio::select! {
                _ = child.run("Speak.") => unreachable!("the gate is closed"),
                () = gate.wait_until_reached() => {}
            }
            // Time passes only when nothing else can move: the run that nobody waits for has ended.
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(said(&child.run("Stop.").await?))
        }
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Yes?"]);
}

#[tokio::test]
async fn parent_goes_on_when_a_child_fails() {
    let agent = parent(work(|cx: CallContext| async move {
        let bad = open(&cx, "a", helper(&[])).await?;
        let run = bad.stream("Well?")?;
        let good = open(&cx, "b", helper(&["Good."]))
            .await?
            .run("Well?")
            .await?;
        let failed = run.finish().await.expect_err("nothing is scripted");
        assert_eq!(failed.kind, ToolErrorKind::Failed);
        Ok(CallResult::ok(format!("{failed}; {}", good.text())))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["the agent failed: no scripted reply is left for request 1; Good."]
    );
    assert_eq!(result.text(), "Done.");
}

#[tokio::test]
async fn child_goes_on_when_nobody_reads_it() {
    let long: &'static str = Box::leak("word ".repeat(5_000).into_boxed_str());
    let agent = parent(work(move |cx| async move {
        let child = open(&cx, "a", helper(&[long])).await?;
        let unread = child.stream("Speak.")?;
        // Another one meanwhile, so that the first one has time.
        let other = open(&cx, "b", Agent::new(ScriptedModel::new([says("Other.")])))
            .await?
            .run("Well?")
            .await?;
        let read = unread.finish().await?;
        Ok(CallResult::ok(format!(
            "{} {}",
            read.text().len(),
            other.text()
        )))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["25000 Other."]);
}

/// A journal whose appends take a while.
#[derive(Debug)]
struct Slow(MemoryJournal);

#[derive(Debug)]
struct SlowLog(Box<dyn Log>);

#[async_trait]
impl Journal for Slow {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(SlowLog(self.0.own(log, owner).await?)))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }
}

#[async_trait]
impl Log for SlowLog {
    fn head(&self) -> Head {
        self.0.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        tokio::task::yield_now().await;
        let head = self.0.append(batch, flush).await?;
        tokio::task::yield_now().await;
        Ok(head)
    }
}

#[tokio::test(start_paused = true)]
async fn log_is_whole_when_children_are_given_up_in_the_middle_of_an_append() {
    for turns in 0..40 {
        let journal = MemoryJournal::default();
        let agent = parent(work(move |cx| async move {
            for number in 0..4 {
                let busy = tool("busy", Replay::Once, |_| async {
                    Ok(CallResult::ok("busy"))
                });
                let model = ScriptedModel::new((0..100).map(|_| calls(&["busy"])));
                let child = open(&cx, &format!("k{number}"), Agent::new(model).tool(busy)).await?;
                let _unread = child.stream("Go.")?;
            }
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            Ok(CallResult::ok("Left."))
        }))
        .calls(|calls| calls.grace = Duration::ZERO)
        .journal(Slow(journal.clone()));
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(results(&result), ["Left."]);
        let log = records(&journal, agent.session_id()).await;
        assert!(
            (1..).zip(&log).all(|(seq, it)| it.seq.0 == seq),
            "one order"
        );
        let again = agent.run("Go.").await.expect_err("nothing is scripted");
        assert_eq!(
            again.kind(),
            adjutant_agent::ErrorKind::Failed,
            "the log can be used: {again:?}"
        );
    }
}

#[tokio::test]
async fn panic_of_a_child_is_an_error_for_its_caller_alone() {
    let agent = parent(work(|cx| async move {
        let panics =
            adjutant_llm::model_fn(adjutant_llm::ModelInfo::new("a/b"), |_| panic!("no model"));
        let failed = open(&cx, "a", Agent::new(panics))
            .await?
            .run("Well?")
            .await
            .expect_err("it panicked");
        Ok(CallResult::ok(format!(
            "{failed}; {}",
            open(&cx, "b", helper(&["Good."]))
                .await?
                .run("Well?")
                .await?
                .text()
        )))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["the agent failed: the run failed: Ask(TurnNo(1)) panicked: no model; Good."]
    );
}
