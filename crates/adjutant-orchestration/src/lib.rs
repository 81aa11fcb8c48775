//! Agents that find, brief, supervise and learn from other agents, made of tools, scopes and records of the agent core.

#![doc = include_str!("../README.md")]

mod background;
pub mod board;
mod child_run;
mod completion;
mod definition;
mod delegation;
mod error;
mod fan_out;
mod handoff_chain;
pub mod notes;
pub mod reflection;
mod registry;
pub mod team;
mod text;
mod tree;

pub use background::{AtEnd, Background, BackgroundOptions, TaskSnapshot, TaskWatch};
pub use child_run::TaskState;
pub use completion::{Completion, CompletionStatus};
pub use definition::Definition;
pub use delegation::Delegation;
pub use error::{Error, ErrorKind};
pub use fan_out::{AtFailure, FanOut, FanOutOptions, TaskResult, fan_out_tool};
pub use handoff_chain::{HandoffChain, HandoffChainResult, HandoffChainRun, HandoffTarget};
pub use notes::Notes;
pub use reflection::Reflections;
pub use registry::{Occupied, Profile, Registry, Slot, Spawned};
pub use tree::{AgentTree, NodeState, TreeNode};
