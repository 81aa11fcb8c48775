//! What a turn appends to the log does not depend on how much was said before it.

use adjutant_agent::{Agent, Journal, Limits, MemoryJournal, Record, Seq};
use adjutant_llm::{FixedWorld, Script, ScriptedModel};
use adjutant_tool::tool;
use futures_util::StreamExt;

/// Reads a page.
#[tool(replay = "pure")]
fn page(
    /// The number of the page.
    n: u64,
) -> String {
    format!("page {n}")
}

/// The records of each turn as they are stored, every number as one zero.
async fn turns(count: usize) -> Vec<String> {
    let call = |n: usize| {
        Script::new()
            .text("I look.")
            .call("page", serde_json::json!({ "n": n }))
    };
    let scripts = (1..count).map(call).chain([Script::new().text("Done.")]);
    let journal = MemoryJournal::default();
    let agent = Agent::new(ScriptedModel::new(scripts))
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    let agent = agent.tool(page).limits(Limits {
        max_turns: None,
        ..Limits::default()
    });
    agent.run("Go.").await.expect("a run");
    let mut turns: Vec<String> = Vec::new();
    let mut records = journal.read(agent.session_id(), Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.expect("memory does not fail");
        if matches!(stamped.record, Record::Opened { .. }) {
            turns.push(String::new());
        }
        if let Some(turn) = turns.last_mut() {
            let bytes = stamped.bytes().expect("a record is JSON");
            let text = String::from_utf8_lossy(bytes);
            let mut before = ' ';
            for found in text
                .chars()
                .map(|it| if it.is_ascii_digit() { '0' } else { it })
            {
                if found != '0' || before != '0' {
                    turn.push(found);
                }
                before = found;
            }
        }
    }
    turns
}

#[tokio::test]
async fn turn_appends_the_same_bytes_when_a_thousand_turns_were_before_it() {
    let turns = turns(1_001).await;
    assert_eq!(turns.len(), 1_001);
    assert!(turns[9].contains("returned"), "{}", turns[9]);
    assert_eq!(turns[9], turns[999]);
}
