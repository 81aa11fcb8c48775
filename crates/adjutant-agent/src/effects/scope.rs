//! The effect `tool_scope`: leaves tools out. What is left out is not shown, and refused if it is called.

use adjutant_llm::ToolName;
use async_trait::async_trait;
use serde::Deserialize;

use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Leaves tools out of every turn: those of a list, or all that are not in a list. Several scopes intersect.
///
/// An allow list does not touch what other effects offer; an exclude list does.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolScope {
    exclude: Vec<ToolName>,
    allow: Option<Vec<ToolName>>,
}

impl ToolScope {
    /// Leaves nothing out.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out these tools, too.
    #[must_use]
    pub fn exclude<N: Into<ToolName>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.exclude.extend(names.into_iter().map(Into::into));
        self
    }

    /// Leaves out everything but these tools; an empty list allows none.
    #[must_use]
    pub fn allow<N: Into<ToolName>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.allow.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }
}

#[async_trait]
impl Effect for ToolScope {
    fn kind(&self) -> &str {
        "tool_scope"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let mut hidden = self.exclude.clone();
        if let Some(allowed) = &self.allow {
            let names = cx.tools().iter().map(|tool| tool.spec().name());
            hidden.extend(names.filter(|name| !allowed.contains(name)).cloned());
        }
        Ok(if hidden.is_empty() { Vec::new() } else { vec![Action::Hide(hidden)] })
    }
}
