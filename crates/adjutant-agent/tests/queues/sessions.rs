//! What joins a conversation without a request, what it begins with, and how it is left.

use std::sync::Arc;

use adjutant_agent::{Agent, Continue, ErrorKind, Journal, Lane, MemoryJournal, Record, Seq};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, FinishReason, Gate, Reply, ScriptedModel, Status,
    Summary, Turn, UserMessage,
};
use futures_util::StreamExt;

use super::{
    seen::{requests, says, words},
    stage::agent,
};

fn user(text: &str) -> Entry {
    UserMessage::text(text).into()
}

#[tokio::test]
async fn append_adds_entries_when_the_session_is_idle() {
    let (model, agent) = agent([says("0"), says("1")]);
    agent
        .log()
        .append(vec![user("a"), user("b")])
        .await
        .expect("the session is free");
    assert_eq!(
        (words(&agent.log().transcript()), model.requests().len()),
        (vec!["a".to_owned(), "b".to_owned()], 0)
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (requests(&model)[0].join(" "), result.entries.len()),
        ("a b Go.".to_owned(), 2)
    );
    agent
        .log()
        .append(Vec::new())
        .await
        .expect("nothing is nothing");
    let summary = Summary {
        text: "all".into(),
        covers: 1,
    };
    let error = agent
        .log()
        .append(vec![Entry::Summary(summary)])
        .await
        .expect_err("a summary is refused");
    assert_eq!(
        (error.kind(), agent.log().transcript().len()),
        (ErrorKind::Prompt, 4)
    );
    agent.run("Again.").await.expect("the session is free");
}

#[tokio::test]
async fn append_is_recorded_when_the_log_is_opened_again() {
    let (journal, model) = (
        MemoryJournal::default(),
        Arc::new(ScriptedModel::new([says("0")])),
    );
    let first = Agent::new(ScriptedModel::new([])).journal(journal.clone());
    first
        .log()
        .append(vec![user("a")])
        .await
        .expect("the session is free");
    let agent = Agent::new(Arc::clone(&model))
        .journal(journal.clone())
        .session(first.session_id().clone())
        .take_over();
    agent.run(Continue).await.expect("the run finishes");
    assert_eq!(requests(&model), [["a"]]);
}

#[tokio::test]
async fn append_is_refused_when_the_session_runs() {
    let gate = Gate::default();
    let (_, agent) = agent([says("0").wait_at(0, &gate)]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    running.next().await.expect("a run begins");
    let error = agent
        .log()
        .append(vec![user("a")])
        .await
        .expect_err("the session is taken");
    gate.open();
    running.finish().await.expect("the run finishes");
    assert_eq!(
        (error.kind(), words(&agent.log().transcript())),
        (ErrorKind::Busy, vec!["Go.".to_owned(), "=0".to_owned()])
    );
}

fn asking() -> Arc<Reply> {
    let call = |block| {
        Arc::new(Block::Call(Call::new(
            CallId {
                turn: 1,
                attempt: 0,
                block,
            },
            "work",
            "{}",
        )))
    };
    let mut reply = Reply::new("test/old".into(), FinishReason::Calls);
    reply.blocks = vec![call(0), call(1)];
    Arc::new(reply)
}

#[tokio::test]
async fn open_calls_are_closed_when_a_session_starts_from_entries() {
    let (model, agent) = agent([says("Well.")]);
    let mut open = Turn::open(asking());
    let first = asking().calls().next().expect("two calls").id;
    open.put(first, CallResult::ok("first").into())
        .expect("it is open");
    let agent = agent.start_from(vec![user("Before."), open.into()]);
    agent.run("Go.").await.expect("the run finishes");
    let request = model.requests().remove(0);
    assert_eq!(
        words(&request.entries),
        [
            "Before.",
            ">first,not executed: no result was recorded",
            "Go."
        ]
    );
    let Entry::Turn(turn) = &request.entries.get(1).expect("the turn").entry else {
        unreachable!("a turn")
    };
    assert_eq!(
        turn.results()
            .iter()
            .map(|it| it.status)
            .collect::<Vec<_>>(),
        [Status::Ok, Status::Cancelled]
    );
}

#[tokio::test]
async fn run_begins_after_given_entries_when_a_session_starts_from_them() {
    let (journal, model) = (
        MemoryJournal::default(),
        Arc::new(ScriptedModel::new([says("0"), says("1")])),
    );
    let old = Agent::new(Arc::clone(&model)).journal(journal.clone());
    let agent = old.start_from(vec![user("a"), user("b")]);
    assert_ne!(agent.session_id(), old.session_id());
    assert_eq!(
        (
            words(&agent.log().transcript()).join(" "),
            old.log().transcript().len()
        ),
        ("a b".to_owned(), 0)
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (requests(&model)[0].join(" "), result.entries.len()),
        ("a b Go.".to_owned(), 2)
    );
    let other = Agent::new(Arc::clone(&model))
        .journal(journal.clone())
        .session(agent.session_id().clone())
        .take_over();
    other.run("Again.").await.expect("the run finishes");
    assert_eq!(requests(&model)[1].join(" "), "a b Go. =0 Again.");
    let seeded = journal.read(agent.session_id(), Seq(0));
    let seeded = seeded.filter(|it| {
        let seeds = matches!(it.as_ref().expect("memory").record, Record::Seeded { .. });
        std::future::ready(seeds)
    });
    assert_eq!(seeded.count().await, 1);
}

#[tokio::test]
async fn new_session_leaves_the_configuration_and_what_waits() {
    let (model, mut agent) = agent([says("0"), says("1")]);
    agent = agent
        .instructions("Be kind.")
        .tool(super::seen::work(|| {}));
    agent.run("Go.").await.expect("the run finishes");
    let (steer, follow) = (
        agent.queue().steer("a").expect("there is room"),
        agent.queue().follow_up("b").expect("there is room"),
    );
    let old = agent.session_id().clone();
    assert_eq!(
        agent.queue().clear(&[Lane::Steering, Lane::FollowUp]).len(),
        2
    );
    agent = agent.new_session();
    assert_ne!(agent.session_id(), &old);
    assert_eq!(
        (agent.log().transcript().len(), !agent.queue().is_empty()),
        (0, false)
    );
    assert!(!steer.is_queued() && !follow.withdraw());
    agent.run("Anew.").await.expect("the run finishes");
    let request = model.requests().remove(1);
    assert_eq!(
        (
            &*request.system,
            request.tools.len(),
            words(&request.entries)
        ),
        ("Be kind.", 1, vec!["Anew.".to_owned()])
    );
}

#[tokio::test]
async fn session_can_be_used_when_a_run_was_left_and_something_was_appended() {
    let gate = Gate::default();
    let (model, agent) = agent([says("0").wait_at(0, &gate), says("1")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    running.next().await.expect("a run begins");
    drop(running);
    agent
        .log()
        .append(Vec::new())
        .await
        .expect("nothing is nothing");
    agent
        .log()
        .append(vec![user("a")])
        .await
        .expect("it waits until the turn is closed");
    agent.run("Again.").await.expect("the session is free");
    assert_eq!(
        requests(&model).last().map(|shown| shown.join(" ")),
        Some("Go. a Again.".to_owned())
    );
}
