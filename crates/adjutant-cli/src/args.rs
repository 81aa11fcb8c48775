//! What the command line may say.

use std::{path::PathBuf, str::FromStr, time::Duration};

use adjutant::llm::Effort;
use clap::{Parser, Subcommand};

use crate::exit;

/// Runs agents that answer from what their tools return.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, after_help = exit::TABLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    /// Lists the known models with their limits and prices, and which keys are present.
    ///
    /// A key is never printed, only the name of its variable.
    Models(Models),
}

/// Which models are listed.
#[derive(Debug, clap::Args)]
pub(crate) struct Models {
    /// Lists the models of one provider, and where it is, what it speaks and how its key is called.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// Shows every provider, also those without a listed model and without a key.
    #[arg(long, conflicts_with = "provider")]
    pub(crate) all: bool,
}

/// Runs an agent with read-only file tools on a directory.
///
/// The answer is written to standard output as it comes; tool calls, warnings and a summary go to standard error. Ctrl-C
/// ends the run and keeps what was said; a second Ctrl-C ends the command at once.
///
/// A request that fails is tried again, also after the answer broke off in the middle. What was written of it is void
/// then: its line is ended, a line "[taken back: …]" follows on standard output unless that is a terminal, and the cause
/// stands on standard error. Scripts take --final, --schema or --json, whose output holds nothing void unmarked.
///
/// The prompt is made of PROMPT and then the contents of the files of --file, in the order given, with an empty line
/// between two parts. PROMPT `-` stands for what standard input holds. Without PROMPT and --file, standard input is the
/// prompt unless it is a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::TABLE)]
pub(crate) struct Run {
    /// What the agent is asked; `-` reads standard input.
    pub(crate) prompt: Option<String>,

    /// Adds the text of a file to the prompt, after PROMPT; may be given several times.
    #[arg(short, long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The directory whose files the agent may list, read and search.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,

    /// The model, as provider/name; after commas, those that are asked in its place when it fails.
    ///
    /// `adjutant models` lists the known ones. Without it: the variable ADJUTANT_MODEL, the default of the provider whose
    /// key is present, a server on this machine (Ollama, llama.cpp, LM Studio), or offline/planner, which is no language
    /// model. The variable ADJUTANT_PROVIDERS names a JSON file of more providers and models:
    /// {"providers": [{"name", "base_url", "wire", "key_variables", …}], "models": [{"id", "context_window", …}]}.
    #[arg(short, long = "model", value_name = "NAME[,NAME…]", value_delimiter = ',')]
    pub(crate) models: Vec<String>,

    /// How often a failed request is tried again, before another model is asked; 0 to 10.
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) retries: u32,

    /// How much the model thinks: off, minimal, low, medium, high or max; without it, as it does by itself.
    ///
    /// Of what a model does not have, the nearest that it has is taken, with a warning.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<Effort>,

    /// The answer is JSON that fits the JSON schema of this file: one line on standard output, and nothing else.
    ///
    /// The agent works with its tools as always. An answer that does not fit is asked for again, up to three times
    /// beside --max-turns; if none fits, nothing is written and the exit code is 4. With --json, the last line is
    /// {"event":"answer","value":…,"requests":…,"usage":…,"cost":…}.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,

    /// Writes only the last reply to standard output, whole, when the run has finished; nothing if it did not finish.
    #[arg(long = "final", conflicts_with_all = ["json", "schema"])]
    pub(crate) last: bool,

    /// Records what the model is asked and how it answers in a new file, a cassette.
    ///
    /// It holds the conversation as it was, and no keys. A file that exists is not overwritten.
    #[arg(long, value_name = "CASSETTE")]
    pub(crate) record: Option<PathBuf>,

    /// Answers from a cassette, without a network and without keys.
    ///
    /// The prompt and the options must be those of the recorded run. The tools really run, so the directory must hold
    /// what it held. Standard output is then that of the recorded run, byte for byte; with --json, all but the agent's id,
    /// the times, for which the clock stands still at 0, and the order in which calls that run together end. --timeout and
    /// --retries have no effect.
    #[arg(long, value_name = "CASSETTE", conflicts_with = "models")]
    pub(crate) replay: Option<PathBuf>,

    /// How many requests the agent may make, at least 1, or `unlimited`.
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) max_turns: MaxTurns,

    /// Ends the run after so many seconds; decimals are fine.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Writes every event of the run to standard output, one JSON object a line, and nothing else.
    ///
    /// What the events of a reply told is void when `reply_retracted` follows them.
    #[arg(long)]
    pub(crate) json: bool,

    /// Writes nothing to standard error but errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Shows the model's reasoning on standard error.
    #[arg(long, conflicts_with_all = ["quiet", "json"])]
    pub(crate) show_thinking: bool,
}

/// How many requests a run may make.
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

fn seconds(text: &str) -> Result<Duration, &'static str> {
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
            ("0", Err("a run needs at least one turn; `unlimited` sets no limit")),
            ("-1", Err("not a whole number from 1 to 4294967295, nor `unlimited`")),
            ("many", Err("not a whole number from 1 to 4294967295, nor `unlimited`")),
        ];
        for (text, expect) in cases {
            assert_eq!(text.parse(), expect, "{text}");
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
