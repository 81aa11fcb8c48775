//! The `adjutant` command: runs an agent with file tools on a directory, keeps its sessions, and lists models.
//!
//! Answers go to standard output, everything else to standard error. A key is never printed.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | the run finished, or the reader of standard output went away |
//! | 1 | the run failed: an error or a refusal of the model, output that cannot be written, a damaged session, a broken skill or agent |
//! | 2 | usage or configuration: a bad option or file, no such model, no key, no such directory or session, an empty prompt |
//! | 3 | a limit ended the run: `--max-turns` |
//! | 4 | the run finished without an answer: its last reply says nothing, or none fits `--schema` |
//! | 5 | the run waits for an answer: `adjutant resume` goes on |
//! | 124 | the deadline of `--timeout` ended the run |
//! | 130 | the user ended the run with Ctrl-C |

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
mod meter;
mod models;
mod named;
mod near;
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
mod taught;
mod tree;
mod trouble;
mod trust;
mod up;
mod waits;
mod when;
mod work;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let command = Args::parse().command;
    if matches!(command, Command::Agent(_) | Command::Up(_)) {
        // Tools of agents run meanwhile: they are not to read the environment of whoever starts them.
        adjutant::runtime::host::hide_memory();
    }
    let ended = match command {
        Command::Run(args) => run::run(&args),
        Command::Resume(mut args) => resume::resume(&mut args),
        Command::Sessions(command) => sessions::sessions(command),
        Command::Replay(mut args) => replay::replay(&mut args),
        Command::Memory(command) => memory::memory(command),
        Command::Skills(command) => skills::skills(command),
        Command::Agents(command) => agents::agents(command),
        Command::Agent(command) => agent::agent(command),
        Command::Up(args) => up::up(&args),
        Command::Trust(args) => trust::trust(&args),
        Command::Board(command) => board::board(command),
        Command::Init(args) => init::init(&args),
        Command::Manifest(command) => manifest::manifest(command),
        Command::Models(args) => models::models(&args),
        Command::AgentHost(args) => agent_host::agent_host(&args.workspace),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(problem) => problem.report().into(),
    }
}
