//! Runs without a prompt: what they answer, and when there is nothing to answer.

use adjutant_agent::{
    Agent, Continue, Error, ErrorKind, HookContext, Limit, Outcome, Verdict, points::MessagePlaced,
};
use adjutant_llm::{Custom, Entry, Gate, UserMessage};
use serde_json::json;

use super::{
    seen::{calling, requests, says, waiting, words, work},
    stage::agent,
};

#[track_caller]
fn check_prompt(error: &Error, text: &str) {
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::Prompt,
            format!("the prompt cannot be sent: {text}")
        )
    );
}

#[tokio::test]
async fn continue_fails_when_the_transcript_is_empty() {
    let (model, agent) = agent([says("Well.")]);
    let error = agent.run(Continue).await.expect_err("nothing was said");
    check_prompt(&error, "there is none, and there is no earlier message");
    assert_eq!(model.requests().len(), 0);
    agent.queue().follow_up("waits").expect("there is room");
    agent
        .run(Continue)
        .await
        .expect("what waits is a beginning");
    assert_eq!(requests(&model), [["waits"]]);
}

#[tokio::test]
async fn continue_answers_when_the_tail_is_a_message_of_the_user() {
    let (model, agent) = agent([says("Well.")]);
    let custom = Custom {
        kind: "mark".into(),
        value: json!(1),
    };
    agent
        .log()
        .append(vec![UserMessage::text("Go.").into(), custom.into()])
        .await
        .expect("the session is free");
    let result = agent.run(Continue).await.expect("the run finishes");
    assert_eq!(
        (requests(&model)[0].clone(), result.entries.len()),
        (vec!["Go.".to_owned(), "#mark".to_owned()], 1)
    );
}

#[tokio::test]
async fn continue_answers_when_the_tail_is_a_turn_with_results() {
    let (model, agent) = agent([calling(1), says("Done.")]);
    let agent = agent.tool(work(|| {})).max_turns(1);
    let limited = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        limited.outcome,
        Outcome::Limit {
            limit: Limit::Turns
        }
    );
    let result = agent.run(Continue).await.expect("the run finishes");
    assert_eq!((result.text().as_str(), result.entries.len()), ("Done.", 1));
    assert_eq!(requests(&model)[1], ["Go.", ">ok"]);
}

#[tokio::test]
async fn continue_takes_one_steering_item_when_the_tail_is_an_answer() {
    let (model, agent) = agent([says("0"), says("1"), says("2")]);
    agent.run("Go.").await.expect("the run finishes");
    agent.queue().follow_up("later").expect("there is room");
    agent.queue().steer("a").expect("there is room");
    agent.queue().steer("b").expect("there is room");
    model.push(says("3"));
    let result = agent.run(Continue).await.expect("the run finishes");
    assert_eq!(requests(&model)[1], ["Go.", "=0", "a"]);
    assert_eq!(
        requests(&model)[3],
        ["Go.", "=0", "a", "=1", "b", "=2", "later"]
    );
    assert_eq!(result.entries.len(), 6);
}

#[tokio::test]
async fn continue_takes_a_follow_up_when_no_steering_waits() {
    let (model, agent) = agent([says("0"), says("1"), says("2")]);
    agent.run("Go.").await.expect("the run finishes");
    agent.queue().follow_up("a").expect("there is room");
    agent.queue().follow_up("b").expect("there is room");
    agent.run(Continue).await.expect("the run finishes");
    assert_eq!(requests(&model)[1], ["Go.", "=0", "a"]);
    assert_eq!(requests(&model)[2], ["Go.", "=0", "a", "=1", "b"]);
}

#[tokio::test]
async fn continue_fails_when_the_tail_is_an_answer_and_nothing_waits() {
    let (model, agent) = agent([says("0"), says("1")]);
    agent.run("Go.").await.expect("the run finishes");
    let error = agent
        .run(Continue)
        .await
        .expect_err("there is nothing to answer");
    check_prompt(
        &error,
        "there is none, and a run cannot continue from an answer",
    );
    let error = agent
        .run(Continue)
        .stream()
        .expect("the log is read first")
        .finish()
        .await
        .expect_err("nothing to answer");
    assert_eq!(
        (
            error.kind(),
            model.requests().len(),
            agent.log().transcript().len()
        ),
        (ErrorKind::Prompt, 1, 2)
    );
    agent.run("Again.").await.expect("the session is free");
}

#[tokio::test]
async fn continue_fails_when_all_that_waits_is_denied() {
    let (model, agent) = agent([says("0"), says("1")]);
    agent.run("Go.").await.expect("the run finishes");
    agent.queue().steer("a").expect("there is room");
    agent.queue().follow_up("b").expect("there is room");
    let denying = agent
        .clone()
        .on(|_: HookContext, _: MessagePlaced| async { Verdict::Deny("no".into()) });
    let error = denying.run(Continue).await.expect_err("nothing is left");
    assert_eq!(
        (
            error.kind(),
            model.requests().len(),
            !agent.queue().is_empty()
        ),
        (ErrorKind::Failed, 1, false)
    );
    agent.run("Again.").await.expect("the session is free");
}

#[tokio::test]
async fn continue_loses_nothing_when_the_session_is_busy() {
    let gate = Gate::default();
    let (_, agent) = agent([says("0").wait_at(0, &gate), says("1"), says("2")]);
    let running = agent.run("Go.").stream().expect("the session is free");
    agent.queue().steer("a").expect("there is room");
    agent.queue().follow_up("b").expect("there is room");
    let error = agent.run(Continue).await.expect_err("the session is taken");
    assert_eq!(
        (error.kind(), waiting(&agent)),
        (ErrorKind::Busy, vec!["a".to_owned(), "b".to_owned()])
    );
    gate.open();
    running.finish().await.expect("the run finishes");
}

#[tokio::test]
async fn continue_skips_custom_entries_when_it_looks_for_the_tail() {
    let (_, agent) = agent([says("0")]);
    agent.run("Go.").await.expect("the run finishes");
    agent
        .log()
        .append(vec![Entry::Custom(Custom {
            kind: "mark".into(),
            value: json!(1),
        })])
        .await
        .expect("free");
    assert_eq!(
        agent
            .run(Continue)
            .await
            .expect_err("the tail is the answer")
            .kind(),
        ErrorKind::Prompt
    );
    assert_eq!(words(&agent.log().transcript()), ["Go.", "=0", "#mark"]);
}

fn is_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn handles_can_be_shared_when_threads_want_them() {
    let (_, agent) = agent([]);
    is_send_and_sync::<Agent>(&agent);
    is_send_and_sync(&agent.queue().steer("a").expect("there is room"));
}
