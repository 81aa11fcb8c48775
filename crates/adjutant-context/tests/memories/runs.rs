//! Learning after a run, awaited: who pays, what is told, and what is read after a run that ended badly.

use std::sync::Arc;

use adjutant_agent::{
    Agent, BoxDrive, DriveContext, Event, EventKind, Journal, LogId, MemoryJournal, NextDrive,
    Outcome, Record, RunResult, Seq, middleware_fn,
};
use adjutant_context::{Extraction, Memories};
use adjutant_llm::{
    Error, ErrorKind, Gate, ModelInfo, NanoUsd, Price, Script, ScriptedModel, Usage,
};
use futures_util::StreamExt;

use super::{ada, finds, texts};

fn used(input: u64) -> Usage {
    Usage {
        input_uncached: input,
        output: 1,
        ..Usage::default()
    }
}

fn priced(scripts: impl IntoIterator<Item = Script>) -> ScriptedModel {
    let mut info = ModelInfo::new("scripted/helper");
    info.price = Some(Price::dollars(1.0, 1.0, 0.0, 0.0));
    ScriptedModel::new(scripts).info(info)
}

fn answer(text: &str) -> Script {
    Script::new().text(text).usage(used(10))
}

fn agent(memories: &Memories, scripts: impl IntoIterator<Item = Script>) -> Agent {
    Agent::new(ScriptedModel::new(scripts)).middleware(memories.extract(Extraction::Awaited))
}

/// How a run ended, and what it warned of.
async fn ran(agent: &Agent, prompt: &str) -> (RunResult, Vec<String>) {
    let mut running = agent.run(prompt).stream().expect("the session rests");
    let (mut warnings, mut result) = (Vec::new(), None);
    while let Some(Event { kind, .. }) = running.next().await {
        match kind {
            EventKind::Warning { warning } => warnings.push(warning.to_string()),
            EventKind::RunFinished { result: ended } => result = Some(RunResult::clone(&ended)),
            _ => assert!(result.is_none(), "the end is the last event: {kind:?}"),
        }
    }
    (result.expect("it ended"), warnings)
}

#[tokio::test]
async fn run_pays_what_learning_costs_when_it_is_awaited() {
    let (_, memories) = ada();
    let memories = memories.model(priced([finds(&["The user is Ada."]).usage(used(100))]));
    let journal = MemoryJournal::default();
    let agent = agent(&memories, [answer("Hello Ada.")]).journal(journal.clone());
    let (result, warnings) = ran(&agent, "I am Ada.").await;
    assert_eq!(
        (result.usage.total(), result.total_usage.total()),
        (11, 112)
    );
    assert_eq!(result.total_cost, Some(NanoUsd(101_000)));
    assert_eq!(warnings, [""; 0]);
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
    let id = agent.session_id().clone();
    let records: Vec<_> = journal
        .read(&id, Seq(0))
        .map(|it| it.expect("it reads").record.clone())
        .collect()
        .await;
    let billed = Record::Billed {
        by: "memory".into(),
        usage: used(100),
        cost: Some(NanoUsd(101_000)),
    };
    assert_eq!(records.last(), Some(&billed));
}

#[tokio::test]
async fn agents_model_is_asked_when_no_other_is_set() {
    let (_, memories) = ada();
    let agent = agent(
        &memories,
        [answer("Hello Ada."), finds(&["The user is Ada."])],
    );
    agent.run("I am Ada.").await.expect("the run finishes");
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
    let facts = memories.list(None, 1).await.expect("the store works");
    assert_eq!(
        facts[0].metadata["session"],
        serde_json::json!(agent.session_id().0)
    );
}

#[tokio::test]
async fn run_ends_well_when_learning_fails_and_the_next_run_makes_up_for_it() {
    let (_, memories) = ada();
    let failing = Script::new().fail(Error::new(ErrorKind::Overloaded, "too much to do"));
    let helper = Arc::new(ScriptedModel::new([failing, finds(&["The user is Ada."])]));
    let memories = memories.model(Arc::clone(&helper));
    let agent = agent(&memories, [answer("Hello."), answer("Good.")]);
    let (result, warnings) = ran(&agent, "I am Ada.").await;
    assert!(result.is_finished());
    let expect = "the session was not read, and is after its next run: the facts of a conversation could not be found: \
                  too much to do";
    assert_eq!(warnings, [expect]);
    agent.run("And now?").await.expect("the run finishes");
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
    let shown = format!("{:?}", helper.requests()[1].entries.get(0));
    assert!(
        shown.contains("I am Ada.") && shown.contains("And now?"),
        "{shown}"
    );
}

#[tokio::test]
async fn crashed_run_is_read_when_the_session_goes_on_elsewhere() {
    let (_, memories) = ada();
    let journal = MemoryJournal::default();
    let log = LogId("talk".into());
    // The first program ends before it has read anything.
    let first = Agent::new(ScriptedModel::new([answer("Hello.")]))
        .journal(journal.clone())
        .session(log.clone());
    first.run("I am Ada.").await.expect("the run finishes");
    drop(first);
    let helper = Arc::new(ScriptedModel::new([finds(&["The user is Ada."])]));
    let memories = memories.model(Arc::clone(&helper));
    let second = agent(&memories, [answer("Good.")])
        .journal(journal)
        .session(log);
    second.run("And now?").await.expect("the run finishes");
    let shown = format!("{:?}", helper.requests()[0].entries.get(0));
    assert!(
        shown.contains("I am Ada.") && shown.contains("And now?"),
        "{shown}"
    );
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
}

#[tokio::test]
async fn failed_run_is_left_alone() {
    let (_, memories) = ada();
    let helper = Arc::new(ScriptedModel::new([]));
    let memories = memories.model(Arc::clone(&helper));
    let failing = Script::new().fail(Error::new(ErrorKind::Auth, "no key"));
    agent(&memories, [failing])
        .run("I am Ada.")
        .await
        .expect_err("the run fails");
    assert_eq!(helper.requests().len(), 0);
}

#[tokio::test]
async fn stop_is_heeded_when_learning_takes_long() {
    let (_, memories) = ada();
    let gate = Gate::default();
    let memories = memories.model(ScriptedModel::new([
        finds(&["The user is Ada."]).wait_at(0, &gate)
    ]));
    let agent = agent(&memories, [answer("Hello.")]);
    let running = tokio::spawn({
        let agent = agent.clone();
        async move { ran(&agent, "I am Ada.").await }
    });
    gate.wait_until_reached().await;
    assert!(agent.abort());
    let (result, warnings) = running.await.expect("no panic");
    assert!(
        matches!(result.outcome, Outcome::Finished { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!(
        warnings,
        ["the session was not read, and is after its next run: someone wished to stop"]
    );
}

#[tokio::test]
async fn bills_and_warnings_are_kept_when_a_middleware_of_ones_own_leaves_them() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let lines = Arc::clone(&seen);
    let helper = middleware_fn(
        "helper",
        move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            let lines = Arc::clone(&lines);
            Box::pin(async move {
                let before = cx.history().len();
                let given = next.run(cx.clone()).await;
                lines.lock().expect("no panic").push((
                    before,
                    cx.history().len(),
                    cx.model().info().id.to_string(),
                ));
                cx.bill("helper", used(5), None);
                cx.bill("helper", used(6), Some(NanoUsd(7)));
                given
            })
        },
    );
    let agent = Agent::new(ScriptedModel::new([answer("One."), answer("Two.")])).middleware(helper);
    let first = agent.run("1").await.expect("the run finishes");
    let second = agent.run("2").await.expect("the run finishes");
    assert_eq!(
        (first.total_usage.total(), first.total_cost),
        (11 + 6 + 7, Some(NanoUsd(7)))
    );
    assert_eq!(second.total_usage.total(), 11 + 6 + 7);
    let id = "scripted/model".to_owned();
    assert_eq!(
        *seen.lock().expect("no panic"),
        [(0, 2, id.clone()), (2, 4, id)]
    );
}
