//! The calls that an agent may make by itself.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calls that an agent may make by itself, those that wait for an approval, and those that are denied.
///
/// The first rule that fits a call decides; without one, `default` does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Access {
    /// The decision on a call that no rule fits: `allow` without it. A tool that asks by itself asks all the same.
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
    /// The tools that it is about; a `*` stands for any letters.
    pub tools: Vec<Arc<str>>,
    /// The decision on their calls.
    pub then: Approval,
    /// The text that is asked, or told to the model when the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<Arc<str>>,
}

/// The decision on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It runs.
    Allow,
    /// It waits for a word.
    Ask,
    /// It does not run, and the model is told so.
    Deny,
}
