//! The `adjutant` command: runs an agent with file tools on a directory, keeps its sessions, and lists models.
//!
//! Answers go to standard output, everything else to standard error. A key is never printed.

mod agent;
mod agent_files;
mod agent_host;
mod agents;
mod amount;
mod answer;
mod args;
mod board;
mod chooser;
mod chosen_model;
mod command;
mod completions;
mod consent;
mod cure;
mod ending;
mod exit;
mod explain;
mod file;
mod follow;
mod init;
mod interrupt;
mod job;
mod manifest;
mod memory;
mod models;
mod named;
mod near;
mod notes;
mod paper;
mod plain;
mod played;
mod problem;
mod prompt;
mod replay;
mod resume;
mod run;
mod run_manifest;
mod screen;
mod sessions;
mod show;
mod skills;
mod store;
mod summary;
mod talk;
mod taught;
mod tree;
mod trouble;
mod trust;
mod under;
mod up;
mod waits;
mod when;
mod work;

pub use command::main;
