//! Long sessions are opened from a fold of them, which every store on a disk keeps.
#![cfg(all(feature = "jsonl", feature = "sqlite"))]

use adjutant_agent::{Agent, Journal, LogId, Seq};
use adjutant_llm::{Script, ScriptedModel};
use adjutant_store::{JsonlJournal, Sqlite};

const RUNS: usize = 60;

fn agent(journal: &(impl Journal + Clone + 'static), runs: usize) -> Agent {
    let model = ScriptedModel::new((0..runs).map(|_| Script::new().text("yes")));
    Agent::new(model)
        .journal(journal.clone())
        .session(LogId::from("long"))
}

async fn check(journal: impl Journal + Clone + 'static) {
    let long = agent(&journal, RUNS);
    for _ in 0..RUNS {
        long.run("Go on?").await.expect("it goes on");
    }
    let told = long.log().transcript().len();
    drop(long);
    let again = agent(&journal, 0);
    again.log().open().await.expect("the log is free");
    assert_eq!((told, again.log().transcript().len()), (2 * RUNS, 2 * RUNS));
    let log = LogId::from("long");
    let (kept, info) = (
        journal.load_fold(&log).await.expect("it can be read"),
        journal.info(&log).await.expect("there"),
    );
    let kept = kept.expect("a fold was kept").seq;
    assert!(
        kept > Seq(0) && kept <= info.head,
        "{kept} of {}",
        info.head
    );
}

#[tokio::test]
async fn long_session_has_a_fold_when_it_is_kept_in_json_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    check(JsonlJournal::open(folder.path()).expect("the folder is there")).await;
}

#[tokio::test]
async fn long_session_has_a_fold_when_it_is_kept_in_sqlite() {
    check(Sqlite::in_memory().expect("it opens").journal()).await;
}
