//! The shortest runs, whole.

use adjutant_agent::{
    Agent, Completion, EventKind, Flush, Journal, LocalExecutor, LogId, MemoryJournal, Outcome,
    Owner, Record, Run, Seq, Setup, Stamped, commit,
};
use adjutant_llm::{CallResult, Entry, Script, ScriptedModel, Terminate};
use adjutant_tool::{CallContext, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

fn echo() -> impl adjutant_tool::ErasedTool + 'static {
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    tool_fn(
        ToolSpec::new("echo", "Says it again.", schema),
        |args: Value, _: CallContext| async move {
            Ok(CallResult::ok(args["text"].as_str().unwrap_or_default()))
        },
    )
}

#[tokio::test]
async fn run_answers_when_a_tool_is_called() {
    let script = [
        Script::new().call("echo", json!({"text": "hi"})),
        Script::new().text("It said hi."),
    ];
    let agent = Agent::new(ScriptedModel::new(script)).tool(echo());
    let result = agent.run("Say hi.").await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), result.turns, result.calls.len()),
        ("It said hi.", 2, 1)
    );
    assert!(matches!(
        result.outcome,
        Outcome::Finished {
            why: Completion::Answer,
            ..
        }
    ));
    assert_eq!(agent.log().transcript().len(), 3);
}

#[tokio::test]
async fn stream_ends_with_run_finished_when_the_answer_is_text() {
    let agent = Agent::new(ScriptedModel::new([Script::new().text("Hello, world!")]));
    let mut running = agent.run("Hi").stream().expect("the session is free");
    let mut names = Vec::new();
    while let Some(event) = running.next().await {
        let line = serde_json::to_value(&event).expect("an event is JSON");
        names.push(
            line["event"]
                .as_str()
                .expect("an event has a name")
                .to_owned(),
        );
        let back: adjutant_agent::Event =
            serde_json::from_value(line).expect("an event reads back");
        assert_eq!(back, event);
        if let EventKind::RunFinished { result } = event.kind {
            assert_eq!(result.text(), "Hello, world!");
        }
    }
    let expect = [
        "run_started",
        "entry_added",
        "turn_started",
        "reply_started",
        "block_started",
        "text_delta",
        "text_delta",
        "block_finished",
        "reply_finished",
        "turn_finished",
        "run_finished",
    ];
    assert_eq!(names, expect);
}

#[tokio::test]
async fn log_holds_what_was_committed_when_a_port_gives_it_back() {
    let (journal, id) = (MemoryJournal::default(), LogId("seeded".into()));
    let log = journal
        .own(
            &id,
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("memory does not fail");
    let mut port = LocalExecutor::new(Setup::new(ScriptedModel::new([])), log);
    let mut run = Run::default();
    let entries = vec![Entry::User("From before.".into())];
    commit(&mut run, &mut port, vec![Record::Seeded { entries }])
        .await
        .expect("the record follows");
    let log = port.into_log().await.expect("memory does not fail");
    assert_eq!((log.head().seq, run.history().len()), (Seq(1), 1));
}

#[tokio::test]
async fn warning_is_told_when_the_last_reply_says_nothing() {
    let ends = || {
        let schema = json!({"type": "object"});
        tool_fn(
            ToolSpec::new("end", "Ends.", schema),
            |_: Value, _: CallContext| async {
                Ok(CallResult {
                    terminate: Terminate::Now,
                    ..CallResult::ok("done")
                })
            },
        )
    };
    let silent = || {
        Script::new()
            .thinking(adjutant_llm::Thinking::new("Hm."))
            .text(" \n")
    };
    let cases = [
        (vec![silent()], true),
        (
            vec![silent().stop(adjutant_llm::FinishReason::Length)],
            true,
        ),
        (vec![Script::new().call("end", json!({}))], false),
        (vec![Script::new().text("Yes.")], false),
    ];
    for (scripts, expect) in cases {
        let agent = Agent::new(ScriptedModel::new(scripts)).tool(ends());
        let mut running = agent.run("Hi").stream().expect("the session is free");
        let mut warned = Vec::new();
        while let Some(event) = running.next().await {
            match event.kind {
                EventKind::Warning { warning } => warned.push(warning.kind),
                EventKind::RunFinished { result } => assert_eq!(result.outcome.is_silent(), expect),
                _ => assert!(warned.is_empty(), "only the end follows"),
            }
        }
        assert_eq!(
            warned,
            if expect {
                vec![adjutant_llm::WarningKind::NothingSaid]
            } else {
                Vec::new()
            }
        );
    }
}

#[tokio::test]
async fn call_is_refused_and_its_log_goes_on_when_a_key_stands_twice() {
    let twice = r#"{"text":"seen","text":"run"}"#;
    let id = LogId("log".into());
    let of = |journal: &MemoryJournal, scripts: Vec<Script>| {
        Agent::new(ScriptedModel::new(scripts))
            .tool(echo())
            .journal(journal.clone())
            .session(id.clone())
    };
    let journal = MemoryJournal::default();
    let scripts = vec![
        Script::new()
            .opaque("scripted", json!({"kind": "note"}))
            .call_raw("echo", twice),
        Script::new().text("Well."),
    ];
    let result = of(&journal, scripts)
        .run("Say it.")
        .await
        .expect("the run finishes");
    let call = &result.calls[0];
    assert_eq!(call.result.status, adjutant_llm::Status::InvalidArguments);
    assert!(
        call.result
            .text()
            .contains("  - /text: the key appears twice"),
        "{}",
        call.result.text()
    );

    // The same log as another program may have stored it: keys stand twice in its own JSON too.
    let (copy, mut changed) = (MemoryJournal::default(), 0);
    let mut log = copy
        .own(&id, &Owner::default())
        .await
        .expect("memory does not fail");
    let mut records = journal.read(&id, Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.expect("memory does not fail");
        let text = String::from_utf8(stamped.bytes().expect("it was stored").to_vec())
            .expect("JSON is text");
        let other = text.replace(r#"{"kind":"note"}"#, r#"{"kind":"other","kind":"note"}"#);
        changed += usize::from(other != text);
        let stamped = Stamped::read(
            other.into(),
            stamped.attachments().expect("it was stored").to_vec(),
        );
        log.append(&[stamped.expect("it is data").into()], Flush::Now)
            .await
            .expect("memory does not fail");
    }
    drop(log);
    assert!(changed > 0, "the log holds JSON of a provider");
    let agent = of(&copy, vec![Script::new().text("On.")]);
    assert_eq!(
        agent.run("Go on.").await.expect("the log opens").text(),
        "On."
    );
    assert!(
        agent
            .log()
            .transcript()
            .iter()
            .any(|it| format!("{:?}", it.entry).contains(r#"\"text\":\"run\""#))
    );
}
