//! What the code that `#[tool]` writes needs; no public interface.

pub use schemars;
pub use serde;
pub use serde_json;
