//! The loopback provider, seen through a raw socket.

mod client;
mod decoding;
mod faults;
mod golden;
mod refusals;
mod server;
