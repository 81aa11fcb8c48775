//! Runs that wait: with all pauses at once, over programs, within their time, and until they are given up.

#[path = "pauses/body.rs"]
mod body;
#[path = "pauses/late.rs"]
mod late;
#[path = "pauses/limit.rs"]
mod limit;
#[path = "approval/stage.rs"]
mod stage;
#[path = "pauses/threads.rs"]
mod threads;
#[path = "approval/watch.rs"]
mod watch;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, ErrorKind, EventKind, HookContext, MemoryJournal, Outcome, Pause, Verdict,
    points::{PauseAnswered, Pausing},
};
use adjutant_llm::{FixedWorld, Script, ScriptedModel, Status, World};
use adjutant_tool::{Answer, Approval, Ask, ToolSpec, external_tool};
use serde_json::json;
use stage::{agent, answered, calls, names, pauses, script, spec};
use tokio::sync::Notify;
use watch::{Ran, name, shown, told};

/// A clock that the test moves while an agent has it.
#[derive(Debug)]
struct Clock(Arc<FixedWorld>);

impl World for Clock {
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }

    fn id(&self) -> u128 {
        self.0.id()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }
}

fn batch() -> [Script; 2] {
    script(&[
        ("write", json!({"n": 1})),
        ("look", json!({"n": 2})),
        ("away", json!({"n": 3})),
    ])
}

fn staged(agent: Agent, ran: &Ran) -> Agent {
    let agent = agent
        .tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        }))
        .tool(ran.tool(spec("look")));
    agent.tool(external_tool(spec("away")))
}

#[tokio::test]
async fn run_parks_with_all_pauses_when_nobody_answers() {
    let (ran, (_, agent)) = (Ran::default(), agent(batch()));
    let agent = staged(agent, &ran);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut told = Vec::new();
    while let Some(event) = running.next().await {
        told.push(name(&event.kind));
    }
    let result = running
        .result()
        .expect("the drive ended")
        .expect("the run waits");
    assert_eq!(names(result), ["main/c1_0_0", "main/c1_0_2"]);
    assert_eq!(
        (ran.args(), calls(result).len()),
        (vec![json!({"n": 2})], 1)
    );
    assert_eq!(told.last().map(String::as_str), Some("run_paused"));
    assert_eq!(agent.log().pauses(), pauses(result));
}

#[tokio::test]
async fn run_goes_on_when_its_pauses_are_answered() {
    let answers = || {
        let away = answered(
            "main/c1_0_2",
            Answer::Return {
                result: adjutant_llm::CallResult::ok("there").into(),
            },
        );
        vec![away, answered("main/c1_0_0", Answer::approve())]
    };
    let expect = [r#"{"n":1}"#, r#"{"n":2}"#, "there"];
    let (ran, (model, here)) = (Ran::default(), agent(batch()));
    let here = staged(here, &ran);
    here.run("Go.").await.expect("the run waits");
    let result = here.resume(answers()).await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), shown(&model, 1), ran.args().len()),
        ("Done.", expect.map(str::to_owned).to_vec(), 2)
    );

    let (ran, journal) = (Ran::default(), MemoryJournal::default());
    let first = staged(agent(batch()).1, &ran).journal(journal.clone());
    first.run("Go.").await.expect("the run waits");
    let model = Arc::new(ScriptedModel::new([Script::new().text("Done.")]));
    let second = staged(Agent::new(Arc::clone(&model)), &ran)
        .journal(journal)
        .session(first.session_id().clone())
        .take_over();
    let result = second.resume(answers()).await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), shown(&model, 0), ran.args().len()),
        ("Done.", expect.map(str::to_owned).to_vec(), 2)
    );
}

#[tokio::test]
async fn answer_is_refused_when_its_pause_is_not_what_was_shown() {
    let other = |change: fn(&mut Pause)| {
        move |pause: &Pause| {
            let mut pause = pause.clone();
            change(&mut pause);
            pause
        }
    };
    let args = |pause: &mut Pause| {
        pause
            .call
            .iter_mut()
            .for_each(|call| call.args = r#"{"n":7}"#.into())
    };
    let name = |pause: &mut Pause| {
        pause
            .call
            .iter_mut()
            .for_each(|call| call.name = "look".into())
    };
    let prompt = |pause: &mut Pause| pause.ask.prompt = "harmless".into();
    for was in [other(args), other(name), other(prompt)] {
        let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
        let agent = staged(agent, &ran);
        let waits = pauses(&agent.run("Go.").await.expect("the run waits")).remove(0);
        let error = agent
            .resume(vec![was(&waits).with_answer(Answer::approve())])
            .await
            .expect_err("another call");
        assert_eq!(
            (
                error.kind(),
                error.to_string().contains("is not what was shown")
            ),
            (ErrorKind::Answers, true)
        );
        assert_eq!(
            (ran.args(), agent.log().pauses()),
            (Vec::new(), vec![Arc::clone(&waits)])
        );
        agent
            .resume(vec![waits.with_answer(Answer::approve())])
            .await
            .expect("the run finishes");
        assert_eq!(ran.args(), [json!({"n": 1})]);
    }
}

#[tokio::test]
async fn session_takes_no_prompt_when_its_run_waits() {
    let (ran, (_, agent)) = (Ran::default(), agent(batch()));
    let agent = staged(agent, &ran);
    agent.run("Go.").await.expect("the run waits");
    let error = agent
        .run("Something else.")
        .await
        .expect_err("the session waits");
    let text =
        "the session has a run that waits for answers to: main/c1_0_0, main/c1_0_2; hint: `resume`";
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Paused, text)
    );
    assert_eq!(agent.log().pauses().len(), 2);
}

#[tokio::test]
async fn session_takes_a_prompt_again_when_its_waiting_run_is_given_up() {
    let (ran, (model, agent)) = (Ran::default(), agent(batch()));
    let agent = staged(agent, &ran);
    let error = agent.cancel_paused().await.expect_err("no run waits");
    assert_eq!(
        (error.kind(), error.to_string().contains("no run is open")),
        (ErrorKind::Answers, true)
    );
    agent.run("Go.").await.expect("the run waits");
    let result = agent.cancel_paused().await.expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    let never = "cancelled: the run was ended before an answer came";
    let expect = [
        ("write", Status::Cancelled, never),
        ("look", Status::Ok, r#"{"n":2}"#),
        ("away", Status::Cancelled, never),
    ];
    assert_eq!(
        calls(&result),
        expect.map(|(name, status, text)| (name.to_owned(), status, text.to_owned()))
    );
    assert!(agent.log().pauses().is_empty());
    let next = agent
        .run("Still there?")
        .await
        .expect("the session is free");
    assert_eq!((next.text().as_str(), shown(&model, 1).len()), ("Done.", 3));
}

#[tokio::test]
async fn stream_tells_that_the_run_waits_when_it_cannot_go_on() {
    let (ran, (_, agent)) = (Ran::default(), agent(batch()));
    let agent = staged(agent, &ran);
    agent.run("Go.").await.expect("the run waits");
    let wrong = vec![answered("main/c9_0_0", Answer::approve())];
    assert_eq!(
        told(agent.resume(wrong).stream().expect("the session is free")).await,
        ["run_paused"]
    );
    assert_eq!(
        told(
            agent
                .run("Something else.")
                .stream()
                .expect("the session is free")
        )
        .await,
        ["run_paused"]
    );
    assert_eq!(agent.log().pauses().len(), 2);
}

#[tokio::test]
async fn pause_expires_when_the_run_is_resumed_too_late() {
    for answers in [vec![], vec![answered("main/c1_0_0", Answer::approve())]] {
        let world = Arc::new(FixedWorld::at_ms(1_000));
        let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
        let ask = Ask::approval("Write it?").within(Duration::from_secs(5));
        let agent = agent
            .world(Clock(Arc::clone(&world)))
            .tool(ran.tool(spec("write")));
        let agent = agent.approve_when(move |_, _| Some(ask.clone()));
        let parked = agent.run("Go.").await.expect("the run waits");
        assert_eq!(pauses(&parked)[0].deadline_ms, Some(6_000));
        world.advance_ms(4_999);
        agent
            .resume(Vec::new())
            .await
            .expect_err("there is a millisecond left");
        world.advance_ms(1);
        let result = agent.resume(answers).await.expect("the run finishes");
        assert_eq!(
            calls(&result)[0].2,
            "not executed: nobody approved the call in time"
        );
        assert!(ran.args().is_empty());
    }
}

#[tokio::test]
async fn pause_hooks_fire_once_when_a_pause_is_answered_in_place() {
    let told: Arc<std::sync::Mutex<Vec<&str>>> = Arc::default();
    let (before, after) = (Arc::clone(&told), Arc::clone(&told));
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let agent = agent.responder(|_, _| async { Some(Answer::approve()) });
    let agent = agent
        .on(move |_: HookContext, point: Pausing| {
            before.lock().expect("nobody panics inside").push("pausing");
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, mut point: PauseAnswered| {
            after.lock().expect("nobody panics inside").push("answered");
            point.answer = Answer::deny("the second pair of eyes");
            async { Verdict::Pass(point) }
        });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        *told.lock().expect("nobody panics inside"),
        ["pausing", "answered"]
    );
    assert_eq!(
        calls(&result)[0].2,
        "not executed: a person refused the call: the second pair of eyes"
    );
}

#[tokio::test]
async fn pause_stays_open_when_a_hook_denies_its_answer() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let agent = agent.on(move |_: HookContext, point: PauseAnswered| {
        let first = counts.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                Verdict::Deny("ask again".into())
            } else {
                Verdict::Pass(point)
            }
        }
    });
    let parked = agent.run("Go.").await.expect("the run waits");
    let answers = vec![answered(&names(&parked)[0], Answer::approve())];
    let running = agent
        .resume(answers.clone())
        .stream()
        .expect("the session is free");
    assert_eq!(told(running).await, ["run_resumed", "denied", "run_paused"]);
    assert_eq!(
        (agent.log().pauses(), ran.args().len()),
        (pauses(&parked), 0)
    );
    let result = agent.resume(answers).await.expect("the run finishes");
    assert_eq!((result.text().as_str(), ran.args().len()), ("Done.", 1));
}

#[tokio::test]
async fn run_ends_when_it_is_cancelled_while_the_responder_hangs() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let agent = agent.responder(|_, _| std::future::pending());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::Paused { .. }) {
            running.cancel();
        }
    }
    let result = running
        .result()
        .expect("the drive ended")
        .expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        calls(result)[0].2,
        "cancelled: the run was ended before an answer came"
    );
}

#[tokio::test]
async fn resumed_run_ends_when_it_is_cancelled_while_a_hook_hangs() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let reached = Arc::new(Notify::new());
    let reaches = Arc::clone(&reached);
    let agent = agent.on(move |_: HookContext, _: PauseAnswered| {
        reaches.notify_one();
        std::future::pending::<Verdict<PauseAnswered>>()
    });
    let parked = agent.run("Go.").await.expect("the run waits");
    let running = agent
        .resume(vec![answered(&names(&parked)[0], Answer::approve())])
        .stream()
        .expect("the session is free");
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    reached.notified().await;
    stopper.stop(CancelBy::User);
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert_eq!(
        (result.outcome, ran.args().len()),
        (Outcome::Cancelled { by: CancelBy::User }, 0)
    );
}
