//! Servers over HTTP, signing in to them, and their tokens, against a server on loopback that is good or hostile.

#[path = "http/sign_in.rs"]
mod sign_in;
#[path = "http/stage.rs"]
mod stage;
#[path = "http/streams.rs"]
mod streams;
#[path = "http/tokens.rs"]
mod tokens;
