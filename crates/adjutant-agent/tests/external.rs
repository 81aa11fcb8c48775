//! Calls that are run elsewhere: given back with the run parked, and taken up again with their results.

#[path = "approval/stage.rs"]
mod stage;
#[path = "approval/watch.rs"]
mod watch;

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, Continue, ErrorKind, HookContext, Hooks, Journal, MemoryJournal, Outcome, RunNo, Seq,
    Verdict,
    points::{AfterAgent, BeforeTool, UserMessage},
};
use adjutant_llm::{Block, CallResult, Entry, Reply, Script, ScriptedModel, Status};
use adjutant_tool::{Answer, AskKind, ToolSpec, external_tool};
use futures_util::StreamExt;
use serde_json::json;
use stage::{agent, answered, calls, names, pauses, script, spec};
use watch::{Ran, shown, told};

fn result(text: &str) -> Answer {
    Answer::Return {
        result: CallResult::ok(text).into(),
    }
}

fn two() -> [Script; 2] {
    script(&[("one", json!({"n": 1})), ("two", json!({"n": 2}))])
}

#[tokio::test]
async fn calls_are_given_back_when_the_run_executes_none() {
    let (ran, (_, agent)) = (Ran::default(), agent(two()));
    let agent = agent
        .calls(|calls| calls.external = true)
        .tool(ran.tool(spec("one")))
        .tool(external_tool(spec("two")));
    let parked = agent.run("Go.").await.expect("the run waits");
    let given = pauses(&parked).into_iter().map(|pause| {
        let call = pause.call.clone().expect("it is about a call");
        (
            pause.ask.kind,
            pause.ask.prompt.to_string(),
            call.id.to_string(),
            call.name.to_string(),
            call.args.to_string(),
        )
    });
    let given: Vec<_> = given.collect();
    let expect = [
        ("c1_0_0", "one", r#"{"n":1}"#),
        ("c1_0_1", "two", r#"{"n":2}"#),
    ]
    .map(|(id, name, args)| {
        let prompt = format!("Run {name:?} with these arguments and give its result.");
        (
            AskKind::External,
            prompt,
            id.to_owned(),
            name.to_owned(),
            args.to_owned(),
        )
    });
    assert_eq!(given, expect);
    assert_eq!(parked.reply.map(|reply| reply.calls().count()), None);
    assert!(ran.args().is_empty());
}

#[tokio::test]
async fn run_goes_on_when_external_results_come() {
    let (model, agent) = agent(two());
    let agent = agent
        .calls(|calls| calls.external = true)
        .tool(external_tool(spec("one")))
        .tool(external_tool(spec("two")));
    let parked = agent.run("Go.").await.expect("the run waits");
    let names = names(&parked);
    let answers = vec![
        answered(&names[1], result("second")),
        answered(&names[0], result("first")),
    ];
    let ended = agent.resume(answers).await.expect("the run finishes");
    assert_eq!(
        (ended.text().as_str(), ended.run, parked.run),
        ("Done.", RunNo(1), RunNo(1))
    );
    assert_eq!(shown(&model, 1), ["first", "second"]);
    assert!(agent.log().pauses().is_empty());
}

#[tokio::test]
async fn external_results_are_refused_when_they_do_not_match() {
    let journal = MemoryJournal::default();
    let (_, agent) = agent(two());
    let agent = agent
        .journal(journal.clone())
        .calls(|calls| calls.external = true);
    let agent = agent
        .tool(external_tool(spec("one")))
        .tool(external_tool(spec("two")));
    let parked = agent.run("Go.").await.expect("the run waits");
    let records = || journal.read(agent.session_id(), Seq(0)).count();
    let before = records().await;
    let (one, two) = (
        answered("main/c1_0_0", result("1")),
        answered("main/c1_0_1", result("2")),
    );
    let table = [
        (vec![], "no answer to main/c1_0_0, main/c1_0_1"),
        (
            vec![
                one.clone(),
                two.clone(),
                answered("main/c9_0_0", result("9")),
            ],
            "main/c9_0_0 is not waited for",
        ),
        (
            vec![one.clone(), two.clone(), one.clone()],
            "main/c1_0_0 is answered twice",
        ),
        (
            vec![one.clone(), answered("main/c1_0_1", Answer::approve())],
            "main/c1_0_1: an approval does not answer a call that is run elsewhere",
        ),
    ];
    for (answers, why) in table {
        let error = agent.resume(answers).await.expect_err("they do not match");
        let text = format!("the answers do not match what the run waits for: {why}");
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Answers, text)
        );
        assert_eq!(
            (records().await, agent.log().pauses()),
            (before, pauses(&parked))
        );
    }
    let ended = agent
        .resume(vec![one, two])
        .await
        .expect("the run finishes");
    assert_eq!(ended.text(), "Done.");
}

#[tokio::test]
async fn calls_are_given_back_again_when_the_model_asks_for_more() {
    let call = |n: u64| Script::new().call("one", json!({"n": n}));
    let (model, agent) = agent([call(1), call(2), Script::new().text("Done.")]);
    let agent = agent.tool(external_tool(spec("one")));
    let first = agent.run("Go.").await.expect("the run waits");
    let second = agent
        .resume(vec![answered(&names(&first)[0], result("1"))])
        .await
        .expect("the run waits");
    assert_eq!(names(&second), ["main/c2_0_0"]);
    let ended = agent
        .resume(vec![answered(&names(&second)[0], result("2"))])
        .await
        .expect("the run finishes");
    assert_eq!(
        (ended.text().as_str(), shown(&model, 2)),
        ("Done.", vec!["2".to_owned()])
    );
}

#[tokio::test]
async fn external_results_go_on_in_another_program_when_the_log_is_opened() {
    let journal = MemoryJournal::default();
    let (_, agent) = agent(two());
    let start = |agent: Agent| {
        agent
            .journal(journal.clone())
            .tool(external_tool(spec("one")))
            .tool(external_tool(spec("two")))
    };
    let agent = start(agent);
    let parked = agent.run("Go.").await.expect("the run waits");
    let told: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (messages, tools) = (Arc::clone(&told), Arc::clone(&told));
    let model = Arc::new(ScriptedModel::new([Script::new().text("Done.")]));
    let other = start(Agent::new(Arc::clone(&model)))
        .session(agent.session_id().clone())
        .take_over();
    let other = other
        .on(move |_: HookContext, point: UserMessage| {
            messages
                .lock()
                .expect("nobody panics inside")
                .push("user_message");
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: BeforeTool| {
            tools
                .lock()
                .expect("nobody panics inside")
                .push("before_tool");
            async { Verdict::Pass(point) }
        });
    other.log().open().await.expect("the log is read");
    assert_eq!(other.log().pauses(), pauses(&parked));
    let answers = other
        .log()
        .pauses()
        .iter()
        .map(|pause| answered(&pause.id.0, result("here")))
        .collect();
    let ended = other.resume(answers).await.expect("the run finishes");
    assert_eq!(
        (ended.text().as_str(), ended.run, shown(&model, 0)),
        ("Done.", RunNo(1), vec!["here".to_owned(); 2])
    );
    assert_eq!(ended.entries[0], Entry::User("Go.".into()));
    // The prompt was passed and the calls were admitted before.
    assert!(told.lock().expect("nobody panics inside").is_empty());
}

#[tokio::test]
async fn external_run_can_be_streamed_when_it_goes_on() {
    let (_, agent) = agent(two());
    let agent = agent
        .calls(|calls| calls.external = true)
        .tool(external_tool(spec("one")))
        .tool(external_tool(spec("two")));
    let first = told(agent.run("Go.").stream().expect("the session is free")).await;
    assert_eq!(
        first[4..],
        ["reply_finished", "paused", "paused", "run_paused"]
    );
    let answers = agent
        .log()
        .pauses()
        .iter()
        .map(|pause| answered(&pause.id.0, result("here")))
        .collect();
    let second = told(agent.resume(answers).stream().expect("the session is free")).await;
    let expect = [
        "run_resumed",
        "answered",
        "answered",
        "tool_started",
        "tool_finished",
        "tool_started",
        "tool_finished",
        "turn_finished",
        "turn_started",
        "reply_started",
        "reply_finished",
        "turn_finished",
        "run_finished",
    ];
    assert_eq!(second, expect);
}

#[tokio::test]
async fn external_result_is_bounded_when_it_is_large() {
    let (model, agent) = agent(script(&[("one", json!({"n": 1}))]));
    let agent = agent.tool(external_tool(ToolSpec {
        max_output: Some(4),
        ..spec("one")
    }));
    let parked = agent.run("Go.").await.expect("the run waits");
    let ended = agent
        .resume(vec![answered(&names(&parked)[0], result("abcdefgh"))])
        .await
        .expect("the run finishes");
    assert_eq!(
        shown(&model, 1),
        ["abcd\n[output cut: the first 4 of 8 bytes are shown]"]
    );
    assert_eq!(
        calls(&ended),
        [("one".into(), Status::Ok, "abcdefgh".into())]
    );
}

#[tokio::test]
async fn external_call_fails_when_no_result_is_given() {
    let (_, agent) = agent(script(&[("one", json!({"n": 1}))]));
    let agent = agent.tool(external_tool(spec("one")));
    let parked = agent.run("Go.").await.expect("the run waits");
    let answer = Answer::Decline {
        message: Some("the machine is off".into()),
    };
    let ended = agent
        .resume(vec![answered(&names(&parked)[0], answer)])
        .await
        .expect("the run finishes");
    let text = "not executed: the call was declined: the machine is off";
    assert_eq!(calls(&ended), [("one".into(), Status::Denied, text.into())]);
    assert!(matches!(ended.outcome, Outcome::Finished { .. }));
}

#[tokio::test]
async fn append_is_refused_when_calls_wait_for_results() {
    let (journal, (model, agent)) = (MemoryJournal::default(), agent(two()));
    let agent = agent
        .journal(journal.clone())
        .calls(|calls| calls.external = true);
    let agent = agent
        .tool(external_tool(spec("one")))
        .tool(external_tool(spec("two")));
    let parked = agent.run("Go.").await.expect("the run waits");
    let (records, entries) = (
        journal.read(agent.session_id(), Seq(0)).count().await,
        agent.log().transcript().len(),
    );
    let appended = agent
        .log()
        .append(vec![Entry::User("Also.".into())])
        .await
        .expect_err("calls wait");
    let run = agent.run("Also.").await.expect_err("calls wait");
    let continued = agent.run(Continue).await.expect_err("calls wait");
    assert_eq!(
        [appended.kind(), run.kind(), continued.kind()],
        [ErrorKind::Paused; 3]
    );
    assert_eq!(
        journal.read(agent.session_id(), Seq(0)).count().await,
        records
    );
    assert_eq!(
        (agent.log().transcript().len(), model.requests().len()),
        (entries, 1)
    );
    let answers = names(&parked)
        .iter()
        .map(|name| answered(name, result("given")))
        .collect();
    assert_eq!(
        agent
            .resume(answers)
            .await
            .expect("it still waits for them")
            .text(),
        "Done."
    );
}

#[tokio::test]
async fn points_before_a_run_are_not_passed_again_when_it_goes_on() {
    let told: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = Arc::clone(&told);
    let (_, agent) = agent(two());
    let agent = agent
        .calls(|calls| calls.external = true)
        .tool(external_tool(spec("one")))
        .tool(external_tool(spec("two")))
        .hooks(
            Hooks::default()
                .observe(move |it| seen.lock().expect("no panic inside").push(it.point)),
        )
        .on(|_: HookContext, mut point: AfterAgent| async move {
            if let Some(reply) = &point.reply {
                let mut changed = Reply::clone(reply);
                changed.blocks = vec![Arc::new(Block::text("Changed."))];
                point.reply = Some(Arc::new(changed));
            }
            Verdict::Pass(point)
        });
    let parked = agent.run("Go.").await.expect("the run waits");
    told.lock().expect("no panic inside").clear();
    let answers = names(&parked)
        .iter()
        .map(|name| answered(name, result("given")))
        .collect();
    assert_eq!(
        agent
            .resume(answers)
            .await
            .expect("the run finishes")
            .text(),
        "Changed."
    );
    let again = told.lock().expect("no panic inside").clone();
    let of = |point: &str| again.iter().filter(|it| **it == point).count();
    assert_eq!(
        ["user_message", "before_agent", "after_agent", "after_run"].map(of),
        [0, 0, 1, 1],
        "{again:?}"
    );
}
