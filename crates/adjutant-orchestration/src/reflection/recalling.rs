//! The effect `reflections`: adds lessons of failures next to the message that they may help with.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Action, Effect, EffectContext, EffectError, Phase};
use adjutant_llm::{Content, Entry, Origin, UserMessage};
use async_trait::async_trait;
use serde_json::json;

use super::{Reflections, render};
use crate::{Error, ErrorKind};

/// The name of the effect.
pub(super) const KIND: &str = "reflections";
/// The longest time that a search may keep a run waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Adds reflections as a recorded entry, when a person or a parent sends a new message.
///
/// Reflections in the view are not added again. Failures are reported to observers, and do not stop a run.
#[derive(Debug, Clone)]
pub struct Recalling {
    reflections: Reflections,
}

impl Recalling {
    pub(super) fn new(reflections: Reflections) -> Self {
        Self { reflections }
    }
}

#[async_trait]
impl Effect for Recalling {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let task = collect_message_text(cx.fresh().map(|stored| &stored.entry));
        if task.is_empty() || cx.phase != Phase::Request {
            return Ok(Vec::new());
        }
        let found = tokio::time::timeout(PATIENCE, self.reflections.recall(&task)).await;
        let late = || {
            Error::new(
                ErrorKind::TimedOut,
                format!("reflections were not found within {PATIENCE:?}"),
            )
        };
        let mut found = match found.unwrap_or_else(|_| Err(late())) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!("nothing is recalled: {error}");
                return Ok(vec![Action::Report(json!({ "failed": error.to_string() }))]);
            }
        };
        let shown = render::find_shown(cx.view.items().iter().map(|stored| &stored.entry), KIND);
        found.retain(|it| !shown.contains(&it.id));
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = found.iter().map(|it| &it.id).collect();
        let report = Action::Report(json!({ "recalled": ids }));
        let text: Arc<str> = Reflections::render(&found).into();
        Ok(vec![report, Action::Remind(text)])
    }
}

/// Returns the text of the messages of people and parents in these entries.
pub(super) fn collect_message_text<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut said: Vec<&str> = Vec::new();
    for entry in entries {
        let Entry::User(UserMessage {
            content, origin, ..
        }) = entry
        else {
            continue;
        };
        if matches!(
            origin,
            Origin::Person | Origin::FollowUp | Origin::Task { .. }
        ) {
            said.extend(content.iter().filter_map(Content::as_text));
        }
    }
    said.join("\n").trim().to_owned()
}
