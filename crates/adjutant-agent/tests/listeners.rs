//! Subscriptions: everyone hears everything, nobody is waited for, and nothing of the log is lost to a slow listener.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, AtLimit, Event, EventKind, Journal, JournalError, JournalErrorKind, Limits, Log, LogId,
    MemoryJournal, Outcome, Owner, RecordStream, Seq, Subscription,
};
use adjutant_llm::{CallResult, FixedWorld, Gate, Script};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::json;
use stage::{agent, tool};

/// What has been heard so far and not yet read.
fn heard(subscription: &mut Subscription) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(Some(event)) = subscription.next().now_or_never() {
        events.push(event);
    }
    events
}

async fn all(agent: &Agent, prompt: &str) -> Vec<Event> {
    agent
        .run(prompt)
        .stream()
        .expect("the session is free")
        .collect()
        .await
}

fn text(events: &[Event]) -> String {
    let delta = |event: &Event| match &event.kind {
        EventKind::TextDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

/// Events that stand in a log, or follow from it.
fn lasting(events: &[Event]) -> Vec<Event> {
    let passing = |event: &&Event| {
        !matches!(
            event.kind,
            EventKind::ReplyStarted { .. }
                | EventKind::BlockStarted { .. }
                | EventKind::BlockFinished { .. }
                | EventKind::TextDelta { .. }
                | EventKind::ThinkingDelta { .. }
                | EventKind::ArgsDelta { .. }
                | EventKind::ToolProgress { .. }
                | EventKind::Warning { .. }
        )
    };
    events.iter().filter(passing).cloned().collect()
}

fn ends(events: &[Event]) -> usize {
    events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::RunFinished { .. }))
        .count()
}

/// An agent that answers so many prompts, with a call in each.
fn busy(runs: usize) -> Agent {
    let scripts = (0..runs).flat_map(|run| {
        [
            Script::new().call("echo", json!({ "run": run })),
            Script::new().text(format!("Answer number {run}, at last.")),
        ]
    });
    let (_, agent) = agent(scripts);
    let agent = agent.world(FixedWorld::at_ms(7));
    agent.tool(tool("echo", |args, _| async move {
        Ok(CallResult::ok(args.to_string()))
    }))
}

#[tokio::test]
async fn subscribers_hear_all_events_in_order_when_there_are_several() {
    let agent = busy(1);
    let (mut one, mut two) = (agent.log().subscribe(), agent.log().subscribe());
    let streamed = all(&agent, "Go.").await;
    let (one, two) = (heard(&mut one), heard(&mut two));
    assert_eq!(one, streamed);
    assert_eq!(two, streamed);
}

#[tokio::test]
async fn subscriber_hears_no_more_when_it_is_dropped() {
    let agent = busy(2);
    let (dropped, mut stays) = (agent.log().subscribe(), agent.log().subscribe());
    drop(dropped);
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(ends(&heard(&mut stays)), 1);
    drop(stays);
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(heard(&mut agent.log().subscribe()), []);
}

#[tokio::test]
async fn subscriber_of_many_runs_hears_them_when_they_follow_each_other() {
    let agent = busy(3);
    let mut subscription = agent.log().subscribe();
    let streamed = all(&agent, "One.").await;
    assert_eq!(heard(&mut subscription), streamed);
    agent.run("Two.").await.expect("the run finishes");
    agent
        .run("Three.")
        .stream()
        .expect("the session is free")
        .detach()
        .await
        .expect("no panic")
        .expect("the run finishes");
    let events = heard(&mut subscription);
    assert_eq!(
        (ends(&events), text(&events).as_str()),
        (2, "Answer number 1, at last.Answer number 2, at last.")
    );
}

#[tokio::test]
async fn subscription_ends_when_nobody_holds_the_session() {
    let agent = busy(1);
    let subscription = agent.log().subscribe();
    agent.run("Go.").await.expect("the run finishes");
    drop(agent);
    assert_eq!(ends(&subscription.collect::<Vec<_>>().await), 1);
}

#[tokio::test]
async fn subscriber_misses_no_lifecycle_event_when_it_is_slow() {
    let long = "word ".repeat(4_000);
    let (_, agent) = agent([Script::new().text(long.as_str()).delta_chars(1)]);
    let mut subscription = agent.log().subscribe();
    let streamed = all(&agent, "Go.").await;
    let events = heard(&mut subscription);
    assert_eq!(text(&events), long);
    assert_eq!(lasting(&events), lasting(&streamed));
    assert!(events.len() < 100, "{} events", events.len());
}

#[tokio::test]
async fn subscriber_reads_the_log_when_it_has_missed_records() {
    let runs = 400;
    let agent = busy(runs);
    let mut subscription = agent.log().subscribe();
    let mut streamed = Vec::new();
    for run in 0..runs {
        streamed.extend(all(&agent, &run.to_string()).await);
    }
    let events = heard(&mut subscription);
    assert!(
        text(&events).len() < text(&streamed).len(),
        "some deltas are not kept"
    );
    assert_eq!(lasting(&events), lasting(&streamed));
    // The script is over, so one more run fails; it is heard as well.
    let more = all(&agent, "More.").await;
    assert_eq!(heard(&mut subscription), more);
}

#[tokio::test]
async fn subscriber_reads_on_when_it_reads_while_the_run_goes_on() {
    let gate = Gate::default();
    let turns = 300;
    let calls = (0..turns).map(|turn| Script::new().call("echo", json!({ "turn": turn })));
    let (_, agent) = agent(calls.chain([Script::new().text("Done.").wait_at(0, &gate)]));
    let agent = agent.world(FixedWorld::at_ms(7)).max_turns(1_000);
    let agent = agent.tool(tool("echo", |_, _| async { Ok(CallResult::ok("said")) }));
    let mut subscription = agent.log().subscribe();
    let running = agent.run("Go.").stream().expect("the session is free");
    let running = tokio::spawn(running.collect::<Vec<_>>());
    gate.wait_until_reached().await;
    let mut events = heard(&mut subscription);
    assert!(
        events.len() > 1_000 && ends(&events) == 0,
        "{}",
        events.len()
    );
    gate.open();
    let streamed = running.await.expect("no panic");
    events.extend(heard(&mut subscription));
    assert_eq!(lasting(&events), lasting(&streamed));
}

#[tokio::test(start_paused = true)]
async fn run_never_waits_when_nobody_reads() {
    let long = "word ".repeat(100_000);
    let (_, agent) = agent((0..4).map(|_| Script::new().text(long.as_str()).delta_chars(8)));
    let never_read = agent.log().subscribe();
    let mut stopped = agent.log().subscribe();
    for run in 0..4 {
        let result = tokio::time::timeout(Duration::from_secs(1), agent.run("Go."))
            .await
            .expect("nothing waits");
        assert_eq!(result.expect("the run finishes").text(), long);
        if run == 0 {
            stopped.next().await.expect("the run was heard");
        }
    }
    drop(never_read);
    let kept: usize = heard(&mut stopped)
        .iter()
        .map(|event| text(std::slice::from_ref(event)).len())
        .sum();
    assert!(kept <= 1_100_000, "{kept} bytes are kept");
}

/// A journal that cannot be read again once it is closed.
#[derive(Debug, Clone, Default)]
struct Closable {
    inner: MemoryJournal,
    closed: Arc<Mutex<bool>>,
}

#[async_trait::async_trait]
impl Journal for Closable {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.inner.own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        if *self.closed.lock().expect("no panic") {
            let error = JournalError::new(JournalErrorKind::Io, "the disk is gone");
            return Box::pin(stream::iter([Err(error)]));
        }
        self.inner.read(log, after)
    }
}

#[tokio::test]
async fn subscriber_is_told_when_what_it_missed_cannot_be_read() {
    let runs = 100;
    let journal = Closable::default();
    let agent = busy(runs).journal(journal.clone());
    let mut subscription = agent.log().subscribe();
    for run in 0..runs {
        agent.run(run.to_string()).await.expect("the run finishes");
    }
    *journal.closed.lock().expect("no panic") = true;
    let events = heard(&mut subscription);
    let [.., lagged, end] = &events[..] else {
        panic!("there are events")
    };
    let before = events[events.len() - 3].seq;
    assert_eq!(lagged.kind, EventKind::Lagged { after: before });
    assert!(matches!(&end.kind, EventKind::RunFinished { result } if result.run.0 == 100));
}

#[tokio::test]
async fn past_events_are_those_of_the_run_when_a_log_is_read_again() {
    let agent = busy(2).journal(MemoryJournal::default());
    let mut streamed = all(&agent, "One.").await;
    let middle = streamed.len();
    streamed.extend(all(&agent, "Two.").await);
    let past: Vec<Event> = agent
        .log()
        .events_after(Seq(0))
        .map(|event| event.expect("memory does not fail"))
        .collect()
        .await;
    assert_eq!(past, lasting(&streamed));
    let seq = streamed[middle - 1].seq;
    let past: Vec<Event> = agent
        .log()
        .events_after(seq)
        .map(|event| event.expect("memory does not fail"))
        .collect()
        .await;
    assert_eq!(past, lasting(&streamed[middle..]));
}

#[tokio::test]
async fn past_events_tell_of_a_pause_when_the_run_waits() {
    let (_, agent) = agent([Script::new().text("Hi.")]);
    let agent = agent.world(FixedWorld::at_ms(7)).limits(Limits {
        max_turns: Some(0),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    let mut streamed = all(&agent, "Go.").await;
    let read = async || {
        agent
            .log()
            .events_after(Seq(0))
            .map(|it| it.expect("memory does not fail"))
            .collect::<Vec<_>>()
            .await
    };
    assert_eq!(read().await, lasting(&streamed));
    let Some(EventKind::RunPaused { result }) = streamed.last().map(|event| event.kind.clone())
    else {
        panic!("it waits")
    };
    let Outcome::Paused { pauses } = &result.outcome else {
        panic!("it waits")
    };
    let answer = adjutant_tool::Answer::Extend {
        by: 1,
        message: None,
    };
    let answers = vec![pauses[0].with_answer(answer)];
    streamed.extend(
        agent
            .resume(answers)
            .stream()
            .expect("the session is free")
            .collect::<Vec<_>>()
            .await,
    );
    assert_eq!(read().await, lasting(&streamed));
}

#[tokio::test]
async fn listener_is_passed_over_when_it_panics() {
    let agent = busy(2);
    let heard = Arc::new(Mutex::new(0));
    let count = Arc::clone(&heard);
    let listening = agent.log().on_event(move |event| {
        assert!(!matches!(event.kind, EventKind::TurnStarted), "it burst");
        *count.lock().expect("no panic") +=
            usize::from(matches!(event.kind, EventKind::RunFinished { .. }));
    });
    agent.run("Go.").await.expect("the run finishes");
    agent.run("Go.").await.expect("the run finishes");
    drop(agent);
    listening.await.expect("the listener ends with the session");
    assert_eq!(*heard.lock().expect("no panic"), 2);
}

#[tokio::test]
async fn state_is_ahead_when_a_subscriber_hears_an_event() {
    let agent = busy(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (snapshots, lines) = (agent.clone(), Arc::clone(&seen));
    let mut subscription = agent.log().subscribe();
    let listening = tokio::spawn(async move {
        while let Some(event) = subscription.next().await {
            let entries = snapshots.snapshot().entries.len();
            match event.kind {
                EventKind::EntryAdded { .. } => lines
                    .lock()
                    .expect("no panic")
                    .push(("entry", entries >= 1)),
                EventKind::TurnFinished => {
                    lines.lock().expect("no panic").push(("turn", entries >= 2))
                }
                EventKind::RunFinished { .. } => break,
                _ => {}
            }
        }
    });
    agent.run("Go.").await.expect("the run finishes");
    listening.await.expect("no panic");
    assert_eq!(
        *seen.lock().expect("no panic"),
        [("entry", true), ("turn", true), ("turn", true)]
    );
}

#[tokio::test]
async fn text_of_a_stream_is_the_last_answer_when_it_is_collected() {
    let agent = busy(2);
    let text = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .text()
        .await
        .expect("there is an answer");
    assert_eq!(text, "Answer number 0, at last.");
    let events = all(&agent, "Go.").await;
    let of = |events: &[Event]| adjutant_agent::collect_text(stream::iter(events.to_vec()));
    assert_eq!(
        of(&events).await.expect("there is an answer"),
        "Answer number 1, at last."
    );
    // Another agent speaks in between, and its end is not the end.
    let mut mixed = events.clone();
    let mut child = adjutant_tool::Identity::clone(&events[0].who);
    child.agent_id = "child".into();
    let ends = Event {
        who: Arc::new(child),
        ..events.last().expect("there are events").clone()
    };
    mixed.insert(2, ends);
    assert_eq!(
        of(&mixed).await.expect("there is an answer"),
        "Answer number 1, at last."
    );
    let cut: Vec<_> = events
        .iter()
        .take_while(|event| !matches!(event.kind, EventKind::RunFinished { .. }))
        .cloned()
        .collect();
    assert_eq!(
        of(&cut).await.expect("something was said"),
        "Answer number 1, at last."
    );
    let error = of(&events[..3]).await.expect_err("nothing was said");
    assert_eq!(error.kind(), adjutant_agent::ErrorKind::Unanswered);
}
