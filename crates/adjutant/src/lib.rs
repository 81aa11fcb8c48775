//! Agents that are trusted with long work: stream any model, run tools, survive being killed.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use adjutant_agent as agent;
pub use adjutant_agent::{
    Agent, CancelBy, Completion, Continue, Error, ErrorKind, Event, EventKind, Limits, Outcome,
    Prompt, RunBuilder, RunResult, Running,
};
pub use adjutant_context as context;
#[cfg(feature = "fleet")]
pub use adjutant_fleet as fleet;
pub use adjutant_llm as llm;
pub use adjutant_llm::Model;
pub use adjutant_macros::tool_facade as tool;
#[cfg(feature = "mcp")]
pub use adjutant_mcp as mcp;
#[cfg(feature = "orchestration")]
pub use adjutant_orchestration as orchestration;
#[cfg(feature = "otel")]
pub use adjutant_otel as otel;
#[cfg(any(feature = "acp", feature = "ag-ui", feature = "ai-sdk"))]
pub use adjutant_protocols as protocols;
#[cfg(feature = "providers")]
pub use adjutant_providers as providers;
#[cfg(feature = "providers")]
pub use adjutant_providers::model;
#[cfg(feature = "runtime")]
pub use adjutant_runtime as runtime;
#[cfg(feature = "skills")]
pub use adjutant_skills as skills;
#[cfg(any(feature = "jsonl", feature = "postgres", feature = "sqlite"))]
pub use adjutant_store as store;
pub use adjutant_tool as tools;
pub use adjutant_tool::{CallContext, Cancel, Replay, Tool, ToolError, Toolbox, Tools};
#[cfg(feature = "toolkit")]
pub use adjutant_toolkit as toolkit;

#[doc(hidden)]
pub use adjutant_tool as __tool;
