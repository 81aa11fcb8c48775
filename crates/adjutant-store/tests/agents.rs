//! Two hundred agents at once on one store: each log is, byte for byte, that of the same agent alone in memory.
#![cfg(all(feature = "jsonl", feature = "sqlite"))]

use std::sync::Arc;

use adjutant_agent::{Agent, Durability, Journal, LogId, MemoryJournal, Seq};
use adjutant_llm::{FixedWorld, Script, ScriptedModel};
use adjutant_store::{JsonlJournal, Sqlite};
use adjutant_tool::tool;
use futures_util::{StreamExt, future::join_all};
use serde_json::json;

use crate::scratch;

const AGENTS: usize = 200;

/// Looks at a page.
#[tool(replay = "pure")]
fn page(
    /// The number of the page.
    n: u64,
) -> String {
    format!("page {n}: {}", "\u{fc}\u{0}\n".repeat(50))
}

/// An agent with a session of two runs, of four turns together.
fn agent(journal: Arc<dyn Journal>, number: usize) -> Agent {
    let script = [
        Script::new()
            .text("I look.")
            .call("page", json!({"n": number})),
        Script::new().call("page", json!({"n": 3})),
        Script::new().text("I have seen it."),
        Script::new().text(format!("As I said, {number}.")),
    ];
    let durability = [Durability::Sync, Durability::Async, Durability::OnExit][number % 3];
    let agent = Agent::new(ScriptedModel::new(script))
        .tool(page)
        .world(FixedWorld::at_ms(1_000));
    agent
        .journal(journal)
        .session(log(number))
        .durability(durability)
}

fn log(number: usize) -> LogId {
    LogId::from(format!("agent {number}"))
}

async fn works(agent: Agent) {
    agent.run("Look at the page.").await.expect("it answers");
    agent
        .run("What was there?")
        .await
        .expect("it answers again");
}

async fn lines(journal: &dyn Journal, number: usize) -> Vec<String> {
    let read = journal.read(&log(number), Seq(0)).map(|stamped| {
        let stamped = stamped.expect("the record can be read");
        String::from_utf8_lossy(stamped.bytes().expect("a record is JSON")).into_owned()
    });
    read.collect().await
}

/// Agents on two handles at once; then what a third one reads, against the same agents one after the other in memory.
async fn check(open: impl AsyncFn() -> Arc<dyn Journal>) {
    let handles = [open().await, open().await];
    let working = (0..AGENTS)
        .map(|number| tokio::spawn(works(agent(Arc::clone(&handles[number % 2]), number))));
    for worked in join_all(working).await {
        worked.expect("no panic");
    }
    let (reader, alone) = (open().await, Arc::new(MemoryJournal::default()));
    for number in 0..AGENTS {
        works(agent(alone.clone(), number)).await;
        let (found, expected) = (lines(&*reader, number).await, lines(&*alone, number).await);
        assert!(expected.len() > 15, "{} records", expected.len());
        assert_eq!(found, expected, "agent {number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_agents_on_one_sqlite_file_lose_and_reorder_nothing() {
    let folder = scratch::folder();
    let path = folder.path().join("db");
    check(async || Arc::new(Sqlite::open(&path).expect("it opens").journal()) as _).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_agents_in_one_folder_lose_and_reorder_nothing() {
    let folder = scratch::folder();
    check(async || Arc::new(JsonlJournal::open(folder.path()).expect("it opens")) as _).await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_agents_on_one_postgres_lose_and_reorder_nothing() {
    let test = "two_hundred_agents_on_one_postgres_lose_and_reorder_nothing";
    let Some(server) = adjutant_testing::PostgresServer::for_test(test) else {
        return;
    };
    let url = server.database().expect("a database");
    check(async || {
        Arc::new(
            adjutant_store::Postgres::connect(url.clone())
                .await
                .expect("it opens")
                .journal(),
        ) as _
    })
    .await;
}
