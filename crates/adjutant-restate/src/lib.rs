//! Restate as the engine that drives the sessions of a journal: a virtual object for each session.

#![doc = include_str!("../README.md")]

mod drive_locks;
mod ingress;
mod session;

pub use ingress::Ingress;
pub use session::SessionService;
