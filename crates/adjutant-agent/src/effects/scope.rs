//! The effect `tool_scope`: omits tools. They are not declared, and refused if they are called.

use adjutant_llm::ToolName;
use async_trait::async_trait;
use serde::Deserialize;

use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Omits tools from every turn: the tools in a list, or all tools not in a list. Several scopes intersect.
///
/// An allow list does not touch what other effects offer; an exclude list does.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolScope {
    /// The tools that are left out; none by default.
    pub exclude: Vec<ToolName>,
    /// The only tools that are not left out; an empty list allows none. Without a list, the default, all are allowed.
    pub allow: Option<Vec<ToolName>>,
}

#[async_trait]
impl Effect for ToolScope {
    fn kind(&self) -> &str {
        "tool_scope"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let mut hidden = self.exclude.clone();
        if let Some(allowed) = &self.allow {
            let names = cx.tools.iter().map(|tool| tool.spec().name());
            hidden.extend(names.filter(|name| !allowed.contains(name)).cloned());
        }
        Ok(if hidden.is_empty() {
            Vec::new()
        } else {
            vec![Action::Hide(hidden)]
        })
    }
}
