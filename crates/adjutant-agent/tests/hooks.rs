//! Hooks at their points: what they see, what they change, and what they keep from happening.

#[path = "approval/stage.rs"]
mod stage;
#[path = "hooks/tool_points.rs"]
mod tool_points;
#[path = "hooks/tool_results.rs"]
mod tool_results;
#[path = "approval/watch.rs"]
mod watch;
