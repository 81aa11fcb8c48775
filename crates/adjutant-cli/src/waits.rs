//! Prints the pauses of a run completely, for every client that can answer.

use std::{
    io::{self, IsTerminal},
    path::Path,
    sync::Arc,
};

use adjutant::{
    agent::Pause,
    tools::{Ask, AskKind},
};

use crate::{exit::Exit, plain, problem::Problem, screen::Screen, store::StoredRun};

/// The maximum size of an approval request on a terminal, in bytes: scrolled lines may be lost.
pub(crate) const MAX_ON_TERMINAL: usize = 64 * 1024;
/// The number of digits of a digest in a name: enough that no other call with the same digits can be found.
pub(crate) const DIGITS: usize = 32;

/// Prints the pauses, their directory if it is known, and how to answer.
pub(crate) fn tell<'a>(
    pauses: impl IntoIterator<Item = &'a Arc<Pause>>,
    root: Option<&Path>,
    kept: Option<&StoredRun>,
    screen: &Screen,
) {
    let (mut question, mut approve, mut is_hidden) = (None, String::new(), false);
    for pause in pauses {
        let (shown, is_whole) = shown(pause, root);
        screen.tell(&format!("waits: {shown}"));
        is_hidden |= !is_whole;
        if is_approval(pause) {
            approve += &format!(" --approve {}", named(pause));
        } else {
            question = Some(pause);
        }
    }
    let Some(kept) = kept else { return };
    let how = match question {
        _ if is_hidden => " 2> FILE".to_owned(),
        Some(pause) => format!(" --answer {}=TEXT", plain::word(&pause.id.0)),
        None => approve,
    };
    screen.tell(&format!(
        "hint: adjutant resume {}{}{how}",
        plain::word(&kept.name.0),
        kept.store.option()
    ));
}

/// Returns the problem that the run of the session waits for answers.
pub(crate) fn waiting(kept: &StoredRun) -> Problem {
    let problem = Problem::new(
        Exit::Usage,
        format!("a run of the session waits for an answer: {}", kept.name),
    );
    problem.hint(format!(
        "adjutant resume {}{}",
        plain::word(&kept.name.0),
        kept.store.option()
    ))
}

/// Formats a pause in one line, with the directory of its call; also returns whether it is complete.
pub(crate) fn shown(pause: &Pause, root: Option<&Path>) -> (String, bool) {
    let root = root.filter(|_| pause.call.is_some()).map(|root| {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        format!(
            "in {}  ",
            plain::word(&plain::whole(&real.to_string_lossy()))
        )
    });
    // The first agent is not named; the id does not name the sub-agent.
    let who = if pause.path.contains('/') {
        format!("{}: ", plain::whole(&pause.path))
    } else {
        String::new()
    };
    let root = root.unwrap_or_default();
    let mut line = format!("{}  {root}{who}{}", plain::whole(&pause.id.0), about(pause));
    if line.len() <= MAX_ON_TERMINAL || !io::stderr().is_terminal() {
        return (line, true);
    }
    let hidden = line
        .split_off(line.floor_char_boundary(MAX_ON_TERMINAL))
        .len();
    (format!("{line}… ({hidden} more bytes)"), false)
}

/// Formats the complete content of a pause in one line: everything that its digest covers.
pub(crate) fn about(pause: &Pause) -> String {
    let Ask {
        prompt,
        schema,
        data,
        ..
    } = &pause.ask;
    let call = pause.call.as_ref();
    let mut about = call.map_or_else(String::new, |it| {
        format!(
            "{} {}",
            plain::whole(it.name.as_str()),
            plain::json(&it.args)
        )
    });
    let is_usual =
        call.is_some_and(|it| pause.key.is_none() && **prompt == usual(it.name.as_str()));
    if !is_usual {
        about += if about.is_empty() { "" } else { ": " };
        about += &plain::whole(prompt);
    }
    for reason in &pause.refused {
        about += &format!("; refused before: {}", plain::whole(reason));
    }
    for (what, value) in [("schema", schema), ("data", data)]
        .into_iter()
        .filter(|(_, value)| !value.is_null())
    {
        about += &format!("; {what} {}", plain::json(&value.to_string()));
    }
    about
}

/// Returns the question about a call that needs an approval.
pub(crate) fn usual(tool: &str) -> String {
    format!("may {tool} run?")
}

/// Returns the name of a pause with its digest, as an argument of a command.
pub(crate) fn named(pause: &Pause) -> String {
    plain::word(&format!(
        "{}@{:.DIGITS$}",
        pause.id,
        pause.digest().to_string()
    ))
}

/// True if the answer is yes or no.
pub(crate) fn is_approval(pause: &Pause) -> bool {
    matches!(pause.ask.kind, AskKind::Approval | AskKind::Authorisation)
}
