//! Drives that are left in the middle of a write, or burst there: the log is taken over, and the run is closed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adjutant_agent::{
    Agent, DriveContext, EventKind, Flush, Head, Journal, JournalError, Log, LogId, MemoryJournal,
    NextDrive, Outcome, Owner, Record, RecordStream, Seq, Stamped, middleware_fn,
};
use adjutant_llm::{CallResult, Script};
use serde_json::json;
use tokio::sync::Notify;

use super::{BoxDrive, all, failure, names, only_end, records, stage};

/// A journal that bursts or hangs when the first call is to be launched; the write may have happened or not.
#[derive(Debug, Clone)]
struct Trap {
    inner: MemoryJournal,
    armed: Arc<AtomicBool>,
    writes: bool,
    hangs: Option<Arc<Notify>>,
}

#[derive(Debug)]
struct TrapLog {
    inner: Box<dyn Log>,
    trap: Trap,
}

#[async_trait::async_trait]
impl Journal for Trap {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(TrapLog {
            inner: self.inner.own(log, owner).await?,
            trap: self.clone(),
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }
}

#[async_trait::async_trait]
impl Log for TrapLog {
    fn head(&self) -> Head {
        self.inner.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        let launches = batch
            .iter()
            .any(|stamped| matches!(stamped.record, Record::Launched { .. }));
        if !(launches && self.trap.armed.swap(false, Ordering::AcqRel)) {
            return self.inner.append(batch, flush).await;
        }
        if self.trap.writes {
            self.inner.append(batch, flush).await?;
        }
        match &self.trap.hangs {
            Some(reached) => {
                reached.notify_one();
                std::future::pending().await
            }
            None => std::panic::resume_unwind(Box::new("it burst")),
        }
    }
}

async fn check(writes: bool, hangs: bool) {
    let reached = hangs.then(|| Arc::new(Notify::new()));
    let trap = Trap {
        inner: MemoryJournal::default(),
        armed: Arc::new(AtomicBool::new(true)),
        writes,
        hangs: reached.clone(),
    };
    let (_, agent) = stage::agent([
        Script::new().call("echo", json!({})),
        Script::new().text("Next."),
    ]);
    let agent = agent.tool(stage::tool("echo", |_, _| async {
        Ok(CallResult::ok("said"))
    }));
    let free: Agent = agent.journal(trap.clone()).session(LogId("log".into()));
    let leaves = middleware_fn(
        "leaves",
        move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            let reached = reached.clone();
            Box::pin(async move {
                let Some(reached) = reached else {
                    return next.run(cx).await;
                };
                tokio::select! {
                    biased;
                    result = next.run(cx) => result,
                    () = reached.notified() => Err(failure("left")),
                }
            })
        },
    );
    let agent = if hangs {
        free.clone().middleware(leaves)
    } else {
        free.clone()
    };
    let events = all(&agent, "Go.").await;
    let message = if hangs {
        "left"
    } else {
        "what surrounds the run panicked: it burst"
    };
    assert_eq!(
        only_end(&events).outcome,
        Outcome::Failed {
            failure: failure(message)
        }
    );
    let finished = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ToolFinished { .. }))
        .count();
    // A write that did not happen takes with it what had been said and was not yet written.
    assert_eq!(finished, usize::from(writes), "{events:?}");
    let recorded = names(&records(&trap.inner).await);
    assert_eq!(
        recorded[recorded.len() - 3..],
        ["settled", "ended", "overruled"]
    );
    let count = |name: &str| recorded.iter().filter(|known| *known == name).count();
    assert_eq!(
        (count("launched"), count("returned")),
        (usize::from(writes), usize::from(writes))
    );
    assert_eq!(
        free.run("Again.")
            .await
            .expect("the session is usable")
            .text(),
        "Next."
    );
}

#[tokio::test]
async fn log_is_taken_over_when_a_write_bursts_or_is_left() {
    for (writes, hangs) in [(false, false), (true, false), (false, true), (true, true)] {
        check(writes, hangs).await;
    }
}
