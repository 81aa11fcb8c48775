//! Replay: a log is walked once more without a model and without tools.

use std::sync::Arc;

use adjutant_agent::{
    Agent, EventKind, Journal, LogId, MemoryJournal, Record, Rewind, Run, Seq, Spawn, Stamped,
};
use adjutant_llm::{CallResult, FixedWorld, ModelInfo, Script, ScriptedModel, model_fn};
use adjutant_tool::{CallContext, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}))
}

/// An agent that asks one under it, and answers; it ran twice, with another prompt the second time.
async fn played(journal: &MemoryJournal) -> Agent {
    let work = tool_fn(spec("work"), |_: Value, cx: CallContext| async move {
        let below = Agent::new(ScriptedModel::new([Script::new().text("Below.")]));
        let child = cx
            .get::<dyn Spawn>()
            .expect("a call of a run")
            .open("below", below.into())
            .await?;
        Ok(CallResult::ok(child.run("Well?").await?.text()))
    });
    let scripts = [
        Script::new().call("work", json!({})),
        Script::new().text("Done."),
        Script::new().text("Again."),
    ];
    let agent = Agent::new(ScriptedModel::new(scripts))
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    let agent = agent
        .session(LogId::from("log"))
        .tool(work)
        .instructions("Be brief.");
    agent.run("Go.").await.expect("it answers");
    let agent = agent.instructions("Be long.");
    agent.run("Again.").await.expect("it answers");
    agent
}

/// An agent whose model and tools panic when they are called.
fn mute(journal: &MemoryJournal) -> Agent {
    let model = model_fn(ModelInfo::new("scripted/model"), |_| {
        unreachable!("no model is asked")
    });
    let work = tool_fn(spec("work"), |_: Value, _: CallContext| async {
        unreachable!("no tool is run")
    });
    let agent = Agent::new(model)
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    agent
        .session(LogId::from("log"))
        .tool(work)
        .instructions("Be brief.")
}

async fn records(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    journal
        .read(&LogId::from("log"), Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

#[tokio::test]
async fn replay_comes_to_the_same_when_nothing_is_called() {
    let journal = MemoryJournal::default();
    let first = played(&journal).await;
    let replayed = mute(&journal)
        .log()
        .replay(None)
        .await
        .expect("the log folds");
    let log = records(&journal).await;
    assert_eq!(
        (replayed.run.history(), replayed.records),
        (&first.log().transcript(), log.len())
    );
    assert_eq!(
        replayed
            .children
            .keys()
            .map(|it| it.as_str())
            .collect::<Vec<_>>(),
        ["main/c1_0_0/below"]
    );
    let past: Vec<_> = first
        .log()
        .events_after(Seq(0))
        .map(|event| event.expect("the log reads"))
        .collect()
        .await;
    assert_eq!(replayed.events, past);
    let ends = replayed
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::RunFinished { .. }))
        .count();
    assert_eq!((ends, records(&journal).await.len()), (3, log.len()));
}

#[tokio::test]
async fn differences_are_listed_turn_by_turn_when_the_agent_is_another_one() {
    let journal = MemoryJournal::default();
    played(&journal).await;
    let fields = async |agent: Agent| {
        let replayed = agent.log().replay(None).await.expect("the log folds");
        assert_eq!(replayed.unrecorded, []);
        let turn = |it: &adjutant_agent::Divergence| {
            (
                it.run.0,
                it.turn.0,
                it.differences
                    .iter()
                    .map(|it| it.field.to_string())
                    .collect::<Vec<_>>(),
            )
        };
        replayed.divergences.iter().map(turn).collect::<Vec<_>>()
    };
    // The second run kept the system prompt of the first.
    assert_eq!(fields(mute(&journal)).await, []);
    let other = mute(&journal)
        .instructions("Be long.")
        .tool(tool_fn(spec("more"), |_: Value, _: CallContext| async {
            Ok(CallResult::ok("more"))
        }));
    let both = || vec!["system".to_owned(), "tools.more".to_owned()];
    assert_eq!(
        fields(other).await,
        [(1, 1, both()), (1, 2, both()), (2, 3, both())]
    );
}

#[tokio::test]
async fn replay_is_the_run_as_it_was_when_it_stops_at_any_record() {
    let journal = MemoryJournal::default();
    played(&journal).await;
    let log = records(&journal).await;
    let mut run = Run::default();
    for stamped in &log {
        if stamped.thread.as_str() == "main" {
            run.apply(stamped).expect("the log folds");
        }
        let replayed = mute(&journal)
            .log()
            .replay(Some(stamped.seq))
            .await
            .expect("the log folds");
        assert_eq!(
            (&replayed.run, replayed.records as u64),
            (&run, stamped.seq.0)
        );
        assert!(replayed.events.iter().all(|event| event.seq <= stamped.seq));
    }
}

#[tokio::test]
async fn turns_are_unrecorded_when_an_older_program_wrote_them() {
    let journal = MemoryJournal::default();
    let agent = played(&journal).await;
    let old = records(&journal).await;
    let old = old
        .into_iter()
        .filter(|it| !matches!(it.record, Record::Configured { .. }));
    let rewind = Rewind {
        config: Some(agent.log().config().await.expect("it has one")),
        ..Rewind::new(agent.identity().clone())
    };
    let replayed = rewind.play(old).expect("it folds");
    assert_eq!(
        (replayed.unrecorded.len(), replayed.divergences),
        (3, Vec::new())
    );
}
