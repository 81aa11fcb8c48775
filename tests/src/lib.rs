//! What the cross-crate tests of the workspace share: the four wires, and a reader that trusts no stream.
//!
//! The tests live in `tests/`.

pub mod asked;
pub mod bfcl;
#[cfg(unix)]
pub mod chaos;
pub mod crew;
pub mod fleet;
pub mod hunt;
pub mod kill;
pub mod mcp;
pub mod sequences;

mod history;
mod reader;
mod wires;

pub use history::{PIXEL, answered, pair, pixel, signed, tools};
pub use reader::{Heard, listen, taken};
pub use wires::{WIRES, Wire};
