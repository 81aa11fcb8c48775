//! A session for people.

use std::sync::Arc;

use adjutant_agent::{
    AcknowledgedPart, Admission, Agent, CancelBy, JournalErrorKind, Lane, Limit, Limits,
    MemoryJournal, Outcome, Record, RunChange, RunNo, Seq, TurnNo,
    sessions::{ShownKind, TimelineItem},
};
use adjutant_llm::{
    BlockKind, Call, CallId, CallResult, Edit, Entry, EntryId, FinishReason, ModelId, Origin,
    Reply, Script, ScriptedModel, Status, Summary, Usage, UserMessage,
};
use adjutant_tool::Replay;
use futures_util::StreamExt;
use serde_json::json;

use super::stage::{id, kind, log, sessions, spec, stamped, tool, write};

async fn shown(journal: &MemoryJournal, name: &str) -> Vec<TimelineItem> {
    sessions(journal)
        .show(&id(name))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

/// Each thing in a line, indented by its depth.
fn lines(shown: &[TimelineItem]) -> Vec<String> {
    let line = |it: &TimelineItem| {
        format!(
            "{}{} {}: {}",
            "  ".repeat(it.depth.into()),
            it.who,
            it.kind,
            it.text
        )
    };
    shown.iter().map(line).collect()
}

/// What a log of these records shows.
async fn told(records: impl IntoIterator<Item = Record>) -> Vec<String> {
    let journal = MemoryJournal::default();
    write(&journal, "a", &stamped(records)).await;
    lines(&shown(&journal, "a").await)
}

#[tokio::test]
async fn session_reads_like_a_conversation_when_it_is_shown() {
    let journal = MemoryJournal::default();
    let records = log(&journal, "a").await;
    let shown = shown(&journal, "a").await;
    let expect = [
        "user prompt: Go.",
        "boss thinking: Hm.",
        "boss reply: Let me see.",
        "boss call: ask({\"q\":1})",
        "boss agent: opens helper",
        "  user prompt: Well?",
        "  helper reply: Yes.",
        "  helper end: answered",
        "ask result: Yes.",
        "boss call: write({\"n\":1})",
        "boss pause: approval: Run \"write\" with these arguments? (main/c2_0_0) write {\"n\":1}",
        "user answer: approved (main/c2_0_0)",
        "write result: written",
        "boss reply: Done.",
        "boss end: answered",
        "user prompt: Bye.",
        "boss reply: Bye.",
        "boss end: answered",
    ];
    assert_eq!(lines(&shown), expect);
    for it in &shown {
        let stamped = &records[usize::try_from(it.seq.0).expect("few records") - 1];
        assert_eq!((stamped.seq, stamped.at_ms), (it.seq, it.at_ms));
    }
    let json = serde_json::to_value(&shown[0]).expect("it is JSON");
    assert_eq!(
        json,
        json!({"seq": 1, "at_ms": 1_000, "depth": 0, "who": "user", "kind": "prompt", "text": "Go."})
    );
}

#[tokio::test]
async fn pages_are_the_whole_when_they_are_put_together() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    let whole = shown(&journal, "a").await;
    for limit in [0, 1, 2, 3, 7, whole.len(), 1_000] {
        let (mut items, mut after, mut pages) = (Vec::new(), Seq(0), 0);
        loop {
            let page = sessions(&journal)
                .show_page(&id("a"), after, limit)
                .await
                .expect("it is there");
            assert!(
                !page.items.is_empty() && page.items.len() < limit.max(1) + 3,
                "{limit}: {page:?}"
            );
            items.extend(page.items);
            pages += 1;
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(items, whole, "{limit}");
        assert_eq!(pages == 1, limit >= whole.len());
    }
    let page = sessions(&journal)
        .show_page(&id("a"), Seq(1_000), 5)
        .await
        .expect("it is there");
    assert_eq!((page.items, page.next), (Vec::new(), None));
    assert_eq!(
        kind(sessions(&journal).show_page(&id("b"), Seq(0), 1).await),
        JournalErrorKind::Missing
    );
}

fn text(text: &str) -> Entry {
    Entry::User(UserMessage::text(text))
}

fn began() -> Record {
    Record::began(RunNo(1), vec![text("Go.")], Limits::default())
}

fn opened() -> Record {
    Record::Opened {
        turn: TurnNo(1),
        last: None,
    }
}

fn heard(attempt: u32, text: &str) -> Record {
    let part = AcknowledgedPart {
        block: 0,
        kind: BlockKind::Text,
        text: text.into(),
        closed: false,
        content: None,
    };
    Record::Heard {
        turn: TurnNo(1),
        attempt,
        model: "test/model".into(),
        parts: vec![part],
    }
}

fn replied(text: &str, stop: FinishReason) -> Record {
    let mut reply = Reply::new(ModelId::from("a/b"), stop);
    reply.blocks.push(Arc::new(adjutant_llm::Block::text(text)));
    Record::reply_received(TurnNo(1), Arc::new(reply), None)
}

#[tokio::test]
async fn void_attempt_is_marked_when_it_was_heard() {
    let void = Record::Retracted {
        turn: TurnNo(1),
        attempt: 0,
        usage: Usage::default(),
        cost: None,
    };
    let records = [
        began(),
        opened(),
        heard(0, "Hel"),
        heard(0, "lo"),
        void.clone(),
        heard(1, "Good d"),
        heard(2, "Good"),
        replied("Good day.", FinishReason::End),
    ];
    let expect = [
        "user prompt: Go.",
        "agent void: Hello",
        "agent void: Good d",
        "agent reply: Good day.",
    ];
    assert_eq!(told(records).await, expect);
    assert_eq!(
        told([began(), opened(), void]).await,
        ["user prompt: Go."],
        "nobody heard of it"
    );
    assert_eq!(
        told([began(), opened(), heard(0, "Hel")]).await,
        ["user prompt: Go.", "agent heard: Hel"]
    );
}

#[tokio::test]
async fn messages_are_shown_when_they_join_the_conversation() {
    let steer = UserMessage {
        origin: Origin::Steering,
        ..UserMessage::text("Faster.")
    };
    let remind = UserMessage {
        origin: Origin::Reminder {
            by: "budget".into(),
        },
        ..UserMessage::text("Two turns left.")
    };
    let fold = Edit::Fold {
        upto: EntryId(0),
        keep: Vec::new(),
        into: Summary {
            text: "Much was said.".into(),
            covers: 1,
        },
    };
    let queued = |item, content: Entry| Record::Queued {
        item,
        lane: Lane::Steering,
        content,
    };
    let records = [
        began(),
        queued(1, steer.into()),
        queued(2, text("Never mind.")),
        Record::Withdrawn { item: 2 },
        Record::Placed {
            items: vec![1],
            revised: Vec::new(),
        },
        opened(),
        Record::turn_prepared(
            TurnNo(1),
            ModelId::from("a/b"),
            vec![
                fold,
                Edit::Append {
                    entry: remind.into(),
                },
            ],
        ),
        replied("I ca", FinishReason::Interrupted),
        Record::Settled {
            turn: TurnNo(1),
            stop: false,
            change: {
                let mut change = RunChange::default();
                change.model = Some(ModelId::from("c/d"));
                change
            },
        },
        Record::Exhausted {
            limit: Limit::Tokens,
        },
        Record::Denied {
            point: "before_tool".into(),
            reason: "no".into(),
            call: None,
        },
        Record::CancelAsked { by: CancelBy::User },
        Record::Ended {
            run: RunNo(1),
            outcome: Outcome::Cancelled { by: CancelBy::User },
        },
    ];
    let expect = [
        "user prompt: Go.",
        "user steering: Faster.",
        "agent summary: 1 entries became: Much was said.",
        "budget reminder: Two turns left.",
        "agent reply: I ca",
        "agent note: the reply was interrupted",
        "agent note: goes on with c/d",
        "agent limit: tokens",
        "agent denied: before_tool: no",
        "agent cancel: asked by the user",
        "agent end: cancelled by the user",
    ];
    assert_eq!(told(records).await, expect);
}

#[tokio::test]
async fn calls_are_shortened_when_they_are_long() {
    let call = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let mut reply = Reply::new(ModelId::from("a/b"), FinishReason::Calls);
    let args: Arc<str> = "é".repeat(1_000).into();
    reply
        .blocks
        .push(Arc::new(adjutant_llm::Block::Call(Call::new(
            call, "read", args,
        ))));
    let allow = Admission::Allow {
        args: "{}".into(),
        changed: true,
        title: None,
        replay: Replay::Pure,
        sequential: false,
    };
    let records = [
        began(),
        opened(),
        Record::reply_received(TurnNo(1), Arc::new(reply), None),
        Record::Admitted {
            call,
            admission: allow,
        },
        Record::call_returned(call, CallResult::new(Status::TimedOut, "x".repeat(1_001))),
    ];
    let expect = [
        "user prompt: Go.".to_owned(),
        format!("agent call: read({}… (1200 more bytes))", "é".repeat(400)),
        "agent note: read runs with {}".to_owned(),
        format!(
            "read result: (timed out) {}… (1 more bytes)",
            "x".repeat(1_000)
        ),
    ];
    assert_eq!(told(records).await, expect);
}

#[tokio::test]
async fn kinds_have_one_word_each_when_they_are_written() {
    let kinds = [ShownKind::FollowUp, ShownKind::Prompt, ShownKind::Void];
    for kind in kinds {
        assert_eq!(
            serde_json::to_value(kind).expect("it is JSON"),
            kind.to_string()
        );
    }
    assert_eq!(format!("{:>8}|", ShownKind::Void), "    void|");
}

#[tokio::test]
async fn refused_call_is_shown_when_a_hook_says_no() {
    let journal = MemoryJournal::default();
    let script = [
        Script::new().call("none", json!({})),
        Script::new().text("Oh."),
    ];
    let agent = Agent::new(ScriptedModel::new(script))
        .journal(journal.clone())
        .session(id("a"));
    agent
        .tool(tool(spec("work"), |_| async { Ok(CallResult::ok("done")) }))
        .run("Go.")
        .await
        .expect("it finishes");
    let shown = shown(&journal, "a").await;
    assert!(shown[2].text.starts_with("(unknown tool) "), "{shown:?}");
    assert_eq!((shown[2].kind, &*shown[2].who), (ShownKind::Result, "none"));
}
