//! The conformance suites over one SQLite file, and in memory.
#![cfg(feature = "sqlite")]

use std::path::PathBuf;

use adjutant_store::Sqlite;
use tempfile::TempDir;

use crate::scratch;

/// A file of its own, which goes with the lab.
fn file() -> (TempDir, PathBuf) {
    let folder = scratch::folder();
    let path = folder.path().join("db");
    (folder, path)
}

fn opened((_, path): &(TempDir, PathBuf)) -> Sqlite {
    Sqlite::open(path).expect("it opens")
}

mod journal {
    use adjutant_testing::journal_suite::lab_fn;

    use super::{file, opened};

    adjutant_testing::journal_suite!({
        let file = file();
        lab_fn(move || opened(&file).journal())
    });
}

mod due {
    use std::{path::PathBuf, sync::Arc, time::Duration};

    use adjutant_core::{DueWork, Log};
    use adjutant_llm::FixedWorld;
    use adjutant_testing::due_suite::DueLab;
    use tempfile::TempDir;

    use super::{file, opened};

    struct Lab((TempDir, PathBuf), Arc<FixedWorld>);

    #[async_trait::async_trait]
    impl DueLab for Lab {
        async fn open(&self) -> Arc<dyn DueWork> {
            Arc::new(opened(&self.0).world(Arc::clone(&self.1)).journal())
        }

        async fn pass(&self, time: Duration) {
            self.1
                .advance_ms(u64::try_from(time.as_millis()).expect("a short time"));
        }

        async fn crash(&self, log: Box<dyn Log>) {
            // Nobody gives it up, and its process is none that is there.
            std::mem::forget(log);
            let db = rusqlite::Connection::open(&self.0.1).expect("it opens");
            db.execute(
                "UPDATE logs SET instance = 'gone' WHERE owner IS NOT NULL",
                [],
            )
            .expect("it is written");
        }
    }

    adjutant_testing::due_suite!(Lab(file(), Arc::new(FixedWorld::at_ms(1_800_000_000_000))));
}

mod kv {
    use adjutant_testing::kv_suite::lab_fn;

    use super::{file, opened};

    adjutant_testing::kv_suite!({
        let file = file();
        lab_fn(move || opened(&file).kv("board"))
    });
}

mod memory {
    use adjutant_testing::memory_suite::lab_fn;

    use super::{file, opened};

    adjutant_testing::memory_suite!({
        let file = file();
        lab_fn(move || opened(&file).memory())
    });
}

mod in_memory {
    use adjutant_store::Sqlite;

    fn store() -> Sqlite {
        Sqlite::in_memory().expect("it opens")
    }

    mod journal {
        use adjutant_testing::journal_suite::lab_fn;

        adjutant_testing::journal_suite!({
            let store = super::store();
            lab_fn(move || store.journal())
        });
    }

    mod memory {
        use adjutant_testing::memory_suite::lab_fn;

        adjutant_testing::memory_suite!({
            let store = super::store();
            lab_fn(move || store.memory())
        });
    }
}
