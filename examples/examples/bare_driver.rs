//! The driver without `Agent`: a conversation that existed before, one run of it, and the log that it leaves.

use std::sync::Arc;

use adjutant::{
    agent::{
        Exit, Journal, Limits, LocalExecutor, LogId, MemoryJournal, Owner, Record, Run, RunNo, Seq,
        Setup, commit, drive,
    },
    llm::{Block, Entry, FinishReason, Reply, Script, ScriptedModel, Turn, UserMessage},
    tool,
};
use futures_util::StreamExt;
use serde_json::json;

/// Doubles a whole number.
#[tool]
fn double(number: i64) -> i64 {
    number * 2
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        Script::new().call("double", json!({"number": 21})),
        Script::new().text("Twice your number is 42."),
    ]);
    let (journal, log) = (MemoryJournal::default(), LogId("numbers".into()));
    let mut port = LocalExecutor::new(
        Setup::new(model).tool(double),
        journal.own(&log, &Owner::default()).await?,
    );

    let mut run = Run::default();
    let prompts = vec![Entry::User(UserMessage::text("What is twice my number?"))];
    let began = Record::began(RunNo(run.run().0 + 1), prompts, Limits::default());
    commit(
        &mut run,
        &mut port,
        vec![
            Record::Seeded {
                entries: build_history()?,
            },
            began,
        ],
    )
    .await?;
    let Exit::Done(outcome) = drive(&mut run, &mut port).await? else {
        return Err("the run did not end".into());
    };
    println!(
        "{} entries, outcome {}",
        run.history().len(),
        serde_json::to_value(&outcome)?["outcome"]
    );

    // State is a fold over records: the log alone gives the same run again.
    let mut again = Run::default();
    let mut records = journal.read(&log, Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped?;
        let record = serde_json::to_value(&stamped.record)?;
        let name = record.as_object().and_then(|named| named.keys().next());
        println!("{} {}", stamped.seq, name.ok_or("a record has a name")?);
        again.apply(&stamped)?;
    }
    assert_eq!(again, run);
    Ok(())
}

/// Earlier messages, for example from another system.
fn build_history() -> Result<Vec<Entry>, Box<dyn std::error::Error>> {
    let mut reply = Reply::new("elsewhere/model".into(), FinishReason::End);
    reply
        .blocks
        .push(Arc::new(Block::text("I will remember it.")));
    let turn = Turn::open(Arc::new(reply))
        .close()
        .map_err(|_| "a reply without calls closes at once")?;
    Ok(vec![
        Entry::User(UserMessage::text("My number is 21.")),
        Entry::Turn(turn),
    ])
}
