//! What the properties found once, as it should be.

use std::sync::Arc;

use adjutant_agent::{Agent, AtLimit, Continue, Drain, EventKind, Lane};
use adjutant_llm::{Custom, Gate, Script, ScriptedModel};
use serde_json::json;

use super::{
    check,
    plan::{After, Around, Cut, Deed, Gear, How, Line, Plan, Poke, Reaction, Say, Step},
};

fn agent(scripts: impl IntoIterator<Item = Script>) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(scripts));
    (Arc::clone(&model), Agent::new(model))
}

fn mark() -> Custom {
    Custom {
        kind: "mark".into(),
        value: json!(1),
    }
}

#[tokio::test]
async fn model_is_not_asked_when_only_a_custom_entry_is_placed_after_its_answer() {
    let (model, agent) = agent([Script::new().text("a"), Script::new().text("b")]);
    agent.queue().follow_up(mark()).expect("there is room");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (
            result.text().as_str(),
            result.entries.len(),
            model.requests().len()
        ),
        ("a", 3, 1)
    );
    assert!(agent.queue().is_empty());
}

#[tokio::test]
async fn message_is_placed_when_a_custom_entry_waits_before_it() {
    let (model, agent) = agent([Script::new().text("a"), Script::new().text("b")]);
    agent.queue().follow_up(mark()).expect("there is room");
    agent.queue().follow_up("And then?").expect("there is room");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (
            result.text().as_str(),
            result.entries.len(),
            model.requests().len()
        ),
        ("b", 5, 2)
    );
    model.requests().iter().for_each(check::request);
}

#[tokio::test]
async fn continue_asks_nobody_when_only_a_custom_entry_waits() {
    let (model, agent) = agent([Script::new().text("a"), Script::new().text("b")]);
    agent.run("Go.").await.expect("the run finishes");
    agent.queue().steer(mark()).expect("there is room");
    agent
        .run(Continue)
        .await
        .expect_err("nothing follows the answer");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn block_that_began_is_taken_back_when_its_reply_leaves_no_trace() {
    let gate = Gate::default();
    let usage = adjutant_llm::Usage::default();
    let (_, agent) = agent([
        Script::new().text("never").usage(usage).wait_at(0, &gate),
        Script::new().text("b"),
    ]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut told, mut interrupts) = (Vec::new(), true);
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::BlockStarted { .. }) && std::mem::take(&mut interrupts) {
            running.queue().interrupt("Stop.").expect("there is room");
        }
        told.push(match event.kind {
            EventKind::ReplyStarted { .. } => "started",
            EventKind::BlockStarted { .. } => "block",
            EventKind::ReplyRetracted { .. } => "retracted",
            EventKind::ReplyFinished { .. } => "finished",
            _ => continue,
        });
    }
    assert_eq!(
        told,
        [
            "started",
            "block",
            "retracted",
            "started",
            "block",
            "finished"
        ]
    );
}

/// An agent with nothing around its model.
fn bare() -> Gear {
    Gear {
        says: Vec::new(),
        deeds: Vec::new(),
        around: Vec::new(),
        reactions: Vec::new(),
        summaries: Vec::new(),
        masks: false,
        drains: (Drain::One, Drain::One),
    }
}

/// A run of one turn, with these messages in its queue.
fn step(queued: Vec<Lane>) -> Step {
    Step {
        queued,
        lines: Vec::new(),
        cut: Cut::Never,
        pokes: Vec::new(),
        turns: 1,
        parallel: 1,
        at_limit: AtLimit::End,
        afters: Vec::new(),
    }
}

/// A drive that its middleware leaves at this poll.
async fn left_at(polls: usize, first: Step) {
    let gear = Gear {
        says: vec![Say::Pass],
        around: vec![Around::Leaves(polls), Around::Prompts],
        ..bare()
    };
    super::property(&Plan {
        gear,
        steps: vec![first, step(Vec::new())],
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn session_goes_on_when_its_drive_was_left_with_a_message_in_the_queue() {
    for polls in 1..24 {
        left_at(polls, step(vec![Lane::Steering])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn result_that_was_shown_is_kept_when_the_drive_was_left_after_it_parked() {
    for polls in 1..48 {
        left_at(
            polls,
            Step {
                lines: vec![Line::calling(&["away", "fails"])],
                parallel: 2,
                ..step(Vec::new())
            },
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_an_effect_stops_it_again_without_a_turn_since_it_was_allowed_more() {
    let gear = Gear {
        deeds: vec![Deed::Stop],
        reactions: vec![Reaction::Fits(28)],
        ..bare()
    };
    let asks = Step {
        turns: 3,
        at_limit: AtLimit::Ask,
        ..step(Vec::new())
    };
    super::property(&Plan {
        gear,
        steps: vec![asks],
    })
    .await;
}

/// A run that parks, a message that is taken back at this event, and another program that goes on.
async fn withdrawn_at(event: usize) {
    let after = After {
        how: How::Elsewhere,
        cut: Cut::Never,
        choice: 0,
    };
    let parks = Step {
        lines: vec![Line::calling(&["write"])],
        pokes: vec![(event, Poke::Withdraw)],
        turns: 3,
        afters: vec![after],
        ..step(vec![Lane::FollowUp])
    };
    super::property(&Plan {
        gear: bare(),
        steps: vec![parks, step(Vec::new())],
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn message_that_was_taken_back_while_its_run_parked_has_one_end_when_another_program_goes_on()
{
    for event in 0..16 {
        withdrawn_at(event).await;
    }
}
