//! The arguments of `adjutant agent` and `adjutant up`.

use std::path::PathBuf;

use clap::Subcommand;

/// The commands for agents with their own directories.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    Create(Create),
    /// Starts agents, and waits until they are ready.
    Start(These),
    /// Stops agents: they receive a request to exit, and are killed after a grace period.
    Stop(These),
    /// Restarts agents, and reads their credentials again.
    Restart(These),
    Update(Update),
    /// Stops agents, and deletes all their data.
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

/// Updates an agent from its manifest, and keeps its sessions, memories, board, notes and working directory.
///
/// The changes are printed first: fields, files, tools. A running agent is restarted; if the new version fails to
/// start, the previous one continues.
#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) this: This,

    /// The manifest; by default, the one that the agent was created from.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Another model for the first agent.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Sets a single field, as `budget.tokens=10000`; can be repeated. The value is JSON, or else text.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,

    /// Prints the changes, and changes nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Trusts the permissions that the manifest requests, after listing them: programs, directories, addresses and
    /// keys; with a digest, only that content.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The place where agents are stored.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Homed {
    /// The directory of all agents; by default ADJUTANT_HOME, else .adjutant/run.
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// Creates an agent from a manifest. It is not started.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// The manifest; by default adjutant.yaml.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) changes: Changes,

    /// Trusts the permissions that the manifest requests, after listing them: programs, directories, addresses and
    /// keys; with a digest, only that content.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The changes to a manifest.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Changes {
    /// Another name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Another model for the first agent.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// An additional label; can be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,

    /// An additional variable for process tools; can be repeated. Not for credentials.
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) environment: Vec<(String, String)>,

    /// Sets a single field, as `budget.tokens=10000`; can be repeated. The value is JSON, or else text.
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

    /// All agents.
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// Prints one JSON object per line.
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

/// Lists agents: name, status, model, address, number of restarts, age.
#[derive(Debug, clap::Args)]
pub(crate) struct Ps {
    #[command(flatten)]
    pub(crate) homed: Homed,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the state of an agent, and its permanent rules.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) this: This,

    /// Also prints each change, until the agent is removed.
    #[arg(long)]
    pub(crate) watch: bool,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the output of an agent's process.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) this: This,

    /// The number of last lines to print.
    #[arg(short = 'n', long, value_name = "N", default_value = "100")]
    pub(crate) lines: usize,

    /// Also prints new output as it is written.
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Prompts a running agent, and writes its answer as it arrives. On a terminal, its questions can be answered in place.
#[derive(Debug, clap::Args)]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub(crate) this: This,

    /// The prompt; `-`, or no prompt, reads standard input.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// The session; by default, the default session of the agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// Prints one JSON event per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Prints only the answer and errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Requests an object that matches a schema from a running agent: with a single model request, or in a session with its
/// tools.
#[derive(Debug, clap::Args)]
pub(crate) struct Object {
    #[command(flatten)]
    pub(crate) this: This,

    /// The prompt; `-`, or no prompt, reads standard input.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// The file of the JSON schema.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,

    /// The session in which the agent works with its tools; without it, a single model request without tools is sent.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
}

/// Lists the pauses of agents: agent, session, time, id, question.
#[derive(Debug, clap::Args)]
pub(crate) struct Pauses {
    /// Their names or ids, or the first letters of their ids; by default, all agents.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The pauses to answer, and the display of the run that continues.
#[derive(Debug, clap::Args)]
pub(crate) struct Answering {
    #[command(flatten)]
    pub(crate) this: This,

    /// The pauses to answer, as `pauses` prints them: session and id, or only the id if it is unambiguous; by default,
    /// the only pause. With the first digits of its digest, only if the pause is unchanged.
    #[arg(value_name = "[SESSION/]ID[@DIGEST]")]
    pub(crate) ids: Vec<String>,

    /// The session; by default, all sessions are searched.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// Prints one JSON event per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Prints only the answer and errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Approves pauses of a run, and follows the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) answering: Answering,

    /// Runs the call with these arguments instead: a JSON object.
    #[arg(long, value_name = "JSON")]
    pub(crate) edit: Option<String>,

    /// Makes the approval permanent: the displayed rules allow exactly this call from now on. If no rule required the
    /// approval, calls with the same arguments are approved for the rest of the run.
    #[arg(long, conflicts_with = "edit")]
    pub(crate) always: bool,
}

/// Denies pauses of a run, and follows the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    pub(crate) answering: Answering,

    /// The reason, for the model.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) why: String,
}

/// Answers a pause of a run: a question, a result, or the extension of a limit; and follows the run.
#[derive(Debug, clap::Args)]
pub(crate) struct GivenAnswer {
    #[command(flatten)]
    pub(crate) answering: Answering,

    /// The answer; by default, it is read from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

/// Prints the provenance of an agent: the files that it runs, with their digests.
#[derive(Debug, clap::Args)]
pub(crate) struct Provenance {
    #[command(flatten)]
    pub(crate) this: This,

    /// Compares them with the files on the disk; the exit code is 1 if any file has changed.
    #[arg(long)]
    pub(crate) verify: bool,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a stopped agent to one file, with its sessions, skills and the programs next to its manifest, without
/// secrets.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) this: This,

    /// The file; by default NAME.adjutant-agent.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Omits sessions, memories, boards and notes.
    #[arg(long)]
    pub(crate) without_state: bool,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads an agent from a file that `export` wrote. It gets a new id, and does not depend on its original place.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Another name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The directory that replaces the manifest's directory, for toolboxes with a root outside the working directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Sets a single field of the manifest, as `process_tools.jq.binary=/usr/bin/jq`; can be repeated. The value is
    /// JSON, or else text.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,

    /// Trusts the permissions that the agent requests, after listing them: programs, directories, addresses and keys;
    /// with a digest, only that content.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Creates the missing agents of a directory, and keeps all agents in their desired state until Ctrl-C.
///
/// Agents are created from adjutant.yaml and each file *.agent.yaml, and started. Existing agents are updated if their
/// manifest or one of its files has changed; they keep their data. Ctrl-C stops all agents; their desired state is kept
/// for the next start.
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// The directory.
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) homed: Homed,

    /// The maximum number of agents that run at the same time; the others are queued. By default, all run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,

    /// Trusts the permissions that the manifests and agents of the directory request, after listing them: programs,
    /// directories, addresses and keys; with a digest, only that content.
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) trust: Vec<String>,

    /// Removes agents whose manifest has changed, with their sessions, and creates them again; prints what will be
    /// destroyed, and asks for a confirmation.
    #[arg(long)]
    pub(crate) recreate: bool,

    /// Confirms what --recreate destroys.
    #[arg(long, requires = "recreate")]
    pub(crate) yes: bool,

    /// Prints one JSON event per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Prints only errors.
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
