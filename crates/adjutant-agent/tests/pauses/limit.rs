//! A limit that someone may extend.

use adjutant_agent::{AtLimit, Limit, Limits, Outcome, RunResult};
use adjutant_llm::{Entry, Origin, Script, UserMessage};
use adjutant_tool::{Answer, AskKind};
use serde_json::json;

use super::stage::{agent, answered, names, pauses, spec};
use super::watch::Ran;

/// A run of three calls that may make two requests, and what it comes to with this answer.
async fn answer(answer: Answer) -> (RunResult, Ran, usize) {
    let call = |n: u64| Script::new().call("look", json!({"n": n}));
    let (ran, (model, agent)) = (
        Ran::default(),
        agent([call(1), call(2), call(3), Script::new().text("Done.")]),
    );
    let agent = agent
        .limits(Limits {
            max_turns: Some(2),
            at_limit: AtLimit::Ask,
            ..Limits::default()
        })
        .tool(ran.tool(spec("look")));
    let parked = agent.run("Go.").await.expect("the run waits");
    assert_eq!(names(&parked), ["main/limit/1/2/0"]);
    let pause = pauses(&parked).remove(0);
    assert_eq!(
        (pause.ask.kind, pause.ask.data.clone()),
        (AskKind::Limit, json!({"limit": "turns", "turns": 2}))
    );
    assert_eq!(
        &*pause.ask.prompt,
        "the limit of max turns is reached; may the run go on?"
    );
    assert_eq!(ran.args().len(), 2);
    let result = agent
        .resume(vec![answered(&names(&parked)[0], answer)])
        .await
        .expect("the run ends");
    (result, ran, model.requests().len())
}

#[tokio::test]
async fn limit_is_extended_when_the_answer_says_so() {
    let more = Answer::Extend {
        by: 2,
        message: Some("Hurry up.".into()),
    };
    let (result, ran, requests) = answer(more).await;
    assert_eq!(
        (
            result.text().as_str(),
            result.turns,
            ran.args().len(),
            requests
        ),
        ("Done.", 4, 3, 4)
    );
    let told = Entry::User(UserMessage {
        origin: Origin::Steering,
        ..UserMessage::text("Hurry up.")
    });
    let at = result.entries.iter().position(|entry| *entry == told);
    assert_eq!(
        at,
        Some(3),
        "after the results of the second turn: {:?}",
        result.entries
    );
}

#[tokio::test]
async fn limit_is_asked_about_again_when_it_was_extended_too_little() {
    let (result, ran, requests) = answer(Answer::Extend {
        by: 1,
        message: None,
    })
    .await;
    assert_eq!(
        (names(&result), ran.args().len(), requests),
        (vec!["main/limit/1/3/0".to_owned()], 3, 3)
    );
}

#[tokio::test]
async fn limit_ends_the_run_when_it_is_declined() {
    for answered in [Answer::Decline { message: None }, Answer::Expired] {
        let (result, ran, requests) = answer(answered).await;
        assert_eq!(
            result.outcome,
            Outcome::Limit {
                limit: Limit::Turns
            }
        );
        // A last turn, whose call does not run.
        let told = "not executed: the run has reached its limit of max turns";
        assert_eq!((ran.args().len(), requests), (2, 3));
        assert_eq!(
            result.calls.last().map(|call| call.result.text()),
            Some(told.to_owned())
        );
    }
}

#[tokio::test]
async fn limit_ends_the_run_when_nobody_can_be_asked() {
    let (ran, (model, agent)) = (
        Ran::default(),
        agent([
            Script::new().call("look", json!({"n": 1})),
            Script::new().text("So far."),
        ]),
    );
    let limits = Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        unattended: true,
        ..Limits::default()
    };
    let result = agent
        .limits(limits)
        .tool(ran.tool(spec("look")))
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert_eq!(
        (result.outcome.clone(), result.text().as_str()),
        (
            Outcome::Limit {
                limit: Limit::Turns
            },
            "So far."
        )
    );
    assert_eq!(model.requests().len(), 2);
}
