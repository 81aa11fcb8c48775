//! Servers over HTTP, signing in to them, and their tokens, against a server on loopback that is good or hostile.

mod sign_in;
mod stage;
