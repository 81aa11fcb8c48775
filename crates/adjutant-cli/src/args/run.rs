//! The arguments of `adjutant run` and `adjutant resume`.

use std::{path::PathBuf, time::Duration};

use adjutant::{
    llm::Effort, providers::TimeoutsPatch, runtime::manifest::Durability, toolkit::AccessMode,
};
use clap::ValueEnum;

use super::{AgentChoice, MaxTurns, Taught, sandbox::SandboxArgs, seconds};
use crate::exit;

/// Runs an agent on a directory: it reads files, and changes them if that is allowed.
///
/// The answer is written to standard output as it arrives; tool calls, warnings and a summary go to standard error.
/// Ctrl-C ends the run and keeps the conversation; a second Ctrl-C ends the command immediately.
///
/// A failed request is retried, even if the answer was interrupted in the middle. The text written so far is then void:
/// its line is ended, a line "[taken back: …]" follows on standard output unless that is a terminal, and the cause is
/// written to standard error. Scripts should use --final, --schema or --json, whose output marks all void text.
///
/// The prompt consists of PROMPT, standard input and the contents of the files of --file, in this order, with an empty
/// line between two parts. Standard input is read if it is a pipe or a file, or without PROMPT and --file; PROMPT `-`
/// reads only standard input.
///
/// The conversation is stored: `adjutant run --continue` or `adjutant resume` continues it, even if this command was
/// killed. Sessions without --session are deleted 30 days after their last change, or if they exceed 1 GB together.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::TABLE, alias = "exec")]
pub(crate) struct Run {
    /// The prompt of the agent; `-` reads standard input.
    pub(crate) prompt: Option<String>,

    /// Does not read standard input.
    #[arg(long)]
    pub(crate) no_stdin: bool,

    /// Adds the text of a file to the prompt, after PROMPT; can be repeated.
    #[arg(short, long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Continues the session of this name, or creates it.
    #[arg(long, value_name = "NAME", conflicts_with = "newest")]
    pub(crate) session: Option<String>,

    /// Continues the most recently changed session of this directory, or creates one.
    #[arg(short = 'c', long = "continue")]
    pub(crate) newest: bool,

    /// Stores nothing.
    #[arg(long, conflicts_with_all = ["newest", "session", "store"])]
    pub(crate) ephemeral: bool,

    #[command(flatten)]
    pub(crate) how: How,

    /// Records the requests and the replies of the model in a new file, a cassette.
    ///
    /// It contains the conversation, and no keys. An existing file is not overwritten.
    #[arg(long, value_name = "CASSETTE")]
    pub(crate) record: Option<PathBuf>,

    /// Replays the replies of a cassette, without network and without keys.
    ///
    /// The prompt and the options must be the same as in the recorded run. The tools really run, so the directory must
    /// have the same contents. Standard output is then the same, byte for byte. With --json, three things differ: the
    /// agent's id, the times, which are always 0, and the order in which parallel calls end. --timeout and --retries
    /// have no effect.
    #[arg(long, value_name = "CASSETTE", conflicts_with_all = ["models", "session", "newest", "memory", "board"])]
    pub(crate) replay: Option<PathBuf>,
}

/// Continues a run that waits for answers, or that was interrupted.
///
/// Without an unfinished run, a new one starts with the messages in the session's inbox.
///
/// Recorded requests and calls are not repeated without need. Answers are given with --approve, --deny and --answer;
/// without any, the pauses are listed, and the exit code is 5. The limits of the run are unchanged.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::TABLE)]
pub(crate) struct Resume {
    /// The session; by default, the most recently changed one of the directory.
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) given: GivenAnswers,

    /// Prints the work that would be repeated and why, and the differences from the recorded requests; runs nothing.
    #[arg(long, conflicts_with_all = ["approve", "deny", "answers"])]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) how: How,
}

impl GivenAnswers {
    /// True if there is an answer.
    pub(crate) fn is_some(&self) -> bool {
        ![&self.approve, &self.deny, &self.answers]
            .iter()
            .all(|given| given.is_empty())
    }
}

/// Answers to pauses.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct GivenAnswers {
    /// Approves the pause with this id, or all pauses that need approval, and shows them; with the digest from the
    /// list of pauses, only if it is unchanged.
    #[arg(long, value_name = "ID[@DIGEST]", num_args = 0..=1, default_missing_value = "")]
    pub(crate) approve: Vec<String>,

    /// Denies the pause with this id, or all pauses.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) deny: Vec<String>,

    /// The reason for the denial, for the model.
    #[arg(long, value_name = "TEXT", requires = "deny")]
    pub(crate) why: Option<String>,

    /// Answers the pause with this id: the answer to a question, a result, or the extension of a limit.
    #[arg(long = "answer", value_name = "ID=TEXT")]
    pub(crate) answers: Vec<String>,
}

/// The options of an agent.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// The directory of the agent; by default the session's directory when resuming, else `.`.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// The model, as provider/name; further models after commas are used if it fails.
    ///
    /// `adjutant models` lists the known ones. Without it: the model of the run that is resumed, the variable
    /// ADJUTANT_MODEL, the default of the provider whose key is present, a server on this machine (Ollama, llama.cpp,
    /// LM Studio), or offline/planner, which is not a language model. The variable ADJUTANT_PROVIDERS names a JSON file
    /// with more providers and models: {"providers": [{"name", "base_url", "wire", "key_variables", …}], "models":
    /// [{"id", "context_window", …}]}.
    #[arg(
        short,
        long = "model",
        value_name = "NAME[,NAME…]",
        value_delimiter = ','
    )]
    pub(crate) models: Vec<String>,

    /// The number of retries of a failed request before the next model is used; 0 to 10.
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) retries: u32,

    /// The timeouts for a model's server, in seconds: connect, first-byte, idle, silence, total.
    ///
    /// For example --model-timeouts first-byte=1200,idle=300. `first-byte` limits the time from the request to the
    /// first byte, `idle` the time between two chunks, `silence` the time in which only keep-alives arrive, `total` the
    /// time from the request to the end of the reply. The defaults depend on the provider. The file of
    /// ADJUTANT_PROVIDERS sets them by provider and model: {"timeouts": {"ollama": {"first_byte": "20m"}}}.
    #[arg(long, value_name = "NAME=SECS[,NAME=SECS…]", value_parser = super::model_timeouts)]
    pub(crate) model_timeouts: Option<TimeoutsPatch>,

    /// The thinking effort of the model: off, minimal, low, medium, high, xhigh or max; by default, the model's own.
    ///
    /// If a model does not support this effort, the nearest one is used, with a warning.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<Effort>,

    /// Permits web search by the provider of the model: Anthropic, OpenAI, Gemini. Rules do not apply to it.
    #[arg(long)]
    pub(crate) web_search: bool,

    /// Returns an answer that matches the JSON schema of this file: one line on standard output, and nothing else.
    ///
    /// The agent uses its tools as usual. If an answer does not match, the request is repeated up to twice, within
    /// --max-turns; if none matches, nothing is written and the exit code is 4. With --json, the last line is
    /// {"event":"answer","value":…}. A resumed run keeps its schema.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,

    /// Writes only the last reply to standard output, when the run has finished; nothing if it did not finish.
    #[arg(long = "final", conflicts_with_all = ["json", "schema"])]
    pub(crate) last: bool,

    /// The maximum number of model requests, at least 1, or `unlimited`.
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) max_turns: MaxTurns,

    /// Ends the run after this number of seconds; decimals are allowed.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Calls of these tools wait for approval: the run pauses with exit code 5, and `adjutant resume` continues it.
    ///
    /// Applies to the session until a run names other tools or none.
    #[arg(long, value_name = "TOOL[,TOOL…]", value_delimiter = ',')]
    pub(crate) ask: Vec<String>,

    /// The calls that run without approval if no rule matches: plan (read only, the rest is denied), ask (read only),
    /// edits (also changes of files), all (everything, in the sandbox).
    ///
    /// Rules are in .adjutant/rules of the directory and in $XDG_CONFIG_HOME/adjutant/rules, else
    /// $HOME/.config/adjutant/rules, one per line, for example `allow shell(git log *)` or `deny edit(*.lock)`. `allow`
    /// rules of a directory apply only with --trust. A call that needs approval waits: the run pauses with exit code 5.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<AccessMode>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// The crashes that the session survives at any time: of the machine (sync), of the program (async), or none before
    /// the run ends (on-exit).
    #[arg(long, value_name = "WHAT")]
    pub(crate) durability: Option<Survives>,

    /// Takes over the session from the process that uses it, even if that process is still running.
    #[arg(long)]
    pub(crate) take_over: bool,

    /// Gives the model the memories of this owner, and stores new ones from the run.
    #[arg(long, value_name = "OWNER")]
    pub(crate) memory: Option<String>,

    #[command(flatten)]
    pub(crate) taught: Taught,

    #[command(flatten)]
    pub(crate) agents: AgentChoice,

    /// Writes every event of the run to standard output, one JSON object per line, and nothing else.
    ///
    /// The events of a reply are void if `reply_retracted` follows them.
    #[arg(long)]
    pub(crate) json: bool,

    /// Writes only errors to standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Shows the model's thinking on standard error.
    #[arg(long, conflicts_with_all = ["quiet", "json"])]
    pub(crate) show_thinking: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// The place where sessions are stored.
#[derive(Debug, clap::Args)]
pub(crate) struct At {
    /// The place where sessions are stored: an SQLite file, a directory (ends with `/`) of JSON lines, or postgres://….
    ///
    /// By default, the variable ADJUTANT_STORE, else $XDG_DATA_HOME/adjutant/adjutant.db, else
    /// $HOME/.local/share/adjutant/adjutant.db. Put a URL with a password into the variable.
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: Option<String>,
}

/// The crashes that a session survives at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survives {
    /// A crash of the machine.
    Sync,
    /// A crash of the program.
    Async,
    /// None before the run ends or waits.
    OnExit,
}

impl From<Survives> for Durability {
    fn from(survives: Survives) -> Self {
        match survives {
            Survives::Sync => Durability::Sync,
            Survives::Async => Durability::Async,
            Survives::OnExit => Durability::OnExit,
        }
    }
}
