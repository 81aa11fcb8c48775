//! Logs that fail at any append, and logs that somebody else takes over, while agents under agents work and wait.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use adjutant_agent::{
    Agent, ErrorKind, Event, EventKind, Flush, Head, Journal, JournalError, JournalErrorKind, Log,
    LogId, MemoryJournal, Outcome, Owner, Record, RecordStream, Seq, Stamped,
};
use adjutant_llm::{
    CallResult, Gate, Model, ModelInfo, Request, Script, ScriptedModel, ThreadId, model_fn,
};
use adjutant_tool::{CallContext, ErasedTool, Replay};
use async_trait::async_trait;

use super::{
    desk::{open, tool, word},
    stage::{LOG, WAYS, Waits, answered, boss, by_entry, check, log, pauses, through},
};

/// How an append fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing is written.
    Lost,
    /// All is written, but the answer does not come back.
    Written,
}

/// A journal whose append of this number fails.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    inner: MemoryJournal,
    left: Arc<AtomicUsize>,
    fault: Fault,
}

impl Failing {
    /// A journal that only takes its time.
    pub(crate) fn never(inner: MemoryJournal) -> Self {
        Self {
            inner,
            left: Arc::new(AtomicUsize::new(usize::MAX)),
            fault: Fault::Lost,
        }
    }
}

#[derive(Debug)]
struct FailingLog {
    inner: Box<dyn Log>,
    left: Arc<AtomicUsize>,
    fault: Fault,
}

#[async_trait]
impl Journal for Failing {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let inner = self.inner.own(log, owner).await?;
        Ok(Box::new(FailingLog {
            inner,
            left: Arc::clone(&self.left),
            fault: self.fault,
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }
}

#[async_trait]
impl Log for FailingLog {
    fn head(&self) -> Head {
        self.inner.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        tokio::task::yield_now().await;
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.fault == Fault::Written {
                self.inner.append(batch, flush).await?;
            }
            return Err(JournalError::new(JournalErrorKind::Io, "the disk is full"));
        }
        self.inner.append(batch, flush).await
    }
}

/// Two children, one of which asks, a step, and a message that is queued on the way.
fn busy(way: Waits, steer: &Arc<Mutex<Option<Agent>>>) -> impl ErasedTool + 'static {
    let steer = Arc::clone(steer);
    tool("work", Replay::Resumable, move |cx: CallContext| {
        let steer = Arc::clone(&steer);
        async move {
            let agent = steer.lock().expect("no panic").take();
            if let Some(agent) = agent {
                agent.queue().steer("steer").expect("there is room");
                agent.queue().follow_up("follow").expect("there is room");
            }
            cx.once("step", || async { Ok(1) }).await?;
            let (one, other) = (
                open(&cx, "kid", way.child()).await?,
                open(&cx, "other", Agent::new(by_entry(&[], "Other."))).await?,
            );
            let (one, other) = tokio::join!(one.run("Go."), other.run("Look."));
            Ok(CallResult::ok(format!("{} {}", one?.text(), other?.text())))
        }
    })
}

fn lasting(events: &[Event]) -> Vec<(Seq, String)> {
    let ends = |it: &&Event| {
        matches!(
            it.kind,
            EventKind::EntryAdded { .. }
                | EventKind::ToolFinished { .. }
                | EventKind::ChildOpened { .. }
        )
    };
    events
        .iter()
        .filter(ends)
        .map(|it| (it.seq, format!("{} {}", it.who.thread, word(it))))
        .collect()
}

/// Every message that was queued has one end at most; gives how often each was placed.
fn placed(log: &[Arc<Stamped>]) -> BTreeMap<String, usize> {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut placed: BTreeMap<String, usize> = BTreeMap::new();
    for stamped in log.iter().filter(|it| it.thread == ThreadId::from("main")) {
        match &stamped.record {
            Record::Queued { item, content, .. } => {
                let adjutant_llm::Entry::User(message) = content else {
                    unreachable!("only messages are queued")
                };
                names.insert(
                    *item,
                    message
                        .content
                        .iter()
                        .filter_map(|it| it.as_text())
                        .collect(),
                );
            }
            Record::Placed { items, .. } => {
                for item in items {
                    *placed.entry(names[item].clone()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    placed
}

/// Runs with one failing append, then goes on; says whether the fault was met.
async fn trial(way: Waits, fault: Fault, at: usize, resumes: bool) -> bool {
    let what = format!("{way:?} {fault:?} {at} {resumes}");
    let (journal, left) = (MemoryJournal::default(), Arc::new(AtomicUsize::new(at)));
    let failing = Failing {
        inner: journal.clone(),
        left: Arc::clone(&left),
        fault,
    };
    let steer = Arc::new(Mutex::new(None));
    let agent = boss(&MemoryJournal::default(), busy(way, &steer))
        .journal(failing)
        .session(LogId(LOG.into()));
    let agent = agent.responder(move |_, _| async move { Some(way.answer()) });
    *steer.lock().expect("no panic") = Some(agent.clone());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let listener = agent
        .log()
        .on_event(move |event| into.lock().expect("no panic").push(event));
    let result = agent.run("Go.").await;
    let met = match &result {
        Ok(result) => {
            assert!(result.is_finished(), "{what}: {:?}", result.outcome);
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Journal, "{what}");
            assert_eq!(error.to_string(), "the disk is full", "{what}");
            true
        }
    };
    if met {
        steer.lock().expect("no panic").take();
        let queued: Vec<_> = agent.queue().items();
        let next = match resumes {
            true => match agent.resume(Vec::new()).await {
                // Nothing of the run was in the log.
                Err(error) if error.kind() == ErrorKind::Answers => agent.run("Go.").await,
                other => other,
            },
            false => agent.run("Again.").await,
        };
        let next = next.unwrap_or_else(|error| unreachable!("{what}: {error:?}"));
        assert!(next.is_finished(), "{what}: {:?}", next.outcome);
        assert!(agent.queue().is_empty(), "{what}: {queued:?} still waits");
    }
    let runs = check(&journal).await;
    assert_eq!(
        runs[&ThreadId::from("main")].history(),
        &agent.log().transcript(),
        "{what}: state = fold"
    );
    let records = log(&journal).await;
    let placed = placed(&records);
    assert!(
        placed.values().all(|times| *times == 1),
        "{what}: {placed:?}"
    );
    let expect = usize::from(steer.lock().expect("no panic").is_none()) * 2;
    if !met {
        assert_eq!(placed.len(), expect, "{what}: {placed:?}");
    }
    drop(agent);
    steer.lock().expect("no panic").take();
    listener
        .await
        .unwrap_or_else(|error| unreachable!("{what}: {error}"));
    let heard = heard.lock().expect("no panic").clone();
    if fault == Fault::Written {
        // What is in the log is told at most once.
        let mut told = lasting(&heard);
        let many = told.len();
        told.sort();
        told.dedup();
        assert_eq!(told.len(), many, "{what}: told twice");
    }
    met
}

#[tokio::test]
async fn session_goes_on_when_any_append_fails() {
    for way in WAYS {
        for fault in [Fault::Lost, Fault::Written] {
            for resumes in [false, true] {
                let mut at = 1;
                while trial(way, fault, at, resumes).await {
                    at += 1;
                }
                assert!(at > 12, "only {at} places");
            }
        }
    }
}

fn held(gate: &Gate) -> impl Model + 'static {
    let gate = gate.clone();
    model_fn(ModelInfo::new("a/held"), move |request: Request| {
        ScriptedModel::new([Script::new().text("On and on.").wait_at(1, &gate)]).stream(request)
    })
}

#[tokio::test]
async fn run_fails_when_its_log_is_taken_over_while_a_child_works() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let inside = gate.clone();
    let agent = boss(&journal, through(move || Agent::new(held(&inside))));
    agent.queue().follow_up("Later.").expect("there is room");
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    gate.wait_until_reached().await;
    let other = boss(
        &journal,
        through(|| Agent::new(by_entry(&[], "Elsewhere."))),
    );
    let result = other
        .resume(Vec::new())
        .await
        .expect("it takes over and finishes");
    assert!(result.is_finished(), "{:?}", result.outcome);
    gate.open();
    let error = task
        .await
        .expect("no panic")
        .expect_err("it was taken over");
    assert_eq!(error.kind(), ErrorKind::Journal);
    check(&journal).await;
    assert_eq!(
        agent.run("Again.").await.expect("it takes over").text(),
        "Done."
    );
    let records = log(&journal).await;
    assert_eq!(placed(&records), BTreeMap::from([("Later.".to_owned(), 1)]));
    assert_eq!(
        check(&journal).await[&ThreadId::from("main")].history(),
        &agent.log().transcript()
    );
}

#[tokio::test]
async fn run_is_resumed_once_when_two_programs_try() {
    for way in WAYS {
        let journal = MemoryJournal::default();
        let make = || boss(&journal, through(move || way.child()));
        let paused = make().run("Go.").await.expect("it waits");
        let answers: Vec<_> = pauses(&paused)
            .iter()
            .map(|it| answered(&it.id, way.answer()))
            .collect();
        let (one, other) = (make(), make());
        let (first, second) =
            tokio::join!(one.resume(answers.clone()), other.resume(answers.clone()));
        let good = [&first, &second]
            .iter()
            .filter(|it| it.as_ref().is_ok_and(|it| it.is_finished()))
            .count();
        if good == 0 {
            // The one took the log over from the other in its middle; what was answered is not asked again.
            make().resume(Vec::new()).await.expect("nothing is lost");
        }
        assert!(good < 2, "{way:?}: {first:?} {second:?}");
        check(&journal).await;
        let same = make();
        same.run("Go.").await.expect("it waits");
        let answers: Vec<_> = same
            .log()
            .pauses()
            .iter()
            .map(|it| answered(&it.id, way.answer()))
            .collect();
        let (first, second) = tokio::join!(same.resume(answers.clone()), same.resume(answers));
        assert!(first.expect("it is the first").is_finished());
        assert!(matches!(
            second.expect_err("it is late").kind(),
            ErrorKind::Busy | ErrorKind::Answers
        ));
        let runs = check(&journal).await;
        assert!(matches!(
            runs[&ThreadId::from("main")].outcome(),
            Some(Outcome::Finished { .. })
        ));
    }
}

/// A run that waits for a child goes on with one failing append, then once more.
async fn resume_trial(way: Waits, fault: Fault, at: usize, cancels: bool) -> bool {
    let what = format!("{way:?} {fault:?} {at} {cancels}");
    let (journal, left) = (
        MemoryJournal::default(),
        Arc::new(AtomicUsize::new(usize::MAX)),
    );
    let failing = Failing {
        inner: journal.clone(),
        left: Arc::clone(&left),
        fault,
    };
    let agent = boss(&MemoryJournal::default(), busy(way, &Arc::default()))
        .journal(failing)
        .session(LogId(LOG.into()))
        .take_over();
    let paused = agent.run("Go.").await.expect("it waits");
    agent.queue().follow_up("follow").expect("there is room");
    let answers: Vec<_> = pauses(&paused)
        .iter()
        .map(|it| answered(&it.id, way.answer()))
        .collect();
    left.store(at, Ordering::SeqCst);
    let Err(error) = agent.resume(answers.clone()).await else {
        return false;
    };
    assert_eq!(error.kind(), ErrorKind::Journal, "{what}");
    if cancels {
        agent.log().open().await.expect("the log is read");
        let ended = agent.cancel_paused().await;
        assert!(
            ended.as_ref().is_ok_and(|it| !it.is_finished())
                || error_is(&ended, ErrorKind::Answers),
            "{what}: {ended:?}"
        );
    } else {
        let next = match agent.resume(answers).await {
            // The answers are in the log, or the run has ended there.
            Err(error) if error.kind() == ErrorKind::Answers => agent.resume(Vec::new()).await,
            other => other,
        };
        assert!(
            next.as_ref().is_ok_and(|it| it.is_finished()) || error_is(&next, ErrorKind::Answers),
            "{what}: {next:?}"
        );
    }
    assert_eq!(
        agent
            .run("Again.")
            .await
            .unwrap_or_else(|error| unreachable!("{what}: {error:?}"))
            .text(),
        "Done."
    );
    let runs = check(&journal).await;
    assert_eq!(
        runs[&ThreadId::from("main")].history(),
        &agent.log().transcript(),
        "{what}: state = fold"
    );
    let records = log(&journal).await;
    assert_eq!(
        placed(&records),
        BTreeMap::from([("follow".to_owned(), 1)]),
        "{what}"
    );
    let count = |word| super::stage::count(&records, word);
    assert_eq!(
        (count("child_opened"), count("child_ended")),
        (2, 2),
        "{what}"
    );
    true
}

fn error_is<T>(result: &Result<T, adjutant_agent::Error>, kind: ErrorKind) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == kind)
}

#[tokio::test]
async fn waiting_run_goes_on_when_any_append_of_its_resumption_fails() {
    for way in WAYS {
        for fault in [Fault::Lost, Fault::Written] {
            for cancels in [false, true] {
                let mut at = 1;
                while resume_trial(way, fault, at, cancels).await {
                    at += 1;
                }
                assert!(at > 5, "only {at} places");
            }
        }
    }
}
