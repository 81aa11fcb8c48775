//! Parts around the loop that are badly behaved or badly set: a run goes on or ends by rule, and says so.

#[path = "hostile_parts/budget.rs"]
mod budget;
#[path = "hostile_parts/compaction.rs"]
mod compaction;
#[path = "hostile_parts/inside.rs"]
mod inside;
#[path = "hostile_parts/look.rs"]
mod look;
#[path = "hostile_parts/parts.rs"]
mod parts;
#[path = "effects/stage.rs"]
mod stage;
