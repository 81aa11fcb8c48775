//! What becomes of an acknowledged reply when its program is gone.

use std::{collections::BTreeSet, mem};

use adjutant_agent::{
    AcknowledgedPart, Agent, CancelBy, EventKind, Limit, Limits, MemoryJournal, Next, Outcome,
    Record, Run, RunNo, Running, Seq, Spawn, Stamped, TurnNo,
};
use adjutant_llm::{
    Block, BlockKind, Call, CallResult, FinishReason, Gate, Script, ScriptedModel, Thinking,
    UserMessage,
};
use adjutant_tool::CallContext;
use futures_util::StreamExt;

use super::{fold, read, records, said, stage};

/// A program that dies when a reader has acknowledged the half of its reply.
async fn died(journal: &MemoryJournal) -> Agent {
    let gate = Gate::default();
    let (_, agent) = stage::agent([Script::new()
        .text("Half an answer.")
        .delta_chars(1)
        .wait_at(4, &gate)]);
    let agent = agent.journal(journal.clone()).session("log".into());
    let mut running: Running = agent.run("Go.").stream().expect("the session is free");
    read(&mut running, 4).await;
    running.acknowledge().await.expect("memory does not fail");
    mem::forget(running);
    agent
}

fn other(journal: &MemoryJournal) -> Agent {
    let (_, agent) = stage::agent([
        Script::new().text("A whole answer."),
        Script::new().text("One more."),
    ]);
    agent
        .journal(journal.clone())
        .session("log".into())
        .take_over()
}

async fn told(agent: &Agent, after: Seq) -> Vec<EventKind> {
    agent
        .log()
        .events_after(after)
        .map(|event| event.expect("the log is whole").kind)
        .collect()
        .await
}

fn words(events: &[EventKind]) -> Vec<String> {
    let word = |kind: &EventKind| {
        let value = serde_json::to_value(kind).expect("events are JSON");
        value["event"].as_str().expect("a tag").to_owned()
    };
    events.iter().map(word).collect()
}

#[tokio::test]
async fn attempt_is_void_when_its_run_is_resumed() {
    let journal = MemoryJournal::default();
    died(&journal).await;
    let agent = other(&journal).max_turns(1);
    let before = told(&agent, Seq(0)).await;
    let begun = [
        "run_started",
        "entry_added",
        "turn_started",
        "reply_started",
        "block_started",
        "text_delta",
    ];
    assert_eq!(words(&before), begun);
    let result = agent.resume(Vec::new()).await.expect("the run goes on");
    assert_eq!(
        (result.text().as_str(), result.turns),
        ("A whole answer.", 1)
    );
    let log = records(&journal, &"log".into()).await;
    let void = log
        .iter()
        .filter(|it| matches!(it.record, Record::Retracted { attempt: 0, .. }))
        .count();
    assert_eq!((void, said(&fold(&log)).as_str()), (1, "A whole answer."));
    let end = [
        "reply_retracted",
        "reply_finished",
        "turn_finished",
        "run_finished",
    ];
    let (begun, said) = begun.split_at(3);
    assert_eq!(
        words(&told(&agent, Seq(0)).await),
        [begun, &["run_resumed"], said, &end].concat()
    );
    let heard = log
        .iter()
        .find(|it| matches!(it.record, Record::Heard { .. }))
        .expect("it was acknowledged")
        .seq;
    assert_eq!(
        words(&told(&agent, heard).await),
        [&["run_resumed"][..], &end].concat()
    );
}

#[tokio::test]
async fn reply_is_made_of_what_was_heard_when_its_run_is_closed() {
    for way in [true, false] {
        let journal = MemoryJournal::default();
        died(&journal).await;
        let agent = other(&journal);
        if way {
            agent.run("Again.").await.expect("it answers");
        } else {
            let result = agent.cancel_paused().await.expect("it is closed");
            assert!(matches!(result.outcome, Outcome::Cancelled { .. }));
        }
        let log = records(&journal, &"log".into()).await;
        let replies: Vec<_> = log
            .iter()
            .filter_map(|it| match &it.record {
                Record::Replied { reply, .. } => {
                    Some((reply.text(), reply.stop, reply.model.to_string()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            (replies[0].0.as_str(), replies[0].1),
            ("Half", FinishReason::Interrupted)
        );
        let shown = words(&told(&agent, Seq(0)).await);
        assert_eq!(
            shown
                .iter()
                .filter(|word| word.starts_with("reply_"))
                .count(),
            replies.len(),
            "{shown:?}"
        );
    }
}

#[tokio::test]
async fn void_attempt_is_no_turn_when_turns_are_limited() {
    let journal = MemoryJournal::default();
    died(&journal).await;
    let call = Script::new().call("echo", serde_json::json!({}));
    let (_, agent) = stage::agent([call, Script::new().text("Too late.")]);
    let echo = stage::tool("echo", |_, _| async { Ok(CallResult::ok("said")) });
    let agent = agent
        .tool(echo)
        .journal(journal.clone())
        .session("log".into())
        .take_over();
    let limited = agent.resume(Vec::new()).await.expect("the run goes on");
    assert_eq!((limited.turns, limited.text().as_str()), (2, "Too late."));
    assert!(!matches!(
        limited.outcome,
        Outcome::Limit {
            limit: Limit::Turns
        }
    ));
}

#[tokio::test]
async fn text_of_a_child_is_in_the_log_when_the_first_agent_is_acknowledged() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let inside = gate.clone();
    let work = stage::tool("work", move |_, cx: CallContext| {
        let script = Script::new()
            .text("A child says.")
            .delta_chars(1)
            .wait_at(7, &inside);
        async move {
            let spawn = cx.get::<dyn Spawn>().expect("a call of a run");
            let child = spawn
                .open("kid", Agent::new(ScriptedModel::new([script])).into())
                .await?;
            Ok(CallResult::ok(child.run("Go.").await?.text()))
        }
    });
    let (_, agent) = stage::agent([
        Script::new().call("work", serde_json::json!({})),
        Script::new().text("Done."),
    ]);
    let agent = agent
        .tool(work)
        .journal(journal.clone())
        .session("log".into());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    assert_eq!(read(&mut running, 7).await, "A child");
    running.acknowledge().await.expect("memory does not fail");
    let log = records(&journal, &"log".into()).await;
    let heard: String = log
        .iter()
        .filter_map(|it| match &it.record {
            Record::Heard { parts, .. } if it.thread.as_str() != "main" => {
                Some(parts[0].text.clone())
            }
            _ => None,
        })
        .collect();
    assert_eq!(heard, "A child");
    gate.open();
    assert_eq!(running.text().await.expect("it answers"), "Done.");
}

#[test]
fn heard_blocks_make_the_reply_that_a_cut_stream_makes() {
    let call = |block| adjutant_llm::CallId {
        turn: 1,
        attempt: 0,
        block,
    };
    let part = |block, kind, text: &str, closed| AcknowledgedPart {
        block,
        kind,
        text: text.into(),
        closed,
        content: None,
    };
    let tool = |block| BlockKind::Call {
        id: call(block),
        name: "look".into(),
    };
    let parts = vec![
        part(0, BlockKind::Thinking, "Hm", false),
        part(1, BlockKind::Text, "So ", false),
        part(2, tool(2), "{}", true),
        part(3, tool(3), "{\"a\":", false),
    ];
    let more = vec![part(1, BlockKind::Text, "it is.", true)];
    let records = [
        Record::began(
            RunNo(1),
            vec![UserMessage::text("Go.").into()],
            Limits::default(),
        ),
        Record::Opened {
            turn: TurnNo(1),
            last: None,
        },
        Record::turn_prepared(TurnNo(1), "a/model".into(), Vec::new()),
        Record::Heard {
            turn: TurnNo(1),
            attempt: 0,
            model: "a/model".into(),
            parts,
        },
        Record::Heard {
            turn: TurnNo(1),
            attempt: 0,
            model: "a/model".into(),
            parts: more,
        },
        Record::CancelAsked { by: CancelBy::User },
    ];
    let mut run = Run::default();
    for (seq, record) in (1..).zip(records) {
        run.apply(&Stamped::new(Seq(seq), 0, "main".into(), record))
            .expect("it follows");
    }
    let Next::Decide(decided) = run.next(&BTreeSet::new()) else {
        unreachable!("it is wound up")
    };
    let [Record::Replied { reply, .. }] = &decided[..] else {
        unreachable!("one reply: {decided:?}")
    };
    let blocks: Vec<_> = reply
        .blocks
        .iter()
        .map(|block| Block::clone(block))
        .collect();
    assert_eq!(
        blocks,
        [
            Block::Thinking(Thinking::new("Hm")),
            Block::text("So it is."),
            Block::Call(Call::new(call(2), "look", "{}")),
        ]
    );
    assert_eq!(
        (reply.stop, reply.model.to_string()),
        (FinishReason::Interrupted, "a/model".to_owned())
    );
}
