//! The conformance suites over PostgreSQL: each test has a schema of its own, each handle a pool of its own.

use std::{sync::Arc, time::Duration};

use adjutant_core::{DueWork, Journal, Log, kv::KvStore, memory::Memory};
use adjutant_llm::FixedWorld;
use adjutant_testing::{due_suite, journal_suite, kv_suite, memory_suite};
use async_trait::async_trait;

use super::{Connect, Place, Postgres};

/// How long a log belongs to a process that is gone: long, because a busy machine may renew late.
const LEASE: Duration = Duration::from_secs(30);
/// How many connections each handle has.
const CONNECTIONS: usize = 3;

/// A schema, if there is a server, and the clock of those who ask for due logs.
struct Lab(Option<Place>, Arc<FixedWorld>);

impl Lab {
    fn new() -> Self {
        Self(
            Place::of("conformance suite over PostgreSQL"),
            Arc::new(FixedWorld::at_ms(1_800_000_000_000)),
        )
    }

    fn connect(&self) -> Connect {
        let place = self
            .0
            .as_ref()
            .expect("checks without a server are skipped");
        place.connect().lease(LEASE).connections(CONNECTIONS)
    }

    async fn store(&self) -> Postgres {
        self.connect().await.expect("the database opens")
    }

    fn why(&self) -> Option<String> {
        self.0
            .is_none()
            .then(|| "there is no PostgreSQL server".to_owned())
    }
}

#[async_trait]
impl journal_suite::Lab for Lab {
    async fn open(&self) -> Arc<dyn Journal> {
        Arc::new(self.store().await.journal())
    }

    fn skips(&self, _: &str) -> Option<String> {
        self.why()
    }
}

#[async_trait]
impl due_suite::DueLab for Lab {
    async fn open(&self) -> Arc<dyn DueWork> {
        let world = Arc::clone(&self.1);
        Arc::new(
            self.connect()
                .world(world)
                .await
                .expect("the database opens")
                .journal(),
        )
    }

    async fn pass(&self, time: Duration) {
        self.1
            .advance_ms(u64::try_from(time.as_millis()).expect("a short time"));
    }

    async fn crash(&self, log: Box<dyn Log>) {
        // Nobody gives it up, and its lease ends.
        std::mem::forget(log);
        let place = self
            .0
            .as_ref()
            .expect("checks without a server are skipped");
        // It ends at once, as one that a server gave before its clock went backwards: none of it is a rest.
        place.execute("update $.logs set lease = interval '0', until = now() + interval '1 h' where owner is not null");
    }

    fn skips(&self, _: &str) -> Option<String> {
        self.why()
    }
}

#[async_trait]
impl kv_suite::Lab for Lab {
    async fn open(&self) -> Arc<dyn KvStore> {
        Arc::new(self.store().await.kv("board"))
    }

    fn skips(&self, _: &str) -> Option<String> {
        self.why()
    }
}

#[async_trait]
impl memory_suite::Lab for Lab {
    async fn open(&self) -> Arc<dyn Memory> {
        Arc::new(self.store().await.memory())
    }

    fn skips(&self, _: &str) -> Option<String> {
        self.why()
    }
}

mod journal {
    adjutant_testing::journal_suite!(super::Lab::new());
}

mod due {
    adjutant_testing::due_suite!(super::Lab::new());
}

mod kv {
    adjutant_testing::kv_suite!(super::Lab::new());
}

mod memory {
    adjutant_testing::memory_suite!(super::Lab::new());
}
