//! Agents that are trusted with long work: stream any model, run tools, survive being killed.
//!
//! This crate re-exports the others and holds no logic: [`llm`] has messages, decorators of models (retry, fallback, rate
//! limits, time limits, recording), structured answers and embeddings. Features: `providers` (default) brings the wires to
//! model providers and the offline model, `toolkit` ready tools, `otel` spans and metrics for OpenTelemetry, `tiktoken`
//! exact token counts, `template` instructions that are templates.
//!
//! ```
//! use adjutant::{Agent, tool};
//!
//! /// Adds two whole numbers.
//! #[tool]
//! fn add(
//!     /// The first number.
//!     a: i64,
//!     /// The second number.
//!     b: i64,
//! ) -> i64 {
//!     a + b
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! use adjutant::llm::{Script, ScriptedModel};
//! let script = [Script::new().call("add", serde_json::json!({"a": 2, "b": 3})), Script::new().text("Five.")];
//! let agent = Agent::new(ScriptedModel::new(script)).tool(add);
//! println!("{}", agent.run("What is two and three?").await?.text());
//! # Ok::<(), adjutant::Error>(())
//! # }).expect("the run finishes");
//! ```

pub use adjutant_agent as agent;
pub use adjutant_agent::{
    Agent, CancelBy, Completion, Continue, Error, ErrorKind, Event, EventKind, Limits, Outcome, Prompt, RunBuilder,
    RunResult, Running,
};
pub use adjutant_context as context;
pub use adjutant_llm as llm;
pub use adjutant_llm::Model;
pub use adjutant_macros::tool_facade as tool;
#[cfg(feature = "orchestration")]
pub use adjutant_orchestration as orchestration;
#[cfg(feature = "otel")]
pub use adjutant_otel as otel;
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
