//! Everything that agents do with other agents; one target, so that it is linked once.

#[path = "background.rs"]
mod background;
#[path = "board.rs"]
mod board;
#[path = "definition.rs"]
mod definition;
#[path = "delegation.rs"]
mod delegation;
#[path = "fan_out.rs"]
mod fan_out;
#[path = "hostile.rs"]
mod hostile;
#[path = "crew/killed.rs"]
mod killed;
#[path = "notes.rs"]
mod notes;
#[path = "promises.rs"]
mod promises;
#[path = "reflection.rs"]
mod reflection;
#[path = "registry.rs"]
mod registry;
#[path = "relay.rs"]
mod relay;
#[path = "team.rs"]
mod team;
#[path = "tree.rs"]
mod tree;
#[path = "trees.rs"]
mod trees;
