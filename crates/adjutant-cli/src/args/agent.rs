//! The arguments of `adjutant agent` and `adjutant up`.

use std::path::PathBuf;

use clap::Subcommand;

/// The commands for an agent that lives in a directory of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    Create(Create),
    /// Starts agents, and waits until they are ready.
    Start(These),
    /// Stops agents: they are asked to end, and killed if they do not.
    Stop(These),
    /// Stops agents and starts them again, with credentials that are looked up anew.
    Restart(These),
    Update(Update),
    /// Stops agents, and deletes all that they left.
    Rm(These),
    Ps(Ps),
    Status(StatusArgs),
    Logs(Logs),
    Prompt(Prompt),
    Object(Object),
    Pauses(Pauses),
    Approve(Approve),
    Deny(Deny),
    Answer(GivenAnswer),
    Provenance(Provenance),
    Export(Export),
    Import(Import),
}

/// Makes an agent anew of its manifest, and keeps its sessions, memories, board, notes and working directory.
///
/// What changes is shown first: fields, bytes, tools. One that runs is started again with it; if that fails, what ran
/// before runs on.
#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) this: This,

    /// The manifest; the one that it was made of without it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Another model for the agent that is spoken to.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// A single field, as `budget.tokens=10000`; may be given several times. The value is JSON, or else a text.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,

    /// Shows what would change, and changes nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Trusts what the manifest wants, after it was listed: programs, directories, addresses and keys; with a digest,
    /// only that.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The place where agents are kept.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Homed {
    /// The directory of all agents; without it, that of ADJUTANT_HOME, else .adjutant/run.
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// Makes an agent of a manifest. It is not started.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// The manifest; adjutant.yaml without it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) changes: Changes,

    /// Trusts what the manifest wants, after it was listed: programs, directories, addresses and keys; with a digest,
    /// only that.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The changes to a manifest.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Changes {
    /// Another name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Another model for the agent that is spoken to.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// A label beside those of the manifest; may be given several times.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,

    /// A variable of process tools beside those of the manifest; may be given several times. Not for credentials.
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) environment: Vec<(String, String)>,

    /// A single field, as `budget.tokens=10000`; may be given several times. The value is JSON, or else a text.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
}

/// Some agents.
#[derive(Debug, clap::Args)]
pub(crate) struct These {
    /// Their names or ids, or the first letters of their ids.
    #[arg(
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) names: Vec<String>,

    /// All of them.
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One agent.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct This {
    /// Its name or id, or the first letters of its id.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) homed: Homed,
}

/// Lists agents: name, status, model, address, how often they were started again, age.
#[derive(Debug, clap::Args)]
pub(crate) struct Ps {
    #[command(flatten)]
    pub(crate) homed: Homed,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tells where an agent stands, and which rules it was given for good.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) this: This,

    /// Goes on telling each change, until the agent is removed.
    #[arg(long)]
    pub(crate) watch: bool,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows what an agent's process wrote.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) this: This,

    /// The number of last lines to show.
    #[arg(short = 'n', long, value_name = "N", default_value = "100")]
    pub(crate) lines: usize,

    /// Goes on with what is written from now on.
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Prompts a running agent, and writes its answer as it comes. What it asks is answered in place on a terminal.
#[derive(Debug, clap::Args)]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub(crate) this: This,

    /// The prompt; `-`, or nothing, reads it from standard input.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// The session; without it, the default one of the agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// One event a line, as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Nothing but the answer and errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Asks a running agent for an object that fits a schema: by itself, or in a session and with its tools.
#[derive(Debug, clap::Args)]
pub(crate) struct Object {
    #[command(flatten)]
    pub(crate) this: This,

    /// The prompt; `-`, or nothing, reads it from standard input.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// The file of the JSON schema.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,

    /// The session in which the agent works with its tools until it answers; without it, it has neither.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
}

/// Lists what the runs of agents wait for: agent, session, since when, id, what is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Pauses {
    /// Their names or ids, or the first letters of their ids; all agents without it.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which things that wait are answered, and how the run that goes on is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Answering {
    #[command(flatten)]
    pub(crate) this: This,

    /// What is answered, as `pauses` names it: its session and its id, or its id alone if nothing else waits under that; without
    /// it, the only one that waits. With the first digits of its digest, only if it is still that.
    #[arg(value_name = "[SESSION/]ID[@DIGEST]")]
    pub(crate) ids: Vec<String>,

    /// The session; without it, every one is looked at.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// One event a line, as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Nothing but the answer and errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Approves what a run waits for, and follows the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) answering: Answering,

    /// Runs the call with these arguments instead: a JSON object.
    #[arg(long, value_name = "JSON")]
    pub(crate) edit: Option<String>,

    /// Makes the approval permanent: the displayed rules allow exactly this call from now on. If no rule required the approval,
    /// calls with the same arguments are approved for the rest of the run.
    #[arg(long, conflicts_with = "edit")]
    pub(crate) always: bool,
}

/// Denies what a run waits for, and follows the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    pub(crate) answering: Answering,

    /// The reason, for the model.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) why: String,
}

/// Answers what a run waits for: a question, a result, or by how much a limit is extended; and follows the run.
#[derive(Debug, clap::Args)]
pub(crate) struct GivenAnswer {
    #[command(flatten)]
    pub(crate) answering: Answering,

    /// The answer; without it, standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

/// Tells which bytes an agent runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Provenance {
    #[command(flatten)]
    pub(crate) this: This,

    /// Compares them with what is there now; the exit code is 1 if anything is not as it was.
    #[arg(long)]
    pub(crate) verify: bool,

    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a stopped agent into one file, with its sessions, skills and the programs beside its manifest, without secrets.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) this: This,

    /// The file; NAME.adjutant-agent without it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Leaves sessions, memories, boards and notes behind.
    #[arg(long)]
    pub(crate) without_state: bool,

    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads an agent from a file that `export` wrote. It gets a new id, and needs nothing of where it was.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Another name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The directory that stands for that of the manifest, for toolboxes that work in directories beside it.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// A single field of the manifest, as `process_tools.jq.binary=/usr/bin/jq`; may be given several times. The value is JSON,
    /// or else a text.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,

    /// Trusts what the agent wants, after it was listed: programs, directories, addresses and keys; with a digest, only
    /// that.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Makes the agents of a directory that are not there yet, and keeps all agents where they should stand, until Ctrl-C.
///
/// An agent is made of adjutant.yaml, and of each file *.agent.yaml; it is started. Those that were there before are updated
/// if their manifest or a file of it was changed, and keep what they have. Ctrl-C stops all of them; where they should stand is kept for the next time.
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// The directory.
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// The maximum number of agents that run at the same time; the others wait for a place. Without it, all run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,

    /// Trusts what manifests and agents of the directory want, after it was listed: programs, directories, addresses
    /// and keys; with a digest, only that.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    /// Removes agents whose manifest was changed, with their sessions, and makes them anew; what is destroyed is told, and
    /// asked for.
    #[arg(long)]
    pub(crate) recreate: bool,

    /// Agrees to what --recreate destroys.
    #[arg(long, requires = "recreate")]
    pub(crate) yes: bool,

    /// One event a line, as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Nothing but errors.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

pub(super) fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("not of the form KEY=VALUE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_is_split_at_the_first_sign_and_refused_without_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        for text in ["", "a", "=b", " =b"] {
            assert_eq!(pair(text), Err("not of the form KEY=VALUE"), "{text}");
        }
    }
}
