//! Key-value stores that fail or hang in the middle: nothing is stuck, and nothing is lost.

use std::{
    future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use adjutant_agent::{
    KvStore,
    kv::{
        Change, ChangeStream, Hit, Item, KvStoreError, KvStoreErrorKind, MemoryKvStore, Scan,
        Version,
    },
};
use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    ErrorKind,
    board::{Board, Finish, NewTask},
};
use async_trait::async_trait;
use futures_util::FutureExt;

use super::stage::{LEASE, START_MS, next, tasks};

/// A key-value store that fails to scan keys with a prefix, or to write, or never ends a write, for as long as it is
/// told to.
#[derive(Debug, Clone, Default)]
struct Balky {
    kv: MemoryKvStore,
    unscanned: Arc<Mutex<Option<&'static str>>>,
    fails: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

impl Balky {
    fn board(&self) -> Board {
        Board::new(Arc::new(self.clone())).world(FixedWorld::at_ms(START_MS))
    }

    fn unscanned(&self, prefix: Option<&'static str>) {
        *self.unscanned.lock().expect("no panic") = prefix;
    }
}

fn broken() -> KvStoreError {
    KvStoreError::new(KvStoreErrorKind::Io, "the disk is gone")
}

#[async_trait]
impl KvStore for Balky {
    async fn get(&self, key: &str) -> Result<Option<Item>, KvStoreError> {
        self.kv.get(key).await
    }

    async fn write(&self, changes: Vec<Change>) -> Result<Version, KvStoreError> {
        if self.hangs.load(Ordering::Relaxed) {
            future::pending::<()>().await;
        }
        if self.fails.load(Ordering::Relaxed) {
            return Err(broken());
        }
        self.kv.write(changes).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Item>, KvStoreError> {
        let unscanned = *self.unscanned.lock().expect("no panic");
        if unscanned.is_some_and(|prefix| scan.prefix.starts_with(prefix)) {
            return Err(broken());
        }
        self.kv.scan(scan).await
    }

    async fn newest(&self) -> Result<Version, KvStoreError> {
        self.kv.newest().await
    }

    fn watch(&self, prefix: &str, after: Version) -> ChangeStream {
        self.kv.watch(prefix, after)
    }

    async fn search(
        &self,
        prefix: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, KvStoreError> {
        self.kv.search(prefix, query, limit).await
    }
}

#[tokio::test]
async fn dependents_are_told_later_when_their_worker_dies_before() {
    let kv = Balky::default();
    let board = kv.board();
    let [dig] = tasks(&board, ["dig"]).await;
    board
        .create(NewTask::new("plant").after(dig.clone()))
        .await
        .expect("it can be created");
    board.claim(&dig, "ada", LEASE).await.expect("it is free");
    kv.unscanned(Some("after/"));
    board
        .finish(&dig, "ada", Finish::success("done"))
        .await
        .expect("it is done all the same");
    kv.unscanned(None);
    assert_eq!(next(&kv.board(), "bob").await.as_deref(), Some("plant"));
    assert_eq!(
        kv.scan(&Scan::prefix("settle/"))
            .await
            .expect("it can be scanned"),
        []
    );
}

#[tokio::test]
async fn task_is_ready_for_others_when_a_claim_is_dropped_or_fails() {
    let kv = Balky::default();
    let board = kv.board();
    tasks(&board, ["dig", "plant"]).await;
    kv.hangs.store(true, Ordering::Relaxed);
    assert!(board.claim_next("ada", LEASE).now_or_never().is_none());
    kv.hangs.store(false, Ordering::Relaxed);
    kv.fails.store(true, Ordering::Relaxed);
    let error = board
        .claim_next("ada", LEASE)
        .await
        .expect_err("the key-value store fails");
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Store, true)
    );
    kv.fails.store(false, Ordering::Relaxed);
    assert_eq!(next(&board, "ada").await.as_deref(), Some("dig"));
    assert_eq!(next(&board, "ada").await.as_deref(), Some("plant"));
    assert_eq!(next(&board, "ada").await, None);
}

#[tokio::test]
async fn what_is_no_task_is_told_when_the_kv_holds_something_else() {
    let kv = Balky::default();
    let board = kv.board();
    let [dig] = tasks(&board, ["dig"]).await;
    kv.write(vec![Change::put(format!("task/{dig}"), true.into())])
        .await
        .expect("it can be written");
    assert_eq!(
        board.get(&dig).await.expect_err("it is none").kind(),
        ErrorKind::Store
    );
    assert_eq!(
        board
            .claim_next("ada", LEASE)
            .await
            .expect_err("it is none")
            .kind(),
        ErrorKind::Store
    );
}
