//! Runs that wait for an answer.

use std::sync::Arc;

use adjutant_agent::{Answered, Outcome, Pause, PauseId};
use adjutant_llm::{Gate, Script};
use adjutant_runtime::{
    ErrorKind,
    prompt::{MessagesRequest, PausesRequest, ResumeRequest},
};
use adjutant_tool::Answer;
use futures_util::StreamExt;
use serde_json::json;

use crate::stage::{self, Over, Stage, kind, kind_of, stage};

stage::both!(
    run_that_waits_goes_on_with_the_answer,
    run_that_was_answered_goes_on_when_nobody_follows_it,
    run_that_waits_refuses_prompts_and_wrong_answers,
    resume_is_refused_when_no_run_waits,
    stream_of_a_run_that_waits_ends_with_run_paused,
    pauses_are_listed_until_they_are_answered_one_by_one,
);

fn scripts() -> [Script; 2] {
    [
        Script::new().call("delete", json!({"what": "the draft"})),
        Script::new().text("Done."),
    ]
}

async fn waiting(stage: &Stage) -> Arc<Pause> {
    let reply = stage
        .prompt("talk", "Delete the draft.")
        .await
        .expect("it waits");
    let Outcome::Paused { pauses } = &reply.result.outcome else {
        unreachable!("it does not wait")
    };
    let [pause] = &pauses[..] else {
        unreachable!("one pause")
    };
    assert_eq!(reply.text, "");
    Arc::clone(pause)
}

fn approve(pause: PauseId) -> ResumeRequest {
    ResumeRequest::new(vec![Answered {
        pause,
        answer: Answer::approve(),
        shown: None,
    }])
    .session("talk")
}

fn approve_shown(pause: &Pause) -> ResumeRequest {
    ResumeRequest::new(vec![pause.with_answer(Answer::approve())]).session("talk")
}

async fn run_that_waits_goes_on_with_the_answer(over: Over) {
    let stage = stage(over, scripts()).await;
    let pause = waiting(&stage).await;
    let events = stage::all(
        stage
            .prompter
            .resume(approve(pause.id.clone()))
            .await
            .expect("it goes on"),
    )
    .await;
    let names: Vec<String> = events.iter().map(stage::name).collect();
    assert_eq!(names.first().map(String::as_str), Some("run_resumed"));
    let result = stage::end_of(&events);
    assert_eq!(result.text(), "Done.");
    stage.model.assert_done();
}

async fn run_that_was_answered_goes_on_when_nobody_follows_it(over: Over) {
    let gate = Gate::default();
    let [calls, done] = scripts();
    let stage = stage(over, [calls, done.wait_at(0, &gate)]).await;
    let pause = waiting(&stage).await;
    let mut events = stage
        .prompter
        .resume(approve(pause.id.clone()))
        .await
        .expect("it goes on");
    events
        .next()
        .await
        .expect("it has begun")
        .expect("an event");
    drop(events);
    gate.open();
    stage.idle().await;
    let page = stage
        .prompter
        .messages(MessagesRequest::new().session("talk"))
        .await
        .expect("a page");
    assert_eq!(
        page.messages.last().map(|it| it.text.as_str()),
        Some("Done.")
    );
}

async fn run_that_waits_refuses_prompts_and_wrong_answers(over: Over) {
    let stage = stage(over, scripts()).await;
    let pause = waiting(&stage).await;
    assert_eq!(
        kind(stage.prompt("talk", "And now?").await),
        ErrorKind::Conflict
    );
    assert_eq!(
        kind_of(stage.stream("talk", "And now?").await),
        Some(ErrorKind::Conflict)
    );
    let other = approve(PauseId("nothing".into()));
    assert_eq!(
        kind_of(stage.prompter.resume(other).await),
        Some(ErrorKind::Conflict)
    );
    assert_eq!(
        kind_of(
            stage
                .prompter
                .resume(ResumeRequest::new(Vec::new()).session("talk"))
                .await
        ),
        Some(ErrorKind::Invalid)
    );
    let mut other = (*pause).clone();
    other
        .call
        .iter_mut()
        .for_each(|call| call.args = json!({"what": "a harmless one"}).to_string().into());
    assert_eq!(
        kind_of(stage.prompter.resume(approve_shown(&other)).await),
        Some(ErrorKind::Conflict)
    );
    let events = stage::all(
        stage
            .prompter
            .resume(approve_shown(&pause))
            .await
            .expect("nothing was lost"),
    )
    .await;
    assert_eq!(
        events.last().map(stage::name).as_deref(),
        Some("run_finished")
    );
}

async fn resume_is_refused_when_no_run_waits(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.")]).await;
    let resume = || approve(PauseId("nothing".into()));
    // Nor is a session made by it.
    for _ in 0..2 {
        assert_eq!(
            kind_of(stage.prompter.resume(resume()).await),
            Some(ErrorKind::Missing)
        );
    }
    stage.prompt("talk", "Hi.").await.expect("an answer");
    assert_eq!(
        kind_of(stage.prompter.resume(resume()).await),
        Some(ErrorKind::Conflict)
    );
}

async fn stream_of_a_run_that_waits_ends_with_run_paused(over: Over) {
    let stage = stage(over, scripts()).await;
    let events = stage::all(
        stage
            .stream("talk", "Delete the draft.")
            .await
            .expect("it begins"),
    )
    .await;
    let last = events.last().expect("it ends");
    assert_eq!(stage::name(last), "run_paused");
    let told = serde_json::to_value(last).expect("an event is written");
    let pause = told.pointer("/result/outcome/pauses/0").expect("a pause");
    assert_eq!(
        pause.pointer("/call/args"),
        Some(&json!({"what": "the draft"}).to_string().into())
    );
    assert_eq!(
        pause
            .pointer("/digest")
            .and_then(serde_json::Value::as_str)
            .map(str::len),
        Some(64)
    );
}

async fn pauses_are_listed_until_they_are_answered_one_by_one(over: Over) {
    let both = Script::new()
        .call("delete", json!({"what": "a"}))
        .call("delete", json!({"what": "b"}));
    let stage = stage(over, [both, Script::new().text("Done.")]).await;
    let nobody = stage
        .prompter
        .pauses(PausesRequest::new().session("nobody"))
        .await;
    assert_eq!(kind(nobody), ErrorKind::Missing);
    stage
        .prompt("talk", "Delete both.")
        .await
        .expect("it waits");
    let listed = async || {
        let page = stage
            .prompter
            .pauses(PausesRequest::new())
            .await
            .expect("they are listed");
        assert_eq!(page.after, None);
        page.pauses
    };
    let waiting = listed().await;
    let told: Vec<(&str, &str)> = waiting
        .iter()
        .map(|it| (&*it.session, &*it.pause.call.as_ref().expect("a call").args))
        .collect();
    assert_eq!(
        told,
        [("talk", r#"{"what":"a"}"#), ("talk", r#"{"what":"b"}"#)]
    );
    assert!(
        waiting
            .iter()
            .all(|it| it.since_ms > 0 && it.digest == it.pause.digest())
    );
    let page = stage
        .prompter
        .pauses(PausesRequest::new().session("talk"))
        .await
        .expect("those of one");
    assert_eq!(page.pauses, waiting);
    let events = stage::all(
        stage
            .prompter
            .resume(approve_shown(&waiting[1].pause))
            .await
            .expect("it goes on"),
    )
    .await;
    assert_eq!(
        events.last().map(stage::name).as_deref(),
        Some("run_paused")
    );
    let left = listed().await;
    assert_eq!(left, waiting[..1], "it waits since then");
    stage::all(
        stage
            .prompter
            .resume(approve_shown(&left[0].pause))
            .await
            .expect("it goes on"),
    )
    .await;
    assert_eq!(listed().await, []);
}
