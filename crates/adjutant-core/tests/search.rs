//! The search in texts, read from the library's folder: for its few tests, all of the library would be built again.

#[path = "../src/search.rs"]
pub mod search;
