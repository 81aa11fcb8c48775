//! The suite of journals against JSON lines.
#![cfg(feature = "jsonl")]

use adjutant_store::JsonlJournal;
use adjutant_testing::journal_suite::{Lab, lab_fn};

use crate::scratch;

fn lab() -> impl Lab {
    let folder = scratch::folder();
    lab_fn(move || JsonlJournal::open(folder.path()).expect("the folder is there"))
}

adjutant_testing::journal_suite!(lab());
