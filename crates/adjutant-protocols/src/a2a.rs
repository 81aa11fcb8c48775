//! A2A, the Agent2Agent protocol, 1.0, over JSON-RPC: sessions as conversations, runs as tasks, pauses as questions.
//!
//! Source: <https://a2a-protocol.org/v1.0.0/specification>, and the sources of `@a2a-js/sdk` 1.3.0 (2026-08).

mod card;
mod desk;
mod handler;
mod push;
mod read;
mod refusal;
mod task;
mod watch;
mod wire;

pub use card::{AgentCard, HEARS_ONCE, Skill};
pub use desk::{AgentDesk, Desk, DeskWish, Events, Until};
pub use handler::{Handler, Reply};
pub use push::PushTargets;
pub use task::Tasks;
pub use wire::{
    Artifact, Message, Part, PushAuthentication, PushConfig, Role, SendMessage, SendOptions, Task,
    TaskState, TaskStatus, Update,
};

/// The headers of an answer that is a stream.
pub const HEADERS: [(&str, &str); 2] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
];
