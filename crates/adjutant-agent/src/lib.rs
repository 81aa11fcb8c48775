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

mod agent;
mod begin;
mod budget;
mod effect;
pub mod effects;
mod event_sink;
mod executor;
mod hooks;
mod inbox;
pub mod instructions;
mod listener;
mod mailbox;
mod middleware;
mod partial_reply;
pub mod points;
mod prompt;
mod queue;
mod running;
mod scope;
pub mod sections;
mod session;
mod setup;
mod snapshot;
mod turn_hooks;
mod turn_position;
mod writer;

pub use adjutant_core::*;
pub use agent::{Agent, AgentFactory, AgentLog, AgentQueue, MemberRun, OpenedAgent, RunBuilder, agent_tool};
pub use budget::{Budget, ConcurrencyPermit, Reservation, ReservationRequest};
pub use effect::{Action, Effect, EffectContext, EffectError, Phase};
pub use executor::LocalExecutor;
pub use hooks::{Fail, Hook, HookContext, Hooks, IntoVerdict, Observed, Point, Verdict};
pub use inbox::Stopper;
pub use listener::{Attached, PastEvents, Subscription};
pub use middleware::{
    BoxDrive, DriveContext, FnMiddleware, InputGuardrail, Logger, Middleware, NextDrive, OutputGuardrail, Recovery,
    Timeout, middleware_fn,
};
pub use prompt::{Continue, Prompt};
pub use queue::{Drain, QueueItem, Queued};
pub use running::Running;
pub use scope::{AgentConfig, Child, ChildRun, Parent, RunLine, Spawn};
pub use setup::{CallOptions, Setup};
pub use snapshot::{ContextUse, Snapshot};
pub use turn_hooks::{prepare_next_turn, stop_after_turn};
