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
    use adjutant_testing::due_suite::lab_fn;

    use super::{file, opened};

    adjutant_testing::due_suite!({
        let file = file();
        let lab = lab_fn(move || opened(&file).journal());
        lab.without("lost_owners_set_aside", "an owner dies with its process: see the drill of fleets")
    });
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
