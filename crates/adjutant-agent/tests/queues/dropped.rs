//! A run that is dropped at any place, in the middle of an append too: every message still has exactly one end.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use adjutant_agent::{
    Agent, Flush, Head, HookContext, Journal, JournalError, Log, LogId, MemoryJournal, Owner,
    RecordStream, Seq, Stamped, Verdict, points::MessagePlaced,
};
use adjutant_llm::ScriptedModel;
use async_trait::async_trait;

use super::seen::{says, waiting, words};

/// A journal whose appends take a while before and after they happen.
#[derive(Debug, Clone, Default)]
struct Slow(MemoryJournal);

#[derive(Debug)]
struct SlowLog(Box<dyn Log>);

#[async_trait]
impl Journal for Slow {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(SlowLog(self.0.own(log, owner).await?)))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }
}

#[async_trait]
impl Log for SlowLog {
    fn head(&self) -> Head {
        self.0.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        pause().await;
        let head = self.0.append(batch, flush).await;
        pause().await;
        head
    }
}

/// Lets whoever polls look away once.
async fn pause() {
    let mut paused = false;
    let look_away = |cx: &mut Context<'_>| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut paused, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    };
    std::future::poll_fn(look_away).await;
}

/// Polls a run so many times and drops it, outside a runtime; says whether it ended before.
fn cut(agent: &Agent, polls: usize) -> bool {
    let mut running = pin!(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish()
    );
    let mut cx = Context::from_waker(Waker::noop());
    (0..polls).any(|_| running.as_mut().poll(&mut cx).is_ready())
}

fn to_the_end(agent: &Agent) {
    assert!(cut(agent, 10_000), "the run does not end");
}

fn trial(polls: usize, hooked: bool, withdrawn: bool) -> bool {
    let model = ScriptedModel::new((0..40).map(|_| says("ok")));
    let mut agent = Agent::new(model).journal(Slow::default());
    if hooked {
        agent = agent.on(|_: HookContext, point: MessagePlaced| async {
            pause().await;
            Verdict::Pass(point)
        });
    }
    let queued = ["s1", "s2", "s3"].map(|text| agent.queue().steer(text).expect("there is room"));
    for text in ["f1", "f2"] {
        agent.queue().follow_up(text).expect("there is room");
    }
    let ended = cut(&agent, polls);
    let took_back = withdrawn && queued[2].withdraw();
    agent.queue().steer("late").expect("there is room");
    to_the_end(&agent);
    let said = words(&agent.log().transcript());
    assert_eq!(waiting(&agent), [""; 0], "after {polls} polls: {said:?}");
    let placed = |lane: char| {
        said.iter()
            .filter(|text| text.starts_with(lane))
            .map(String::as_str)
            .collect::<Vec<_>>()
    };
    let steering = if took_back {
        vec!["s1", "s2"]
    } else {
        vec!["s1", "s2", "s3"]
    };
    assert_eq!(
        (placed('s'), placed('f'), placed('l')),
        (steering, vec!["f1", "f2"], vec!["late"]),
        "{polls} polls"
    );
    assert!(!queued.iter().any(adjutant_agent::Queued::is_queued));
    ended
}

#[test]
fn items_have_one_end_when_the_run_is_dropped_anywhere() {
    for hooked in [false, true] {
        for withdrawn in [false, true] {
            let cuts = (0..)
                .take_while(|polls| !trial(*polls, hooked, withdrawn))
                .count();
            assert!(cuts > 10, "only {cuts} places");
        }
    }
}
