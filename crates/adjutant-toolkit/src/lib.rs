//! Ready tools for agents. [`Files`] lists, reads and searches a folder that it cannot leave.
//!
//! ```
//! use adjutant_tool::CallContext;
//! use adjutant_toolkit::Files;
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let files = Files::new(env!("CARGO_MANIFEST_DIR"))?.toolbox();
//! let list = files.toolset().get("list_files").expect("the toolbox holds it");
//! let result = list.call(json!({"depth": 1}), CallContext::detached()).await?;
//! assert!(result.text().starts_with("Cargo.toml  "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).expect("the folder of this crate can be listed");
//! ```

mod error;
mod files;

pub use error::{Error, ErrorKind};
pub use files::Files;
