//! Workers that drive the sessions of a journal which are due, on any number of machines.

#![doc = include_str!("../README.md")]

mod children;
mod drive;
mod fleet;
mod gauges;
mod status;

pub use children::FleetPlacement;
pub use drive::drive;
pub use fleet::Fleet;
pub use status::{Ended, FleetStatus};
