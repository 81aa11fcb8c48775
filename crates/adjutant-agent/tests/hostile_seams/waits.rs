//! Children that wait for the outside, in every way, in place and over a restart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, AgentFactory, Continue, ErrorKind, Flush, Journal, LogId, MemoryJournal, Owner, PauseId,
    Record,
};
use adjutant_llm::{CallResult, Entry, Status};
use adjutant_tool::{Answer, CallContext, Replay, tool_fn};
use serde_json::{Value, json};

use super::{
    desk::{open, results, said, tool},
    stage::{LOG, WAYS, Waits, answered, boss, by_entry, check, count, log, pauses, through},
};

#[tokio::test]
async fn child_goes_on_when_what_it_waits_for_is_answered() {
    for way in WAYS {
        for restart in [false, true] {
            let journal = MemoryJournal::default();
            let agent = boss(&journal, through(move || way.child()));
            let paused = agent.run("Go.").await.expect("the run waits");
            let asked = pauses(&paused);
            assert_eq!(asked.len(), 1, "{way:?}");
            let other = if restart {
                boss(&journal, through(move || way.child()))
            } else {
                agent.clone()
            };
            let id = &asked[0].id;
            let fits = || answered(id, way.answer());
            let wrong = [
                vec![],
                vec![answered(id, way.wrong())],
                vec![fits(), fits()],
                vec![
                    fits(),
                    answered(&PauseId("main/c9_0_0".into()), way.answer()),
                ],
            ];
            for answers in wrong {
                let before = log(&journal).await.len();
                let error = other
                    .resume(answers.clone())
                    .await
                    .expect_err("they do not match");
                assert_eq!(error.kind(), ErrorKind::Answers, "{answers:?}");
                assert_eq!(
                    (log(&journal).await.len(), other.log().pauses().len()),
                    (before, 1),
                    "{way:?} {answers:?}"
                );
            }
            assert_eq!(
                other.run("Go.").await.expect_err("it waits").kind(),
                ErrorKind::Paused
            );
            assert_eq!(
                other
                    .log()
                    .append(vec![Entry::User("More.".into())])
                    .await
                    .expect_err("it waits")
                    .kind(),
                ErrorKind::Paused
            );
            assert_eq!(
                other.run(Continue).await.expect_err("it waits").kind(),
                ErrorKind::Paused
            );
            let result = other.resume(vec![fits()]).await.expect("the run finishes");
            assert_eq!(
                (results(&result), result.text()),
                (vec!["Stepped on.".to_owned()], "Done.".to_owned())
            );
            assert_eq!(result.total_usage.total(), 440, "{way:?}");
            assert_eq!(
                other
                    .resume(vec![fits()])
                    .await
                    .expect_err("it ended")
                    .kind(),
                ErrorKind::Answers
            );
            let runs = check(&journal).await;
            assert!(runs.values().all(|run| !run.is_open()));
            if restart {
                assert_eq!(
                    agent
                        .resume(vec![fits()])
                        .await
                        .expect_err("taken over")
                        .kind(),
                    ErrorKind::Journal
                );
                assert_eq!(
                    agent.run("Again.").await.expect("it takes over").text(),
                    "Done."
                );
                check(&journal).await;
            }
        }
    }
}

#[tokio::test]
async fn child_is_answered_in_place_when_the_parent_has_a_responder() {
    for way in WAYS {
        let journal = MemoryJournal::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&asked);
        let agent = boss(&journal, through(move || way.child())).responder(move |_, _| {
            counts.fetch_add(1, Ordering::SeqCst);
            async move { Some(way.answer()) }
        });
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(results(&result), ["Stepped on."], "{way:?}");
        assert_eq!(
            (
                asked.load(Ordering::SeqCst),
                count(&log(&journal).await, "suspended")
            ),
            (1, 0),
            "{way:?}"
        );
        check(&journal).await;
    }
}

#[tokio::test]
async fn child_survives_when_its_responder_panics() {
    for way in WAYS {
        let journal = MemoryJournal::default();
        let agent = boss(&journal, through(move || way.child()));
        let panics = agent
            .clone()
            .responder(|_, pause: adjutant_agent::Pause| async move {
                assert!(pause.thread.as_str().is_empty(), "asleep");
                None
            });
        let result = panics.run("Go.").await.expect("no failure");
        if way == Waits::Approval {
            assert!(result.is_finished(), "{:?}", result.outcome);
        } else {
            let answers = pauses(&result)
                .iter()
                .map(|it| answered(&it.id, way.answer()))
                .collect();
            assert!(
                agent
                    .resume(answers)
                    .await
                    .expect("the run finishes")
                    .is_finished()
            );
        }
        check(&journal).await;
    }
}

/// Two children: one waits, the other one works for a while.
fn two(way: Waits, worked: &Arc<AtomicUsize>) -> impl adjutant_tool::ErasedTool + 'static {
    let worked = Arc::clone(worked);
    tool("work", Replay::Resumable, move |cx| {
        let worked = Arc::clone(&worked);
        async move {
            let busy = tool("step", Replay::Once, move |_| {
                let worked = Arc::clone(&worked);
                async move {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    worked.fetch_add(1, Ordering::SeqCst);
                    Ok(CallResult::ok("busy"))
                }
            });
            let busy = Agent::new(by_entry(&["step"], "Busy.")).tool(busy);
            let (one, other) = (
                open(&cx, "kid", way.child()).await?,
                open(&cx, "busy", busy).await?,
            );
            let (one, other) = tokio::join!(one.run("Go."), other.run("Go."));
            Ok(CallResult::ok(format!("{} {}", one?.text(), other?.text())))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn child_works_to_its_end_when_its_sibling_waits() {
    for way in WAYS {
        for restart in [false, true] {
            let (journal, worked) = (MemoryJournal::default(), Arc::default());
            let agent = boss(&journal, two(way, &worked));
            let paused = agent.run("Go.").await.expect("the run waits");
            assert_eq!(worked.load(Ordering::SeqCst), 1);
            let answers = pauses(&paused)
                .iter()
                .map(|it| answered(&it.id, way.answer()))
                .collect();
            let other = if restart {
                boss(&journal, two(way, &worked))
            } else {
                agent
            };
            let result = other.resume(answers).await.expect("the run finishes");
            assert_eq!(results(&result), ["Stepped on. Busy."], "{way:?}");
            assert_eq!(
                (worked.load(Ordering::SeqCst), result.total_usage.total()),
                (1, 660)
            );
            check(&journal).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn step_at_work_is_not_torn_when_a_child_waits() {
    let (journal, ran) = (MemoryJournal::default(), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&ran);
    let work = tool("work", Replay::Resumable, move |cx| {
        let counts = Arc::clone(&counts);
        async move {
            let kid = open(&cx, "kid", Waits::Approval.child()).await?;
            let step = || async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(counts.fetch_add(1, Ordering::SeqCst))
            };
            let (said, step) = tokio::join!(kid.run("Go."), cx.once("step", step));
            Ok(CallResult::ok(format!("{} {}", said?.text(), step?)))
        }
    });
    let agent = boss(&journal, work);
    let paused = agent.run("Go.").await.expect("the run waits");
    let answers = pauses(&paused)
        .iter()
        .map(|it| answered(&it.id, Answer::approve()))
        .collect();
    let result = agent.resume(answers).await.expect("the run finishes");
    assert_eq!(
        (results(&result), ran.load(Ordering::SeqCst)),
        (vec!["Stepped on. 0".to_owned()], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn time_of_a_call_stands_still_when_its_child_waits_for_an_answer() {
    for way in WAYS {
        let journal = MemoryJournal::default();
        let agent = boss(&journal, through(move || way.child()))
            .calls(|calls| calls.timeout = Some(Duration::from_secs(10)));
        let agent = agent.responder(move |_, _| async move {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Some(way.answer())
        });
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(results(&result), ["Stepped on."], "{way:?}");
    }
}

#[tokio::test]
async fn nothing_is_kept_when_a_call_gave_way() {
    let token = Arc::new(());
    {
        let (journal, held) = (MemoryJournal::default(), Arc::clone(&token));
        let agent = boss(
            &journal,
            through(move || {
                let held = Arc::clone(&held);
                Waits::Approval.child().convert(move |_| {
                    let _ = &held;
                    None
                })
            }),
        );
        let paused = agent.run("Go.").await.expect("the run waits");
        let answers = pauses(&paused)
            .iter()
            .map(|it| answered(&it.id, Answer::approve()))
            .collect();
        agent.resume(answers).await.expect("the run finishes");
    }
    assert_eq!(
        Arc::strong_count(&token),
        1,
        "a child that waited is kept for ever"
    );
}

#[tokio::test]
async fn requests_of_a_child_are_told_when_the_program_died_before_that() {
    let journal = MemoryJournal::default();
    let child = || {
        let step = tool("step", Replay::Once, |_| async {
            Ok(CallResult::ok("stepped"))
        });
        Agent::new(by_entry(&["step"], "Stepped on.")).tool(step)
    };
    boss(&journal, through(child))
        .run("Go.")
        .await
        .expect("the run finishes");
    let whole = log(&journal).await;
    let of = |log: &[Arc<adjutant_agent::Stamped>]| {
        log.iter().find_map(|it| match &it.record {
            Record::ChildEnded {
                usage,
                requests,
                tool_calls,
                ..
            } => Some((usage.total(), *requests, *tool_calls)),
            _ => None,
        })
    };
    assert_eq!(of(&whole), Some((220, 2, 1)));
    let told = whole
        .iter()
        .position(|it| matches!(it.record, Record::ChildEnded { .. }))
        .expect("it is told");
    for again in [true, false] {
        let cut = MemoryJournal::default();
        let mut owned = cut
            .own(
                &LogId(LOG.into()),
                &Owner {
                    takes_over: true,
                    ..Owner::default()
                },
            )
            .await
            .expect("memory does not fail");
        owned
            .append(&whole[..told], Flush::Now)
            .await
            .expect("memory does not fail");
        drop(owned);
        let agent = boss(&cut, through(child));
        if again {
            agent.resume(Vec::new()).await.expect("the run finishes");
        } else {
            agent.run("Again.").await.expect("the run finishes");
        }
        assert_eq!(
            of(&log(&cut).await),
            Some((220, 2, 1)),
            "entered again: {again}"
        );
    }
}

#[tokio::test]
async fn child_can_be_opened_when_its_call_began_early() {
    for early in [false, true] {
        let journal = MemoryJournal::default();
        let work = tool("work", Replay::Pure, |cx: CallContext| async move {
            let kid = Agent::new(by_entry(&[], "Seen."));
            Ok(said(
                &AgentFactory::from_context(&cx)?
                    .create("kid", kid)
                    .await?
                    .run("Look.")
                    .await?,
            ))
        });
        let agent = boss(&journal, work);
        let agent = if early {
            agent.calls(|calls| calls.early = true)
        } else {
            agent
        };
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(results(&result), ["Seen."], "early: {early}");
        check(&journal).await;
    }
}

#[tokio::test]
async fn call_ends_when_its_body_returns_while_a_child_waits() {
    let journal = MemoryJournal::default();
    let work = tool("work", Replay::Resumable, |cx: CallContext| async move {
        let waits = open(&cx, "kid", Waits::Approval.child()).await?;
        let busy = open(&cx, "busy", Agent::new(by_entry(&[], "Busy."))).await?;
        let _unread = waits.stream("Go.")?;
        busy.run("Look.").await?;
        Ok(CallResult::ok("Left."))
    });
    let agent = boss(&journal, work);
    let result = agent.run("Go.").await.expect("it ends or waits");
    let result = match result.is_finished() {
        true => result,
        false => {
            let answers = pauses(&result)
                .iter()
                .map(|it| answered(&it.id, Answer::approve()))
                .collect();
            agent.resume(answers).await.expect("the run finishes")
        }
    };
    assert_eq!(results(&result), ["Left."]);
    check(&journal).await;
    assert_eq!(
        agent.run("Again.").await.expect("it goes on").text(),
        "Done."
    );
}

#[tokio::test]
async fn body_and_children_wait_together_when_both_ask() {
    let journal = MemoryJournal::default();
    let work = || {
        tool("work", Replay::Resumable, |cx: CallContext| async move {
            let kid = open(&cx, "kid", Waits::Body.child()).await?;
            let (said, own) = tokio::join!(kid.run("Go."), cx.ask("own", "Own?"));
            Ok(CallResult::ok(format!("{} {}", said?.text(), own?)))
        })
    };
    let mut result = boss(&journal, work())
        .run("Go.")
        .await
        .expect("the run waits");
    for _ in 0..3 {
        if result.is_finished() {
            break;
        }
        let answers = pauses(&result)
            .iter()
            .map(|it| answered(&it.id, Answer::give("x")))
            .collect();
        result = boss(&journal, work())
            .resume(answers)
            .await
            .expect("the run goes on");
    }
    assert_eq!(results(&result), [r#"Stepped on. "x""#]);
    check(&journal).await;
}

#[tokio::test]
async fn call_after_another_waits_its_turn_when_calls_are_sequential() {
    let journal = MemoryJournal::default();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let make = |order: &Arc<std::sync::Mutex<Vec<&'static str>>>| {
        let order = Arc::clone(order);
        let late = tool_fn(
            adjutant_tool::ToolSpec::new("late", "A tool.", json!({"type": "object"})),
            move |_: Value, _| {
                order.lock().expect("no panic").push("late");
                async { Ok(CallResult::ok("late")) }
            },
        );
        let agent = boss(&journal, through(|| Waits::Approval.child()))
            .tool(late)
            .limits(adjutant_agent::Limits {
                sequential: true,
                ..adjutant_agent::Limits::default()
            });
        agent.model(by_entry(&["work", "late"], "Done."))
    };
    let paused = make(&order).run("Go.").await.expect("the run waits");
    assert!(
        order.lock().expect("no panic").is_empty(),
        "it ran before its turn"
    );
    let answers = pauses(&paused)
        .iter()
        .map(|it| answered(&it.id, Answer::approve()))
        .collect();
    let result = make(&order)
        .resume(answers)
        .await
        .expect("the run finishes");
    assert_eq!(results(&result), ["Stepped on.", "late"]);
    assert!(
        result
            .calls
            .iter()
            .all(|call| call.result.status == Status::Ok)
    );
}
