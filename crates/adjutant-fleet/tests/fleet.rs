//! Workers over the journal in memory, in virtual time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, DueWork, Flush, Journal, Lane, LogId, LogInfo, MAX_LOST_OWNERS, MemoryJournal, Owner,
    Post, Seq, Waker, Work,
};
use adjutant_fleet::{Fleet, FleetStatus};
use adjutant_llm::{
    CallResult, Entry, Error as LlmError, ErrorKind as LlmErrorKind, FixedWorld, Request, Script,
    ScriptedModel, UserMessage,
};
use adjutant_tool::{Answer, Approval, CallContext, Cancel, Replay, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::json;
use tokio::{sync::Notify, task::JoinHandle};

/// Says something to a session, which is made if there is none.
async fn post(journal: &MemoryJournal, log: &str, text: &str) {
    let content = Entry::User(UserMessage::text(text));
    journal
        .say(
            &log.into(),
            Post::Message {
                lane: Lane::FollowUp,
                content,
            },
        )
        .await
        .expect("it is said");
}

/// Runs a worker until something holds.
async fn until(fleet: Fleet, holds: impl Fn(&FleetStatus) -> bool) {
    let (stop, status) = (Cancel::new(), fleet.status());
    let worker = tokio::spawn(fleet.grace(Duration::from_secs(1)).run(stop.clone()));
    wait(&status, holds).await;
    stop.cancel();
    worker.await.expect("no panic").expect("it ends");
}

async fn wait(status: &FleetStatus, holds: impl Fn(&FleetStatus) -> bool) {
    // In virtual time this takes none.
    let held = tokio::time::timeout(Duration::from_secs(3_600), async {
        while !holds(status) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(held.await.is_ok(), "it never held: {status:?}");
}

async fn work(journal: &MemoryJournal, log: &str) -> Work {
    journal
        .info(&log.into())
        .await
        .expect("it is there")
        .work
        .expect("it is known")
}

#[tokio::test(start_paused = true)]
async fn posted_prompts_are_answered_each_once_by_any_number_of_workers() {
    let journal = MemoryJournal::default();
    for session in 0..40 {
        post(&journal, &session.to_string(), "Do it.").await;
    }
    let asked = Arc::new(AtomicU64::new(0));
    let worker = |_: usize| -> (FleetStatus, Cancel, JoinHandle<_>) {
        let asked = Arc::clone(&asked);
        let fleet = Fleet::new(journal.clone(), move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(Agent::new(ScriptedModel::new([Script::new().text("done")])))
        });
        let (status, stop) = (fleet.status(), Cancel::new());
        let task = tokio::spawn(fleet.concurrency(3).run(stop.clone()));
        (status, stop, task)
    };
    let workers: Vec<_> = (0..4).map(worker).collect();
    let done = |_: &FleetStatus| {
        workers
            .iter()
            .map(|(status, ..)| status.finish_count())
            .sum::<u64>()
            == 40
    };
    wait(&workers[0].0, done).await;
    for (status, stop, task) in workers {
        stop.cancel();
        task.await.expect("no panic").expect("it ends");
        assert_eq!((status.at_work(), status.failure_count()), (0, 0));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 40);
    let told = journal.backlog().await.expect("it counts");
    assert_eq!(
        (told.due, told.at_work, told.parked, told.aside),
        (0, 0, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn parked_run_goes_on_with_an_answer_and_other_posts_do_not_wake_it_for_ever() {
    let journal = MemoryJournal::default();
    let ran = Arc::new(AtomicU64::new(0));
    let agent = {
        let ran = Arc::clone(&ran);
        let spec = ToolSpec {
            approval: Approval::Always,
            ..ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
        };
        let pay = move |_, _| {
            ran.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(CallResult::ok("paid")))
        };
        // The last one answers what was posted meanwhile: it was kept.
        let script = [
            Script::new().call("pay", json!({})),
            Script::new().text("paid"),
            Script::new().text("I did."),
        ];
        Agent::new(ScriptedModel::new(script)).tool(tool_fn(spec, pay))
    };
    let fleet = || {
        let agent = agent.clone();
        Fleet::new(journal.clone(), move |_| Ok(agent.clone()))
    };
    post(&journal, "bill", "Pay it.").await;
    until(fleet(), |status| status.park_count() == 1).await;
    assert!(matches!(work(&journal, "bill").await, Work::Parked { on, .. } if on.contains("pay")));
    // It waits for an answer, which this is not: it is looked at once.
    post(&journal, "bill", "Hurry.").await;
    until(fleet(), |status| {
        status.claim_count() == 1 && status.at_work() == 0
    })
    .await;
    assert!(
        journal
            .due(&Owner::default(), 9)
            .await
            .expect("it tells")
            .is_empty()
    );
    let reader = agent
        .clone()
        .journal(journal.clone())
        .session("bill".into());
    reader.log().open().await.expect("it opens");
    let pause = reader
        .log()
        .pauses()
        .remove(0)
        .with_answer(Answer::approve());
    drop(reader);
    let answer = Post::Answer {
        pause: pause.pause,
        answer: pause.answer,
        shown: pause.shown,
    };
    journal
        .post(&"bill".into(), answer)
        .await
        .expect("it is posted");
    until(fleet(), |status| status.finish_count() == 1).await;
    assert_eq!(
        (ran.load(Ordering::Relaxed), work(&journal, "bill").await),
        (1, Work::Idle)
    );
}

/// Everything up to a record, as a worker leaves it that dies there.
async fn cut(journal: &MemoryJournal, log: &LogId, last: usize) -> MemoryJournal {
    let all: Vec<_> = journal
        .read(log, Seq(0))
        .map(|read| read.expect("memory does not fail"))
        .take(last)
        .collect()
        .await;
    let copy = MemoryJournal::default();
    let mut own = copy.own(log, &Owner::default()).await.expect("it is made");
    own.mark(Work::Open);
    own.append(&all, Flush::Now)
        .await
        .expect("memory does not fail");
    drop(own);
    copy
}

#[tokio::test(start_paused = true)]
async fn run_that_was_about_to_wait_when_its_worker_died_waits_with_the_next_one() {
    let journal = MemoryJournal::default();
    let fleet = |journal: &MemoryJournal| {
        let spec = ToolSpec {
            replay: Replay::Resumable,
            ..ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
        };
        let pay = tool_fn(spec, |_, cx: CallContext| async move {
            Ok(CallResult::ok(
                cx.ask("code", "The code?").await?.to_string(),
            ))
        });
        let next = |request: &Request| match request.entries.last().map(|stored| &stored.entry) {
            Some(Entry::Turn(_)) => Script::new().text("Paid."),
            _ => Script::new().call("pay", json!({})),
        };
        let model = ScriptedModel::new([Script::from_fn(next), Script::from_fn(next)]);
        let agent = Agent::new(model).tool(pay);
        Fleet::new(journal.clone(), move |_| Ok(agent.clone()))
    };
    post(&journal, "bill", "Pay it.").await;
    until(fleet(&journal), |status| status.park_count() == 1).await;
    let bill = LogId::from("bill");
    let count =
        usize::try_from(journal.info(&bill).await.expect("it is there").head.0).expect("a few");
    for last in 1..=count {
        let left = cut(&journal, &bill, last).await;
        assert_eq!(work(&left, "bill").await, Work::Open, "{last}");
        until(fleet(&left), |status| {
            status.claim_count() > 0 && status.at_work() == 0
        })
        .await;
        assert!(
            matches!(work(&left, "bill").await, Work::Parked { on, .. } if on.contains("code")),
            "{last} of {count}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_leaves_at_its_end_goes_on_with_another() {
    let journal = MemoryJournal::default();
    let spec = ToolSpec {
        replay: adjutant_tool::Replay::Pure,
        ..ToolSpec::new("look", "Looks.", json!({"type": "object"}))
    };
    let agent = |hangs: bool| {
        let spec = spec.clone();
        Agent::new(ScriptedModel::new([
            Script::new().call("look", json!({})),
            Script::new().text("seen"),
        ]))
        .tool(tool_fn(spec, move |_, _| async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(CallResult::ok("it is there"))
        }))
    };
    post(&journal, "log", "Look.").await;
    let (stop, first) = (Cancel::new(), agent(true));
    let fleet =
        Fleet::new(journal.clone(), move |_| Ok(first.clone())).grace(Duration::from_secs(5));
    let worker = tokio::spawn(fleet.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(work(&journal, "log").await, Work::Open);
    stop.cancel();
    worker.await.expect("no panic").expect("it ends");
    let second = agent(false);
    until(
        Fleet::new(journal.clone(), move |_| Ok(second.clone())),
        |status| status.finish_count() == 1,
    )
    .await;
    let reader = agent(false).journal(journal.clone()).session("log".into());
    reader.log().open().await.expect("it opens");
    assert!(
        reader
            .log()
            .transcript()
            .iter()
            .any(|stored| format!("{stored:?}").contains("it is there"))
    );
}

#[tokio::test(start_paused = true)]
async fn run_that_fails_has_ended_and_the_next_post_begins_another() {
    let journal = MemoryJournal::default();
    let refused = Script::new().fail(LlmError::new(LlmErrorKind::Invalid, "no such model"));
    let model = Arc::new(ScriptedModel::new([refused, Script::new().text("done")]));
    let agent = Agent::new(Arc::clone(&model));
    let fleet = || {
        let agent = agent.clone();
        Fleet::new(journal.clone(), move |_| Ok(agent.clone()))
    };
    post(&journal, "log", "Do it.").await;
    until(fleet(), |status| status.finish_count() == 1).await;
    assert_eq!(work(&journal, "log").await, Work::Idle);
    assert!(
        journal
            .due(&Owner::default(), 9)
            .await
            .expect("it tells")
            .is_empty()
    );
    post(&journal, "log", "Again.").await;
    until(fleet(), |status| status.finish_count() == 1).await;
    let asked = format!("{:?}", model.requests().last().expect("a request").entries);
    assert!(
        asked.contains("Do it.") && asked.contains("Again."),
        "{asked}"
    );
}

#[tokio::test(start_paused = true)]
async fn session_whose_agent_cannot_be_made_is_set_aside_with_the_reason_until_it_is_tried_again() {
    let journal = MemoryJournal::default();
    post(&journal, "log", "Do it.").await;
    until(
        Fleet::new(journal.clone(), |_| Err("no model".into())),
        |status| status.failure_count() == 1,
    )
    .await;
    assert_eq!(
        work(&journal, "log").await,
        Work::Aside {
            why: "its agent cannot be made: no model".into()
        }
    );
    assert!(journal.retry(&"log".into()).await.expect("it is there"));
    let agent = Agent::new(ScriptedModel::new([Script::new().text("done")]));
    until(
        Fleet::new(journal.clone(), move |_| Ok(agent.clone())),
        |status| status.finish_count() == 1,
    )
    .await;
}

/// How many workers die over a session, until it is set aside or a dozen have: each in the call of a turn, after so many that it ends.
async fn deaths(replay: Replay, ended: usize) -> usize {
    let (world, log) = (Arc::new(FixedWorld::at_ms(1_000)), LogId::from("log"));
    let journal = MemoryJournal::default().world(Arc::clone(&world));
    post(&journal, "log", "Go on.").await;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.advance_ms(1_000);
        }
    });
    for death in 0..12 {
        let (calls, dies) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let at = Arc::clone(&dies);
        let agents = move |_: &LogInfo| {
            let (calls, dies) = (Arc::clone(&calls), Arc::clone(&at));
            let spec = ToolSpec {
                replay,
                ..ToolSpec::new("step", "Steps.", json!({"type": "object"}))
            };
            let step = tool_fn(spec, move |_, _| {
                let ends = calls.fetch_add(1, Ordering::Relaxed) < ended;
                if !ends {
                    dies.notify_one();
                }
                async move {
                    if ends {
                        Ok(CallResult::ok("done"))
                    } else {
                        std::future::pending().await
                    }
                }
            });
            let scripts = (0..9).map(|_| Script::new().call("step", json!({})));
            Ok(Agent::new(ScriptedModel::new(scripts)).tool(step))
        };
        let worker = tokio::spawn(Fleet::new(journal.clone(), agents).run(Cancel::new()));
        if tokio::time::timeout(Duration::from_secs(60), dies.notified())
            .await
            .is_err()
        {
            assert!(matches!(work(&journal, "log").await, Work::Aside { .. }));
            worker.abort();
            return death;
        }
        // What it would still write is not heard.
        drop(
            journal
                .own(
                    &log,
                    &Owner {
                        takes_over: true,
                        ..Owner::default()
                    },
                )
                .await
                .expect("it is taken"),
        );
        worker.abort();
        assert!(
            worker
                .await
                .expect_err("it has no end of its own")
                .is_cancelled()
        );
    }
    12
}

#[tokio::test(start_paused = true)]
async fn session_is_set_aside_when_its_workers_die_without_a_whole_turn_and_not_when_each_does_one()
{
    let aside = usize::from(MAX_LOST_OWNERS);
    for (replay, ended, expect) in [
        (Replay::Pure, 0, aside),
        (Replay::Once, 0, aside),
        (Replay::Pure, 2, 12),
        (Replay::Once, 1, 12),
    ] {
        assert_eq!(
            deaths(replay, ended).await,
            expect,
            "{replay:?}, {ended} calls end"
        );
    }
}
