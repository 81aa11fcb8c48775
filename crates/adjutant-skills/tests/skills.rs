//! Skills from outside: how they are read, which of them count, what they cannot do, and how a run uses them.

#[path = "skills/checking.rs"]
mod checking;
#[path = "skills/files.rs"]
mod files;
#[path = "skills/hostile.rs"]
mod hostile;
#[path = "skills/property.rs"]
mod property;
#[path = "skills/reading.rs"]
mod reading;
#[path = "skills/roots.rs"]
mod roots;
#[path = "skills/runs.rs"]
mod runs;
#[path = "skills/stage.rs"]
mod stage;
