//! The calls that an agent may make without an approval.

use std::sync::Arc;

use adjutant_toolkit::{AccessMode, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calls that an agent may make without an approval, calls that need one, and denied calls.
///
/// The first rule that matches a call decides; otherwise, `default` does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Access {
    /// The decision on a call without a matching rule: `allow` by default. A tool that requires an approval itself
    /// still does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Approval>,
    /// The rules, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ApprovalRule>,
}

/// A rule about calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ApprovalRule {
    /// The tools; a `*` matches any characters.
    pub tools: Vec<Arc<str>>,
    /// The decision on their calls.
    pub then: Approval,
    /// The text of the question, or the message for the model if the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<Arc<str>>,
}

/// The calls that run, need an approval, or are denied, by tool and arguments.
///
/// Deny takes precedence over ask, and ask over allow. A rule has the form `shell(git log *)`, `edit(src/**)`,
/// `read(secrets/*)`, `fetch(*.example.org)`, or is the name of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RulesSpec {
    /// The decision on a call without a matching rule: `ask` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<AccessMode>,
    /// Calls that run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Arc<str>>,
    /// Calls that wait for approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Arc<str>>,
    /// Denied calls; the model receives an error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Arc<str>>,
}

impl RulesSpec {
    /// Returns its rules, with their field and index.
    pub(crate) fn each(
        &self,
    ) -> impl Iterator<Item = (&'static str, usize, Result<Rule, adjutant_toolkit::Error>)> {
        let fields = [
            ("allow", &self.allow),
            ("ask", &self.ask),
            ("deny", &self.deny),
        ];
        let read = |field: &str, text: &str| format!("{field} {text}").parse::<Rule>();
        fields.into_iter().flat_map(move |(field, texts)| {
            texts
                .iter()
                .enumerate()
                .map(move |(n, text)| (field, n, read(field, text)))
        })
    }

    /// True if a rule matches arguments, not only names of tools.
    pub(crate) fn looks_inside(&self) -> bool {
        [&self.allow, &self.ask, &self.deny]
            .into_iter()
            .flatten()
            .any(|text| text.contains('('))
    }
}

/// The decision on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It runs.
    Allow,
    /// It waits for approval.
    Ask,
    /// It is denied; the model receives an error.
    Deny,
}
