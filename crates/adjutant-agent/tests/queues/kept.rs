//! What is queued survives whatever ends the run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adjutant_agent::{
    Agent, CancelBy, Completion, Epoch, ErrorKind, EventKind, Flush, Head, Journal, JournalError,
    JournalErrorKind, Log, LogId, MemoryJournal, Outcome, Owner, Record, RecordStream, Seq,
    Stamped, stop_after_turn,
};
use adjutant_llm::{Error, ErrorKind as ModelErrorKind, Gate, ScriptedModel};
use async_trait::async_trait;
use futures_util::StreamExt;

use super::{
    seen::{calling, is_delta, is_queued, requests, says, until, waiting, work},
    stage::agent,
};

#[tokio::test]
async fn queues_stay_when_the_run_is_cancelled() {
    let gate = Gate::default();
    let (model, agent) = agent([
        says("One two").delta_chars(4).wait_at(1, &gate),
        says("a"),
        says("b"),
        says("c"),
    ]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    running.queue().steer("steer").expect("there is room");
    running.queue().follow_up("follow").expect("there is room");
    until(&mut running, is_queued).await;
    running.cancel();
    let result = running.finish().await.expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        (model.requests().len(), waiting(&agent)),
        (1, vec!["steer".to_owned(), "follow".to_owned()])
    );
    agent.run("Again.").await.expect("the run finishes");
    assert_eq!(
        requests(&model)[2],
        ["Go.", "=One ", "Again.", "steer", "=a", "follow"]
    );
}

#[tokio::test]
async fn queues_stay_when_the_run_is_cancelled_before_it_begins() {
    let (model, agent) = agent([]);
    agent.queue().steer("steer").expect("there is room");
    let running = agent.run("Go.").stream().expect("the session is free");
    running.cancel();
    let result = running.finish().await.expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        (model.requests().len(), waiting(&agent)),
        (0, vec!["steer".to_owned()])
    );
}

#[tokio::test]
async fn queues_stay_when_the_run_fails() {
    let (model, agent) = agent([
        calling(1),
        says("").fail(Error::new(ModelErrorKind::Overloaded, "down")),
    ]);
    let handle = agent.clone();
    let agent = agent.tool(work(move || {
        handle.queue().follow_up("follow").expect("there is room");
        handle.queue().steer("first").expect("there is room");
        handle.queue().steer("second").expect("there is room");
    }));
    let error = agent.run("Go.").await.expect_err("the model fails");
    assert_eq!(
        (error.kind(), model.requests().len()),
        (ErrorKind::Failed, 2)
    );
    assert_eq!(waiting(&agent), ["second", "follow"]);
}

#[tokio::test]
async fn queues_stay_when_stop_after_turn_ends_the_run() {
    let (model, agent) = agent([calling(1), says("never")]);
    let handle = agent.clone();
    let agent = agent.on(stop_after_turn(|_| true)).tool(work(move || {
        handle.queue().steer("steer").expect("there is room");
        handle.queue().follow_up("follow").expect("there is room");
    }));
    let result = agent.run("Go.").await.expect("the run ends");
    assert!(
        matches!(
            result.outcome,
            Outcome::Finished {
                why: Completion::Stopped,
                ..
            }
        ),
        "{:?}",
        result.outcome
    );
    assert_eq!(
        (model.requests().len(), waiting(&agent)),
        (1, vec!["steer".to_owned(), "follow".to_owned()])
    );
}

/// A journal that fails to keep what is placed, as long as it is told to.
#[derive(Debug, Clone, Default)]
struct Failing {
    inner: MemoryJournal,
    fails: Arc<AtomicBool>,
}

#[derive(Debug)]
struct FailingLog(Box<dyn Log>, Arc<AtomicBool>);

#[async_trait]
impl Journal for Failing {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(FailingLog(
            self.inner.own(log, owner).await?,
            Arc::clone(&self.fails),
        )))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }
}

#[async_trait]
impl Log for FailingLog {
    fn head(&self) -> Head {
        Head {
            epoch: Epoch(1),
            ..self.0.head()
        }
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        let places = batch
            .iter()
            .any(|stamped| matches!(stamped.record, Record::Placed { .. }));
        if places && self.1.load(Ordering::SeqCst) {
            return Err(JournalError::new(
                JournalErrorKind::Io,
                "no room on the disk",
            ));
        }
        self.0.append(batch, flush).await
    }
}

async fn records(journal: &impl Journal, log: &LogId) -> Vec<Record> {
    let read = journal.read(log, Seq(0));
    read.map(|stamped| stamped.expect("memory does not fail").record.clone())
        .collect()
        .await
}

#[tokio::test]
async fn item_goes_back_when_its_record_cannot_be_committed() {
    let (model, journal) = (
        Arc::new(ScriptedModel::new([
            calling(1),
            says("a"),
            says("b"),
            says("c"),
        ])),
        Failing::default(),
    );
    let agent = Agent::new(Arc::clone(&model)).journal(journal.clone());
    let handle = agent.clone();
    let once = std::sync::Once::new();
    let agent = agent.tool(work(move || {
        once.call_once(|| {
            for text in ["first", "second"] {
                handle.queue().steer(text).expect("there is room");
            }
        });
    }));
    journal.fails.store(true, Ordering::SeqCst);
    let error = agent.run("Go.").await.expect_err("the log fails");
    assert_eq!(
        (error.kind(), waiting(&agent)),
        (
            ErrorKind::Journal,
            vec!["first".to_owned(), "second".to_owned()]
        )
    );
    journal.fails.store(false, Ordering::SeqCst);
    agent.run("Again.").await.expect("the run finishes");
    assert!(agent.queue().is_empty());
    let placed: Vec<_> = super::seen::words(&agent.log().transcript());
    for text in ["first", "second"] {
        assert_eq!(
            placed.iter().filter(|it| *it == text).count(),
            1,
            "{placed:?}"
        );
    }
    assert!(
        placed.iter().position(|it| it == "first") < placed.iter().position(|it| it == "second")
    );
    let log = records(&journal, agent.session_id()).await;
    assert_eq!(
        log.iter()
            .filter(|it| matches!(it, Record::Placed { .. }))
            .count(),
        2
    );
    let numbers = log.iter().filter_map(|it| match it {
        Record::Queued { item, .. } => Some(*item),
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
}

/// A log whose run was cancelled while three messages waited, one of which was then withdrawn.
async fn left(journal: &MemoryJournal) -> LogId {
    let gate = Gate::default();
    let agent = Agent::new(ScriptedModel::new([says("One two")
        .delta_chars(4)
        .wait_at(1, &gate)]));
    let agent = agent.journal(journal.clone());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    running.queue().steer("s1").expect("there is room");
    let gone = running.queue().steer("gone").expect("there is room");
    running.queue().follow_up("f1").expect("there is room");
    running.queue().steer("s2").expect("there is room");
    until(&mut running, |event| {
        matches!(event, EventKind::MessageQueued { item: 4, .. })
    })
    .await;
    assert!(gone.withdraw());
    until(&mut running, |event| {
        matches!(event, EventKind::MessageWithdrawn { item: 2 })
    })
    .await;
    running.cancel();
    running.finish().await.expect("a cancel is no error");
    agent.session_id().clone()
}

#[tokio::test]
async fn items_are_queued_again_when_a_log_is_opened() {
    let journal = MemoryJournal::default();
    let log = left(&journal).await;
    let model = Arc::new(ScriptedModel::new([
        says("a"),
        says("b"),
        says("c"),
        says("d"),
    ]));
    let agent = Agent::new(Arc::clone(&model))
        .journal(journal.clone())
        .session(log.clone());
    agent.queue().steer("s3").expect("there is room");
    agent.run("Again.").await.expect("the run finishes");
    let shown = requests(&model);
    assert_eq!(shown[0], ["Go.", "=One ", "Again.", "s1"]);
    assert_eq!(
        shown[3],
        [
            "Go.", "=One ", "Again.", "s1", "=a", "s2", "=b", "s3", "=c", "f1"
        ]
    );
    assert!(agent.queue().is_empty());
}

#[tokio::test]
async fn items_are_placed_once_when_a_log_is_opened_twice() {
    let journal = MemoryJournal::default();
    let log = left(&journal).await;
    for _ in 0..2 {
        let model = ScriptedModel::new((0..4).map(|_| says("ok")));
        let agent = Agent::new(model)
            .journal(journal.clone())
            .session(log.clone());
        agent.run("Again.").await.expect("the run finishes");
        assert!(agent.queue().is_empty());
    }
    let placed = records(&journal, &log)
        .await
        .into_iter()
        .filter_map(|record| match record {
            Record::Placed { items, .. } => Some(items),
            _ => None,
        });
    assert_eq!(placed.collect::<Vec<_>>(), [[1], [4], [3]]);
}

#[tokio::test]
async fn queues_stay_when_the_run_is_cancelled_while_the_turn_is_settled() {
    let (model, agent) = agent([calling(1), says("never")]);
    let handle = agent.clone();
    let agent = agent.tool(work(|| {})).on(stop_after_turn(move |_| {
        handle.queue().steer("steer").expect("there is room");
        assert!(handle.abort());
        false
    }));
    let result = agent.run("Go.").await.expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        (model.requests().len(), waiting(&agent)),
        (1, vec!["steer".to_owned()])
    );
}
