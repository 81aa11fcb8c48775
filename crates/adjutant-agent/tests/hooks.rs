//! Hooks at their points: what they see, what they change, and what they keep from happening.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod rules;
#[path = "hooks/run.rs"]
mod run;
#[path = "approval/stage.rs"]
mod stage;
#[path = "hooks/tool_points.rs"]
mod tool_points;
#[path = "hooks/tool_results.rs"]
mod tool_results;
#[path = "approval/watch.rs"]
mod watch;
