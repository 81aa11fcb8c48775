//! The messages of people, models and tools. `transcript.rs` puts them together.

mod content;
mod extra;
mod id;
mod reply;
mod result;
mod user;

pub use content::{Audio, Content, Document, Image, Source};
pub use extra::Extra;
pub use id::{CallId, CallIdError, EntryId, ModelId, ThreadId, ToolName};
pub use reply::{Block, Call, FinishReason, Reply, Text, Thinking};
pub use result::{CallResult, Status, Terminate};
pub use user::{Origin, ToolChange, ToolDecl, UserMessage};
