//! Placement: where children with their own sessions run. It does not know how sessions are driven there.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_core::{Caps, Digest, LogId, LogInfo, Pause, PauseId, RunResult, SessionMeta, Tally};
use adjutant_llm::Entry;
use adjutant_tool::{AskKind, ToolError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// The label of a session that is a child of another one.
const CHILD: &str = "child";
/// The prefix of the label with the number of agent levels allowed below a child.
const LEVELS: &str = "levels:";

/// A place where children of sessions run in sessions of their own: as the workers of a fleet.
///
/// A tool that delegates work to a child orders it here and waits with a [pause](adjutant_tool::CallContext::pause)
/// whose data contain the [`ChildLink`]; the driver of the child answers that pause with a [`ChildReport`].
#[async_trait]
pub trait Placement: Send + Sync {
    /// Starts a child; a child that was started before stays the same, whatever the new order says.
    ///
    /// Cancel: it is started or not.
    ///
    /// # Errors
    /// `Failed` if it could not be started, or if its session has another purpose.
    async fn begin(&self, order: ChildOrder) -> Result<ChildLink, ToolError>;

    /// Requests that a child stop; one that has ended stays as it is.
    ///
    /// # Errors
    /// `Failed` if the request could not be delivered.
    async fn stop(&self, child: &LogId) -> Result<(), ToolError>;
}

#[async_trait]
impl<P: Placement + ?Sized> Placement for Arc<P> {
    async fn begin(&self, order: ChildOrder) -> Result<ChildLink, ToolError> {
        (**self).begin(order).await
    }

    async fn stop(&self, child: &LogId) -> Result<(), ToolError> {
        (**self).stop(child).await
    }
}

/// An order for a child, stored in the first record of its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildOrder {
    /// The session that it runs in, which no other child has.
    pub session: LogId,
    /// Its role.
    pub role: ChildRole,
    /// Its prompt.
    pub prompts: Vec<Entry>,
    /// The most that it and everything under it may use.
    pub caps: Caps,
    /// The session that waits for it.
    pub parent: LogId,
    /// The pause there that its report answers.
    pub pause: PauseId,
}

/// The role of a child: the driver of its session creates its agent from it. It is stored in the description of the
/// session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRole {
    /// The name that its agent was configured under.
    pub agent: Arc<str>,
    /// The name of this instance.
    pub name: Arc<str>,
    /// The number of levels of agents that may be given tasks below it.
    pub levels: u16,
}

/// The child that a pause waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildLink {
    /// Its session.
    pub child: LogId,
    /// The digest of its order, as its session holds it.
    pub order: Digest,
    /// Its share of the budget: it counts as used while the call is running.
    pub caps: Caps,
}

/// The result of a child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildReport {
    /// The result of its run, without the entries of its conversation, and with those calls alone that ended it.
    pub result: RunResult,
    /// Its usage, including its children.
    pub tally: Tally,
}

impl ChildRole {
    /// Returns the child role of this session, or `None` if it is not a child session.
    pub fn from_info(info: &LogInfo) -> Option<Self> {
        let SessionMeta {
            title,
            agent,
            labels,
            ..
        } = &info.about;
        labels.get(CHILD)?;
        let levels = labels
            .iter()
            .find_map(|label| label.strip_prefix(LEVELS)?.parse().ok());
        Some(Self {
            agent: agent.clone()?,
            name: title.clone()?,
            levels: levels.unwrap_or(0),
        })
    }
}

impl From<&ChildRole> for SessionMeta {
    fn from(role: &ChildRole) -> Self {
        let labels = BTreeSet::from([CHILD.into(), format!("{LEVELS}{}", role.levels).into()]);
        let (title, agent) = (Some(Arc::clone(&role.name)), Some(Arc::clone(&role.agent)));
        Self {
            title,
            agent,
            labels,
            ..Self::default()
        }
    }
}

impl ChildLink {
    /// The child that a pause waits for; `None` if it waits for something else.
    pub fn from_pause(pause: &Pause) -> Option<Self> {
        if pause.ask.kind == AskKind::External {
            Self::deserialize(&pause.ask.data).ok()
        } else {
            None
        }
    }
}

impl From<&ChildOrder> for ChildLink {
    fn from(order: &ChildOrder) -> Self {
        let written = serde_json::to_vec(order).unwrap_or_default();
        Self {
            child: order.session.clone(),
            order: Digest::compute(&written),
            caps: order.caps,
        }
    }
}
