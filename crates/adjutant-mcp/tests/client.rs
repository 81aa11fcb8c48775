//! The client: servers that the tests script, over streams in memory, as programs and over HTTP.

#[path = "client/calls.rs"]
mod calls;
#[path = "client/hostile.rs"]
mod hostile;
#[path = "client/programs.rs"]
mod programs;
#[path = "client/runs.rs"]
mod runs;
#[path = "client/script.rs"]
mod script;
#[path = "client/stays.rs"]
mod stays;
