//! The description that a tool gives of itself.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{ToolDecl, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum number of characters of a title in an approval request.
const MAX_TITLE: usize = 100;

/// The description that a tool gives of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The declaration for the model.
    pub decl: ToolDecl,
    /// The title for people, instead of the name; none by default.
    pub title: Option<Arc<str>>,
    /// The replay class: decides how a call that was started before a crash continues; `Once` by default.
    pub replay: Replay,
    /// True if a call runs alone: it starts after all earlier calls of the reply have finished, and later ones start after it;
    /// false by default.
    pub sequential: bool,
    /// The longest time of one call, instead of the run's own limit; none by default.
    pub timeout: Option<Duration>,
    /// The approval that a call needs, whatever its arguments are; none by default.
    pub approval: Approval,
    /// True if the tool has no body here, so that the application runs it and returns the result; false by default.
    pub external: bool,
    /// The maximum number of bytes of a result's text for the model, instead of the run's own limit.
    pub max_output: Option<usize>,
    /// The JSON schema of `details` in a successful result; none by default. It is for people and programs: it is not
    /// sent to the model, and results are not validated against it.
    pub output_schema: Option<Arc<Value>>,
    /// The effects of a call, for people who approve it; empty by default.
    pub hints: ToolHints,
}

/// Hints of a tool's author about the effects of its calls, for people who approve one and for rules.
///
/// They are the author's claims: hints of third-party tools are never trusted, and nothing runs because of them.
/// [`Replay`] decides whether a call may run again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolHints {
    /// True if a call changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_only: Option<bool>,
    /// True if a call may delete or overwrite something; false if it only adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// True if the same call twice changes nothing more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// True if a call reaches an open set of external systems, such as the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// The approval that a call needs before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Approval {
    /// Never, unless the tool itself requests an approval, depending on its arguments.
    #[default]
    Never,
    /// Approval of every call.
    Always,
}

/// The replay class of a tool: how a call continues if the log has its start but not its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Replay {
    /// It is run again: it only looks.
    Pure,
    /// It is run again with the same key: doing it twice is doing it once.
    Idempotent,
    /// It never runs again; the model is informed that the outcome is unknown.
    #[default]
    Once,
    /// It is entered again from the top, and its steps are answered from the log.
    Resumable,
}

impl ToolSpec {
    /// A tool of this name, with a description for the model and a JSON schema for the arguments.
    ///
    /// It runs at most once, in parallel with others within the limits of the run, without an approval.
    pub fn new(
        name: impl Into<ToolName>,
        description: impl Into<Arc<str>>,
        schema: impl Into<Arc<Value>>,
    ) -> Self {
        Self {
            decl: ToolDecl {
                name: name.into(),
                description: description.into(),
                schema: schema.into(),
            },
            title: None,
            replay: Replay::Once,
            sequential: false,
            timeout: None,
            approval: Approval::Never,
            external: false,
            max_output: None,
            output_schema: None,
            hints: ToolHints::default(),
        }
    }

    /// The name that the model calls.
    pub fn name(&self) -> &ToolName {
        &self.decl.name
    }

    /// Returns the author's remarks for people who approve a call: its title and its hints, as a quote; `None` if
    /// there are no remarks.
    pub fn remarks(&self) -> Option<String> {
        let title = self.title.as_deref().map(|title| {
            let end = title
                .char_indices()
                .nth(MAX_TITLE)
                .map_or(title.len(), |(end, _)| end);
            format!("titled {:?}", &title[..end])
        });
        let words = self.hints.words();
        let said =
            (!words.is_empty()).then(|| format!("by its author's word it {}", words.join(", ")));
        let remarks: Vec<String> = title.into_iter().chain(said).collect();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

impl ToolHints {
    /// Returns the hints as words; defaults are omitted.
    fn words(self) -> Vec<&'static str> {
        let reads = self.reads_only.map(|reads| {
            if reads {
                "changes nothing"
            } else {
                "changes something"
            }
        });
        let is_change = self.reads_only != Some(true);
        let destroys = self.destructive.filter(|_| is_change);
        let destroys = destroys.map(|it| {
            if it {
                "may delete or overwrite"
            } else {
                "deletes and overwrites nothing"
            }
        });
        let repeats = (is_change && self.idempotent == Some(true)).then_some("can be repeated");
        let reaches = (self.open_world == Some(true)).then_some("reaches the outside world");
        [reads, destroys, repeats, reaches]
            .into_iter()
            .flatten()
            .collect()
    }
}
