//! The texts for the agents of a team; bounded.

use std::{borrow::Cow, fmt::Write, sync::Arc};

use super::{LEAD, roster::State};
use crate::text::cut_with_size;

/// The largest number of bytes of a task that others receive.
pub(super) const MAX_TASK_SHOWN: usize = 300;
/// The largest number of bytes of a result that a list shows.
pub(super) const MAX_RESULT_SHOWN: usize = 500;
/// The largest number of bytes of a text that an event shows.
const MAX_SHOWN: usize = 2_000;
/// The largest number of agents that are named in a sentence.
const MAX_NAMED: usize = 20;

/// The beginning of a text, with a mark if something was left out.
pub(super) fn clip(text: &Arc<str>, max: usize) -> Arc<str> {
    match cut_with_size(text, max) {
        Cow::Borrowed(_) => Arc::clone(text),
        Cow::Owned(cut) => cut.into(),
    }
}

/// The beginning of a text for events.
pub(super) fn clip_event_text(text: &Arc<str>) -> Arc<str> {
    clip(text, MAX_SHOWN)
}

pub(super) fn message_id(number: u64) -> Arc<str> {
    format!("msg-{number}").into()
}

/// The number of a message, from its id.
pub(super) fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix("msg-")?.parse().ok()
}

/// Names, joined by commas; how many more there are if there are many.
pub(super) fn names<'a>(all: impl IntoIterator<Item = &'a Arc<str>>) -> String {
    let all: Vec<&str> = all.into_iter().map(|name| &**name).collect();
    let shown = all
        .get(..MAX_NAMED.min(all.len()))
        .unwrap_or_default()
        .join(", ");
    match all.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The note about an agent's unread messages.
pub(super) fn unread(state: &State, name: &str) -> Option<String> {
    let mut from: Vec<&Arc<str>> = state.unread_of(name).map(|header| &header.from).collect();
    let many = from.len();
    from.sort();
    from.dedup();
    let noun = if many == 1 { "message" } else { "messages" };
    (many > 0).then(|| format!("{many} unread {noun} from {}", names(from)))
}

/// Returns the text for a lead that would leave a team that is not done.
pub(super) fn not_done(state: &State) -> String {
    let mut text = String::from("Before you finish: your team is not done.");
    for (name, member) in state.active().take(MAX_NAMED) {
        let waits = if state.waits.values().any(|wait| wait.who == *name) {
            ", and waits for a message"
        } else {
            ""
        };
        let task = clip(&member.task, MAX_TASK_SHOWN);
        // Writing to a string does not fail.
        let _ = write!(text, "\n- {name} still works{waits}: {task}");
    }
    let more = state.active().count().saturating_sub(MAX_NAMED);
    if more > 0 {
        let _ = write!(text, "\n- {more} more still work");
    }
    if let Some(unread) = unread(state, LEAD) {
        let _ = write!(text, "\n- you have {unread}");
    }
    text.push_str(
        "\nYou may wait (wait_for_team, wait_for_message), read (read_messages), or stop a member (stop_teammate). Or \
         finish again with your whole answer: then the run ends, whoever works is stopped, and what is unread is lost.",
    );
    text
}

/// The first message of a member.
pub(super) fn briefing(
    team: &str,
    name: &str,
    role: Option<&str>,
    state: &State,
    task: &str,
) -> String {
    let role = role
        .map(|role| format!(" in the role {role:?}"))
        .unwrap_or_default();
    let others: Vec<&Arc<str>> = state
        .active()
        .map(|(other, _)| other)
        .filter(|other| ***other != *name)
        .collect();
    let others = if others.is_empty() {
        "nobody else yet".to_owned()
    } else {
        names(others)
    };
    format!(
        "You are {name:?}, a member of the team {team:?}{role}. Your lead is called {LEAD:?}. At work beside you: \
         {others}.\nWrite to one of them, or to all as \"*\", with send_message. read_messages gives what was written to \
         you, wait_for_message waits for it, list_teammates shows who is there. What you say at the end of your work \
         reaches the lead by itself.\n\nYour task:\n{task}"
    )
}

/// Returns the text for a member made without instructions.
pub(super) fn instructions(team: &str) -> String {
    format!(
        "You work in {team:?}, a team of agents. Do what you are asked, ask others when you need them, and end with a \
         result that stands by itself."
    )
}
