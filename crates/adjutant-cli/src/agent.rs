//! `adjutant agent`: manages agents that have their own directories.

mod answer;
mod ask;
mod bytes;
mod carry;
pub(crate) mod create;
pub(crate) mod host;
mod list;
mod logs;
pub(crate) mod place;
mod reach;
mod standing;
pub(crate) mod update;

use crate::{args::agent::Agent, exit::Exit, problem::Problem, work::work};

/// Runs the subcommand.
pub(crate) fn agent(command: Agent) -> Result<Exit, Problem> {
    use reach::Wish;
    match command {
        Agent::Create(args) => work(create::create(&args)),
        Agent::Start(args) => work(reach::reach(&args, Wish::Start)),
        Agent::Stop(args) => work(reach::reach(&args, Wish::Stop)),
        Agent::Restart(args) => work(reach::reach(&args, Wish::Restart)),
        Agent::Update(args) => work(update::update(&args)),
        Agent::Rm(args) => work(reach::reach(&args, Wish::Remove)),
        Agent::Ps(args) => work(list::ps(&args)),
        Agent::Status(args) => work(list::status(&args)),
        Agent::Logs(args) => work(logs::logs(&args)),
        Agent::Prompt(args) => work(ask::prompt(&args)),
        Agent::Object(args) => work(ask::object(&args)),
        Agent::Pauses(args) => work(answer::pauses(&args)),
        Agent::Approve(args) => work(answer::approve(&args)),
        Agent::Deny(args) => work(answer::deny(&args)),
        Agent::Answer(args) => work(answer::answer(&args)),
        Agent::Provenance(args) => work(bytes::provenance(&args)),
        Agent::Export(args) => work(carry::export(&args)),
        Agent::Import(args) => work(carry::import(&args)),
    }
}
