//! Posts over crashes: heeded once, whatever the log holds when the program ends.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use adjutant_agent::{
    Agent, CancelBy, EventKind, Flush, Head, Journal, JournalError, Log, LogId, MemoryJournal,
    Outcome, Owner, Post, PostNo, PostStream, Posted, Record, RecordStream, Run, Seq, Stamped,
};
use adjutant_llm::{FixedWorld, Model, ModelInfo, Script, ScriptedModel, model_fn};
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};

use super::{post, said, steer};

/// A journal whose appends take a while before and after they happen, and that tells where they end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slow(pub(crate) MemoryJournal, Arc<Mutex<Vec<u64>>>);

#[derive(Debug)]
struct SlowLog(Box<dyn Log>, Arc<Mutex<Vec<u64>>>);

#[async_trait::async_trait]
impl Journal for Slow {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(SlowLog(
            self.0.own(log, owner).await?,
            Arc::clone(&self.1),
        )))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        self.0.post(log, post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        self.0.posts(log, after)
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        tokio::task::yield_now().await;
        self.0.read_posts(log, after).await
    }
}

#[async_trait::async_trait]
impl Log for SlowLog {
    fn head(&self) -> Head {
        self.0.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        tokio::task::yield_now().await;
        let head = self.0.append(batch, flush).await?;
        self.1
            .lock()
            .expect("nobody panics inside")
            .push(head.seq.0);
        tokio::task::yield_now().await;
        Ok(head)
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        tokio::task::yield_now().await;
        self.0.mark_consumed(upto).await
    }
}

pub(crate) fn id() -> LogId {
    LogId::from("log")
}

/// An agent that answers whatever it is asked, with pauses in which others are heard.
fn agent(journal: &Slow) -> Agent {
    let model = model_fn(ModelInfo::new("test/model"), |request| {
        let stream =
            ScriptedModel::new([Script::new().text("Yes and no.").delta_chars(3)]).stream(request);
        Box::pin(stream.then(|chunk| async {
            tokio::task::yield_now().await;
            chunk
        }))
    });
    Agent::new(model)
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone())
        .session(id())
}

impl Slow {
    /// The numbers of records after its appends.
    pub(crate) fn ends(&self) -> Vec<usize> {
        let ends = self.1.lock().expect("nobody panics inside");
        ends.iter()
            .map(|end| usize::try_from(*end).expect("a short log"))
            .collect()
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

pub(crate) async fn log(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    journal
        .read(&id(), Seq(0))
        .filter_map(|it| async { it.ok() })
        .collect()
        .await
}

async fn fold(journal: &MemoryJournal) -> Run {
    let mut run = Run::default();
    log(journal)
        .await
        .iter()
        .for_each(|stamped| run.apply(stamped).expect("the log folds"));
    run
}

/// Goes on with what is open, and then says something more.
async fn recover(agent: &Agent, journal: &Slow) {
    if fold(&journal.0).await.is_open() {
        agent.resume(Vec::new()).await.expect("the run goes on");
    }
    agent.run("Again.").await.expect("the session can be used");
}

/// Posts one message before a run, and two while it goes on.
async fn play(agent: Agent, journal: Slow, made: Arc<AtomicUsize>) {
    drop(journal.own(&id(), &Owner::default()).await);
    let say = async |text| {
        post(&agent, steer(text)).await;
        made.fetch_add(1, Ordering::SeqCst);
    };
    say("a").await;
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut left = vec!["c", "b"];
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::TextDelta { .. })
            && let Some(text) = left.pop()
        {
            say(text).await;
        }
    }
}

#[track_caller]
fn check(agent: &Agent, made: usize, at: usize) {
    let said = said(agent);
    let times = ["a", "b", "c"].map(|text| said.iter().filter(|it| *it == text).count());
    let expect = [0, 1, 2].map(|nth| usize::from(nth < made));
    assert_eq!(times, expect, "cut at {at}: {said:?}");
}

#[test]
fn messages_are_heeded_once_when_the_program_was_left_at_any_poll() {
    for elsewhere in [false, true] {
        for polls in 0.. {
            let (runtime, journal, made) =
                (runtime(), Slow::default(), Arc::new(AtomicUsize::new(0)));
            let first = agent(&journal);
            let mut work = Box::pin(play(first.clone(), journal.clone(), Arc::clone(&made)));
            let mut left = polls;
            let finished = runtime.block_on(std::future::poll_fn(|cx| {
                if left == 0 {
                    return Poll::Ready(false);
                }
                left -= 1;
                work.as_mut().poll(cx).map(|()| true)
            }));
            drop(work);
            let next = if elsewhere {
                agent(&journal).take_over()
            } else {
                first
            };
            runtime.block_on(recover(&next, &journal));
            check(&next, made.load(Ordering::SeqCst), polls);
            if finished {
                assert!(polls > 30, "only {polls} places");
                break;
            }
        }
    }
}

/// A journal as a crash leaves it: the first records of a log, and all that was posted to it.
pub(crate) async fn copy(records: &[Arc<Stamped>], posts: &[Post]) -> Slow {
    let journal = Slow::default();
    let mut owned = journal
        .own(&id(), &Owner::default())
        .await
        .expect("it is free");
    owned
        .append(records, Flush::Now)
        .await
        .expect("memory does not fail");
    for post in posts {
        journal
            .post(&id(), post.clone())
            .await
            .expect("there is room");
    }
    journal
}

#[tokio::test]
async fn messages_are_heeded_once_when_the_log_ends_at_any_append() {
    let (journal, made) = (Slow::default(), Arc::new(AtomicUsize::new(0)));
    play(agent(&journal), journal.clone(), made).await;
    let (records, ends) = (log(&journal.0).await, journal.ends());
    assert!(ends.len() > 5, "{ends:?}");
    for end in std::iter::once(0).chain(ends) {
        let journal = copy(&records[..end], &["a", "b", "c"].map(steer)).await;
        let next = agent(&journal);
        recover(&next, &journal).await;
        check(&next, 3, end);
    }
}

#[tokio::test]
async fn wish_to_stop_is_heeded_once_when_the_log_ends_at_any_append() {
    let journal = Slow::default();
    let mut running = agent(&journal)
        .run("Go.")
        .stream()
        .expect("the session is free");
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::BlockStarted { .. }) {
            journal
                .post(&id(), Post::Cancel)
                .await
                .expect("there is room");
        }
    }
    let (records, ends) = (log(&journal.0).await, journal.ends());
    assert_eq!(
        fold(&journal.0).await.outcome(),
        Some(&Outcome::Cancelled { by: CancelBy::User })
    );
    for end in ends {
        let journal = copy(&records[..end], &[Post::Cancel]).await;
        let next = agent(&journal);
        let open = fold(&journal.0).await.is_open();
        if open {
            let result = next.resume(Vec::new()).await.expect("the run ends");
            assert_eq!(
                result.outcome,
                Outcome::Cancelled { by: CancelBy::User },
                "cut at {end}"
            );
        }
        let result = next.run("Again.").await.expect("the session can be used");
        assert!(
            result.is_finished(),
            "the next run was stopped too, cut at {end}"
        );
        let wishes = log(&journal.0)
            .await
            .iter()
            .filter(|it| matches!(it.record, Record::CancelAsked { .. }))
            .count();
        assert_eq!(wishes, 1, "cut at {end}");
    }
}
