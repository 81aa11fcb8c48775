//! Attached readers: from any cursor, at any moment, nothing is missed and nothing is told twice.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

#[path = "heard/script.rs"]
mod script;

use std::{collections::BTreeMap, time::Duration};

use adjutant_agent::{
    Agent, Attached, Durability, Event, EventKind, Journal, MemoryJournal, Seq, Spawn,
};
use adjutant_llm::{CallResult, FixedWorld, Gate, Script, ScriptedModel, ThreadId};
use adjutant_tool::{CallContext, ToolErrorKind};
use futures_util::{FutureExt, StreamExt};
use proptest::{prelude::*, test_runner::Config};
use script::Plan;
use serde_json::json;

/// Events that stand in a log, or follow from it.
fn lasting(events: &[Event]) -> Vec<Event> {
    let passing = |event: &&Event| {
        !matches!(
            event.kind,
            EventKind::ReplyStarted { .. }
                | EventKind::ReplyRetracted { .. }
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

/// Whoever hears the beginning of a reply hears all of it, once, and in order.
#[track_caller]
fn check_replies(events: &[Event]) {
    let mut said: BTreeMap<ThreadId, Option<String>> = BTreeMap::new();
    for event in events {
        let said = said.entry(event.who.thread.clone()).or_default();
        match &event.kind {
            EventKind::ReplyStarted { .. } => {
                assert_eq!(said.replace(String::new()), None, "{event:?}")
            }
            EventKind::TextDelta { text, .. } => {
                said.as_mut().expect("a reply has begun").push_str(text)
            }
            EventKind::ReplyRetracted { .. } => assert!(said.take().is_some(), "{event:?}"),
            EventKind::ReplyFinished { reply, .. } => {
                if let Some(said) = said.take() {
                    assert_eq!(said, reply.text());
                }
            }
            _ => {}
        }
    }
    assert!(events.is_sorted_by_key(|event| event.seq), "{events:?}");
}

fn text(events: &[Event]) -> String {
    let delta = |event: &Event| match &event.kind {
        EventKind::TextDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

/// What follows a record of all that happened; the end is always told.
fn after(all: &[Event], seq: Seq) -> Vec<Event> {
    let ends = |event: &Event| {
        matches!(event.kind, EventKind::RunFinished { .. }) && event.who.parent.is_none()
    };
    lasting(all)
        .into_iter()
        .filter(|event| event.seq > seq || ends(event))
        .collect()
}

async fn rest(attached: Attached) -> Vec<Event> {
    attached
        .map(|event| event.expect("the log is whole"))
        .collect()
        .await
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(work);
}

/// A conversation whose first answer opens two agents that speak at the same time.
fn family(journal: &MemoryJournal) -> Agent {
    let work = stage::tool("work", |_, cx: CallContext| async move {
        let spawn = cx.get::<dyn Spawn>().ok_or_else(|| {
            adjutant_tool::ToolError::new(ToolErrorKind::Failed, "agents can be opened from a call")
        })?;
        let child = |text: &'static str| {
            Agent::new(ScriptedModel::new([Script::new()
                .text(text)
                .delta_chars(2)]))
        };
        let one = spawn
            .open("one", child("The first child speaks.").into())
            .await?;
        let two = spawn
            .open("two", child("So does the second one.").into())
            .await?;
        let (one, two) = tokio::join!(one.run("Go."), two.run("Go."));
        Ok(CallResult::ok(format!("{} {}", one?.text(), two?.text())))
    });
    let model = ScriptedModel::new([
        Script::new()
            .text("I ask. ")
            .delta_chars(2)
            .call("work", json!({})),
        Script::new().text("They have spoken.").delta_chars(2),
    ]);
    Agent::new(model)
        .tool(work)
        .world(FixedWorld::at_ms(7))
        .journal(journal.clone())
        .session("log".into())
}

/// Drives a run; attaches after so many events, from a cursor among what was read, and reads in between.
async fn trial(agent: &Agent, joins: usize, cursor: prop::sample::Index, eager: bool) {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut all, mut heard, mut attached) = (Vec::new(), Vec::new(), None);
    let mut from = Seq(0);
    loop {
        if all.len() == joins && attached.is_none() {
            let newest = all.last().map_or(0, |event: &Event| event.seq.0);
            from = Seq(cursor.index(usize::try_from(newest).expect("few") + 1) as u64);
            attached = Some(agent.log().attach(from));
        }
        if let Some(attached) = attached.as_mut().filter(|_| eager) {
            while let Some(Some(event)) = attached.next().now_or_never() {
                heard.push(event.expect("the log is whole"));
            }
        }
        let Some(event) = running.next().await else {
            break;
        };
        all.push(event);
    }
    let Some(attached) = attached else { return };
    heard.extend(rest(attached).await);
    check_replies(&all);
    check_replies(&heard);
    let mut expect = after(&all, from);
    if heard.is_empty() && expect.iter().all(|event| event.seq <= from) {
        // The run was over, and the reader had its end.
        expect.clear();
    }
    assert_eq!(lasting(&heard), expect, "attached at {joins} after {from}");
    if joins == 0 {
        assert_eq!(
            text(&heard),
            text(&all),
            "what is said after joining is heard as it is said"
        );
    }
}

proptest! {
    #![proptest_config(Config { cases: 192, failure_persistence: None, ..Config::default() })]

    #[test]
    fn reader_misses_nothing_when_it_attaches_anywhere(
        (turns, chars, stumbles, thinks) in (1..4_u32, 1..9_usize, any::<bool>(), any::<bool>()),
        (joins, cursor, eager) in (prop_oneof![Just(0), 0..120_usize], any::<prop::sample::Index>(), any::<bool>()),
    ) {
        block_on(async {
            let agent = Plan { turns, chars, stumbles, thinks }.agent(&MemoryJournal::default());
            trial(&agent, joins, cursor, eager).await;
            let saved = agent.new_session().durability(Durability::OnExit);
            trial(&saved, joins, cursor, eager).await;
        });
    }

    #[test]
    fn reader_misses_nothing_when_agents_speak_together(
        (joins, cursor, eager) in (0..120_usize, any::<prop::sample::Index>(), any::<bool>()),
    ) {
        block_on(trial(&family(&MemoryJournal::default()), joins, cursor, eager));
    }

    #[test]
    fn reader_misses_nothing_when_another_program_performs(
        (turns, chars, stumbles, thinks) in (1..4_u32, 1..9_usize, any::<bool>(), any::<bool>()),
        (joins, acknowledged) in (1..60_usize, prop::collection::vec(0..60_usize, 0..6)),
        cursor in any::<prop::sample::Index>(),
    ) {
        block_on(async {
            let (plan, journal) = (Plan { turns, chars, stumbles, thinks }, MemoryJournal::default());
            let mut running = plan.agent(&journal).run("Go.").stream().expect("the session is free");
            let other = plan.agent(&journal);
            let (mut all, mut reader, mut from) = (Vec::new(), None, Seq(0));
            while let Some(event) = running.next().await {
                all.push(event);
                if acknowledged.contains(&all.len()) {
                    running.acknowledge().await.expect("memory does not fail");
                }
                if all.len() == joins {
                    let newest = all.last().map_or(0, |event: &Event| event.seq.0);
                    from = Seq(cursor.index(usize::try_from(newest).expect("few") + 1) as u64);
                    reader = Some(tokio::spawn(rest(other.log().attach(from))));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if let Some(reader) = reader {
                let heard = reader.await.expect("no panic");
                // By the log alone: a reader whose cursor is the end has it, and is told nothing.
                let expect: Vec<Event> = lasting(&all).into_iter().filter(|event| event.seq > from).collect();
                assert_eq!(lasting(&heard), expect);
                assert!(heard.is_sorted_by_key(|event| event.seq), "{heard:?}");
            }
        });
    }
}

#[tokio::test]
async fn reader_is_told_the_same_when_a_finished_run_is_attached_to_anywhere() {
    let journal = MemoryJournal::default();
    let agent = Plan {
        turns: 3,
        chars: 3,
        stumbles: true,
        thinks: true,
    }
    .agent(&journal);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    while running.next().await.is_some() {
        running.acknowledge().await.expect("memory does not fail");
    }
    agent.run("Again.").await.expect("it answers");
    let all = rest(agent.log().attach(Seq(0))).await;
    let past: Vec<_> = agent
        .log()
        .events_after(Seq(0))
        .map(|event| event.expect("the log is whole"))
        .collect()
        .await;
    assert_eq!(all, past);
    check_replies(&all);
    let newest = journal.read(&"log".into(), Seq(0)).count().await as u64;
    for seq in 0..=newest {
        let expect: Vec<_> = all
            .iter()
            .filter(|event| event.seq.0 > seq)
            .cloned()
            .collect();
        let heard = rest(agent.log().attach(Seq(seq))).await;
        assert_eq!(lasting(&heard), lasting(&expect), "after {seq}");
    }
}

#[tokio::test(start_paused = true)]
async fn reader_hears_what_was_acknowledged_when_another_program_speaks() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let (_, agent) = stage::agent([Script::new()
        .text("Half an answer.")
        .delta_chars(1)
        .wait_at(4, &gate)]);
    let agent = agent.journal(journal.clone()).session("log".into());
    let driven = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    agent
        .log()
        .acknowledge()
        .await
        .expect("memory does not fail");
    let (_, other) = stage::agent([]);
    let mut attached = other
        .journal(journal.clone())
        .session("log".into())
        .log()
        .attach(Seq(0));
    let mut text = String::new();
    while text != "Half" {
        let event = attached
            .next()
            .await
            .expect("the run goes on")
            .expect("the log is whole");
        if let EventKind::TextDelta { text: more, .. } = event.kind {
            text.push_str(&more);
        }
    }
    gate.open();
    driven.await.expect("no panic").expect("the run finishes");
    let newest = attached.cursor();
    let rest = rest(attached).await;
    assert!(rest.iter().all(|event| event.seq > newest));
    assert!(
        matches!(
            rest.first().map(|it| &it.kind),
            Some(EventKind::ReplyFinished { .. })
        ),
        "{rest:?}"
    );
    assert!(
        matches!(
            rest.last().map(|it| &it.kind),
            Some(EventKind::RunFinished { .. })
        ),
        "{rest:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn reader_goes_on_by_the_log_when_the_run_is_given_up_and_resumed() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let (_, agent) = stage::agent([
        Script::new()
            .text("Half an answer.")
            .delta_chars(1)
            .wait_at(4, &gate),
        Script::new().text("Whole."),
    ]);
    let agent = agent.journal(journal.clone()).session("log".into());
    let running = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    let attached = tokio::spawn(rest(agent.log().attach(Seq(0))));
    // Time passes only when nothing else can move: the reader has what there is.
    tokio::time::sleep(Duration::from_millis(1)).await;
    running.abort();
    let _ = running.await;
    agent
        .take_over()
        .resume(Vec::new())
        .await
        .expect("the run goes on");
    let heard = attached.await.expect("no panic");
    let finished = heard
        .iter()
        .filter(|it| matches!(it.kind, EventKind::ReplyFinished { .. }))
        .count();
    assert_eq!(
        (
            finished,
            heard
                .iter()
                .filter(|it| matches!(it.kind, EventKind::RunFinished { .. }))
                .count()
        ),
        (1, 1)
    );
    check_replies(&heard);
}
