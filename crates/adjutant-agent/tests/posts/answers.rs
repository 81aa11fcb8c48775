//! Posted answers: in place, while a call goes on, while the run is parked, and for agents under the first one.

use std::sync::Arc;

use adjutant_agent::{
    Agent, AtLimit, CancelBy, ErrorKind, EventKind, HookContext, Journal, Limits, MemoryJournal,
    Outcome, Owner, Post, PostNo, Record, RunResult, Running, Spawn, Verdict,
    points::PauseAnswered,
};
use adjutant_llm::{CallResult, Model, ModelInfo, Script, ScriptedModel, Status, model_fn};
use adjutant_tool::{
    Answer, Approval, Ask, AskKind, CallContext, ErasedTool, Replay, ToolSpec, tool_fn,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    post, records, rest, said,
    stage::{answered, calls, names, script, spec},
    steer, until, warnings,
};

fn answer(pause: &str, answer: Answer) -> Post {
    Post::Answer {
        pause: answered(pause, Answer::approve()).pause,
        answer,
        shown: None,
    }
}

/// An agent that may write with someone's approval, twice in one batch, and look as long as the permits last.
fn writer(journal: &MemoryJournal, looks: &Arc<Semaphore>) -> Agent {
    let batch = script(&[
        ("write", json!({"n": 1})),
        ("look", json!({"n": 2})),
        ("write", json!({"n": 3})),
    ]);
    let looks = Arc::clone(looks);
    let look = tool_fn(spec("look"), move |_: Value, _: CallContext| {
        let looks = Arc::clone(&looks);
        async move {
            looks.acquire().await.expect("it stays open").forget();
            Ok(CallResult::ok("looked"))
        }
    });
    let write = tool_fn(
        ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        },
        |_: Value, _: CallContext| async { Ok(CallResult::ok("written")) },
    );
    Agent::new(ScriptedModel::new(batch))
        .journal(journal.clone())
        .tool(write)
        .tool(look)
}

fn statuses(result: &RunResult) -> Vec<Status> {
    calls(result)
        .into_iter()
        .map(|(_, status, _)| status)
        .collect()
}

#[track_caller]
fn result(events: &[adjutant_agent::Event]) -> &RunResult {
    match events.last().map(|event| &event.kind) {
        Some(EventKind::RunFinished { result } | EventKind::RunPaused { result }) => result,
        other => unreachable!("a drive ends with its result: {other:?}"),
    }
}

#[tokio::test]
async fn answer_counts_in_place_when_the_responder_is_still_asked() {
    let (journal, looks) = (MemoryJournal::default(), Arc::new(Semaphore::new(1)));
    let agent = writer(&journal, &looks).responder(|_, _| std::future::pending());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |kind| {
        matches!(kind, EventKind::ToolFinished { .. })
    })
    .await;
    post(&agent, answer("main/c1_0_0", Answer::approve())).await;
    post(&agent, answer("main/c1_0_2", Answer::deny("no"))).await;
    post(&agent, answer("main/c1_0_2", Answer::approve())).await;
    let events = rest(running).await;
    assert_eq!(
        statuses(result(&events)),
        [Status::Ok, Status::Ok, Status::Denied]
    );
    assert_eq!(
        events
            .iter()
            .filter(|it| matches!(it.kind, EventKind::Answered { .. }))
            .count(),
        2
    );
    assert_eq!(
        warnings(&events),
        ["a posted answer to main/c1_0_2 is passed over: nobody waits for it"]
    );
    let log = records(&journal, &agent).await;
    let heeded = log.iter().rev().find_map(|it| match it.record {
        Record::Heeded { post } => Some(post),
        _ => None,
    });
    assert_eq!(heeded, Some(PostNo(3)));
}

#[tokio::test]
async fn answer_counts_when_nobody_here_can_answer_and_another_call_goes_on() {
    let (journal, looks) = (MemoryJournal::default(), Arc::new(Semaphore::new(0)));
    let agent = writer(&journal, &looks);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |kind| {
        matches!(kind, EventKind::ToolStarted { .. })
    })
    .await;
    post(&agent, answer("main/c1_0_0", Answer::give(3))).await;
    post(&agent, answer("main/c1_0_0", Answer::approve())).await;
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::ToolFinished { .. }) {
            looks.add_permits(1);
        }
        events.push(event);
    }
    let parked = result(&events);
    assert_eq!(names(parked), ["main/c1_0_2"]);
    assert_eq!(statuses(parked), [Status::Ok, Status::Ok]);
    assert!(
        warnings(&events)[0].starts_with("an answer to main/c1_0_0 is passed over: "),
        "{:?}",
        warnings(&events)
    );
}

#[tokio::test]
async fn hook_has_its_word_when_an_answer_is_posted() {
    let (journal, looks) = (MemoryJournal::default(), Arc::new(Semaphore::new(0)));
    let agent = writer(&journal, &looks).on(|_: HookContext, point: PauseAnswered| async move {
        tokio::task::yield_now().await;
        if point.pause.id.0.ends_with("_0") {
            Verdict::Deny("not by post".into())
        } else {
            Verdict::Pass(point)
        }
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |kind| {
        matches!(kind, EventKind::ToolStarted { .. })
    })
    .await;
    post(&agent, answer("main/c1_0_0", Answer::approve())).await;
    post(&agent, answer("main/c1_0_2", Answer::approve())).await;
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::ToolFinished { .. }) {
            looks.add_permits(1);
        }
        events.push(event);
    }
    assert_eq!(names(result(&events)), ["main/c1_0_0"]);
    assert_eq!(
        events
            .iter()
            .filter(|it| matches!(it.kind, EventKind::Denied { .. }))
            .count(),
        1
    );
}

/// A run that waits for two approvals.
async fn parked(journal: &MemoryJournal) -> Agent {
    let agent = writer(journal, &Arc::new(Semaphore::new(1)));
    let result = agent.run("Go.").await.expect("the run waits");
    assert_eq!(names(&result), ["main/c1_0_0", "main/c1_0_2"]);
    agent
}

#[tokio::test]
async fn resume_counts_the_answers_that_were_posted_when_the_run_was_parked() {
    let journal = MemoryJournal::default();
    let agent = parked(&journal).await;
    post(&agent, answer("main/c1_0_2", Answer::deny("no"))).await;
    let error = agent
        .resume(vec![answered("main/c9_0_0", Answer::approve())])
        .await
        .expect_err("it is not waited for");
    assert_eq!(error.kind(), ErrorKind::Answers);
    post(&agent, answer("main/c1_0_0", Answer::deny("no"))).await;
    // What is given here wins.
    let result = agent
        .resume(vec![answered("main/c1_0_0", Answer::approve())])
        .await
        .expect("nothing is missing");
    assert_eq!(statuses(&result), [Status::Ok, Status::Ok, Status::Denied]);
    assert_eq!(
        journal
            .read_posts(agent.session_id(), PostNo(0))
            .await
            .expect("it is there"),
        []
    );
}

#[tokio::test]
async fn another_program_resumes_when_all_answers_were_posted() {
    let journal = MemoryJournal::default();
    let first = parked(&journal).await;
    let log = first.session_id().clone();
    drop(first);
    let second = writer(&journal, &Arc::new(Semaphore::new(1)))
        .model(ScriptedModel::new([Script::new().text("Done.")]))
        .session(log);
    for pause in ["main/c1_0_0", "main/c1_0_2"] {
        post(&second, answer(pause, Answer::approve())).await;
    }
    let result = second.resume(Vec::new()).await.expect("nothing is missing");
    assert_eq!(
        (result.text().as_str(), statuses(&result)),
        ("Done.", vec![Status::Ok; 3])
    );
}

#[tokio::test]
async fn parked_run_ends_when_someone_posted_the_wish_to_stop() {
    let journal = MemoryJournal::default();
    let agent = parked(&journal).await;
    post(&agent, Post::Cancel).await;
    let result = agent.resume(Vec::new()).await.expect("the run ends");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        journal
            .read_posts(agent.session_id(), PostNo(0))
            .await
            .expect("it is there"),
        []
    );
}

/// Asks once it is let.
fn asks(gate: &Arc<Semaphore>) -> impl ErasedTool + 'static {
    let gate = Arc::clone(gate);
    tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..any("asks")
        },
        move |_: Value, cx: CallContext| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.expect("it stays open").forget();
                match cx
                    .pause(
                        "later",
                        Ask::new(AskKind::External, "Somebody else works on it."),
                    )
                    .await?
                {
                    Answer::Return { result } => Ok((*result).clone()),
                    other => unreachable!("{other:?}"),
                }
            }
        },
    )
}

#[tokio::test]
async fn answer_that_came_before_its_call_asked_is_heard_by_whoever_enters_the_call_again() {
    let journal = MemoryJournal::default();
    let agent = |gate: usize, script| {
        Agent::new(ScriptedModel::new([script]))
            .journal(journal.clone())
            .tool(asks(&Arc::new(Semaphore::new(gate))))
    };
    let first = agent(0, Script::new().call("asks", json!({})));
    let mut running = first.run("Go.").stream().expect("the session is free");
    until(&mut running, |kind| {
        matches!(kind, EventKind::ToolStarted { .. })
    })
    .await;
    post(
        &first,
        answer(
            "main/c1_0_0/later",
            Answer::Return {
                result: CallResult::ok("Worked.").into(),
            },
        ),
    )
    .await;
    post(&first, steer("Well done.")).await;
    let thief = Owner {
        takes_over: true,
        ..Owner::default()
    };
    let second = agent(2, Script::new().text("Done."))
        .session(first.session_id().clone())
        .with_owner(thief);
    let parked = second.resume(Vec::new()).await.expect("the call asks now");
    assert_eq!(names(&parked), ["main/c1_0_0/later"]);
    let result = second
        .resume(Vec::new())
        .await
        .expect("the answer is there");
    assert_eq!(calls(&result)[0].2, "Worked.");
    assert_eq!(
        journal
            .read_posts(second.session_id(), PostNo(0))
            .await
            .expect("it is there"),
        []
    );
    assert!(
        said(&second).iter().any(|text| text == "Well done."),
        "{:?}",
        said(&second)
    );
}

fn any(name: &str) -> ToolSpec {
    ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}))
}

/// Opens an agent that needs one turn more than it may have.
fn work() -> impl ErasedTool + 'static {
    tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..any("work")
        },
        |_: Value, cx: CallContext| async move {
            let step = tool_fn(any("step"), |_: Value, _: CallContext| async {
                Ok(CallResult::ok("stepped"))
            });
            let model = model_fn(ModelInfo::new("test/model"), |request| {
                let first = request.entries.len() == 1;
                let script = if first {
                    Script::new().call("step", json!({}))
                } else {
                    Script::new().text("Stepped on.")
                };
                ScriptedModel::new([script]).stream(request)
            });
            let needy = Agent::new(model).tool(step).limits(Limits {
                max_turns: Some(1),
                at_limit: AtLimit::Ask,
                ..Limits::default()
            });
            let child = cx
                .get::<dyn Spawn>()
                .expect("a call of a run")
                .open("needy", needy.into())
                .await?;
            Ok(CallResult::ok(child.run("Step.").await?.text()))
        },
    )
}

/// Takes as long as there is no permit.
fn slow(gate: &Arc<Semaphore>) -> impl ErasedTool + 'static {
    let gate = Arc::clone(gate);
    tool_fn(any("slow"), move |_: Value, _: CallContext| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.expect("it stays open").forget();
            Ok(CallResult::ok("slow"))
        }
    })
}

const BELOW: &str = "main/c1_0_0/needy/limit/1/1/0";

/// A run in which an agent under it waits while another call goes on.
async fn below(gate: &Arc<Semaphore>) -> (Agent, Running) {
    let batch = Script::new()
        .call("work", json!({}))
        .call("slow", json!({}));
    let agent = Agent::new(ScriptedModel::new([batch, Script::new().text("Done.")]))
        .journal(MemoryJournal::default());
    let agent = agent.tool(work()).tool(slow(gate));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |kind| {
        matches!(kind, EventKind::Paused { .. })
    })
    .await;
    (agent, running)
}

#[tokio::test]
async fn answer_for_an_agent_under_the_first_one_counts_when_other_calls_go_on() {
    let gate = Arc::new(Semaphore::new(0));
    let (agent, mut running) = below(&gate).await;
    // The child has asked, and its call may not have given way yet.
    post(
        &agent,
        answer(
            BELOW,
            Answer::Extend {
                by: 5,
                message: None,
            },
        ),
    )
    .await;
    until(
        &mut running,
        |kind| matches!(kind, EventKind::ToolFinished { name, .. } if name.as_str() == "work"),
    )
    .await;
    gate.add_permits(1);
    let events = rest(running).await;
    assert_eq!(
        calls(result(&events))
            .iter()
            .map(|it| it.2.as_str())
            .collect::<Vec<_>>(),
        ["Stepped on.", "slow"]
    );
}

#[tokio::test]
async fn answer_for_an_agent_under_the_first_one_counts_when_the_run_is_parked() {
    let gate = Arc::new(Semaphore::new(1));
    let (agent, running) = below(&gate).await;
    assert_eq!(names(result(&rest(running).await)), [BELOW]);
    post(
        &agent,
        answer(
            BELOW,
            Answer::Extend {
                by: 5,
                message: None,
            },
        ),
    )
    .await;
    let result = agent.resume(Vec::new()).await.expect("nothing is missing");
    assert_eq!(
        calls(&result)
            .iter()
            .map(|it| it.2.as_str())
            .collect::<Vec<_>>(),
        ["Stepped on.", "slow"]
    );
}
