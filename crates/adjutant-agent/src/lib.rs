//! The agent core: one log of records, a pure run folded from it, and a driver that performs what the run decides.
//!
//! ```
//! use adjutant_agent::Agent;
//! use adjutant_llm::{Script, ScriptedModel};
//! use adjutant_tool::tool;
//!
//! /// Adds two whole numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let script = [Script::new().call("add", serde_json::json!({"a": 2, "b": 3})), Script::new().text("Five.")];
//! let agent = Agent::new(ScriptedModel::new(script)).instructions("Use the tools.").tool(add);
//! let result = agent.run("What is two and three?").await?;
//! assert_eq!((result.text().as_str(), result.turns), ("Five.", 2));
//! # Ok::<(), adjutant_agent::Error>(())
//! # }).expect("the run finishes");
//! ```

mod act;
mod agent;
mod answer;
mod begin;
mod budget;
mod conversation;
mod digest;
mod drive;
mod durability;
mod effect;
pub mod effects;
mod error;
mod event;
mod feed;
mod hooks;
mod inbox;
pub mod instructions;
mod journal;
pub mod json;
mod listener;
mod mailbox;
pub mod memory;
mod middleware;
mod number;
mod options;
mod outcome;
mod panics;
mod pause;
pub mod points;
mod port;
mod prompt;
mod queue;
mod record;
mod replayed;
mod report;
mod run;
mod running;
mod saying;
mod scope;
pub mod search;
pub mod sections;
mod session;
pub mod sessions;
mod setup;
pub mod shelf;
mod snapshot;
mod writer;

pub use act::{Act, ActId};
pub use agent::{Agent, AgentFactory, Member, MemberRun, agent_tool};
pub use answer::collect_text;
pub use budget::{Bid, Budget, Reservation, Seat};
pub use conversation::Conversation;
pub use digest::{Digest, NoDigest};
pub use drive::{Exit, Port, commit, drive};
pub use durability::Durability;
pub use effect::{Action, Effect, EffectContext, EffectError, Phase};
pub use error::{Error, ErrorKind};
pub use event::{Event, EventKind, Events};
pub use hooks::{Fail, Hook, HookContext, Hooks, IntoVerdict, Observed, Point, Verdict};
pub use inbox::Stopper;
pub use journal::{
    About, Attachment, Epoch, Flush, Folded, Head, Holder, Journal, JournalError, JournalErrorKind, Log, LogId,
    LogInfo, LogPage, LogQuery, MAX_ID_BYTES, MemoryJournal, Owner, PageMark, Post, PostStream, Posted, RecordStream,
    Stamped, StoredRecord, StoredStream, Swept,
};
pub use listener::{Attached, Subscription};
pub use memory::Memory;
pub use middleware::{
    BoxDrive, DriveContext, FnMiddleware, InputGuardrail, Logger, Middleware, NextDrive, OutputGuardrail, Recovery,
    Timeout, middleware_fn,
};
pub use number::{PostNo, RunNo, Seq, TurnNo};
pub use options::{AtLimit, Caps, Limits, RunOptions};
pub use outcome::{CancelBy, Failure, Limit, Outcome, Why};
pub use pause::{Answered, Pause, PauseId, Responder, responder_fn};
pub use port::LocalPort;
pub use prompt::Prompt;
pub use queue::{Drain, QueueItem, Queued};
pub use record::{Admission, Change, Config, Difference, HeardPart, Lane, Memo, Record, Report, Revised};
pub use replayed::{Divergence, PastEvents, Replayed, Rewind};
pub use report::{CallReport, RunResult};
pub use run::{Fate, Illegal, Ledger, Next, Redo, Rerun, Run, Spend};
pub use running::Running;
pub use scope::{AgentConfig, Child, ChildRun, Parent, RunLine, Spawn};
pub use sessions::Sessions;
pub use setup::Setup;
pub use shelf::Shelf;
pub use snapshot::{ContextUse, Snapshot};
