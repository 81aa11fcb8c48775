//! What a model looks after: summaries of conversations, windows over them, memories.

#[path = "compact.rs"]
mod compact;
#[path = "memories.rs"]
mod memories;
#[path = "window.rs"]
mod window;
