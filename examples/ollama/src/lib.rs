//! A wire of one's own, as a crate outside of Adjutant would have it: Ollama's native `/api/chat`, in lines of JSON.
//!
//! [`register`] makes `ollama-native/<model>` a name like any other: to `adjutant::model`, in manifests, and to a command
//! that is built with it (`main.rs`). `tests/conformance.rs` plays the hazards of the conformance suite to it.

mod decode;
mod encode;
mod ollama;
mod wire;

pub use {encode::Ollama, ollama::register};
