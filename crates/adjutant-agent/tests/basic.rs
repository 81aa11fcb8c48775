//! The shortest runs, whole.

use adjutant_agent::{
    Agent, EventKind, Journal, LocalPort, LogId, MemoryJournal, Outcome, Owner, Record, Run, Seq, Setup, Why, commit,
};
use adjutant_llm::{CallResult, Entry, Script, ScriptedModel};
use adjutant_tool::{CallContext, ToolSpec, tool_fn};
use serde_json::{Value, json};

fn echo() -> impl adjutant_tool::ErasedTool + 'static {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    tool_fn(ToolSpec::new("echo", "Says it again.", schema), |args: Value, _: CallContext| async move {
        Ok(CallResult::ok(args["text"].as_str().unwrap_or_default()))
    })
}

#[tokio::test]
async fn run_answers_when_a_tool_is_called() {
    let script = [Script::new().call("echo", json!({"text": "hi"})), Script::new().text("It said hi.")];
    let agent = Agent::new(ScriptedModel::new(script)).tool(echo());
    let result = agent.run("Say hi.").await.expect("the run finishes");
    assert_eq!((result.text().as_str(), result.turns, result.calls.len()), ("It said hi.", 2, 1));
    assert!(matches!(result.outcome, Outcome::Finished { why: Why::Answer, .. }));
    assert_eq!(agent.transcript().len(), 3);
}

#[tokio::test]
async fn stream_ends_with_run_finished_when_the_answer_is_text() {
    let agent = Agent::new(ScriptedModel::new([Script::new().text("Hello, world!")]));
    let mut running = agent.stream("Hi").expect("the session is free");
    let mut names = Vec::new();
    while let Some(event) = running.next().await {
        let line = serde_json::to_value(&event).expect("an event is JSON");
        names.push(line["event"].as_str().expect("an event has a name").to_owned());
        let back: adjutant_agent::Event = serde_json::from_value(line).expect("an event reads back");
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
    let (journal, id) = (MemoryJournal::new(), LogId("seeded".into()));
    let log = journal.own(&id, &Owner::new().taking_over()).await.expect("memory does not fail");
    let mut port = LocalPort::new(Setup::new(ScriptedModel::new([])), log);
    let mut run = Run::new();
    let entries = vec![Entry::User("From before.".into())];
    commit(&mut run, &mut port, vec![Record::Seeded { entries }]).await.expect("the record follows");
    let log = port.into_log().await.expect("memory does not fail");
    assert_eq!((log.head().seq, run.history().len()), (Seq(1), 1));
}
