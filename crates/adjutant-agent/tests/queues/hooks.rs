//! Hooks of the queues: told when a message waits, asked before it is placed.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    CancelBy, EventKind, HookContext, Lane, Outcome, Verdict,
    points::{MessagePlaced, MessageQueued},
};
use adjutant_llm::{Entry, Gate, UserMessage};

use super::{
    seen::{is_delta, requests, says, until, waiting, word},
    stage::{agent, events},
};

type Told = Arc<Mutex<Vec<String>>>;

fn tell(told: &Told, what: &str, content: &Entry) {
    told.lock()
        .expect("no panic inside")
        .push(format!("{what} {}", word(content)));
}

#[tokio::test]
async fn hooks_are_told_when_a_message_is_queued_and_placed() {
    let (gate, told) = (Gate::default(), Told::default());
    let (_, agent) = agent([
        says("One two").delta_chars(4).wait_at(1, &gate),
        says("a"),
        says("b"),
    ]);
    let (queued, placed) = (Arc::clone(&told), Arc::clone(&told));
    let agent = agent
        .on(move |_: HookContext, point: MessageQueued| {
            tell(&queued, "queued", &point.content);
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: MessagePlaced| {
            tell(&placed, "placed", &point.content);
            async { Verdict::Pass(point) }
        });
    agent.queue().steer("before").expect("there is room");
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    running.queue().steer("during").expect("there is room");
    until(&mut running, super::seen::is_queued).await;
    gate.open();
    running.finish().await.expect("the run finishes");
    let expected = [
        "queued before",
        "placed before",
        "queued during",
        "placed during",
    ];
    assert_eq!(*told.lock().expect("no panic inside"), expected);
}

#[tokio::test]
async fn message_is_changed_when_a_hook_revises_it() {
    let (model, agent) = agent([says("a")]);
    let agent = agent.on(|_: HookContext, mut point: MessagePlaced| async move {
        point.content = Entry::User(UserMessage::text(word(&point.content).to_uppercase()));
        Verdict::Pass(point)
    });
    agent.queue().steer("louder").expect("there is room");
    let seen = events(agent.run("Go.").stream().expect("the session is free")).await;
    let added = seen.iter().filter_map(|event| match event {
        EventKind::EntryAdded { content } => Some(word(content)),
        _ => None,
    });
    assert_eq!(added.collect::<Vec<_>>(), ["Go.", "LOUDER"]);
    assert_eq!(requests(&model), [["Go.", "LOUDER"]]);
}

#[tokio::test]
async fn message_is_dropped_when_a_hook_denies_or_spoils_it() {
    let (model, agent) = agent([says("a"), says("b")]);
    let agent = agent.on(|_: HookContext, mut point: MessagePlaced| async move {
        match word(&point.content).as_str() {
            "no" => Verdict::Deny("not that".into()),
            "panic" => std::panic::panic_any("a hook that panics"),
            "spoil" => {
                point.content = Entry::User(UserMessage::text(" "));
                Verdict::Pass(point)
            }
            _ => Verdict::Pass(point),
        }
    });
    for text in ["no", "panic", "spoil", "yes"] {
        agent.queue().steer(text).expect("there is room");
    }
    agent.queue().follow_up("no").expect("there is room");
    let seen = events(agent.run("Go.").stream().expect("the session is free")).await;
    let denied = seen.iter().filter_map(|event| match event {
        EventKind::Denied { reason, .. } => Some(reason.to_string()),
        _ => None,
    });
    let expected = [
        "not that",
        "a hook of message_placed panicked: a hook that panics",
        "what a hook made of it cannot be placed: it is empty",
        "not that",
    ];
    assert_eq!(denied.collect::<Vec<_>>(), expected);
    assert_eq!(
        (requests(&model), !agent.queue().is_empty()),
        (vec![vec!["Go.".to_owned(), "yes".to_owned()]], false)
    );
}

#[tokio::test(start_paused = true)]
async fn message_waits_again_when_the_run_is_cancelled_while_a_hook_hangs() {
    let (_, agent) = agent([says("a")]);
    let agent = agent.on(|_: HookContext, point: MessagePlaced| async move {
        if word(&point.content) == "hang" {
            std::future::pending::<()>().await;
        }
        Verdict::Pass(point)
    });
    for place in ["at the beginning", "at the end"] {
        let queued = agent.clone();
        let hang = || drop(queued.queue().steer("hang").expect("there is room"));
        let running = if place == "at the beginning" {
            hang();
            agent.run("Go.").stream().expect("the session is free")
        } else {
            drop(agent.queue().clear(&[Lane::Steering, Lane::FollowUp]));
            let running = agent.run("Go.").stream().expect("the session is free");
            agent.queue().follow_up("hang").expect("there is room");
            running
        };
        let stopper = running.stopper();
        let task = tokio::spawn(running.finish());
        // Time passes only when nothing else can move: the hook hangs.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(agent.queue().is_empty(), "the hook is asked {place}");
        stopper.stop(CancelBy::User);
        let result = task.await.expect("no panic").expect("a cancel is no error");
        assert_eq!(
            (result.outcome, waiting(&agent)),
            (
                Outcome::Cancelled { by: CancelBy::User },
                vec!["hang".to_owned()]
            )
        );
    }
}

#[tokio::test]
async fn run_ends_when_an_observer_of_the_queue_hangs() {
    let gate = Gate::default();
    let (_, agent) = agent([says("One two").delta_chars(4).wait_at(1, &gate), says("a")]);
    let agent = agent
        .on(|_: HookContext, _: MessageQueued| std::future::pending::<Verdict<MessageQueued>>());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    running.queue().steer("during").expect("there is room");
    gate.open();
    assert_eq!(
        running.finish().await.expect("the run finishes").text(),
        "a"
    );
}
