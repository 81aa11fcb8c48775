//! When what is queued is placed, and how much of it.

use std::sync::Arc;

use adjutant_agent::{Agent, Completion, Continue, Drain, EventKind, Lane, Outcome};
use adjutant_llm::{Entry, Gate, Origin, Script, ScriptedModel, Terminate};

use super::{
    seen::{calling, ending, is_delta, is_queued, names, requests, says, until, waiting, work},
    stage::{agent, events},
};

#[tokio::test]
async fn steer_is_placed_after_the_prompts_when_it_came_before_the_run() {
    let (model, agent) = agent([says("Well.")]);
    agent.queue().steer("Be brief.").expect("there is room");
    let seen = events(agent.run("Go.").stream().expect("the session is free")).await;
    let expected = [
        "run_started",
        "entry_added",
        "message_queued",
        "message_placed",
        "entry_added",
        "turn_started",
        "turn_finished",
    ];
    assert_eq!(names(&seen)[..7], expected);
    assert_eq!(requests(&model), [["Go.", "Be brief."]]);
    let request = model.requests().remove(0);
    let Some(Entry::User(message)) = request.entries.last().map(|stored| stored.entry.clone())
    else {
        unreachable!("a message was placed");
    };
    assert_eq!(message.origin, Origin::Steering);
    assert!(agent.queue().is_empty());
}

#[tokio::test]
async fn steer_is_placed_before_the_next_request_when_a_tool_is_at_work() {
    let (model, agent) = agent([calling(2), says("Done.")]);
    let handle = agent.clone();
    let agent = agent
        .limits(adjutant_agent::Limits {
            sequential: true,
            ..adjutant_agent::Limits::default()
        })
        .tool(work(move || {
            handle.queue().steer("Now.").expect("there is room");
        }));
    let result = agent
        .drain(Lane::Steering, Drain::All)
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(result.calls.len(), 2);
    assert_eq!(requests(&model)[1], ["Go.", ">ok,ok", "Now.", "Now."]);
}

#[tokio::test]
async fn steer_keeps_the_run_going_when_the_reply_was_an_answer() {
    let gate = Gate::default();
    let (model, agent) = agent([
        says("One two").delta_chars(4).wait_at(1, &gate),
        says("Three."),
    ]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    running.queue().steer("And?").expect("there is room");
    gate.open();
    let seen = events(running).await;
    let Some(EventKind::RunFinished { result }) = seen.last() else {
        unreachable!("the last event")
    };
    assert_eq!((result.text().as_str(), result.turns), ("Three.", 2));
    assert_eq!(
        seen.iter()
            .filter(|event| matches!(event, EventKind::RunFinished { .. }))
            .count(),
        1
    );
    assert_eq!(requests(&model)[1], ["Go.", "=One two", "And?"]);
}

#[tokio::test]
async fn steer_keeps_the_run_going_when_all_results_would_end_it() {
    let (model, agent) = agent([calling(2), says("More."), calling(1)]);
    let agent = agent.tool(ending(Terminate::IfAll, || {}));
    agent.queue().steer("First.").expect("there is room");
    agent.queue().steer("Second.").expect("there is room");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        requests(&model),
        [
            vec!["Go.", "First."],
            vec!["Go.", "First.", ">ok,ok", "Second."]
        ]
    );
    assert_eq!(result.text(), "More.");
    let ended = agent.run("Again.").await.expect("the run finishes");
    assert!(
        matches!(
            ended.outcome,
            Outcome::Finished {
                why: Completion::Terminated,
                ..
            }
        ),
        "{:?}",
        ended.outcome
    );
}

#[tokio::test]
async fn queue_waits_when_a_result_ends_the_run_now() {
    let (model, agent) = agent([calling(1), says("Next."), says("Last.")]);
    let handle = agent.clone();
    let agent = agent.tool(ending(Terminate::Now, move || {
        handle.queue().steer("Later.").expect("there is room");
        handle
            .queue()
            .follow_up("Last of all.")
            .expect("there is room");
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(
        matches!(
            result.outcome,
            Outcome::Finished {
                why: Completion::Terminated,
                ..
            }
        ),
        "{:?}",
        result.outcome
    );
    assert_eq!(waiting(&agent), ["Later.", "Last of all."]);
    let next = agent.run("Again.").await.expect("the run finishes");
    assert_eq!(
        (next.text().as_str(), !agent.queue().is_empty()),
        ("Last.", false)
    );
    assert_eq!(requests(&model)[1], ["Go.", ">ok", "Again.", "Later."]);
}

#[tokio::test]
async fn follow_up_waits_when_the_run_has_more_to_do() {
    let (model, agent) = agent([calling(1), calling(1), says("Done."), says("Thanks.")]);
    let handle = agent.clone();
    let first = std::sync::Once::new();
    let agent = agent.tool(work(move || {
        first.call_once(|| {
            drop(
                handle
                    .queue()
                    .follow_up("One more.")
                    .expect("there is room"),
            )
        });
    }));
    let seen = events(agent.run("Go.").stream().expect("the session is free")).await;
    let shown = requests(&model);
    assert_eq!(
        (shown.len(), &shown[2][..]),
        (4, &["Go.", ">ok", ">ok"].map(String::from)[..])
    );
    assert_eq!(shown[3], ["Go.", ">ok", ">ok", "=Done.", "One more."]);
    assert_eq!(
        seen.iter()
            .filter(|event| matches!(event, EventKind::RunFinished { .. }))
            .count(),
        1
    );
}

#[tokio::test]
async fn follow_ups_chain_when_each_gets_an_answer() {
    let (model, agent) = agent([says("0"), says("1"), says("2"), says("3")]);
    for text in ["f1", "f2", "f3"] {
        agent.queue().follow_up(text).expect("there is room");
    }
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        requests(&model)[3],
        ["Go.", "=0", "f1", "=1", "f2", "=2", "f3"]
    );
    assert_eq!(
        (result.turns, result.entries.len(), result.text().as_str()),
        (4, 8, "3")
    );
}

#[tokio::test]
async fn steering_goes_first_when_follow_ups_wait_too() {
    let gate = Gate::default();
    let (model, agent) = agent([says("0").wait_at(0, &gate), says("1"), says("2")]);
    agent.queue().follow_up("follow").expect("there is room");
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TurnStarted)
    })
    .await;
    running.queue().steer("steer").expect("there is room");
    gate.open();
    running.finish().await.expect("the run finishes");
    assert_eq!(requests(&model)[2], ["Go.", "=0", "steer", "=1", "follow"]);
}

#[tokio::test]
async fn queue_gives_one_item_when_its_mode_is_the_default() {
    let (model, agent) = agent([says("0"), says("1"), says("2"), says("3")]);
    for text in ["a", "b"] {
        agent.queue().steer(text).expect("there is room");
        agent
            .queue()
            .follow_up(format!("late {text}"))
            .expect("there is room");
    }
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        requests(&model)[3],
        ["Go.", "a", "=0", "b", "=1", "late a", "=2", "late b"]
    );
}

#[tokio::test]
async fn queue_gives_all_items_when_its_mode_says_so() {
    let (model, agent) = agent([says("0"), says("1")]);
    let agent = agent
        .drain(Lane::Steering, Drain::All)
        .drain(Lane::FollowUp, Drain::All);
    for text in ["a", "b"] {
        agent.queue().steer(text).expect("there is room");
        agent
            .queue()
            .follow_up(format!("late {text}"))
            .expect("there is room");
    }
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        requests(&model)[1],
        ["Go.", "a", "b", "=0", "late a", "late b"]
    );
    assert_eq!(result.turns, 2);
}

#[tokio::test]
async fn queue_modes_are_apart_when_only_one_is_set() {
    let (model, agent) = agent([says("0"), says("1"), says("2")]);
    let agent = agent.drain(Lane::Steering, Drain::All);
    for text in ["a", "b"] {
        agent.queue().steer(text).expect("there is room");
        agent
            .queue()
            .follow_up(format!("late {text}"))
            .expect("there is room");
    }
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        requests(&model)[2],
        ["Go.", "a", "b", "=0", "late a", "=1", "late b"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn queue_keeps_its_order_when_threads_fill_it() {
    const SENDERS: usize = 8;
    const EACH: usize = 12;
    let model = Arc::new(ScriptedModel::new(
        (0..=2 * SENDERS * EACH + 2).map(|_| says("ok")),
    ));
    let agent = Agent::new(Arc::clone(&model)).limits(adjutant_agent::Limits {
        max_turns: None,
        ..adjutant_agent::Limits::default()
    });
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let agent = agent.clone();
            tokio::spawn(async move {
                for nth in 0..EACH {
                    agent
                        .queue()
                        .steer(format!("s {sender} {nth}"))
                        .expect("there is room");
                    tokio::task::yield_now().await;
                    agent
                        .queue()
                        .follow_up(format!("f {sender} {nth}"))
                        .expect("there is room");
                }
            })
        })
        .collect();
    agent.run("Go.").await.expect("the run finishes");
    for sender in senders {
        sender.await.expect("no panic");
    }
    if !agent.queue().is_empty() {
        agent.run(Continue).await.expect("the run finishes");
    }
    let placed: Vec<String> = super::seen::words(&agent.log().transcript());
    for lane in ["s", "f"] {
        for sender in 0..SENDERS {
            let own = format!("{lane} {sender} ");
            let order: Vec<&str> = placed
                .iter()
                .filter_map(|text| text.strip_prefix(&own))
                .collect();
            assert_eq!(
                order,
                (0..EACH).map(|nth| nth.to_string()).collect::<Vec<_>>()
            );
        }
    }
    assert!(agent.queue().is_empty());
}

#[tokio::test]
async fn queue_events_are_in_order_when_items_are_placed() {
    let gate = Gate::default();
    let scripts = [
        calling(1),
        says("One two").delta_chars(4).wait_at(1, &gate),
        Script::new().text("End."),
    ];
    let (_, agent) = agent(scripts);
    let handle = agent.clone();
    let agent = agent.tool(work(move || {
        handle.queue().steer("In between.").expect("there is room");
    }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut seen = Vec::new();
    while let Some(event) = running.next().await {
        if is_delta(&event.kind) && !gate_is_passed(&seen) {
            running.queue().steer("At the end.").expect("there is room");
            gate.open();
        }
        seen.push(event.kind);
    }
    assert_eq!(seen.iter().filter(|event| is_queued(event)).count(), 2);
    let expected = [
        "run_started",
        "entry_added",
        "turn_started",
        "message_queued",
        "turn_finished",
        "message_placed",
        "entry_added",
        "turn_started",
        "message_queued",
        "turn_finished",
        "message_placed",
        "entry_added",
        "turn_started",
        "turn_finished",
        "run_finished",
    ];
    assert_eq!(names(&seen), expected);
}

fn gate_is_passed(seen: &[EventKind]) -> bool {
    seen.iter().any(is_delta)
}
