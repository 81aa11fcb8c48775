//! What a handle on a queued message can do, and what may be queued.

use adjutant_agent::{Agent, ErrorKind, EventKind, Lane};
use adjutant_llm::{Content, Custom, Entry, Gate, UserMessage};
use serde_json::json;

use super::{
    seen::{is_queued, requests, says, until, waiting},
    stage::{agent, events},
};

#[tokio::test]
async fn handle_withdraws_an_item_when_it_is_still_queued() {
    let gate = Gate::default();
    let (model, agent) = agent([says("Well.").wait_at(0, &gate)]);
    let idle = agent.queue().steer("idle").expect("there is room");
    assert_eq!((idle.is_queued(), idle.item()), (true, None));
    assert_eq!(
        (idle.withdraw(), idle.withdraw(), idle.is_queued()),
        (true, false, false)
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TurnStarted)
    })
    .await;
    let queued = running.queue().steer("running").expect("there is room");
    until(&mut running, is_queued).await;
    let item = queued.item().expect("the run heard of it");
    assert_eq!((queued.withdraw(), queued.withdraw()), (true, false));
    gate.open();
    let seen = events(running).await;
    assert!(
        seen.contains(&EventKind::MessageWithdrawn { item }),
        "{seen:?}"
    );
    assert_eq!(requests(&model), [["Go."]]);
}

#[tokio::test]
async fn handle_withdraws_nothing_when_its_item_was_placed() {
    let (_, agent) = agent([says("Well.")]);
    let placed = agent.queue().steer("placed").expect("there is room");
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (placed.withdraw(), placed.is_queued(), placed.item()),
        (false, false, Some(1))
    );
    assert_eq!(
        super::seen::words(&agent.log().transcript()),
        ["Go.", "placed", "=Well."]
    );
}

#[tokio::test]
async fn handle_withdraws_from_its_own_session_when_another_has_the_same_place() {
    let (_, agent) = agent([]);
    let other = agent.new_session();
    let queued = agent.queue().steer("mine").expect("there is room");
    other.queue().steer("theirs").expect("there is room");
    assert!(queued.withdraw());
    assert_eq!(
        (waiting(&agent), waiting(&other)),
        (vec![], vec!["theirs".to_owned()])
    );
}

fn filled(agent: &Agent) -> (bool, bool) {
    let has = |lane| {
        agent
            .queue()
            .items()
            .iter()
            .any(|waiting| waiting.lane == lane)
    };
    assert_eq!(
        !agent.queue().is_empty(),
        has(Lane::Steering) || has(Lane::FollowUp)
    );
    (has(Lane::Steering), has(Lane::FollowUp))
}

#[test]
fn queue_is_empty_when_its_lane_was_cleared() {
    type Clear = fn(&Agent) -> Vec<Entry>;
    let (steering, follow_up) = (["s1", "s2"], ["f1", "f2"]);
    let table: [(Clear, (bool, bool), Vec<&str>); 3] = [
        (
            |agent| agent.queue().clear(&[Lane::Steering]),
            (false, true),
            steering.to_vec(),
        ),
        (
            |agent| agent.queue().clear(&[Lane::FollowUp]),
            (true, false),
            follow_up.to_vec(),
        ),
        (
            |agent| agent.queue().clear(&[Lane::Steering, Lane::FollowUp]),
            (false, false),
            [steering, follow_up].concat(),
        ),
    ];
    for (clear, left, given) in table {
        let (_, agent) = agent([]);
        assert_eq!(filled(&agent), (false, false));
        for nth in 0..2 {
            agent.queue().steer(steering[nth]).expect("there is room");
            agent
                .queue()
                .follow_up(follow_up[nth])
                .expect("there is room");
        }
        assert_eq!(filled(&agent), (true, true));
        let cleared = clear(&agent);
        assert_eq!(
            cleared.iter().map(super::seen::word).collect::<Vec<_>>(),
            given
        );
        assert_eq!(filled(&agent), left);
    }
}

#[tokio::test]
async fn item_is_known_by_its_handle_and_not_to_the_model_when_it_is_placed() {
    let (model, agent) = agent([says("Well.")]);
    let queued = agent.queue().steer("Mind this.").expect("there is room");
    let seen = events(agent.run("Go.").stream().expect("the session is free")).await;
    let item = queued.item().expect("the run heard of it");
    let told = |event: &EventKind| match event {
        EventKind::MessageQueued { item, .. } | EventKind::MessagePlaced { item } => Some(*item),
        _ => None,
    };
    assert_eq!(
        seen.iter().filter_map(told).collect::<Vec<_>>(),
        [item, item]
    );
    let shown = model
        .requests()
        .remove(0)
        .entries
        .last()
        .map(|stored| stored.entry.clone());
    let message = UserMessage {
        origin: adjutant_llm::Origin::Steering,
        ..UserMessage::text("Mind this.")
    };
    assert_eq!(shown, Some(Entry::User(message)));
}

#[track_caller]
fn check_refused(
    agent: &Agent,
    queued: Result<adjutant_agent::Queued, adjutant_agent::Error>,
    kind: ErrorKind,
) {
    let before = agent.queue().items();
    assert_eq!(queued.expect_err("it is refused").kind(), kind);
    assert_eq!(agent.queue().items(), before);
}

#[tokio::test]
async fn message_is_refused_when_it_says_nothing_or_is_none() {
    let (_, agent) = agent([says("a"), says("b")]);
    check_refused(&agent, agent.queue().steer("  \n"), ErrorKind::Prompt);
    check_refused(
        &agent,
        agent
            .queue()
            .follow_up(UserMessage::from(vec![Content::text("")])),
        ErrorKind::Prompt,
    );
    agent.run("Go.").await.expect("the run finishes");
    let turn = agent
        .log()
        .transcript()
        .last()
        .map(|stored| stored.entry.clone())
        .expect("a turn");
    check_refused(&agent, agent.queue().steer(turn), ErrorKind::Prompt);
    agent
        .queue()
        .steer(Custom {
            kind: "mark".into(),
            value: json!(1),
        })
        .expect("custom entries may wait");
    agent.run("Again.").await.expect("the run finishes");
    assert_eq!(
        super::seen::words(&agent.log().transcript())[2..4],
        ["Again.", "#mark"]
    );
}

#[test]
fn message_is_refused_when_its_lane_is_full() {
    let (_, agent) = agent([]);
    for nth in 0..1_000 {
        agent
            .queue()
            .steer(format!("{nth}"))
            .expect("there is room");
    }
    check_refused(&agent, agent.queue().steer("one too many"), ErrorKind::Full);
    agent
        .queue()
        .follow_up("the other lane")
        .expect("there is room");
    assert_eq!(
        agent.queue().clear(&[Lane::Steering, Lane::FollowUp]).len(),
        1_001
    );
}

#[tokio::test]
async fn origin_stays_when_a_message_says_where_it_comes_from() {
    let (model, agent) = agent([says("Well.")]);
    let origin = adjutant_llm::Origin::Peer { from: "t2".into() };
    agent
        .queue()
        .steer(UserMessage {
            origin: origin.clone(),
            ..UserMessage::text("Hello.")
        })
        .expect("there is room");
    agent.run("Go.").await.expect("the run finishes");
    let shown = model
        .requests()
        .remove(0)
        .entries
        .last()
        .map(|stored| stored.entry.clone());
    assert_eq!(
        shown,
        Some(Entry::User(UserMessage {
            origin,
            ..UserMessage::text("Hello.")
        }))
    );
}
