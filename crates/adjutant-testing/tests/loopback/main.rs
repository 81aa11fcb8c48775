//! The loopback provider, seen through a raw socket.

mod client;
mod decoding;
mod embeddings;
mod faults;
mod golden;
mod golden_gemini;
mod golden_responses;
mod refusals;
mod refusals_gemini;
mod refusals_responses;
mod rules;
mod server;
mod signatures;
