//! `adjutant sessions`: manages sessions.

mod carry;
mod diff;
pub(crate) mod fork;
pub(crate) mod list;
mod show;
mod talk;
mod tend;
pub(crate) mod undo;

use adjutant::agent::LogId;

use crate::{args, exit::Exit, problem::Problem, work::work};

/// Runs the subcommand.
pub(crate) fn sessions(command: args::Sessions) -> Result<Exit, Problem> {
    use args::Sessions as Do;
    match command {
        Do::List(args) => work(list::list(&args)),
        Do::Show(args) => work(show::show(&args)),
        Do::Fork(args) => work(fork::fork(&args)),
        Do::Diff(args) => work(diff::diff(&args)),
        Do::Export(args) => work(carry::export(&args)),
        Do::Import(args) => work(carry::import(&args)),
        Do::Verify(args) => work(tend::verify(&args)),
        Do::Delete(args) => work(tend::delete(&args)),
        Do::Rename(args) => work(tend::rename(&args)),
        Do::Label(args) => work(tend::label(&args)),
        Do::Tree(args) => work(list::tree(&args)),
        Do::Sweep(at) => work(tend::sweep(&at)),
        Do::Stop(args) => work(talk::stop(&args)),
        Do::Tell(args) => work(talk::tell(&args)),
    }
}

fn id(name: &str) -> LogId {
    LogId::from(name)
}
