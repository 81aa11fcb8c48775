//! The world of a tree: a clock that goes with the runtime's and on through all programs, and what is seen of the models.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use adjutant_llm::{ChunkStream, Model, ModelInfo, Request, ScriptedModel, Usage, World, model_fn};
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Duration, Instant, sleep};

use super::stage::Speaker;

/// The time of all programs of a tree; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    times: Arc<Times>,
}

#[derive(Debug, Default)]
struct Times {
    passed_ms: AtomicU64,
    since: Mutex<Option<Instant>>,
    ids: AtomicU64,
}

/// What the models of a tree saw.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    now: BTreeMap<Arc<str>, u32>,
    /// How many of an entry spoke at a time, at most.
    pub(crate) most: BTreeMap<Arc<str>, u32>,
    /// How many tokens were used, those of lost programs too.
    pub(crate) tokens: u64,
}

/// One that speaks, until it is dropped.
struct Speaks {
    busy: Arc<Busy>,
    name: Arc<str>,
}

impl Clock {
    /// A program begins: its runtime moves the clock.
    pub(crate) fn start(&self) {
        *self.times.since.lock().expect("nobody panics inside") = Some(Instant::now());
    }

    /// The program ends, within its runtime.
    pub(crate) fn stop(&self) {
        let since = self
            .times
            .since
            .lock()
            .expect("nobody panics inside")
            .take();
        self.pass(since.map_or(0, |since| since.elapsed().as_millis() as u64));
    }

    /// Nobody does anything for so long.
    pub(crate) fn pass(&self, ms: u64) {
        self.times.passed_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl World for Clock {
    fn now_ms(&self) -> u64 {
        let since = *self.times.since.lock().expect("nobody panics inside");
        let running = since.map_or(0, |since| since.elapsed().as_millis() as u64);
        1_000 + self.times.passed_ms.load(Ordering::SeqCst) + running
    }

    fn id(&self) -> u128 {
        u128::from(self.times.ids.fetch_add(1, Ordering::SeqCst)) + 1
    }

    fn unit(&self) -> f64 {
        0.5
    }
}

impl Busy {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panics inside")
    }

    /// The programs are dead, and all who spoke in them.
    pub(crate) fn forget(&self) {
        self.seen().now.clear();
    }

    fn speaks(self: &Arc<Self>, name: &Arc<str>) -> Speaks {
        let mut seen = self.seen();
        let now = seen.now.entry(Arc::clone(name)).or_default();
        *now += 1;
        let now = *now;
        let most = seen.most.entry(Arc::clone(name)).or_default();
        *most = now.max(*most);
        drop(seen);
        Speaks {
            busy: Arc::clone(self),
            name: Arc::clone(name),
        }
    }
}

impl Drop for Speaks {
    fn drop(&mut self) {
        let mut seen = self.busy.seen();
        if let Some(now) = seen.now.get_mut(&self.name) {
            *now = now.saturating_sub(1);
        }
    }
}

/// What a request uses.
pub(crate) fn used() -> Usage {
    Usage {
        input_uncached: 50,
        output: 10,
        ..Usage::default()
    }
}

/// A model whose replies depend on how many turns there were, and on nothing else.
pub(crate) fn model(speaker: &Arc<Speaker>, busy: &Arc<Busy>) -> impl Model + 'static {
    let (speaker, busy) = (Arc::clone(speaker), Arc::clone(busy));
    model_fn(
        ModelInfo::new("scripted/model"),
        move |request: Request| -> ChunkStream {
            let (wait_ms, script) = speaker.says(&request);
            let (speaks, busy) = (busy.speaks(&speaker.name), Arc::clone(&busy));
            let said = async move {
                if wait_ms > 0 {
                    sleep(Duration::from_millis(wait_ms)).await;
                }
                ScriptedModel::new([script]).stream(request)
            };
            let said = said.flatten_stream().inspect(move |chunk| {
                let _speaks = &speaks;
                if let Ok(adjutant_llm::Chunk::Done(reply)) = chunk {
                    busy.seen().tokens += reply.usage.total();
                }
            });
            Box::pin(said)
        },
    )
}
