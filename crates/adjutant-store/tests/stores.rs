//! Every store: the suites over each, what only it can do wrong, and agents on all of them.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line here.

mod agents;
mod folds;
mod jsonl;
mod jsonl_suite;
mod postgres;
mod private;
mod scratch;
mod sqlite;
mod sqlite_suites;
