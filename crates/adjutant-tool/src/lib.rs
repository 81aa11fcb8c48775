//! Tools for language models: typed for authors, erased for whoever runs them.
//!
//! ```
//! use adjutant_tool::{CallContext, ToolError, Tools, tool};
//!
//! /// Adds two whole numbers.
//! #[tool]
//! fn add(
//!     /// The first number.
//!     a: i64,
//!     b: i64,
//! ) -> i64 {
//!     a + b
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let tools = Tools::new("sums").tool(add);
//! let bound = tools.toolset().get("add").expect("the tool is in the set").clone();
//! let args = bound.admit(r#"{"a": 2, "b": "3"}"#).expect("the arguments can be repaired");
//! let result = bound.call(args.value, CallContext::detached()).await?;
//! assert_eq!(result.text(), "5");
//! # Ok::<(), ToolError>(())
//! # }).expect("adding works");
//! ```

mod admit;
mod cancel;
mod context;
mod error;
mod identity;
mod output;
mod port;
mod spec;
mod tool;
mod toolbox;
mod toolset;

pub use adjutant_llm as llm;
pub use adjutant_macros::tool;
pub use admit::{Admitted, Refusal};
pub use cancel::Cancel;
pub use context::{CallContext, CallContextBuilder};
pub use error::{ToolError, ToolErrorKind};
pub use identity::Identity;
pub use output::{IntoOutput, Json};
pub use port::{CallPort, Detached, Noted, Progress};
pub use spec::{Replay, ToolSpec};
pub use tool::{ErasedTool, Tool, tool_fn};
pub use toolbox::{Toolbox, Tools};
pub use toolset::{Bound, Toolset};

/// For argument types of your own: `#[derive(JsonSchema)] #[schemars(crate = "adjutant_tool::schemars")]`.
pub use schemars;
/// For argument types of your own: `#[derive(Deserialize)] #[serde(crate = "adjutant_tool::serde")]`.
pub use serde;
/// For JSON values in signatures.
pub use serde_json;

#[doc(hidden)]
pub mod __macro;
