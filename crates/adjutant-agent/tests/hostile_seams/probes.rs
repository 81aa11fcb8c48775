//! Answers that are denied, late or lost on their way to a child, readers that do not read, and runs that are cut.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use adjutant_agent::{
    Agent, Continue, HookContext, LogId, MemoryJournal, Outcome, Verdict, points,
};
use adjutant_llm::{
    CallResult, Model, ModelInfo, Request, Script, ScriptedModel, Status, model_fn,
};
use adjutant_tool::{Answer, Ask, CallContext, ErasedTool, Replay, ToolError, ToolErrorKind};

use super::{
    desk::{open, results, tool, word},
    faults::Failing,
    stage::{
        Clock, LOG, WAYS, Waits, answered, boss, by_entry, check, count, log, pauses, through,
    },
};

#[tokio::test]
async fn newest_answer_counts_when_a_child_passed_over_the_first_one() {
    for restart in [false, true] {
        let journal = MemoryJournal::default();
        let heard = Arc::new(AtomicUsize::new(0));
        let make = || {
            let heard = Arc::clone(&heard);
            let child = move || {
                let heard = Arc::clone(&heard);
                Waits::Body
                    .child()
                    .on(move |_: HookContext, point: points::PauseAnswered| {
                        let first = heard.fetch_add(1, Ordering::SeqCst) == 0;
                        async move {
                            if first {
                                Verdict::Deny("say it again".into())
                            } else {
                                Verdict::Pass(point)
                            }
                        }
                    })
            };
            boss(
                &journal,
                tool("work", Replay::Resumable, move |cx| {
                    let child = child();
                    async move {
                        let result = open(&cx, "kid", child).await?.run("Go.").await?;
                        Ok(CallResult::ok(result.calls[0].result.text()))
                    }
                }),
            )
        };
        let agent = make();
        let paused = agent.run("Go.").await.expect("it waits");
        let id = pauses(&paused)[0].id.clone();
        let again = agent
            .resume(vec![answered(&id, Answer::give("first"))])
            .await
            .expect("it waits again");
        assert_eq!(
            pauses(&again)
                .iter()
                .map(|it| it.id.clone())
                .collect::<Vec<_>>(),
            vec![id.clone()]
        );
        let agent = if restart { make() } else { agent };
        let result = agent
            .resume(vec![answered(&id, Answer::give("second"))])
            .await
            .expect("it finishes");
        assert_eq!(results(&result), [r#""second""#], "{restart}");
        check(&journal).await;
    }
}

#[tokio::test(start_paused = true)]
async fn child_hears_that_time_is_up_when_nobody_answered_over_a_restart() {
    for restart in [false, true] {
        let journal = MemoryJournal::default();
        let began = tokio::time::Instant::now();
        let make = || {
            let child = || {
                let asks = tool("step", Replay::Resumable, |cx: CallContext| async move {
                    let answer = cx
                        .pause(
                            "what",
                            Ask::question("What?").within(Duration::from_secs(60)),
                        )
                        .await?;
                    Ok(CallResult::ok(format!("{answer:?}")))
                });
                Agent::new(by_entry(&["step"], "Stepped on.")).tool(asks)
            };
            boss(&journal, through(child))
                .world(Clock(began))
                .session(LogId(LOG.into()))
                .take_over()
        };
        let agent = make();
        agent.run("Go.").await.expect("it waits");
        assert!(agent.resume(vec![]).await.is_err(), "there is time");
        tokio::time::sleep(Duration::from_secs(61)).await;
        let agent = if restart { make() } else { agent };
        let result = agent.resume(vec![]).await.expect("nobody need answer");
        assert_eq!(results(&result), ["Stepped on."]);
        check(&journal).await;
    }
}

/// A tool that prompts a child that prompts a child that waits.
fn deep(way: Waits) -> impl ErasedTool + 'static {
    through(move || Agent::new(by_entry(&["work"], "Middle.")).tool(through(move || way.child())))
}

#[tokio::test(start_paused = true)]
async fn grandchild_is_answered_when_it_waits() {
    for way in WAYS {
        let journal = MemoryJournal::default();
        let paused = boss(&journal, deep(way))
            .run("Go.")
            .await
            .expect("it waits");
        let answers = pauses(&paused)
            .iter()
            .map(|it| answered(&it.id, way.answer()))
            .collect();
        let result = boss(&journal, deep(way))
            .resume(answers)
            .await
            .expect("it finishes");
        assert_eq!(
            (results(&result), result.total_usage.total()),
            (vec!["Middle.".to_owned()], 660)
        );
        let (journal, asked) = (MemoryJournal::default(), Arc::new(AtomicUsize::new(0)));
        let counts = Arc::clone(&asked);
        let agent =
            boss(&journal, deep(way)).calls(|calls| calls.timeout = Some(Duration::from_secs(10)));
        let agent = agent.responder(move |_, _| {
            counts.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
                Some(way.answer())
            }
        });
        let result = agent.run("Go.").await.expect("it finishes");
        assert_eq!(
            (results(&result), asked.load(Ordering::SeqCst)),
            (vec!["Middle.".to_owned()], 1),
            "{way:?}"
        );
        check(&journal).await;
    }
}

#[tokio::test(start_paused = true)]
async fn session_goes_on_when_its_reader_stops_reading_while_children_speak() {
    let journal = MemoryJournal::default();
    let long: &'static str = Box::leak("word ".repeat(2_000).into_boxed_str());
    let work = tool("work", Replay::Once, move |cx| async move {
        let one = open(&cx, "a", Agent::new(by_entry(&[], long))).await?;
        let two = open(&cx, "b", Agent::new(by_entry(&[], long))).await?;
        let (one, two) = tokio::join!(one.run("Look."), two.run("Look."));
        Ok(CallResult::ok(format!(
            "{}",
            one?.text().len() + two?.text().len()
        )))
    });
    let agent = boss(&journal, work);
    for dropped in [false, true] {
        let mut running = agent.run("Go.").stream().expect("the session is free");
        while let Some(event) = running.next().await {
            if event.who.depth == 1 && word(&event) == "text_delta" {
                break;
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        if dropped {
            drop(running);
        } else {
            let result = running.finish().await.expect("it finishes");
            assert_eq!(results(&result), ["20000"]);
        }
        assert_eq!(
            agent.run("Again.").await.expect("it goes on").text(),
            "Done."
        );
        check(&journal).await;
    }
}

#[tokio::test]
async fn session_goes_on_when_a_run_with_children_is_cut_at_any_poll() {
    for way in WAYS {
        for resumes in [false, true] {
            let mut cuts = 0;
            for polls in 0..400 {
                if cut(way, resumes, polls).await {
                    break;
                }
                cuts += 1;
            }
            assert!(cuts > 5 && cuts < 400, "{cuts} places");
        }
    }
}

/// Polls a run so often and forgets it without a word, as a program does that dies; says whether it had ended.
async fn cut(way: Waits, resumes: bool, polls: usize) -> bool {
    let journal = MemoryJournal::default();
    let make = || {
        let agent =
            boss(&MemoryJournal::default(), deep(way)).journal(Failing::never(journal.clone()));
        agent
            .session(LogId(LOG.into()))
            .take_over()
            .responder(move |_, _| async move { Some(way.answer()) })
    };
    let agent = make();
    let mut run: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin({
        let agent = agent.clone();
        async move { agent.run("Go.").await }
    });
    let mut left = polls;
    let ended = std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        run.as_mut().poll(cx).map(|result| result.is_ok())
    })
    .await;
    let what = format!("{way:?} {resumes} {polls}");
    if resumes {
        // Another program while this one still holds its run: it is fenced.
        let other = make();
        match other.resume(Vec::new()).await {
            Ok(result) => assert!(result.is_finished(), "{what}: {:?}", result.outcome),
            Err(error) => assert_eq!(
                error.kind(),
                adjutant_agent::ErrorKind::Answers,
                "{what}: {error:?}"
            ),
        }
        drop(run);
        assert_eq!(
            other
                .run("Again.")
                .await
                .unwrap_or_else(|error| unreachable!("{what}: {error:?}"))
                .text(),
            "Done."
        );
    } else {
        drop(run);
        let next = agent
            .run("Again.")
            .await
            .unwrap_or_else(|error| unreachable!("{what}: {error:?}"));
        assert_eq!(next.text(), "Done.", "{what}");
    }
    check(&journal).await;
    let log = log(&journal).await;
    assert_eq!(
        count(&log, "child_opened"),
        count(&log, "child_ended"),
        "{what}"
    );
    ended
}

#[tokio::test]
async fn approval_for_the_run_stays_with_its_child_when_siblings_ask() {
    let journal = MemoryJournal::default();
    let work = || {
        tool("work", Replay::Resumable, |cx| async move {
            let one = open(&cx, "one", Waits::Approval.child())
                .await?
                .run("Go.")
                .await?
                .text();
            let two = open(&cx, "two", Waits::Approval.child())
                .await?
                .run("Go.")
                .await?
                .text();
            Ok(CallResult::ok(format!("{one} {two}")))
        })
    };
    let mut result = boss(&journal, work()).run("Go.").await.expect("it waits");
    let mut times = 0;
    while !result.is_finished() {
        times += 1;
        let answers = pauses(&result)
            .iter()
            .map(|it| {
                answered(
                    &it.id,
                    Answer::Approve {
                        args: None,
                        for_run: true,
                    },
                )
            })
            .collect();
        result = boss(&journal, work())
            .resume(answers)
            .await
            .expect("it goes on");
    }
    assert_eq!(
        (results(&result), times),
        (vec!["Stepped on. Stepped on.".to_owned()], 2)
    );
    check(&journal).await;
}

#[tokio::test]
async fn run_can_be_continued_when_its_reply_failed_before_it_said_anything() {
    let journal = MemoryJournal::default();
    let agent = boss(&journal, through(|| Waits::Body.child()));
    let down = || adjutant_llm::Error::new(adjutant_llm::ErrorKind::Overloaded, "down");
    let broken = model_fn(ModelInfo::new("a/b"), move |request: Request| {
        ScriptedModel::new([Script::new().fail(down())]).stream(request)
    });
    agent
        .run("Go on.")
        .model(broken)
        .await
        .expect_err("it fails");
    assert_eq!(
        agent.run(Continue).await.expect("it goes on").text(),
        "Done."
    );
}

#[tokio::test(start_paused = true)]
async fn early_call_with_a_child_ends_when_it_is_stopped() {
    for alone in [false, true] {
        let journal = MemoryJournal::default();
        let look = tool("work", Replay::Pure, |cx: CallContext| async move {
            let silent = Agent::new(model_fn(ModelInfo::new("a/silent"), |_| {
                Box::pin(futures_util::stream::pending())
            }));
            let result = open(&cx, "kid", silent).await?.run("Look.").await?;
            Err(ToolError::new(
                ToolErrorKind::Cancelled,
                format!("{:?}", result.outcome),
            ))
        });
        let agent = boss(&journal, look).calls(|calls| calls.early = true);
        let mut running = agent.run("Go.").stream().expect("the session is free");
        let mut call = None;
        while let Some(event) = running.next().await {
            if let adjutant_agent::EventKind::ChildOpened { call: opened, .. } = event.kind {
                call = Some(opened);
                break;
            }
        }
        match alone {
            true => running.stopper().stop_call(call.expect("it began")),
            false => running.cancel(),
        }
        let result = running.finish().await.expect("no failure");
        assert_eq!(result.calls[0].result.status, Status::Cancelled, "{alone}");
        assert_eq!(matches!(result.outcome, Outcome::Cancelled { .. }), !alone);
        let log = log(&journal).await;
        assert_eq!(
            (count(&log, "child_opened"), count(&log, "child_ended")),
            (1, 1),
            "{alone}"
        );
        check(&journal).await;
    }
}
