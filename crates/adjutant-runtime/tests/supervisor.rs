//! The supervisor, the folder of agents that it works on, and agents that are carried from one folder to another.

#[path = "supervisor/bundles.rs"]
mod bundles;
#[path = "supervisor/ending.rs"]
mod ending;
#[path = "supervisor/fake.rs"]
mod fake;
#[path = "supervisor/homes.rs"]
mod homes;
#[path = "supervisor/keeping.rs"]
mod keeping;
