//! Approval: who is asked, when, with what, and what becomes of the call.

#[path = "approval/own.rs"]
mod own;
#[path = "approval/stage.rs"]
mod stage;
#[path = "approval/watch.rs"]
mod watch;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, EventKind, HookContext, Limits, Pause, RunResult, Verdict, points::BeforeTool,
};
use adjutant_llm::{Entry, FixedWorld, Script, Status};
use adjutant_tool::{
    Answer, Approval, Ask, AskKind, CallContext, Conversation, Tool, ToolError, ToolSpec, Toolbox,
    Tools, external_tool,
};
use serde_json::json;
use stage::{agent, answered, calls, names, pauses, script, spec};
use tokio::sync::mpsc;
use watch::{Ran, name, shown, told};

/// A person who always says the same.
fn says(agent: Agent, answer: Answer) -> Agent {
    agent.responder(move |_, _| {
        let answer = answer.clone();
        async move { Some(answer) }
    })
}

/// One call of a tool that needs a word, answered in place.
async fn asked(answer: Answer) -> (RunResult, Ran) {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = says(
        agent.tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        })),
        answer,
    );
    (agent.run("Go.").await.expect("the run finishes"), ran)
}

fn one(status: Status, text: &str) -> Vec<(String, Status, String)> {
    vec![("write".into(), status, text.into())]
}

#[tokio::test]
async fn call_runs_when_its_approval_is_granted() {
    let (ran, (model, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = says(
        agent.tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        })),
        Answer::approve(),
    );
    let told = told(agent.run("Go.").stream().expect("the session is free")).await;
    let expect = [
        "run_started",
        "entry_added",
        "turn_started",
        "reply_started",
        "reply_finished",
        "paused",
        "answered",
        "tool_started",
        "tool_finished",
        "turn_finished",
        "turn_started",
        "reply_started",
        "reply_finished",
        "turn_finished",
        "run_finished",
    ];
    assert_eq!(told, expect);
    assert_eq!(
        (ran.args(), shown(&model, 1)),
        (vec![json!({"n": 1})], vec![r#"{"n":1}"#.to_owned()])
    );
}

/// A tool whose calls need an approval, and that knows which of them cannot succeed.
struct Checked;

impl Tool for Checked {
    type Args = serde_json::Value;
    type Output = String;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        }
    }

    fn check(&self, args: &serde_json::Value, _: &Conversation) -> Result<(), ToolError> {
        match args["n"] == 0 {
            true => Err(ToolError::failed("there is no line 0")),
            false => Ok(()),
        }
    }

    async fn call(&self, _: serde_json::Value, _: CallContext) -> Result<String, ToolError> {
        Ok("written".to_owned())
    }
}

#[tokio::test]
async fn call_that_cannot_succeed_fails_before_anyone_is_asked() {
    let calls_of = |numbers: &[u64]| -> Vec<_> {
        numbers
            .iter()
            .map(|n| ("write", json!({ "n": n })))
            .collect()
    };
    // A later call may need the effects of an earlier one, so only the first call of the turn is checked.
    for (numbers, paused) in [(&[0][..], 0), (&[1], 1), (&[1, 0], 2), (&[0, 1], 1)] {
        let (_, agent) = agent(script(&calls_of(numbers)));
        let asked = Arc::new(Mutex::new(0));
        let count = Arc::clone(&asked);
        let agent = agent.tool(Checked).responder(move |_, _| {
            *count.lock().expect("no panic") += 1;
            async { Some(Answer::deny("no")) }
        });
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(*asked.lock().expect("no panic"), paused, "{numbers:?}");
        if numbers[0] == 0 {
            let first = calls(&result).swap_remove(0);
            assert_eq!((first.1, &*first.2), (Status::Failed, "there is no line 0"));
        }
    }
}

#[tokio::test]
async fn call_is_refused_when_its_approval_is_denied() {
    let (result, ran) = asked(Answer::deny("not on a Friday")).await;
    let text = "not executed: a person refused the call: not on a Friday";
    assert_eq!(
        (calls(&result), result.text().as_str()),
        (one(Status::Denied, text), "Done.")
    );
    assert!(ran.args().is_empty());
    let (result, _) = asked(Answer::deny(" ")).await;
    assert_eq!(
        calls(&result),
        one(Status::Denied, "not executed: a person refused the call")
    );
}

#[tokio::test]
async fn call_never_runs_when_nobody_can_be_asked() {
    let ran = Ran::default();
    let start = || {
        agent(script(&[("write", json!({"n": 1}))]))
            .1
            .tool(ran.tool(ToolSpec {
                approval: Approval::Always,
                ..spec("write")
            }))
    };
    let parked = start().run("Go.").await.expect("the run waits");
    assert_eq!(names(&parked), ["main/c1_0_0"]);
    let refused = start()
        .limits(Limits {
            unattended: true,
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let text = "not executed: the call needs someone's word, and nobody can be asked in this run";
    assert_eq!(calls(&refused), one(Status::Denied, text));
    let silent = start()
        .responder(|_, _| async { None })
        .run("Go.")
        .await
        .expect("the run waits");
    assert_eq!(names(&silent), ["main/c1_0_0"]);
    assert!(ran.args().is_empty());
}

#[tokio::test]
async fn external_call_is_refused_when_nobody_can_be_asked() {
    let (_, agent) = agent(script(&[("write", json!({"n": 1}))]));
    let agent = agent.tool(external_tool(spec("write"))).limits(Limits {
        unattended: true,
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = "not executed: tool \"write\" is run elsewhere, and nobody can be asked in this run";
    assert_eq!(calls(&result), one(Status::Denied, text));
}

#[tokio::test]
async fn request_tells_what_is_asked_when_a_call_wants_approval() {
    let (_, agent) = agent(script(&[("write", json!({"n": "7"}))]));
    let agent = agent
        .world(FixedWorld::at_ms(1_000))
        .name("clerk")
        .tool(Ran::default().tool(spec("write")));
    let ask = Ask {
        data: json!({"hint": "a lot"}),
        ..Ask::approval("Write it?")
    }
    .within(Duration::from_secs(9));
    let agent = agent.approve_when(move |spec, args| {
        (spec.name().as_str() == "write" && args["n"] == 7).then(|| ask.clone())
    });
    let result = agent.run("Go.").await.expect("the run waits");
    let pause = pauses(&result).remove(0);
    let told = serde_json::to_value(&*pause).expect("a pause is JSON");
    let expect = json!({
        "id": "main/c1_0_0",
        "ask": {"kind": "approval", "prompt": "Write it?", "data": {"hint": "a lot"}, "within_ms": 9_000},
        "call": {"id": "c1_0_0", "name": "write", "args": "{\"n\":7}"},
        "thread": "main",
        "agent": "clerk",
        "path": "clerk",
        "deadline_ms": 10_000,
    });
    assert_eq!(told, expect);
}

#[tokio::test]
async fn responder_knows_who_asks_when_a_call_wants_approval() {
    let (_, agent) = agent(script(&[("write", json!({"n": 1}))]));
    let heard = Arc::new(Mutex::new(None));
    let hears = Arc::clone(&heard);
    let agent = agent.name("clerk").tool(Ran::default().tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let agent = agent.responder(move |who, pause: Pause| {
        *hears.lock().expect("nobody panics inside") =
            Some((who.name.to_string(), who.call, pause.call_id()));
        async { Some(Answer::approve()) }
    });
    agent.run("Go.").await.expect("the run finishes");
    let (name, within, call) = heard
        .lock()
        .expect("nobody panics inside")
        .take()
        .expect("someone was asked");
    assert_eq!((name.as_str(), within.is_some()), ("clerk", true));
    assert_eq!(within, call);
}

#[tokio::test]
async fn asking_is_shown_before_the_responder_when_a_stream_is_read() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let (send, answers) = mpsc::unbounded_channel();
    let answers = Arc::new(tokio::sync::Mutex::new(answers));
    let agent = agent
        .tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        }))
        .responder(move |_, _| {
            let answers = Arc::clone(&answers);
            async move { answers.lock().await.recv().await }
        });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut told = Vec::new();
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::Paused { .. }) {
            assert!(ran.args().is_empty());
            send.send(Answer::approve()).expect("the responder listens");
        }
        told.push(name(&event.kind));
    }
    assert_eq!(told.iter().filter(|name| *name == "answered").count(), 1);
    assert_eq!(ran.args().len(), 1);
}

#[tokio::test]
async fn nobody_is_asked_when_a_hook_denies_the_call() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let agent = agent
        .on(|_: HookContext, _: BeforeTool| async { Verdict::<BeforeTool>::Deny("never".into()) });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(calls(&result), one(Status::Denied, "not executed: never"));
    assert!(ran.args().is_empty());
}

#[tokio::test]
async fn calls_are_asked_together_when_several_want_approval() {
    let ran = Ran::default();
    let batch = [
        ("write", json!({"n": 1})),
        ("look", json!({"n": 2})),
        ("write", json!({"n": 3})),
    ];
    let (model, agent) = agent(script(&batch));
    let agent = agent
        .tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        }))
        .tool(ran.tool(spec("look")));
    let parked = agent.run("Go.").await.expect("the run waits");
    assert_eq!(
        (names(&parked), ran.args()),
        (
            vec!["main/c1_0_0".into(), "main/c1_0_2".into()],
            vec![json!({"n": 2})]
        )
    );
    let answers = vec![
        answered("main/c1_0_2", Answer::approve()),
        answered("main/c1_0_0", Answer::deny("no")),
    ];
    let result = agent.resume(answers).await.expect("the run finishes");
    assert_eq!((result.text().as_str(), ran.args().len()), ("Done.", 2));
    let refused = "not executed: a person refused the call: no";
    assert_eq!(shown(&model, 1), [refused, r#"{"n":2}"#, r#"{"n":3}"#]);
}

#[tokio::test(start_paused = true)]
async fn call_is_refused_when_the_responder_fails() {
    let ran = Ran::default();
    let start = || {
        let (_, agent) = agent(script(&[("write", json!({"n": 1}))]));
        let ask = Ask::approval("Write it?").within(Duration::from_secs(5));
        agent
            .tool(ran.tool(spec("write")))
            .approve_when(move |_, _| Some(ask.clone()))
    };
    let hangs = start().responder(|_, _| std::future::pending());
    let late = hangs.run("Go.").await.expect("the run finishes");
    assert_eq!(
        calls(&late),
        one(
            Status::Denied,
            "not executed: nobody approved the call in time"
        )
    );
    let panics = start().responder(|_, pause: Pause| async move {
        if pause.call.is_some() {
            std::panic::resume_unwind(Box::new("asleep".to_owned()));
        }
        None
    });
    let result = panics.run("Go.").await.expect("the run finishes");
    let text = "not executed: a person refused the call: the responder panicked: asleep";
    assert_eq!(
        (calls(&result), result.text().as_str()),
        (one(Status::Denied, text), "Done.")
    );
    assert!(ran.args().is_empty());
}

#[tokio::test]
async fn answer_is_passed_over_when_it_does_not_fit() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = says(
        agent.tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        })),
        Answer::give("yes"),
    );
    let told = told(agent.run("Go.").stream().expect("the session is free")).await;
    assert_eq!(told[5..], ["paused", "warning", "run_paused"]);
    assert_eq!(agent.log().pauses().len(), 1);
}

#[tokio::test]
async fn nobody_is_asked_when_arguments_do_not_fit() {
    let (ran, (_, agent)) = (
        Ran::default(),
        agent(script(&[("write", json!({"n": "many"}))])),
    );
    let agent = says(
        agent.tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        })),
        Answer::approve(),
    );
    let told = told(agent.run("Go.").stream().expect("the session is free")).await;
    assert!(!told.contains(&"paused".to_owned()), "{told:?}");
    assert!(ran.args().is_empty());
}

#[tokio::test]
async fn call_runs_as_edited_when_the_answer_changes_its_arguments() {
    let (result, ran) = asked(Answer::approve_with(r#"{"n": "5"}"#)).await;
    assert_eq!(ran.args(), [json!({"n": 5})]);
    let Entry::Turn(turn) = &result.entries[1] else {
        unreachable!("a turn follows the prompt")
    };
    let (call, ended) = turn.pairs().next().expect("one call");
    assert_eq!(
        (&*call.args, ended.args.as_deref()),
        (r#"{"n":1}"#, Some(r#"{"n":5}"#))
    );
    // Who answers is told why that does not fit, and asked again; if it never fits, the run waits for someone else.
    let (result, ran) = asked(Answer::approve_with(r#"{"n": "many"}"#)).await;
    let pause = &result.pauses()[0];
    assert_eq!((pause.refused.len(), ran.args().len()), (4, 0));
    assert!(
        pause.refused[0].contains("/n: want integer"),
        "{}",
        pause.refused[0]
    );
}

#[tokio::test]
async fn approval_lasts_for_the_run_when_the_answer_says_so() {
    let call = || Script::new().call("write", json!({"n": 1}));
    let (ran, (_, agent)) = (
        Ran::default(),
        agent([call(), call(), Script::new().text("Done."), call()]),
    );
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let parked = agent.run("Go.").await.expect("the run waits");
    let answer = vec![answered(
        &names(&parked)[0],
        Answer::Approve {
            args: None,
            for_run: true,
        },
    )];
    let result = agent.resume(answer).await.expect("the run finishes");
    assert_eq!((result.text().as_str(), ran.args().len()), ("Done.", 2));
    let parked = agent.run("Again.").await.expect("the run waits");
    assert_eq!(
        (names(&parked), ran.args().len()),
        (vec!["main/c4_0_0".into()], 2)
    );
}

#[tokio::test]
async fn approval_wrapper_leaves_its_toolbox_as_it_was_when_it_is_put_around() {
    let ran = Ran::default();
    let tools = Arc::new(Tools::new("tools").tool(ran.tool(spec("write"))));
    let start = || agent(script(&[("write", json!({"n": 1}))])).1;
    let parked = start()
        .toolbox(Arc::clone(&tools).confirm())
        .run("Go.")
        .await
        .expect("the run waits");
    assert_eq!((names(&parked).len(), ran.args().len()), (1, 0));
    let result = start()
        .toolbox(tools)
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!((result.text().as_str(), ran.args().len()), ("Done.", 1));
}

#[tokio::test]
async fn call_is_refused_when_the_rule_for_approval_panics() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = agent.tool(ran.tool(spec("write"))).approve_when(|_, args| {
        if args["n"] == 1 {
            std::panic::resume_unwind(Box::new("no rule".to_owned()));
        }
        Some(Ask::new(AskKind::Approval, "Write it?"))
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    let text =
        "not executed: the rule that says whether the call needs someone's word panicked: no rule";
    assert_eq!(
        (calls(&result), ran.args().len()),
        (one(Status::Denied, text), 0)
    );
}
