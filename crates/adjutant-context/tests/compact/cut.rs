//! A compacted run that is cut at every record, and gone on with by another program: it ends, and nothing is lost.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Flush, Journal, MemoryJournal, Outcome, Owner, Record, Run, Seq, Stamped,
};
use adjutant_context::Compact;
use adjutant_llm::{Entry, FixedWorld, Model, Request, Script, ScriptedModel, model_fn};
use futures_util::StreamExt;
use serde_json::json;

use super::{
    stage::{self, WINDOW, writer},
    summary,
};

/// How many calls the run makes: it is compacted once before it ends.
const CALLS: u64 = 26;

/// Says what belongs to a turn, so that it does not matter who asks.
fn agent() -> Agent {
    let model = model_fn(stage::info("test/worker"), |request: Request| {
        assert!(
            request.entries.tokens() < WINDOW,
            "{} tokens",
            request.entries.tokens()
        );
        let script = match request.turn() {
            turn if turn <= CALLS => Script::new().call("read", json!({"page": turn})),
            _ => Script::new().text("Done."),
        };
        ScriptedModel::new([script])
            .info(stage::info("test/worker"))
            .stream(request)
    });
    let compact = Compact {
        model: Some(Arc::new(writer(summary).model)),
        ..Compact::default()
    };
    Agent::new(model)
        .tool(stage::read(1_200))
        .effect(compact)
        .world(FixedWorld::at_ms(1_000))
}

async fn records(journal: &MemoryJournal, agent: &Agent) -> Vec<Arc<Stamped>> {
    journal
        .read(agent.session_id(), Seq(0))
        .map(|stamped| stamped.expect("memory does not fail"))
        .collect()
        .await
}

fn folds(records: &[Arc<Stamped>]) -> usize {
    let folds = |stamped: &&Arc<Stamped>| match &stamped.record {
        Record::Prepared { edits, .. } => !edits.is_empty(),
        _ => false,
    };
    records.iter().filter(folds).count()
}

#[tokio::test]
async fn run_ends_as_it_should_when_it_is_cut_around_a_compaction() {
    let journal = MemoryJournal::default();
    let first = agent().journal(journal.clone());
    first.run("Read all pages.").await.expect("it answers");
    let all = records(&journal, &first).await;
    assert_eq!(folds(&all), 1);
    let id = first.session_id().clone();
    for cut in 1..all.len() {
        let copy = MemoryJournal::default();
        let mut log = copy
            .own(
                &id,
                &Owner {
                    takes_over: true,
                    ..Owner::default()
                },
            )
            .await
            .expect("it is free");
        log.append(&all[..cut], Flush::Now)
            .await
            .expect("memory does not fail");
        drop(log);
        let later = agent().journal(copy.clone()).session(id.clone());
        let result = later.resume(Vec::new()).await.expect("it answers");
        assert!(
            matches!(result.outcome, Outcome::Finished { .. }),
            "cut at {cut}: {:?}",
            result.outcome
        );
        assert_eq!(
            (result.text().as_str(), later.log().transcript().len()),
            ("Done.", all_entries()),
            "cut at {cut}"
        );
        let (log, mut run) = (records(&copy, &later).await, Run::default());
        log.iter()
            .for_each(|stamped| run.apply(stamped).expect("the log folds"));
        assert_eq!(
            (run.history(), folds(&log)),
            (&later.log().transcript(), 1),
            "cut at {cut}"
        );
        let view = run.view().items();
        assert_eq!(
            view.iter()
                .filter(|stored| matches!(stored.entry, Entry::Summary(_)))
                .count(),
            1
        );
    }
}

fn all_entries() -> usize {
    usize::try_from(CALLS).expect("it is small") + 2
}
