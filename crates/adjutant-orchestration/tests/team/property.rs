//! Whatever members do, and whatever their lead does: the run ends, use adds up, and no message is lost.

use std::{collections::BTreeSet, time::Duration};

use adjutant_agent::{Event, EventKind};
use adjutant_llm::{Gate, Script};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::desk::{agent, call, events, last, lead, reporting, says, taken, team, told};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// With so many requests every lead comes to its end.
const ENOUGH: u32 = 50;

/// What an agent does in one turn.
#[derive(Debug, Clone)]
enum Step {
    Send(usize),
    Read,
    Wait,
    Hang,
    Fail,
    Panic,
}

/// What a lead does in one turn.
#[derive(Debug, Clone)]
enum Move {
    Spawn(usize),
    Assign(usize),
    Stop(usize),
    Send(usize),
    Read,
    Wait,
    WaitTeam,
    Finish,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5_usize).prop_map(Step::Send),
        2 => Just(Step::Read),
        3 => Just(Step::Wait),
        1 => Just(Step::Hang),
        1 => Just(Step::Fail),
        1 => Just(Step::Panic),
    ]
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        5 => (0..3_usize).prop_map(Move::Spawn),
        1 => (0..3_usize).prop_map(Move::Assign),
        1 => (0..3_usize).prop_map(Move::Stop),
        2 => (0..5_usize).prop_map(Move::Send),
        2 => Just(Move::Read),
        2 => Just(Move::Wait),
        2 => Just(Move::WaitTeam),
        1 => Just(Move::Finish),
    ]
}

fn to(at: usize) -> &'static str {
    ["a", "b", "c", "lead", "*"][at]
}

fn script(step: &Step) -> Script {
    match step {
        Step::Send(at) => call("send_message", json!({"to": to(*at), "content": "Hello."})),
        Step::Read => call("read_messages", json!({})),
        Step::Wait => call("wait_for_message", json!({"timeout_s": 30})),
        Step::Hang => says("Never.").wait_at(0, &Gate::default()),
        Step::Fail => Script::new().fail(adjutant_llm::Error::new(
            adjutant_llm::ErrorKind::Auth,
            "no key",
        )),
        Step::Panic => Script::from_fn(|_| unreachable!("it panics")),
    }
}

fn of_lead(step: &Move) -> Script {
    let named = |tool, at: usize| call(tool, json!({"name": NAMES[at], "task": "Work."}));
    match step {
        Move::Spawn(at) => named("spawn_teammate", *at),
        Move::Assign(at) => named("assign_task", *at),
        Move::Stop(at) => call("stop_teammate", json!({"name": NAMES[*at]})),
        Move::Send(at) => call("send_message", json!({"to": to(*at), "content": "Hello."})),
        Move::Read => call("read_messages", json!({})),
        Move::Wait => call("wait_for_message", json!({"timeout_s": 30})),
        Move::WaitTeam => call("wait_for_team", json!({"timeout_s": 30})),
        Move::Finish => says("Done."),
    }
}

/// The ids of messages that results of calls gave, in every conversation.
fn read(events: &[Event]) -> Vec<String> {
    let mut ids = Vec::new();
    for event in events {
        let EventKind::ToolFinished { result, .. } = &event.kind else {
            continue;
        };
        ids.extend(
            result.details["read"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned),
        );
    }
    ids
}

async fn check(members: Vec<Vec<Step>>, moves: Vec<Move>, turns: u32) {
    let (mut crew, seen) = reporting(team().member_timeout(Duration::from_secs(100)));
    for (name, steps) in NAMES.iter().zip(&members) {
        let scripts = steps.iter().map(script).chain((0..3).map(|_| says("Yes.")));
        crew = crew.template(*name, agent(scripts));
    }
    let scripts = moves
        .iter()
        .map(of_lead)
        .chain((0..40).map(|_| says("Done.")));
    let lead = lead(&crew, scripts)
        .calls(|calls| calls.grace = Duration::from_secs(1))
        .max_turns(turns);
    let all = tokio::time::timeout(Duration::from_secs(10_000), events(&lead))
        .await
        .expect("the run ends");
    let result = last(&all);
    if turns >= ENOUGH {
        assert!(result.is_finished(), "{:?}", result.outcome);
        assert_eq!(result.text(), "Done.");
    }
    // What every conversation used is what the whole used.
    let spent: u64 = all
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ReplyFinished { reply, .. } => Some(reply.usage.total()),
            _ => None,
        })
        .sum();
    assert_eq!(result.total_usage.total(), spent);
    let Some(report) = taken(&seen).pop() else {
        return;
    };
    let mut known: BTreeSet<String> = read(&all).into_iter().collect();
    known.extend(report.unread.iter().map(ToString::to_string));
    for member in &report.members {
        known.extend(member.unread.iter().map(ToString::to_string));
    }
    // A member that was replaced left messages unread, of which its end told.
    for (_, data) in told(&all, "team.")
        .iter()
        .filter(|(kind, _)| kind != "team.ended")
    {
        let unread = data["unread"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        known.extend(
            unread
                .filter_map(|text| text.split(' ').next())
                .map(str::to_owned),
        );
    }
    let lost: Vec<_> = told(&all, "team.message")
        .into_iter()
        .filter(|it| !known.contains(it.1["id"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(lost, [], "every message is read or reported");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn run_ends_and_nothing_is_lost_whatever_agents_do(
        members in prop::collection::vec(prop::collection::vec(step(), 0..6), 3),
        moves in prop::collection::vec(a_move(), 0..12),
        turns in prop_oneof![2 => Just(ENOUGH), 1 => 1..12_u32],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(check(members, moves, turns));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_message_is_read_once_when_many_write_at_a_time() {
    const NAMES: [&str; 8] = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];
    let member = || {
        agent(
            (0..5)
                .map(|_| call("send_message", json!({"to": "lead", "content": "Hello."})))
                .chain([says("Yes.")]),
        )
    };
    let (crew, seen) = reporting(
        NAMES
            .iter()
            .fold(team(), |crew, name| crew.template(*name, member())),
    );
    let spawns = NAMES
        .iter()
        .map(|name| call("spawn_teammate", json!({"name": name, "task": "Write."})));
    let rounds = (0..60).flat_map(|_| {
        [
            call("wait_for_team", json!({"timeout_s": 30})),
            call("read_messages", json!({})),
        ]
    });
    let lead = lead(
        &crew,
        spawns.chain(rounds).chain([says("Done."), says("Bye.")]),
    )
    .max_turns(200);
    let all = events(&lead).await;
    let ids = read(&all);
    let once: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(
        (ids.len(), once.len()),
        (48, 48),
        "five of each, and the end of each"
    );
    assert_eq!(taken(&seen)[0].unread.len(), 0);
    assert_eq!(last(&all).total_usage.total(), (8 + 120 + 1 + 8 * 6) * 110);
}
