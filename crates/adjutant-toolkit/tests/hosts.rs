//! Commands that may reach the hosts of a list, and nothing else. The sandbox starts this program once more, so its main is its own.

#[cfg(target_os = "linux")]
#[path = "hands/escapes.rs"]
mod escapes;
#[cfg(target_os = "linux")]
#[path = "hands/listed.rs"]
mod listed;
#[cfg(target_os = "linux")]
#[path = "hands/rows.rs"]
mod rows;
#[cfg(target_os = "linux")]
#[path = "hands/who.rs"]
mod who;

#[cfg(target_os = "linux")]
use listed::{said, tell};

fn main() {
    #[cfg(target_os = "linux")]
    listed::run();
}
