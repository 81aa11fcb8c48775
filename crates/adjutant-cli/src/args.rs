//! The arguments of the command line.

mod acp;
pub(crate) mod agent;
mod agents;
mod board;
mod fleet;
mod manifest;
mod mcp;
mod memory;
mod run;
mod sandbox;
mod sessions;
mod skills;
mod talk;
mod view;

use std::{path::PathBuf, str::FromStr, time::Duration};

use adjutant::providers::TimeoutsPatch;
use clap::{Parser, Subcommand};

pub(crate) use self::{
    acp::Acp,
    agents::{AgentChoice, Agents, BOARD, BOXES, CheckAgents, ListAgents},
    board::{Board, ListTasks, ShowTask, TheseTasks, Which},
    fleet::{AnswerDue, Fleet, PostDue, Retry, StatusOfFleet, Worker},
    manifest::{CheckManifest, Init, ManifestCommand, ShowManifest},
    mcp::{AddServer, ListServers, Login, Mcp, OfFile, OfServers, RemoveServer, Serve, TestServer},
    memory::{Forget, ListFacts, Memory, Search, Whose},
    run::{At, GivenAnswers, How, Resume, Run},
    sandbox::{SandboxKind, limit, network},
    sessions::{
        Delete, Diff, Export, Fork, Import, Label, List, Named, Rename, Replay, Sessions, Show,
        Stop, Tell, Verify,
    },
    skills::{CheckSkills, ListSkills, OfSkills, ShowSkill, Skills, Taught},
    talk::{Completions, Talk, Undo},
    view::ViewPage,
};
use crate::exit;

/// Runs LLM agents with tools.
///
/// Without a command it opens a conversation on the terminal; /help there lists its commands.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, after_help = exit::TABLE, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Resume(Resume),
    /// Manages sessions: list, show, fork, compare, verify, move and delete them.
    #[command(subcommand)]
    Sessions(Sessions),
    Replay(Replay),
    Undo(Undo),
    /// Manages the memories of an owner, which `run --memory` uses and extends.
    #[command(subcommand)]
    Memory(Memory),
    /// Manages skills: list them, show one, check them against the specification.
    #[command(subcommand)]
    Skills(Skills),
    /// Manages servers of the Model Context Protocol: list, add, remove, test and sign in to them; serve an agent as
    /// one.
    #[command(subcommand)]
    Mcp(Mcp),
    /// Manages agent files: list the agents, check their files.
    #[command(subcommand)]
    Agents(Agents),
    /// Manages agents with their own directories: creates, starts, watches, prompts, stops and removes them.
    #[command(subcommand)]
    Agent(agent::Agent),
    Up(agent::Up),
    Worker(Worker),
    /// Manages the sessions of workers: shows what is queued, waiting or quarantined; sends messages and answers.
    #[command(subcommand)]
    Fleet(Fleet),
    View(ViewPage),
    Acp(Acp),
    Trust(Trust),
    /// Manages a board of tasks: lists them with their dependencies, retries and cancels them.
    #[command(subcommand)]
    Board(Board),
    Init(Init),
    /// Manages manifests: check one, show its resolved form, print the schema.
    #[command(subcommand)]
    Manifest(ManifestCommand),
    /// Lists the known models with their limits and prices, and the available keys.
    ///
    /// A key is never printed, only the name of its variable.
    Models(Models),
    Completions(Completions),
    /// Runs the agent of a workspace in this process; started by other commands.
    #[command(hide = true)]
    AgentHost(AgentHost),
}

/// Lists the permissions that a manifest or an agent requests, and trusts it.
///
/// The list contains all programs, directories, addresses, and the receiver of each key. Reading its own directory and
/// calling a known provider need no trust. Trust applies to the listed content: after any change it is requested again.
/// It is stored in $XDG_STATE_HOME/adjutant/trust, else $HOME/.local/state/adjutant/trust.
#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// A manifest, an exported agent, or a directory with manifests and agents.
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,

    /// Trusts it without a question on the terminal; with a digest, only the content with that digest.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) yes: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: agent::Homed,
}

/// The agent to run.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentHost {
    /// The workspace.
    #[arg(value_name = "WORKSPACE")]
    pub(crate) workspace: PathBuf,
}

/// The choice of models to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Models {
    /// Lists the models of one provider, with its address, its protocol and the variable of its key.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// Shows every provider, including providers without a listed model or a key.
    #[arg(long, conflicts_with = "provider")]
    pub(crate) all: bool,
}

/// The maximum number of requests in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaxTurns {
    AtMost(u32),
    Unlimited,
}

impl FromStr for MaxTurns {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            _ if text == "unlimited" => Ok(MaxTurns::Unlimited),
            Ok(0) => Err("a run needs at least one turn; `unlimited` sets no limit"),
            Ok(turns) => Ok(MaxTurns::AtMost(turns)),
            Err(_) => Err("not a whole number from 1 to 4294967295, nor `unlimited`"),
        }
    }
}

/// Parses the timeouts of a model's server, as `first-byte=600,idle=90.5`.
pub(crate) fn model_timeouts(text: &str) -> Result<TimeoutsPatch, String> {
    let mut patch = TimeoutsPatch::default();
    for part in text.split(',') {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?} is not of the form NAME=SECS"))?;
        let time = match name.trim() {
            "connect" => &mut patch.connect,
            "first-byte" => &mut patch.first_byte,
            "idle" => &mut patch.idle,
            "silence" => &mut patch.silence,
            "total" => &mut patch.total,
            _ => {
                let names = "connect, first-byte, idle, silence or total";
                return Err(format!("{name:?} is not {names}"));
            }
        };
        let length = seconds(value.trim());
        *time = Some(length.map_err(|_| format!("{value:?} is not a length of time"))?);
    }
    Ok(patch)
}

pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().map_err(|_| "not a number of seconds")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if limit.is_zero() => Err("a run needs more than no time"),
        Ok(limit) => Ok(limit),
        Err(_) => Err("not a length of time"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn args_are_consistent_when_checked() {
        Args::command().debug_assert();
    }

    #[test]
    fn max_turns_is_refused_when_it_is_zero_or_no_number() {
        let cases = [
            ("1", Ok(MaxTurns::AtMost(1))),
            ("unlimited", Ok(MaxTurns::Unlimited)),
            (
                "0",
                Err("a run needs at least one turn; `unlimited` sets no limit"),
            ),
            (
                "-1",
                Err("not a whole number from 1 to 4294967295, nor `unlimited`"),
            ),
            (
                "many",
                Err("not a whole number from 1 to 4294967295, nor `unlimited`"),
            ),
        ];
        for (text, expect) in cases {
            assert_eq!(text.parse(), expect, "{text}");
        }
    }

    #[test]
    fn model_timeouts_are_read_when_each_has_a_name_and_a_time() {
        let patch = model_timeouts("first-byte=600, idle=0.5").expect("they are read");
        assert_eq!(patch.first_byte, Some(Duration::from_secs(600)));
        assert_eq!(
            (patch.idle, patch.total),
            (Some(Duration::from_millis(500)), None)
        );
        for (text, expect) in [
            ("600", "\"600\" is not of the form NAME=SECS"),
            ("idle=0", "\"0\" is not a length of time"),
            (
                "late=1",
                "\"late\" is not connect, first-byte, idle, silence or total",
            ),
        ] {
            assert_eq!(model_timeouts(text), Err(expect.to_owned()));
        }
    }

    #[test]
    fn seconds_are_refused_when_they_are_no_length_of_time() {
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("0"), Err("a run needs more than no time"));
        assert_eq!(seconds("-1"), Err("not a length of time"));
        assert_eq!(seconds("NaN"), Err("not a length of time"));
        assert_eq!(seconds("1e300"), Err("not a length of time"));
        assert_eq!(seconds("soon"), Err("not a number of seconds"));
    }
}
