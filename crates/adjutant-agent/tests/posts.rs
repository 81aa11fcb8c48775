//! What other processes say to a session: heard while its run goes on, once, and never lost.

#[path = "posts/answers.rs"]
mod answers;
#[path = "posts/crashes.rs"]
mod crashes;
#[expect(dead_code, reason = "several targets share it, each uses its part")]
#[path = "approval/stage.rs"]
mod stage;
#[path = "posts/under.rs"]
mod under;

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use adjutant_agent::{
    Agent, CancelBy, Continue, ErrorKind, Event, EventKind, Journal, JournalError,
    JournalErrorKind, Lane, Log, LogId, MemoryJournal, Outcome, Owner, Post, PostNo, PostStream,
    Record, RecordStream, Running, Seq, Stamped,
};
use adjutant_llm::{
    Entry, Gate, Origin, Script, ScriptedModel, ToolChange, UserMessage, WarningKind,
};
use futures_util::{StreamExt, stream};

/// A message for the next request.
fn steer(text: &str) -> Post {
    Post::Message {
        lane: Lane::Steering,
        content: UserMessage::text(text).into(),
    }
}

async fn records(journal: &MemoryJournal, agent: &Agent) -> Vec<Arc<Stamped>> {
    let read = journal.read(agent.session_id(), Seq(0));
    read.map(|stamped| stamped.expect("memory does not fail"))
        .collect()
        .await
}

/// The texts that people said in the session, in order.
fn said(agent: &Agent) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::User(message) => message.content[0].as_text().map(str::to_owned),
        _ => None,
    };
    agent
        .log()
        .transcript()
        .iter()
        .filter_map(|stored| text(&stored.entry))
        .collect()
}

/// Reads on until an event that is as wanted.
async fn until(running: &mut Running, wanted: impl Fn(&EventKind) -> bool) {
    while let Some(event) = running.next().await {
        if wanted(&event.kind) {
            return;
        }
    }
    unreachable!("the run ended before");
}

/// The events of the rest of a run.
async fn rest(mut running: Running) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    events
}

fn warnings(events: &[Event]) -> Vec<String> {
    let text = |event: &Event| match &event.kind {
        EventKind::Warning { warning } if warning.kind == WarningKind::Degraded => {
            Some(warning.to_string())
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn is_delta(kind: &EventKind) -> bool {
    matches!(kind, EventKind::TextDelta { .. })
}

/// An agent whose first reply stops in its middle until the gate opens.
fn waiting(journal: impl Journal + 'static, more: &[&'static str]) -> (Gate, Agent) {
    let gate = Gate::default();
    let first = Script::new()
        .text("One two")
        .delta_chars(4)
        .wait_at(1, &gate);
    let scripts = std::iter::once(first).chain(more.iter().map(|text| Script::new().text(*text)));
    (
        gate,
        Agent::new(ScriptedModel::new(scripts)).journal(journal),
    )
}

async fn post(agent: &Agent, post: Post) -> PostNo {
    agent.queue().post(post).await.expect("the log is there")
}

#[tokio::test]
async fn message_joins_the_run_when_it_is_posted_while_the_model_speaks() {
    let journal = MemoryJournal::default();
    let (gate, agent) = waiting(journal.clone(), &["Three."]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    let no = post(&agent, steer("And?")).await;
    until(&mut running, |kind| {
        matches!(kind, EventKind::MessageQueued { .. })
    })
    .await;
    gate.open();
    rest(running).await;
    assert_eq!(said(&agent), ["Go.", "And?"]);
    let log = records(&journal, &agent).await;
    let queued = log
        .iter()
        .position(|it| matches!(it.record, Record::Queued { .. }))
        .expect("it was queued");
    assert_eq!(log[queued + 1].record, Record::Heeded { post: no });
    assert_eq!(
        journal
            .read_posts(agent.session_id(), PostNo(0))
            .await
            .expect("memory does not fail"),
        []
    );
}

#[tokio::test]
async fn posted_message_changes_no_tools_and_is_none_of_the_framework() {
    let agent = Agent::new(ScriptedModel::new(
        ["0", "1"].map(|text| Script::new().text(text)),
    ))
    .journal(MemoryJournal::default());
    agent.run("Go.").await.expect("it answers");
    let change = ToolChange {
        removed: vec!["read".into()],
        ..ToolChange::default()
    };
    let message = UserMessage {
        origin: Origin::Reminder { by: "tools".into() },
        tools: Some(Arc::new(change)),
        ..UserMessage::text("One.")
    };
    let posted = Post::Message {
        lane: Lane::Steering,
        content: message.into(),
    };
    post(&agent, posted).await;
    agent.run("Again.").await.expect("it answers");
    let transcript = agent.log().transcript();
    let found = transcript.iter().find_map(|stored| match &stored.entry {
        Entry::User(message) if message.to_text() == "One." => Some(message.clone()),
        _ => None,
    });
    let expect = UserMessage {
        origin: Origin::Steering,
        ..UserMessage::text("One.")
    };
    assert_eq!(found, Some(expect));
}

#[tokio::test]
async fn posts_wait_for_the_next_run_when_none_goes_on() {
    let journal = MemoryJournal::default();
    let agent = Agent::new(ScriptedModel::new(
        ["0", "1", "2"].map(|text| Script::new().text(text)),
    ))
    .journal(journal.clone());
    agent.run("Go.").await.expect("it answers");
    post(&agent, steer("One.")).await;
    // Nobody was there whom it could have stopped.
    post(&agent, Post::Cancel).await;
    post(
        &agent,
        Post::Message {
            lane: Lane::FollowUp,
            content: UserMessage::text("Two.").into(),
        },
    )
    .await;
    let result = agent.run("Again.").await.expect("it answers");
    assert_eq!(
        (result.text().as_str(), said(&agent)),
        (
            "2",
            ["Go.", "Again.", "One.", "Two."].map(String::from).to_vec()
        )
    );
    let log = records(&journal, &agent).await;
    let heeded = log
        .iter()
        .filter(|it| matches!(it.record, Record::Heeded { .. }))
        .count();
    assert_eq!(
        (
            heeded,
            journal
                .read_posts(agent.session_id(), PostNo(0))
                .await
                .expect("it is there")
        ),
        (1, Vec::new())
    );
}

#[tokio::test]
async fn posted_message_is_the_prompt_when_a_run_continues_from_an_answer() {
    let agent = Agent::new(ScriptedModel::new(
        ["0", "1"].map(|text| Script::new().text(text)),
    ))
    .journal(MemoryJournal::default());
    agent.run("Go.").await.expect("it answers");
    post(&agent, steer("One.")).await;
    assert_eq!(
        agent
            .run(Continue)
            .await
            .expect("there is something to answer")
            .text(),
        "1"
    );
    assert_eq!(said(&agent), ["Go.", "One."]);
}

#[tokio::test]
async fn run_is_cancelled_when_that_is_posted_while_it_goes_on() {
    let journal = MemoryJournal::default();
    let (_gate, agent) = waiting(journal.clone(), &["Next."]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    post(&agent, Post::Cancel).await;
    post(&agent, Post::Cancel).await;
    let events = rest(running).await;
    let Some(EventKind::RunFinished { result }) = events.last().map(|event| &event.kind) else {
        unreachable!("the run ends")
    };
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    let asked = |it: &&Arc<Stamped>| matches!(it.record, Record::CancelAsked { .. });
    assert_eq!(
        records(&journal, &agent).await.iter().filter(asked).count(),
        1
    );
    assert_eq!(
        agent.run("Again.").await.expect("it answers").text(),
        "Next."
    );
}

#[tokio::test]
async fn post_is_passed_over_with_a_warning_when_it_cannot_be_heeded() {
    let (gate, agent) = waiting(MemoryJournal::default(), &["Three."]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    post(&agent, steer("")).await;
    post(
        &agent,
        Post::Answer {
            pause: stage::answered("main/c9_0_0", adjutant_tool::Answer::approve()).pause,
            answer: adjutant_tool::Answer::approve(),
            shown: None,
        },
    )
    .await;
    post(&agent, steer("And?")).await;
    let mut seen = Vec::new();
    while let Some(event) = running.next().await {
        let queued = matches!(event.kind, EventKind::MessageQueued { .. });
        seen.push(event);
        if queued {
            gate.open();
        }
    }
    let expect = [
        "post 1 is passed over: it is empty",
        "a posted answer to main/c9_0_0 is passed over: nobody waits for it",
    ];
    assert_eq!(
        (warnings(&seen), said(&agent)),
        (
            expect.map(String::from).to_vec(),
            ["Go.", "And?"].map(String::from).to_vec()
        )
    );
}

#[tokio::test]
async fn posting_fails_when_there_is_no_such_log() {
    let (_, agent) = waiting(MemoryJournal::default(), &[]);
    let error = agent
        .queue()
        .post(Post::Cancel)
        .await
        .expect_err("nothing was ever recorded");
    assert_eq!(error.kind(), ErrorKind::Journal);
}

#[tokio::test]
async fn rest_of_the_posts_waits_when_the_lane_is_full() {
    let (gate, agent) = waiting(MemoryJournal::default(), &["Three."]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    for n in 0..999 {
        agent
            .queue()
            .follow_up(format!("{n}"))
            .expect("there is room");
    }
    for text in ["a", "b", "c"] {
        post(
            &agent,
            Post::Message {
                lane: Lane::FollowUp,
                content: UserMessage::text(text).into(),
            },
        )
        .await;
    }
    post(&agent, Post::Cancel).await;
    let events = rest(running).await;
    drop(gate);
    assert!(matches!(
        events.last().map(|it| &it.kind),
        Some(EventKind::RunFinished { .. })
    ));
    // The wish to stop was heard all the same, and what came before it waits.
    assert_eq!(agent.queue().items().len(), 1_002);
}

/// A journal whose posts cannot be read at first.
#[derive(Debug, Clone, Default)]
struct Flaky(MemoryJournal, Arc<Mutex<u32>>);

#[async_trait::async_trait]
impl Journal for Flaky {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.0.own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        self.0.post(log, post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        let failed = || JournalError::new(JournalErrorKind::Io, "the line is down");
        *self.1.lock().expect("nobody panics inside") += 1;
        let posts: Pin<Box<_>> = self.0.posts(log, after)?;
        Some(Box::pin(
            stream::iter([Err(failed()), Err(failed())]).chain(posts),
        ))
    }
}

#[tokio::test(start_paused = true)]
async fn posts_are_heard_in_the_end_when_they_cannot_be_read_at_first() {
    let journal = Flaky::default();
    let (gate, agent) = waiting(journal.clone(), &["Three."]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    post(&agent, steer("And?")).await;
    let mut seen = Vec::new();
    while let Some(event) = running.next().await {
        let queued = matches!(event.kind, EventKind::MessageQueued { .. });
        seen.push(event);
        if queued {
            gate.open();
        }
    }
    assert_eq!(said(&agent), ["Go.", "And?"]);
    assert!(
        warnings(&seen)
            .iter()
            .any(|text| text.starts_with("posts to the session cannot be read: ")),
        "{seen:?}"
    );
}
