//! The last question, and the results that the tools have returned since.

use adjutant_llm::{Call, CallResult, Content, Entry, Origin, Request, Turn, UserMessage};
use serde_json::Value;

use super::{
    shapes,
    tools::{ArgumentSlot, Offered, Role},
};

/// The last question, and the replies since, oldest first.
pub(super) fn since_question(request: &Request) -> (String, Vec<&Turn>) {
    let (mut question, mut turns) = (String::new(), Vec::new());
    for stored in request.entries.iter().rev() {
        match &stored.entry {
            Entry::User(message) if is_question(message) => {
                question = words(message);
                break;
            }
            Entry::Turn(turn) => turns.push(turn),
            _ => {}
        }
    }
    turns.reverse();
    (question, turns)
}

/// The results that the tools have returned for one task.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The number of replies that were given since.
    pub(super) turns: usize,
    pub(super) lists: Vec<ToolListing>,
    pub(super) files: Vec<Read>,
    pub(super) searches: Vec<Searched>,
    /// The output of tools that changed a file or ran a command.
    pub(super) done: Vec<String>,
    pub(super) failures: Vec<Failure>,
    /// Every call since: the tool and its arguments.
    pub(super) calls: Vec<(String, Value)>,
}

/// A list that a tool returned.
#[derive(Debug)]
pub(super) struct ToolListing {
    pub(super) entries: Vec<shapes::ListEntry>,
    pub(super) partial: bool,
}

/// A file that a tool returned.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) path: String,
    pub(super) text: shapes::FileText,
}

/// Matches that a tool returned.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) places: Vec<shapes::SearchHit>,
    pub(super) partial: bool,
}

/// A call that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) tool: String,
    pub(super) role: Option<Role>,
    pub(super) path: Option<String>,
    pub(super) message: String,
}

impl Evidence {
    /// Takes a reply with the results of its calls.
    pub(super) fn turn(&mut self, turn: &Turn, offered: &Offered<'_>) {
        self.turns += 1;
        turn.pairs()
            .for_each(|(call, result)| self.take(call, result, offered));
    }

    fn take(&mut self, call: &Call, result: &CallResult, offered: &Offered<'_>) {
        let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
        let role = offered.role(call.name.as_str());
        let path = ArgumentSlot::Path
            .find(&args)
            .and_then(Value::as_str)
            .map(str::to_owned);
        let text = result.text();
        self.calls.push((call.name.to_string(), args));
        if result.is_error() {
            self.failures.push(Failure {
                tool: call.name.to_string(),
                role,
                path,
                message: text,
            });
            return;
        }
        let partial = shapes::is_partial(&text);
        match role {
            Some(Role::List) => self.lists.push(ToolListing {
                entries: shapes::entries(&text),
                partial,
            }),
            Some(Role::Read) => {
                self.files.push(Read {
                    path: path.unwrap_or_default(),
                    text: shapes::text(&text),
                });
            }
            Some(Role::Search) => self.searches.push(Searched {
                places: shapes::places(&text),
                partial,
            }),
            Some(Role::Edit | Role::Run) => self.done.push(text),
            None => {}
        }
    }

    /// All entries of all lists, each path once.
    pub(super) fn entries(&self) -> Vec<&shapes::ListEntry> {
        let mut seen = std::collections::HashSet::new();
        self.lists
            .iter()
            .flat_map(|it| &it.entries)
            .filter(|it| seen.insert(&it.path))
            .collect()
    }

    /// True if a call of this role failed.
    pub(super) fn has_failed(&self, role: Role) -> bool {
        self.failures.iter().any(|it| it.role == Some(role))
    }
}

/// A reminder of the framework is not a question.
fn is_question(message: &UserMessage) -> bool {
    !matches!(message.origin, Origin::Reminder { .. }) && !message.is_empty()
}

fn words(message: &UserMessage) -> String {
    let texts: Vec<&str> = message
        .content
        .iter()
        .filter_map(Content::as_text)
        .collect();
    texts.join("\n")
}
