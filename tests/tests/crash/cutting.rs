//! Fuel that every step of a program burns, and the end of the program where it is used up.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use adjutant::agent::{
    Flush, Folded, Head, Journal, JournalError, Log, LogId, Owner, Post, PostNo, PostStream,
    RecordStream, Seq, Stamped,
};
use async_trait::async_trait;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
};

/// How far a program gets: appends, steps (what models and tools do too), or polls.
#[derive(Clone)]
pub(crate) struct Fuel {
    kind: Kind,
    from: usize,
    left: Arc<AtomicUsize>,
    empty: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Endless,
    Appends,
    Steps,
    Polls,
}

impl fmt::Debug for Fuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.from)
    }
}

impl Fuel {
    fn new(kind: Kind, from: usize) -> Self {
        Self {
            kind,
            from,
            left: Arc::new(AtomicUsize::new(from)),
            empty: Arc::default(),
        }
    }

    pub(crate) fn endless() -> Self {
        Self::new(Kind::Endless, 0)
    }

    /// Enough for so many places before and after appends.
    pub(crate) fn appends(from: usize) -> Self {
        Self::new(Kind::Appends, from)
    }

    /// The same, and for what models and tools do.
    pub(crate) fn steps(from: usize) -> Self {
        Self::new(Kind::Steps, from)
    }

    /// Enough for so many polls.
    pub(crate) fn polls(from: usize) -> Self {
        Self::new(Kind::Polls, from)
    }

    /// Something is done; who has no fuel left never comes back.
    pub(crate) async fn step(&self) {
        if self.kind == Kind::Steps {
            self.burn().await;
        }
        tokio::task::yield_now().await;
    }

    async fn append(&self) {
        if matches!(self.kind, Kind::Appends | Kind::Steps) {
            self.burn().await;
        }
        tokio::task::yield_now().await;
    }

    async fn burn(&self) {
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        if left.is_err() {
            self.empty.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A program that ends where its fuel does, and nothing of it goes on.
pub(crate) fn cut<T>(fuel: &Fuel, work: impl Future<Output = T>) -> Option<T> {
    let runtime = runtime();
    runtime.block_on(async {
        let mut work = std::pin::pin!(work);
        let counted = std::future::poll_fn(|cx| {
            let polls = fuel.kind == Kind::Polls;
            if polls
                && fuel
                    .left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
                    .is_err()
            {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        });
        tokio::select! {
            biased;
            () = fuel.empty.notified() => None,
            done = counted => done,
        }
    })
}

/// A journal whose appends burn fuel before and after they happen.
#[derive(Debug, Clone)]
pub(crate) struct Cutting {
    inner: Arc<dyn Journal>,
    fuel: Fuel,
}

#[derive(Debug)]
struct CuttingLog {
    inner: Box<dyn Log>,
    fuel: Fuel,
}

impl Cutting {
    pub(crate) fn new(inner: &Arc<dyn Journal>, fuel: &Fuel) -> Self {
        Self {
            inner: Arc::clone(inner),
            fuel: fuel.clone(),
        }
    }
}

#[async_trait]
impl Journal for Cutting {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let inner = self.inner.own(log, owner).await?;
        Ok(Box::new(CuttingLog {
            inner,
            fuel: self.fuel.clone(),
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        self.inner.post(log, post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        self.inner.posts(log, after)
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        self.inner.load_fold(log).await
    }
}

#[async_trait]
impl Log for CuttingLog {
    fn head(&self) -> Head {
        self.inner.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        self.fuel.append().await;
        let head = self.inner.append(batch, flush).await;
        self.fuel.append().await;
        head
    }

    fn keeps(&self) -> Option<u64> {
        self.inner.keeps()
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        self.inner.keep(folded).await
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        self.inner.mark_consumed(upto).await
    }
}
