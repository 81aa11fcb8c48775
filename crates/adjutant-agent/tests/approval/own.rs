//! What a tool asks for itself, in the middle of a call.

use adjutant_agent::{Limits, RunResult};
use adjutant_llm::{CallResult, Status};
use adjutant_tool::{Answer, CallContext, ErasedTool, Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::stage::{agent, answered, calls, names, script, spec};

fn careful(replay: Replay) -> impl ErasedTool + 'static {
    tool_fn(
        ToolSpec {
            replay,
            ..spec("careful")
        },
        |_: Value, cx: CallContext| async move {
            cx.confirm("sure", "Really?").await?;
            Ok(CallResult::ok("done"))
        },
    )
}

async fn run(replay: Replay, answer: Option<Answer>) -> RunResult {
    let (_, agent) = agent(script(&[("careful", json!({"n": 1}))]));
    let agent = agent.tool(careful(replay)).responder(move |_, _| {
        let answer = answer.clone();
        async move { answer }
    });
    agent.run("Go.").await.expect("the run ends")
}

fn one(status: Status, text: &str) -> Vec<(String, Status, String)> {
    vec![("careful".into(), status, text.into())]
}

#[tokio::test]
async fn tool_goes_on_when_its_own_question_is_granted() {
    for replay in [Replay::Once, Replay::Resumable] {
        let granted = run(replay, Some(Answer::approve())).await;
        assert_eq!(calls(&granted), one(Status::Ok, "done"));
        let denied = run(replay, Some(Answer::deny("not now"))).await;
        assert_eq!(calls(&denied), one(Status::Denied, "not now"));
    }
    let suspended = run(Replay::Resumable, None).await;
    assert_eq!(
        (names(&suspended), calls(&suspended).len()),
        (vec!["main/c1_0_0/sure".to_owned()], 0)
    );
    let given_up = run(Replay::Once, None).await;
    assert_eq!(
        calls(&given_up),
        one(
            Status::Failed,
            "nobody can be asked here, for \"sure\": Really?"
        )
    );
}

#[tokio::test]
async fn tool_is_entered_again_when_its_own_question_is_answered_later() {
    let (_, agent) = agent(script(&[("careful", json!({"n": 1}))]));
    let agent = agent.tool(careful(Replay::Resumable));
    let parked = agent.run("Go.").await.expect("the run waits");
    let answer = vec![answered(&names(&parked)[0], Answer::approve())];
    let result = agent.resume(answer).await.expect("the run finishes");
    assert_eq!(
        (calls(&result), result.text().as_str()),
        (one(Status::Ok, "done"), "Done.")
    );
}

#[tokio::test]
async fn tool_is_told_at_once_when_nobody_can_ever_be_asked() {
    let text = "nobody can be asked here, for \"sure\": Really?";
    let start = |replay| {
        agent(script(&[("careful", json!({"n": 1}))]))
            .1
            .tool(careful(replay))
    };
    let once = start(Replay::Once)
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(calls(&once), one(Status::Failed, text));
    let unattended = start(Replay::Resumable).limits(Limits {
        unattended: true,
        ..Limits::default()
    });
    let result = unattended.run("Go.").await.expect("the run finishes");
    assert_eq!(calls(&result), one(Status::Failed, text));
}
