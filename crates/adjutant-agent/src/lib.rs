//! Agents over one log of records: their execution, the code around a run, and sub-agents.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod agent;
mod begin;
mod budget;
mod effect;
pub mod effects;
mod event_sink;
mod executor;
mod floor;
mod hooks;
mod inbox;
pub mod instructions;
mod listener;
mod mailbox;
mod middleware;
mod output;
mod partial_reply;
mod placement;
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
pub use agent::{
    Agent, AgentFactory, AgentLog, AgentQueue, MemberRun, OpenedAgent, OutputRun, OutputStep,
    OutputStream, RunBuilder, TypedResult, WorkingAgent, agent_tool,
};
pub use budget::{Budget, ConcurrencyPermit, Reservation, ReservationRequest};
pub use effect::{Action, Effect, EffectContext, EffectError, Phase};
pub use executor::LocalExecutor;
pub use floor::Floor;
pub use hooks::{Fail, Hook, HookContext, HookOutput, Hooks, Observed, Point, Verdict};
pub use inbox::Stopper;
pub use listener::{Attached, PastEvents, Subscription};
pub use middleware::{
    BoxDrive, DriveContext, DriveStart, FnMiddleware, InputGuardrail, Logger, Middleware,
    NextDrive, OutputGuardrail, Recovery, Timeout, middleware_fn,
};
pub use output::Output;
pub use placement::{ChildLink, ChildOrder, ChildReport, ChildRole, Placement};
pub use prompt::{Continue, Prompt};
pub use queue::{Drain, QueueItem, Queued};
pub use running::Running;
pub use scope::{AgentConfig, Child, ChildRun, Loan, Parent, RunLine, Spawn};
pub use setup::{CallOptions, Setup};
pub use snapshot::{ContextUse, Snapshot};
pub use turn_hooks::{prepare_next_turn, stop_after_turn};
