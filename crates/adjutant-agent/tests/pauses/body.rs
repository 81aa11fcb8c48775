//! Pauses of a body in the middle of its call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::Pause;
use adjutant_llm::{CallResult, Status};
use adjutant_tool::{Answer, Ask, CallContext, Replay, ToolError, ToolSpec, tool_fn};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::stage::{agent, answered, calls, names, script, spec};

/// Asks two things at a time, and notes what it did after each.
async fn two(cx: CallContext, done: Arc<AtomicUsize>) -> Result<CallResult, ToolError> {
    let one = |key: &'static str| {
        let (cx, done) = (cx.clone(), Arc::clone(&done));
        async move {
            let name = cx.ask(key, format!("{key}?")).await?;
            let step = || async move {
                done.fetch_add(1, Ordering::SeqCst);
                Ok(name.to_string())
            };
            cx.once(&format!("note {key}"), step).await
        }
    };
    let (first, second) = tokio::join!(one("first"), one("second"));
    Ok(CallResult::ok(format!("{} {}", first?, second?)))
}

#[tokio::test]
async fn pauses_of_a_body_come_together_when_it_asks_several_things() {
    let (_, agent) = agent(script(&[("asks", json!({"n": 1}))]));
    let done = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&done);
    let agent = agent.tool(tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("asks")
        },
        move |_: Value, cx| two(cx, Arc::clone(&counts)),
    ));
    let parked = agent.run("Go.").await.expect("the run waits");
    assert_eq!(names(&parked), ["main/c1_0_0/first", "main/c1_0_0/second"]);
    let answers =
        ["second", "first"].map(|key| answered(format!("main/c1_0_0/{key}"), Answer::give(key)));
    let result = agent
        .resume(answers.to_vec())
        .await
        .expect("the run finishes");
    assert_eq!(
        calls(&result),
        [("asks".into(), Status::Ok, r#""first" "second""#.into())]
    );
    assert_eq!(done.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn body_is_entered_until_all_is_answered_when_one_answer_leads_to_another_question() {
    let (_, agent) = agent(script(&[("asks", json!({"n": 1}))]));
    let entered = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&entered);
    let agent = agent.tool(tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("asks")
        },
        move |_: Value, cx: CallContext| {
            counts.fetch_add(1, Ordering::SeqCst);
            async move {
                let mut said = Vec::new();
                for key in ["a", "b", "c"] {
                    said.push(cx.ask(key, "What?").await?.to_string());
                }
                Ok(CallResult::ok(said.join(",")))
            }
        },
    ));
    let mut result = agent.run("Go.").await.expect("the run waits");
    for (n, key) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(names(&result), [format!("main/c1_0_0/{key}")]);
        result = agent
            .resume(vec![answered(&names(&result)[0], Answer::give(n))])
            .await
            .expect("the run goes on");
    }
    assert_eq!(
        (calls(&result)[0].2.as_str(), entered.load(Ordering::SeqCst)),
        ("0,1,2", 4)
    );
}

#[tokio::test(start_paused = true)]
async fn time_of_a_call_stands_still_when_its_body_waits_for_an_answer() {
    let (_, agent) = agent(script(&[("asks", json!({"n": 1}))]));
    let agent = agent
        .calls(|calls| calls.timeout = Some(Duration::from_secs(10)))
        .tool(tool_fn(
            spec("asks"),
            |_: Value, cx: CallContext| async move {
                tokio::time::sleep(Duration::from_secs(6)).await;
                cx.ask("what", "What?").await?;
                tokio::time::sleep(Duration::from_secs(6)).await;
                Ok(CallResult::ok("never"))
            },
        ));
    let agent = agent.responder(|_, _| async {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Some(Answer::give("this"))
    });
    let began = tokio::time::Instant::now();
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = "the tool did not end within 10s and was given up; it may have taken effect";
    assert_eq!(
        calls(&result),
        [("asks".into(), Status::TimedOut, text.into())]
    );
    assert_eq!(began.elapsed().as_secs(), 3_610);
}

#[tokio::test(start_paused = true)]
async fn body_is_told_that_time_is_up_when_nobody_answers() {
    let (_, agent) = agent(script(&[("asks", json!({"n": 1}))]));
    let agent = agent.tool(tool_fn(
        spec("asks"),
        |_: Value, cx: CallContext| async move {
            let answer = cx
                .pause(
                    "what",
                    Ask::question("What?").within(Duration::from_secs(5)),
                )
                .await?;
            Ok(CallResult::ok(format!("{answer:?}")))
        },
    ));
    let agent = agent.responder(|_, _| std::future::pending());
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        calls(&result),
        [("asks".into(), Status::Ok, "Expired".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn next_pause_is_asked_when_a_body_gave_up_the_one_before() {
    let batch = || adjutant_llm::Script::new().call("asks", json!({"n": 1}));
    let (_, agent) = agent([batch(), batch(), adjutant_llm::Script::new().text("Done.")]);
    let agent = agent.tool(tool_fn(
        spec("asks"),
        |_: Value, cx: CallContext| async move {
            tokio::select! {
                answer = cx.ask("what", "What?") => Ok(CallResult::ok(answer?.to_string())),
                () = tokio::time::sleep(Duration::from_secs(1)) => Ok(CallResult::ok("gave up")),
            }
        },
    ));
    // The first question is never answered, and its responder never ends.
    let agent = agent.responder(|_, pause: Pause| async move {
        if pause.call_id().is_some_and(|call| call.turn == 1) {
            std::future::pending::<()>().await;
        }
        Some(Answer::give("this"))
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    let texts: Vec<String> = calls(&result)
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();
    assert_eq!(
        (texts, result.text().as_str()),
        (vec!["gave up".to_owned(), r#""this""#.to_owned()], "Done.")
    );
}

#[tokio::test(start_paused = true)]
async fn step_at_work_is_not_torn_when_its_body_gives_way() {
    let (_, agent) = agent(script(&[("asks", json!({"n": 1}))]));
    let (ran, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (counts, gate) = (Arc::clone(&ran), Arc::clone(&open));
    let agent = agent.tool(tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("asks")
        },
        move |_: Value, cx: CallContext| {
            let (counts, gate) = (Arc::clone(&counts), Arc::clone(&gate));
            async move {
                let work = || async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    gate.add_permits(1);
                    Ok(counts.fetch_add(1, Ordering::SeqCst))
                };
                let (step, answer) = tokio::join!(cx.once("work", work), cx.ask("what", "What?"));
                Ok(CallResult::ok(format!("{} {}", step?, answer?)))
            }
        },
    ));
    let parked = agent.run("Go.").await.expect("the run waits");
    assert_eq!(
        (names(&parked), open.available_permits()),
        (vec!["main/c1_0_0/what".to_owned()], 1)
    );
    let result = agent
        .resume(vec![answered("main/c1_0_0/what", Answer::give(1))])
        .await
        .expect("the run finishes");
    assert_eq!(
        (calls(&result)[0].2.as_str(), ran.load(Ordering::SeqCst)),
        ("0 1", 1)
    );
}
