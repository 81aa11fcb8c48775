//! Tools for language models: typed for authors, erased for executors.

#![doc = include_str!("../README.md")]

mod admit;
mod ask;
mod backend;
mod cancel;
mod composite;
mod context;
mod conversation;
mod error;
mod guard;
mod identity;
mod output;
mod reentry;
mod sampler;
mod set_cache;
mod spec;
mod tool;
mod toolbox;
mod toolset;
mod violations;

pub use admit::{Admitted, Refusal};
pub use ask::{Answer, Ask, AskKind};
pub use backend::{CallBackend, Detached, Noted, Progress};
pub use composite::Composite;
pub use context::CallContext;
pub use conversation::Conversation;
pub use error::{ToolError, ToolErrorKind};
pub use guard::{CallAdmission, Guard};
pub use output::{IntoOutput, Json};
pub use reentry::{Cut, Entered, Reentry};
pub use sampler::Sampler;
pub use spec::{Approval, Replay, ToolHints, ToolSpec};
pub use tool::{ErasedTool, Tool, external_tool, tool_fn};
pub use toolbox::{Toolbox, Tools, toolbox_fn};
pub use toolset::{Bound, Toolset};
pub use {adjutant_llm as llm, adjutant_macros::tool, cancel::Cancel, identity::Identity};

/// For argument types of your own: `#[schemars(crate = "adjutant_tool::schemars")] #[serde(crate = "adjutant_tool::serde")]`.
pub use {schemars, serde, serde_json};

#[doc(hidden)]
pub mod __macro;
