//! The engine: every field of a manifest takes effect, and tools that are programs never outlive their calls.

#[path = "engine/agents.rs"]
mod agents;
#[path = "engine/around.rs"]
mod around;
#[path = "engine/bounds.rs"]
mod bounds;
#[cfg(feature = "http")]
#[path = "engine/far.rs"]
mod far;
#[path = "engine/fields.rs"]
mod fields;
#[path = "engine/file.rs"]
mod file;
#[cfg(all(feature = "shell", target_os = "linux"))]
#[path = "engine/held.rs"]
mod held;
#[path = "engine/models.rs"]
mod models;
#[path = "engine/others.rs"]
mod others;
#[path = "engine/places.rs"]
mod places;
#[path = "engine/programs.rs"]
mod programs;
#[cfg(all(feature = "shell", target_os = "linux"))]
#[path = "engine/ruled.rs"]
mod ruled;
#[cfg(feature = "mcp")]
#[path = "engine/servers.rs"]
mod servers;
#[path = "engine/stage.rs"]
mod stage;
#[path = "engine/stubborn.rs"]
mod stubborn;
#[path = "engine/toolboxes.rs"]
mod toolboxes;
