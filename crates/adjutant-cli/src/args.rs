//! What the command line may say.

use std::{path::PathBuf, str::FromStr, time::Duration};

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
    Models,
}

/// Runs an agent with read-only file tools on a directory.
///
/// The answer is written to standard output as it comes; tool calls, warnings and a summary go to standard error. Ctrl-C
/// ends the run and keeps what was said; a second Ctrl-C ends the command at once.
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

    /// The model, as provider/name; `adjutant models` lists the known ones.
    ///
    /// Without it: the variable ADJUTANT_MODEL, the default of the provider whose key is present, a server on this
    /// machine (Ollama, llama.cpp, LM Studio), or offline/planner, which is no language model.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// How many requests the agent may make, at least 1, or `unlimited`.
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) max_turns: MaxTurns,

    /// Ends the run after so many seconds; decimals are fine.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Writes every event of the run to standard output, one JSON object a line, and nothing else.
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
