//! An agent of a handoff chain: its name, when it should take over, and its view of the conversation.

use std::{fmt, sync::Arc};

use adjutant_agent::Agent;
use adjutant_llm::{Edit, View};

use super::invalid;
use crate::Error;

/// The largest length of a name, so that the tool's name fits every provider.
const MAX_NAME: usize = 52;

/// Returns the changes of an agent's view at a takeover.
pub(super) type Filter = Arc<dyn Fn(&View) -> Vec<Edit> + Send + Sync>;

/// An agent of a [`HandoffChain`](crate::HandoffChain).
#[derive(Clone)]
pub struct HandoffTarget {
    pub(super) name: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) agent: Agent,
    /// The agents that it may hand over to; all others if none are named.
    pub(super) to: Option<Vec<Arc<str>>>,
    pub(super) filter: Option<Filter>,
}

impl HandoffTarget {
    /// An agent that can take over the conversation under this name; the description tells the other agents when.
    ///
    /// A name has letters, digits, `_` and `-`, 52 at most. Only the configuration of the agent counts: its session
    /// is the handoff chain's, its name is this one.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, agent: Agent) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            agent,
            to: None,
            filter: None,
        }
    }

    /// Sets whom it may hand over to; without it, to every other one.
    #[must_use]
    pub fn to<N: Into<Arc<str>>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self {
            to: Some(names.into_iter().map(Into::into).collect()),
            ..self
        }
    }

    /// Sets its view: a function from its view at the takeover to edits, which are recorded.
    ///
    /// The history keeps everything.
    #[must_use]
    pub fn filter(self, filter: impl Fn(&View) -> Vec<Edit> + Send + Sync + 'static) -> Self {
        Self {
            filter: Some(Arc::new(filter)),
            ..self
        }
    }

    /// True if it may hand over to another one.
    pub(super) fn may_hand_to(&self, other: &str) -> bool {
        *self.name != *other
            && self
                .to
                .as_ref()
                .is_none_or(|to| to.iter().any(|it| **it == *other))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || self.name.len() > MAX_NAME || !self.name.chars().all(is_part) {
            let message = format!(
                "a name has 1 to {MAX_NAME} letters, digits, `_` and `-`: {:?}",
                self.name
            );
            return Err(invalid(message));
        }
        Ok(())
    }
}

impl fmt::Debug for HandoffTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Target");
        shown
            .field("name", &self.name)
            .field("to", &self.to)
            .field("filtered", &self.filter.is_some());
        shown.finish_non_exhaustive()
    }
}
