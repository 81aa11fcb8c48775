//! Seen is saved: what a reader acknowledged is in the log, whatever happens to the program after that.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

#[path = "heard/ends.rs"]
mod ends;
#[path = "heard/property.rs"]
mod property;
#[path = "heard/script.rs"]
mod script;

use adjutant_agent::{
    Agent, Durability, ErrorKind, Event, EventKind, Journal, JournalError, JournalErrorKind, LogId,
    MemoryJournal, Owner, Record, RecordStream, Run, Running, Seq, Stamped,
};
use adjutant_llm::{Entry, FinishReason, Gate, Script};
use futures_util::StreamExt;
use serde_json::json;
use std::sync::Arc;

/// The records of the log.
async fn records(journal: &MemoryJournal, log: &LogId) -> Vec<Arc<Stamped>> {
    journal
        .read(log, Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

fn fold(records: &[Arc<Stamped>]) -> Run {
    let mut run = Run::default();
    for stamped in records.iter().filter(|it| it.thread.as_str() == "main") {
        run.apply(stamped).expect("the log folds");
    }
    run
}

/// What the replies of a conversation say, the one that is on its way included.
fn said(run: &Run) -> String {
    let replies = run
        .history()
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(turn.reply().text()),
            _ => None,
        });
    let heard = run
        .partial_reply()
        .iter()
        .filter(|part| matches!(part.kind, adjutant_llm::BlockKind::Text));
    replies.chain(heard.map(|part| part.text.clone())).collect()
}

/// Reads on until this many characters of text were read.
async fn read(running: &mut Running, chars: usize) -> String {
    let mut text = String::new();
    while text.len() < chars {
        let event: Event = running.next().await.expect("the run goes on");
        if let EventKind::TextDelta { text: more, .. } = event.kind {
            text.push_str(&more);
        }
    }
    text
}

fn kept(script: Script) -> (MemoryJournal, Agent) {
    let (journal, (_, agent)) = (MemoryJournal::default(), stage::agent([script]));
    (journal.clone(), agent.journal(journal))
}

#[tokio::test]
async fn text_is_in_the_log_when_it_was_acknowledged_on_its_way() {
    let gate = Gate::default();
    let (journal, agent) = kept(
        Script::new()
            .text("One two three four.")
            .delta_chars(1)
            .wait_at(7, &gate),
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let text = read(&mut running, 7).await;
    assert_eq!(
        said(&fold(&records(&journal, agent.session_id()).await)),
        "",
        "nobody has acknowledged anything"
    );
    running.acknowledge().await.expect("memory does not fail");
    let run = fold(&records(&journal, agent.session_id()).await);
    assert_eq!(
        (said(&run), text.as_str()),
        ("One two".to_owned(), "One two")
    );
    running.acknowledge().await.expect("memory does not fail");
    let count = records(&journal, agent.session_id()).await.len();
    running.acknowledge().await.expect("memory does not fail");
    assert_eq!(
        records(&journal, agent.session_id()).await.len(),
        count,
        "there is nothing new"
    );
    gate.open();
    assert_eq!(
        running.text().await.expect("it answers"),
        "One two three four."
    );
    assert_eq!(
        said(&fold(&records(&journal, agent.session_id()).await)),
        "One two three four."
    );
}

#[tokio::test]
async fn acknowledgement_returns_at_once_when_the_run_is_over() {
    let (_, agent) = kept(Script::new().text("Yes."));
    agent.log().acknowledge().await.expect("nothing was shown");
    let mut running = agent.run("Go.").stream().expect("the session is free");
    while running.next().await.is_some() {}
    running.acknowledge().await.expect("everything is saved");
    agent
        .log()
        .acknowledge()
        .await
        .expect("everything is saved");
}

#[tokio::test]
async fn run_is_acknowledged_when_someone_else_drives_it() {
    let gate = Gate::default();
    let (journal, agent) = kept(
        Script::new()
            .text("Half an answer.")
            .delta_chars(1)
            .wait_at(4, &gate),
    );
    let driven = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    agent
        .log()
        .acknowledge()
        .await
        .expect("memory does not fail");
    assert_eq!(
        said(&fold(&records(&journal, agent.session_id()).await)),
        "Half"
    );
    gate.open();
    driven.await.expect("no panic").expect("the run finishes");
}

#[tokio::test]
async fn records_are_saved_when_they_would_wait_for_the_end() {
    let gate = Gate::default();
    let (journal, agent) = kept(
        Script::new()
            .text("Half an answer.")
            .delta_chars(1)
            .wait_at(4, &gate),
    );
    let agent = agent.durability(Durability::OnExit);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    read(&mut running, 4).await;
    assert_eq!(records(&journal, agent.session_id()).await.len(), 0);
    running.acknowledge().await.expect("memory does not fail");
    assert_eq!(
        said(&fold(&records(&journal, agent.session_id()).await)),
        "Half"
    );
    gate.open();
    running.finish().await.expect("the run finishes");
}

#[tokio::test]
async fn bytes_follow_what_is_new_when_every_delta_is_acknowledged() {
    let text = "word ".repeat(400);
    let (journal, agent) = kept(Script::new().text(text.as_str()).delta_chars(5));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    while running.next().await.is_some() {
        running.acknowledge().await.expect("memory does not fail");
    }
    let log = records(&journal, agent.session_id()).await;
    let heard: Vec<usize> = log
        .iter()
        .filter_map(|it| match &it.record {
            Record::Heard { parts, .. } => Some(parts.iter().map(|part| part.text.len()).sum()),
            _ => None,
        })
        .collect();
    assert!(
        heard.len() > 3 && heard.iter().sum::<usize>() <= text.len(),
        "{heard:?}"
    );
}

#[tokio::test]
async fn cancelled_reply_holds_what_was_acknowledged() {
    let gate = Gate::default();
    let (journal, agent) = kept(
        Script::new()
            .text("Half an answer.")
            .delta_chars(1)
            .wait_at(4, &gate),
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    read(&mut running, 4).await;
    running.acknowledge().await.expect("memory does not fail");
    running.cancel();
    running.finish().await.expect("a cancel is no error");
    let run = fold(&records(&journal, agent.session_id()).await);
    assert_eq!(
        (said(&run), run.reply().map(|it| it.stop)),
        ("Half".to_owned(), Some(FinishReason::Interrupted))
    );
}

/// A journal that cannot be written any more once it is told so.
#[derive(Debug)]
struct Failing {
    inner: MemoryJournal,
    fails: Arc<std::sync::atomic::AtomicBool>,
}

#[derive(Debug)]
struct FailingLog(
    Box<dyn adjutant_agent::Log>,
    Arc<std::sync::atomic::AtomicBool>,
);

#[async_trait::async_trait]
impl Journal for Failing {
    async fn own(
        &self,
        log: &LogId,
        owner: &Owner,
    ) -> Result<Box<dyn adjutant_agent::Log>, JournalError> {
        Ok(Box::new(FailingLog(
            self.inner.own(log, owner).await?,
            Arc::clone(&self.fails),
        )))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }
}

#[async_trait::async_trait]
impl adjutant_agent::Log for FailingLog {
    fn head(&self) -> adjutant_agent::Head {
        self.0.head()
    }

    async fn append(
        &mut self,
        batch: &[Arc<Stamped>],
        flush: adjutant_agent::Flush,
    ) -> Result<adjutant_agent::Head, JournalError> {
        if self.1.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(JournalError::new(JournalErrorKind::Io, "the disk is full"));
        }
        // A disk takes its time, and who reads events may read on meanwhile.
        tokio::task::yield_now().await;
        self.0.append(batch, flush).await
    }
}

#[tokio::test]
async fn acknowledgement_fails_when_the_log_cannot_be_written() {
    let (gate, fails) = (Gate::default(), Arc::default());
    let (_, agent) = stage::agent([Script::new()
        .text("Half an answer.")
        .delta_chars(1)
        .wait_at(4, &gate)]);
    let agent = agent.journal(Failing {
        inner: MemoryJournal::default(),
        fails: Arc::clone(&fails),
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    read(&mut running, 4).await;
    fails.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(
        running
            .acknowledge()
            .await
            .expect_err("the disk is full")
            .kind(),
        ErrorKind::Journal
    );
    while running.next().await.is_some() {}
    assert_eq!(
        running
            .acknowledge()
            .await
            .expect_err("the disk is full")
            .kind(),
        ErrorKind::Journal
    );
    assert_eq!(
        agent
            .log()
            .acknowledge()
            .await
            .expect_err("the disk is full")
            .kind(),
        ErrorKind::Journal
    );
}

#[tokio::test]
async fn event_is_given_when_the_log_holds_its_record() {
    for durability in [Durability::Sync, Durability::Async, Durability::OnExit] {
        let mut lens = Vec::new();
        for is_saved in [false, true] {
            let journal = MemoryJournal::default();
            let scripts = [
                Script::new().text("Looking.").call("none", json!({})),
                Script::new().text("Done.").delta_chars(1),
            ];
            let (_, agent) = stage::agent(scripts);
            let agent = agent
                .journal(Failing {
                    inner: journal.clone(),
                    fails: Arc::default(),
                })
                .durability(durability);
            let running = agent.run("Go.").stream().expect("the session is free");
            let mut running = if is_saved {
                running.only_saved()
            } else {
                running
            };
            let (mut ahead, mut given) = (0, 0);
            while let Some(event) = running.next().await {
                let held = records(&journal, agent.session_id())
                    .await
                    .last()
                    .map_or(Seq(0), |it| it.seq);
                (ahead, given) = (ahead + usize::from(event.seq > held), given + 1);
            }
            running.finish().await.expect("the run finishes");
            assert_eq!(ahead > 0, !is_saved, "{durability:?}: {ahead} of {given}");
            lens.push((records(&journal, agent.session_id()).await.len(), given));
        }
        // Nothing is recorded, and nothing told, for the sake of it.
        assert_eq!(lens[0], lens[1], "{durability:?}");
    }
}

#[tokio::test]
async fn event_is_not_given_when_its_record_cannot_be_saved() {
    let fails = Arc::default();
    let (_, agent) = stage::agent([Script::new().text("Done.")]);
    let agent = agent.journal(Failing {
        inner: MemoryJournal::default(),
        fails: Arc::clone(&fails),
    });
    let mut running = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .only_saved();
    fails.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(running.next().await, None);
    assert_eq!(
        running
            .result()
            .and_then(Result::err)
            .map(adjutant_agent::Error::kind),
        Some(ErrorKind::Journal)
    );
}
