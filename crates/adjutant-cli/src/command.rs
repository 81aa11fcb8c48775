//! Calls the function of each subcommand, and returns the exit code.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::{
    agent, agents,
    args::{self, Args, Command},
    board, command_line,
    exit::Exit,
    fleet, init, manifest, mcp, memory, models,
    problem::Problem,
    replay, resume, run, screen, sessions, skills, talk, telemetry, trust, up,
};

/// Runs the command in the arguments of this process.
///
/// | exit code | meaning |
/// |---|---|
/// | 0 | the run finished, or the reader of standard output went away |
/// | 1 | the run failed: an error or a refusal of the model, output that cannot be written, a damaged session, a broken skill or agent |
/// | 2 | usage or configuration: a bad option or file, no such model, no key, no such directory or session, an empty prompt |
/// | 3 | a limit ended the run: `--max-turns` |
/// | 4 | the run finished without an answer: its last reply says nothing, or none fits `--schema` |
/// | 5 | the run waits for an answer: `adjutant resume` goes on |
/// | 124 | the deadline of `--timeout` ended the run |
/// | 130 | the user ended the run with Ctrl-C |
pub fn main() -> ExitCode {
    // In a sandbox with a list of hosts, this program is the first process of a command.
    adjutant::toolkit::sandbox_helper();
    let args = match command_line::parse(std::env::args_os().collect()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let Some(command) = args.command else {
        return ended(telemetry::exported(|| talk::talk(&args.talk)));
    };
    if matches!(
        command,
        Command::Agent(_) | Command::Up(_) | Command::Worker(_)
    ) {
        // Tools of agents run at the same time and must not read the environment of this process.
        adjutant::runtime::host::hide_memory();
    }
    ended(match command {
        Command::Run(args) => telemetry::exported(|| run::run(&args)),
        Command::Resume(mut args) => telemetry::exported(|| resume::resume(&mut args)),
        Command::Sessions(command) => sessions::sessions(command),
        Command::Undo(args) => sessions::undo::undo(&args),
        Command::Replay(mut args) => replay::replay(&mut args),
        Command::Memory(command) => memory::memory(command),
        Command::Skills(command) => skills::skills(command),
        Command::Mcp(command) => mcp::mcp(command),
        Command::Agents(command) => agents::agents(command),
        Command::Agent(command) => agent::agent(command),
        Command::Up(args) => up::up(&args),
        Command::Worker(args) => telemetry::exported(|| fleet::worker(&args)),
        Command::Fleet(command) => fleet::fleet(command),
        Command::View(args) => up::view::view(&args),
        Command::Acp(args) => telemetry::exported(|| mcp::acp::acp(&args)),
        Command::Trust(args) => trust::trust(&args),
        Command::Board(command) => board::board(command),
        Command::Init(args) => init::init(&args),
        Command::Manifest(command) => manifest::manifest(command),
        Command::Models(args) => models::models(&args),
        Command::Completions(args) => completions(&args),
        Command::AgentHost(args) => agent::host::agent_host(&args.workspace),
    })
}

/// Writes the completions for a shell to standard output.
fn completions(args: &args::Completions) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "adjutant", &mut script);
    screen::write(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Finished)
}

fn ended(ended: Result<Exit, Problem>) -> ExitCode {
    match ended {
        Ok(exit) => exit.into(),
        Err(problem) => problem.report().into(),
    }
}
