//! What a run waits for, told to whoever can answer.

use std::sync::Arc;

use adjutant::{agent::Pause, tools::AskKind};

use crate::{job::Kept, plain, screen::Screen};

/// How many characters of arguments are told.
const MAX_ARGS: usize = 120;

/// Tells what waits, and how it is answered.
pub(crate) fn tell<'a>(pauses: impl IntoIterator<Item = &'a Arc<Pause>>, kept: Option<&Kept>, screen: &Screen) {
    let mut question = None;
    for pause in pauses {
        screen.tell(&format!("waits: {}", line(pause)));
        if !is_approval(pause) {
            question = Some(pause);
        }
    }
    let Some(kept) = kept else { return };
    let how = match question {
        Some(pause) => format!("--answer {}=TEXT", plain::word(&pause.id.0)),
        None => "--approve".to_owned(),
    };
    screen.tell(&format!("hint: adjutant resume {}{} {how}", plain::word(&kept.name.0), kept.store.option()));
}

/// A pause in one line: its id, and what it is about.
fn line(pause: &Pause) -> String {
    let about = match &pause.call {
        Some(call) if pause.key.is_none() && is_approval(pause) => {
            format!("{} {}", call.name.as_str(), short(&call.args))
        }
        Some(call) => format!("{}: {}", call.name.as_str(), pause.ask.prompt),
        None => pause.ask.prompt.to_string(),
    };
    format!("{}  {}", plain::line(&pause.id.0), plain::line(&about))
}

/// Whether a word is enough.
pub(crate) fn is_approval(pause: &Pause) -> bool {
    matches!(pause.ask.kind, AskKind::Approval | AskKind::Authorisation)
}

fn short(args: &str) -> String {
    match args.char_indices().nth(MAX_ARGS) {
        Some((at, _)) => format!("{}…", &args[..at]),
        None => args.to_owned(),
    }
}
