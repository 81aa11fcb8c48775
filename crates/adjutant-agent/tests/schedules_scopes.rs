//! Every order in which calls, children and wishes to stop may come: no deadlock, and everything ends where it should.

#[path = "property/brackets.rs"]
#[expect(dead_code, reason = "only streams are checked here")]
mod brackets;
#[path = "subagents/desk.rs"]
#[expect(dead_code, reason = "several targets share it, each uses its part")]
mod desk;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, Event, EventKind, MemoryJournal, Outcome, Record, Run, RunResult, Stamped,
};
use adjutant_llm::{CallId, FixedWorld, Gate, Script, ScriptedModel, ThreadId};
use adjutant_tool::{CallContext, Replay};
use brackets::Brackets;
use desk::{calls, last, open, records, said, says, tool, usage};
use proptest::{prelude::*, test_runner::Config};

/// How many calls the reply has; each opens two children.
const CALLS: u32 = 2;

/// Something that happens to the run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Move {
    /// A child of a call may say the rest.
    Open(u32, usize),
    StopChild(u32, usize),
    StopCall(u32),
    Cancel,
    /// Others get so many turns.
    Rest(usize),
}

type Gates = Arc<Vec<[Gate; 2]>>;

fn id(block: u32) -> CallId {
    CallId {
        turn: 1,
        attempt: 0,
        block,
    }
}

fn thread(block: u32, child: usize) -> ThreadId {
    ThreadId::from(format!("main/{}/{}", id(block), ["a", "b"][child]))
}

/// Speaks up to its gate, and goes on when that opens.
fn speaker(gate: &Gate) -> Agent {
    let script = Script::new()
        .text("I have something to say.")
        .usage(usage(100, 10))
        .wait_at(1, gate);
    Agent::new(ScriptedModel::new([script])).name("speaker")
}

/// An agent whose reply calls the tool twice; each call asks two children, and the second one waits for the first only.
fn scene(gates: &Gates, journal: &MemoryJournal) -> Agent {
    let gates = Arc::clone(gates);
    let asks = tool("work", Replay::Once, move |cx: CallContext| {
        let gates = Arc::clone(&gates);
        async move {
            let at = cx.who.call.expect("a call of a run").block as usize;
            let (one, other) = (
                open(&cx, "a", speaker(&gates[at][0])).await?,
                open(&cx, "b", speaker(&gates[at][1])).await?,
            );
            if at == 0 {
                let (one, other) = tokio::join!(one.run("Speak."), other.run("Speak."));
                return one.and(other).map(|result| said(&result));
            }
            let _left_at_work = other.stream("Speak.")?;
            one.run("Speak.").await.map(|result| said(&result))
        }
    });
    let model = ScriptedModel::new([calls(&["work"; CALLS as usize]), says("Done.")]);
    Agent::new(model)
        .tool(asks)
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone())
}

/// Makes the moves in this order, and looks at what is left.
fn play(moves: &[Move]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(async {
        let gates: Gates = Arc::new(
            (0..CALLS)
                .map(|_| [Gate::default(), Gate::default()])
                .collect(),
        );
        let journal = MemoryJournal::default();
        let agent = scene(&gates, &journal);
        let mut running = agent.run("Go.").stream().expect("the session is free");
        let stopper = running.stopper();
        let reading = tokio::spawn(async move {
            let mut events = Vec::new();
            while let Some(event) = running.next().await {
                events.push(event);
            }
            events
        });
        for made in moves {
            match *made {
                Move::Open(call, child) => gates[call as usize][child].open(),
                Move::StopChild(call, child) => {
                    stopper.stop_thread(&thread(call, child), CancelBy::User);
                }
                Move::StopCall(call) => stopper.stop_call(id(call)),
                Move::Cancel => stopper.stop(CancelBy::User),
                Move::Rest(turns) => {
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        gates.iter().flatten().for_each(Gate::open);
        // Time stands still while anything can go on: this only passes if nothing can.
        let events = tokio::time::timeout(Duration::from_secs(3_600), reading)
            .await
            .expect("no deadlock");
        let log = records(&journal, agent.session_id()).await;
        check(moves, &events.expect("the reader lives"), &log);
    });
}

fn check(moves: &[Move], events: &[Event], log: &[Arc<Stamped>]) {
    let result = last(events);
    match result.outcome {
        Outcome::Finished { .. } => {}
        Outcome::Cancelled { by } => assert!(
            by == CancelBy::User && moves.contains(&Move::Cancel),
            "{moves:?}"
        ),
        ref other => unreachable!("{other:?} after {moves:?}"),
    }
    // Whoever cancels early enough keeps the reply from being said.
    let asked = log
        .iter()
        .filter(|stamped| stamped.thread.as_str() == "main")
        .map(|stamped| match &stamped.record {
            Record::Replied { reply, .. } => reply.calls().count(),
            _ => 0,
        });
    assert_eq!(
        result.calls.len(),
        asked.sum::<usize>(),
        "one result for each call after {moves:?}"
    );
    children(moves, log);
    streams(events);
    assert_eq!(
        result.total_usage.total(),
        used(log),
        "usage is the sum, once, after {moves:?}"
    );
}

/// Every child that was opened has ended before its call has its result, and its thread folds to an end.
fn children(moves: &[Move], log: &[Arc<Stamped>]) {
    let (mut open, mut runs) = (BTreeSet::new(), BTreeMap::<ThreadId, Run>::new());
    for stamped in log {
        runs.entry(stamped.thread.clone())
            .or_default()
            .apply(stamped)
            .expect("the log folds");
        match &stamped.record {
            Record::ChildOpened { call, thread, .. } => {
                assert!(open.insert((*call, thread.clone())), "opened twice")
            }
            Record::ChildEnded { call, thread, .. } => {
                assert!(
                    open.remove(&(*call, thread.clone())),
                    "ended twice, or never opened: {moves:?}"
                );
            }
            Record::Returned { call, .. } => {
                assert!(
                    open.iter().all(|(of, _)| of != call),
                    "a child outlives its call: {open:?} after {moves:?}"
                );
            }
            _ => {}
        }
    }
    assert!(
        open.is_empty() && runs.values().all(|run| !run.is_open()),
        "something stays open after {moves:?}"
    );
}

/// The stream of each thread is balanced by itself, and places never go back in the whole.
fn streams(events: &[Event]) {
    assert!(events.is_sorted_by_key(|event| event.seq));
    let mut threads = BTreeMap::<&ThreadId, Vec<Event>>::new();
    for event in events {
        threads
            .entry(&event.who.thread)
            .or_default()
            .push(event.clone());
    }
    threads
        .values()
        .for_each(|events| Brackets::new(false).drive(events, true));
    assert!(
        events.last().is_some_and(|event| event.who.depth == 0),
        "the first agent ends last"
    );
    let ends = |event: &&Event| matches!(event.kind, EventKind::RunFinished { .. });
    assert_eq!(
        events.iter().filter(ends).count(),
        threads.len(),
        "one end for each"
    );
}

fn used(log: &[Arc<Stamped>]) -> u64 {
    let used = log.iter().map(|stamped| match &stamped.record {
        Record::Replied { reply, .. } => reply.usage.total(),
        Record::Retracted { usage, .. } => usage.total(),
        _ => 0,
    });
    used.sum()
}

/// All orders of these, one after the other.
fn orders(moves: &mut [Move], at: usize, visit: &mut impl FnMut(&[Move])) {
    if at == moves.len() {
        return visit(moves);
    }
    for next in at..moves.len() {
        moves[at..=next].rotate_right(1);
        orders(moves, at + 1, visit);
        moves[at..=next].rotate_left(1);
    }
}

#[test]
fn children_end_with_their_calls_when_every_order_is_tried() {
    let opens = [Move::Open(0, 0), Move::Open(0, 1), Move::Open(1, 0)];
    let mut tried = 0;
    for stops in [
        [Move::StopCall(0), Move::StopChild(1, 0)],
        [Move::Cancel, Move::StopChild(0, 1)],
    ] {
        for rest in [0, 3, 40] {
            let mut moves: Vec<Move> = opens.into_iter().chain(stops).collect();
            orders(&mut moves, 0, &mut |moves| {
                let rested: Vec<Move> = moves
                    .iter()
                    .flat_map(|made| [Move::Rest(rest), *made])
                    .collect();
                play(&rested);
                tried += 1;
            });
        }
    }
    assert_eq!(tried, 2 * 3 * 120);
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (0..CALLS, 0..2_usize).prop_map(|(call, child)| Move::Open(call, child)),
        2 => (0..CALLS, 0..2_usize).prop_map(|(call, child)| Move::StopChild(call, child)),
        2 => (0..CALLS).prop_map(Move::StopCall),
        1 => Just(Move::Cancel),
        6 => (1..40_usize).prop_map(Move::Rest),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 256, failure_persistence: None, ..Config::default() })]

    #[test]
    fn children_end_with_their_calls_when_moves_come_by_chance(moves in proptest::collection::vec(a_move(), 1..16)) {
        play(&moves);
    }
}

/// What is checked would notice: a result of nothing is not one of this scene.
#[test]
fn scene_calls_and_opens_as_many_as_it_says_when_nobody_stops_it() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let result: RunResult = runtime.expect("a runtime").block_on(async {
        let gates: Gates = Arc::new(
            (0..CALLS)
                .map(|_| [Gate::default(), Gate::default()])
                .collect(),
        );
        gates.iter().flatten().for_each(Gate::open);
        scene(&gates, &MemoryJournal::default())
            .run("Go.")
            .await
            .expect("it finishes")
    });
    assert_eq!(result.calls.len(), 2);
    assert!(
        result.total_usage.total() >= 5 * 110,
        "all but the child that was left behind"
    );
    assert!(
        result
            .calls
            .iter()
            .all(|call| call.result.text() == "I have something to say.")
    );
}
