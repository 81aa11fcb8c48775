//! The parts of an agent's work: a log of records, a pure run folded from it, and a driver that has activities
//! performed.

#![doc = include_str!("../README.md")]

mod activity;
mod answer;
mod digest;
mod drive;
mod durability;
mod error;
mod event;
mod journal;
pub mod json;
pub mod kv;
pub mod memory;
mod number;
mod options;
mod outcome;
mod panics;
mod pause;
mod record;
mod replayed;
mod report;
mod run;
pub mod search;
pub mod sessions;

pub use activity::{Activity, ActivityId};
pub use answer::collect_text;
pub use digest::{Digest, NoDigest};
pub use drive::{Executor, Exit, commit, drive};
pub use durability::Durability;
pub use error::{Error, ErrorKind, chain};
pub use event::{Event, EventKind, Events};
pub use journal::{
    Attachment, Backlog, DueLog, DueWork, Epoch, Flush, Folded, GcReport, Head, Holder, Journal,
    JournalError, JournalErrorKind, Log, LogId, LogInfo, LogPage, LogQuery, MAX_ID_BYTES,
    MAX_LOST_OWNERS, MemoryJournal, Owner, PageMark, Post, PostStream, Posted, RecordStream,
    SUSPECT_AFTER, SUSPECT_BARS, SUSPECT_RESTS, SessionMeta, Stamped, StoredRecord, StoredStream,
    Waker, Work,
};
pub use kv::KvStore;
pub use memory::Memory;
pub use number::{PostNo, RunNo, Seq, TurnNo};
pub use options::{AtLimit, Caps, Limits};
pub use outcome::{CancelBy, Completion, Failure, Limit, Outcome};
pub use panics::panic_text;
pub use pause::{Answered, Pause, PauseId};
pub use record::{
    AcknowledgedPart, Admission, Config, Difference, EffectReport, Lane, Memo, OutputVerdict,
    OutputWish, Prefix, Record, Revised, RunChange, Terms,
};
pub use replayed::{Divergence, EventFold, Replayed, Rewind};
pub use report::{CallReport, RunResult};
pub use run::{
    CallFate, CallsView, Closed, EffectInput, Few, Frozen, Illegal, KnownState, KnownStep, Ledger,
    Next, NextStep, OpenCall, RequestView, ResumeAction, ResumeItem, Run, Spend, Tail, Tally,
    WaitView,
};
pub use sessions::Sessions;
