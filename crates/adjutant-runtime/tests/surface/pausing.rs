//! Runs that wait for an answer.

use adjutant_agent::{Answered, Outcome, PauseId};
use adjutant_llm::Script;
use adjutant_runtime::{ErrorKind, prompt::ResumeRequest};
use adjutant_tool::Answer;
use serde_json::json;

use crate::stage::{self, Over, Stage, kind, kind_of, stage};

stage::both!(
    run_that_waits_goes_on_with_the_answer,
    run_that_waits_refuses_prompts_and_wrong_answers,
    resume_is_refused_when_no_run_waits,
    stream_of_a_run_that_waits_ends_with_run_paused,
);

fn scripts() -> [Script; 2] {
    [Script::new().call("delete", json!({"what": "the draft"})), Script::new().text("Done.")]
}

async fn waiting(stage: &Stage) -> PauseId {
    let reply = stage.prompt("talk", "Delete the draft.").await.expect("it waits");
    let Outcome::Paused { pauses } = &reply.result.outcome else { unreachable!("it does not wait") };
    let [pause] = &pauses[..] else { unreachable!("one pause") };
    assert_eq!(reply.text, "");
    pause.id.clone()
}

fn approve(pause: PauseId) -> ResumeRequest {
    let answer = Answer::Approve { args: None, for_run: false };
    ResumeRequest::new(vec![Answered { pause, answer }]).session("talk")
}

async fn run_that_waits_goes_on_with_the_answer(over: Over) {
    let stage = stage(over, scripts()).await;
    let pause = waiting(&stage).await;
    let events = stage::all(stage.prompter.resume(approve(pause)).await.expect("it goes on")).await;
    let names: Vec<String> = events.iter().map(stage::name).collect();
    assert_eq!(names.first().map(String::as_str), Some("run_resumed"));
    let result = stage::end_of(&events);
    assert_eq!(result.text(), "Done.");
    stage.model.assert_done();
}

async fn run_that_waits_refuses_prompts_and_wrong_answers(over: Over) {
    let stage = stage(over, scripts()).await;
    let pause = waiting(&stage).await;
    assert_eq!(kind(stage.prompt("talk", "And now?").await), ErrorKind::Conflict);
    assert_eq!(kind_of(stage.stream("talk", "And now?").await), Some(ErrorKind::Conflict));
    let other = approve(PauseId("nothing".into()));
    assert_eq!(kind_of(stage.prompter.resume(other).await), Some(ErrorKind::Invalid));
    assert_eq!(
        kind_of(stage.prompter.resume(ResumeRequest::new(Vec::new()).session("talk")).await),
        Some(ErrorKind::Invalid)
    );
    let events = stage::all(stage.prompter.resume(approve(pause)).await.expect("nothing was lost")).await;
    assert_eq!(events.last().map(stage::name).as_deref(), Some("run_finished"));
}

async fn resume_is_refused_when_no_run_waits(over: Over) {
    let stage = stage(over, [Script::new().text("Hello.")]).await;
    let resume = || approve(PauseId("nothing".into()));
    assert_eq!(kind_of(stage.prompter.resume(resume()).await), Some(ErrorKind::Conflict));
    stage.prompt("talk", "Hi.").await.expect("an answer");
    assert_eq!(kind_of(stage.prompter.resume(resume()).await), Some(ErrorKind::Conflict));
}

async fn stream_of_a_run_that_waits_ends_with_run_paused(over: Over) {
    let stage = stage(over, scripts()).await;
    let events = stage::all(stage.stream("talk", "Delete the draft.").await.expect("it begins")).await;
    assert_eq!(events.last().map(stage::name).as_deref(), Some("run_paused"));
}
