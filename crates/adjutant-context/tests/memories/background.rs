//! Learning in the background: it does not hold the run up, is waited for at the end, and is not lost in silence.

use std::{sync::Arc, time::Duration};

use adjutant_agent::Agent;
use adjutant_context::{Extraction, Memories};
use adjutant_llm::{Error, ErrorKind, Gate, Script, ScriptedModel};

use super::{ada, finds, texts};

fn agent(memories: &Memories, answers: usize) -> Agent {
    let model = ScriptedModel::new((0..answers).map(|_| Script::new().text("Good.")));
    Agent::new(model).middleware(memories.extract(Extraction::Background))
}

#[tokio::test(start_paused = true)]
async fn flush_waits_when_a_run_is_still_being_read() {
    let (_, memories) = ada();
    let gate = Gate::default();
    let memories = memories.model(ScriptedModel::new([
        finds(&["The user is Ada."]).wait_at(0, &gate)
    ]));
    let result = agent(&memories, 1)
        .run("I am Ada.")
        .await
        .expect("the run finishes");
    gate.wait_until_reached().await;
    assert_eq!(texts(&memories).await, [""; 0]);
    let flushing = tokio::spawn({
        let memories = memories.clone();
        async move { memories.flush().await }
    });
    // Time passes only when nothing else can move: the flush waits.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(!flushing.is_finished());
    gate.open();
    flushing.await.expect("no panic");
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
    // The run had ended before: it pays nothing, but the meter knows.
    assert_eq!(result.total_usage, result.usage);
    assert!(memories.spent().usage.total() > 0);
}

#[tokio::test]
async fn flush_returns_when_nothing_waits() {
    let (_, memories) = ada();
    memories.flush().await;
    let memories = memories.model(ScriptedModel::new([finds(&["The user is Ada."])]));
    agent(&memories, 1)
        .run("I am Ada.")
        .await
        .expect("the run finishes");
    memories.flush().await;
    memories.flush().await;
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
}

#[tokio::test]
async fn runs_of_a_session_are_read_once_when_they_end_quickly() {
    let (_, memories) = ada();
    let gate = Gate::default();
    let helper = Arc::new(ScriptedModel::new([
        finds(&["The user is Ada."]).wait_at(0, &gate),
        finds(&["The user likes tea."]),
    ]));
    let memories = memories.model(Arc::clone(&helper));
    let agent = agent(&memories, 3);
    agent.run("I am Ada.").await.expect("the run finishes");
    gate.wait_until_reached().await;
    agent.run("I like tea.").await.expect("the run finishes");
    agent.run("Lots of it.").await.expect("the run finishes");
    gate.open();
    memories.flush().await;
    // The second and the third run are read together, the first one is not read again.
    assert_eq!(helper.requests().len(), 2);
    let shown = format!("{:?}", helper.requests()[1].entries.get(0));
    assert!(
        shown.contains("I like tea.") && shown.contains("Lots of it."),
        "{shown}"
    );
    assert_eq!(
        texts(&memories).await,
        ["The user is Ada.", "The user likes tea."]
    );
}

#[tokio::test]
async fn missed_part_is_read_after_the_next_run_when_the_model_failed() {
    let (_, memories) = ada();
    let failing = Script::new().fail(Error::new(ErrorKind::Overloaded, "too much to do"));
    let memories = memories.model(ScriptedModel::new([failing, finds(&["The user is Ada."])]));
    let agent = agent(&memories, 2);
    agent.run("I am Ada.").await.expect("the run finishes");
    memories.flush().await;
    assert_eq!(texts(&memories).await, [""; 0]);
    agent.run("And now?").await.expect("the run finishes");
    memories.flush().await;
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
}

#[tokio::test]
async fn session_is_left_for_later_when_too_many_wait() {
    let (_, memories) = ada();
    let gate = Gate::default();
    let scripts = std::iter::once(finds(&[]).wait_at(0, &gate)).chain((0..64).map(|_| finds(&[])));
    let helper = Arc::new(ScriptedModel::new(scripts));
    let memories = memories.model(Arc::clone(&helper));
    let agent = agent(&memories, 66);
    agent.run("0").await.expect("the run finishes");
    gate.wait_until_reached().await;
    for n in 1..=64 {
        agent
            .new_session()
            .run(n.to_string())
            .await
            .expect("the run finishes");
    }
    let late = agent.new_session();
    let mut running = late.run("65").stream().expect("the session rests");
    let mut warnings = Vec::new();
    while let Some(event) = running.next().await {
        if let adjutant_agent::EventKind::Warning { warning } = event.kind {
            warnings.push(warning.to_string());
        }
    }
    assert_eq!(
        warnings,
        ["too many sessions wait to be read; this one is after its next run"]
    );
    gate.open();
    memories.flush().await;
    helper.assert_done();
}

#[test]
fn interrupted_reading_is_made_up_for_when_a_runtime_ended_under_it() {
    let (_, memories) = ada();
    let gate = Gate::default();
    let scripts = [
        finds(&["Never said."]).wait_at(0, &gate),
        finds(&["The user is Ada."]),
    ];
    let memories = memories.model(ScriptedModel::new(scripts));
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    };
    let first = runtime();
    first.block_on(async {
        agent(&memories, 1)
            .run("I am Ada.")
            .await
            .expect("the run finishes");
        gate.wait_until_reached().await;
    });
    drop(first);
    runtime().block_on(async {
        memories.flush().await;
        assert_eq!(texts(&memories).await, ["The user is Ada."]);
    });
}
