//! The suite of journals against JSON lines.
#![cfg(feature = "jsonl")]

#[path = "scratch/folder.rs"]
mod scratch;

use adjutant_store::JsonlJournal;
use adjutant_testing::journal_suite::{Lab, lab_fn};

fn lab() -> impl Lab {
    let folder = scratch::folder();
    lab_fn(move || JsonlJournal::open(folder.path()).expect("the folder is there"))
}

adjutant_testing::journal_suite!(lab());
