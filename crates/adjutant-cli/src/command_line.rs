//! Parses the command line. Forms of other programs work, or the error names the right form.

use std::ffi::OsString;

use clap::{
    CommandFactory, Error, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::args::Args;

/// Options of other programs that pass a prompt without a conversation.
const PROMPT: [&str; 3] = ["-p", "--print", "--prompt"];
/// Options of other programs that need no approvals.
const UNASKED: [&str; 4] = [
    "--yolo",
    "--full-auto",
    "--dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox",
];
/// The command that answers a prompt.
const RUN: &str = "run";

/// Parses the arguments of the process, its name first.
///
/// # Errors
/// A message for the user, which may be the requested help.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Args, Error> {
    let error = match Args::try_parse_from(&words) {
        Ok(args) => return Ok(args),
        Err(error) => error,
    };
    let invalid = match error.kind() {
        ErrorKind::UnknownArgument => context(&error, ContextKind::InvalidArg),
        // The second one is for a prompt behind an option.
        ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict => {
            context(&error, ContextKind::InvalidSubcommand)
        }
        _ => None,
    };
    let Some(invalid) = invalid else {
        return Err(error);
    };
    let command = words.iter().skip(1).find_map(|word| {
        let command = Args::command();
        command.find_subcommand(word).cloned()
    });
    let is_prompt = invalid.contains(char::is_whitespace) && !invalid.starts_with('-');
    let asks = PROMPT.contains(&&*invalid);
    if command.is_none() && (is_prompt || asks) {
        let mut run: Vec<OsString> = words.clone();
        if asks && let Some(at) = run.iter().position(|word| *word == *invalid) {
            run.remove(at);
        }
        run.insert(1.min(run.len()), RUN.into());
        return Args::try_parse_from(run);
    }
    Err(explained(error, &invalid, command))
}

/// Adds the right form to an error.
fn explained(mut error: Error, invalid: &str, command: Option<clap::Command>) -> Error {
    let tip = |text: &str| ContextValue::StyledStrs(vec![text.to_owned().into()]);
    if UNASKED.contains(&invalid) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(
            ContextKind::Suggested,
            tip("`--mode all` permits everything inside the sandbox"),
        );
    } else if error.kind() == ErrorKind::UnknownArgument && invalid.starts_with("--") {
        let command = command.unwrap_or_else(Args::command);
        let name = invalid.trim_start_matches('-');
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        // Two letters in the wrong order are more likely than a missing one.
        let rank = |option: &str| {
            (
                strsim::osa_distance(name, option),
                name.len().abs_diff(option.len()),
            )
        };
        let nearest = options
            .map(|option| (rank(option), option))
            .min()
            .filter(|((steps, _), _)| *steps <= name.len().div_ceil(3).min(3));
        if let Some((_, option)) = nearest {
            error.insert(
                ContextKind::SuggestedArg,
                ContextValue::String(format!("--{option}")),
            );
        }
    } else if error.kind() == ErrorKind::InvalidSubcommand
        && error.get(ContextKind::SuggestedSubcommand).is_none()
    {
        let text = format!("`adjutant run {invalid:?}` sends it as a prompt");
        error.insert(ContextKind::Suggested, tip(&text));
    }
    error
}

fn context(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;

    fn parsed(words: &[&str]) -> Result<Args, String> {
        let words = ["adjutant"]
            .iter()
            .chain(words)
            .map(OsString::from)
            .collect();
        parse(words).map_err(|error| error.to_string())
    }

    #[test]
    fn forms_of_other_programs_are_runs() {
        for words in [
            &["fix the bug"][..],
            &["-p", "fix the bug"],
            &["--mode", "edits", "-p", "fix the bug"],
            &["-m", "a/b", "fix the bug"],
            &["exec", "fix the bug"],
            &["run", "fix the bug"],
        ] {
            let args = parsed(words).expect("it is parsed");
            let Some(Command::Run(run)) = args.command else {
                panic!("{words:?}")
            };
            assert_eq!(run.prompt.as_deref(), Some("fix the bug"), "{words:?}");
        }
    }

    #[test]
    fn wrong_forms_name_the_right_one() {
        for (words, expect) in [
            (&["run", "--modle", "x", "y"][..], "'--model'"),
            (&["--modle", "x"], "'--model'"),
            (&["run", "--yolo", "x"], "`--mode all` permits everything"),
            (&["--yolo", "fix"], "`--mode all` permits everything"),
            (&["sesions"], "'sessions'"),
            (
                &["weather"],
                "`adjutant run \"weather\"` sends it as a prompt",
            ),
            (&["run", "--continu", "x"], "'--continue'"),
        ] {
            let error = parsed(words).expect_err("it is refused");
            assert!(error.contains(expect), "{words:?}: {error}");
        }
    }
}
