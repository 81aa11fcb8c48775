//! Reflections: notes on failures, found again before a similar task, and kept only as long as they help.

mod directory;
mod learning;
mod markdown;
mod name;
mod on_kv;
mod rank;
mod recalling;
mod redact;
mod reflections;
mod render;
mod secrets;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use directory::{Directory, MAX_FILE_BYTES, MAX_LISTED};
pub use learning::{Learning, judge};
pub use on_kv::OnKvStore;
pub(crate) use rank::telling;
pub use recalling::Recalling;
pub use redact::Redactor;
pub use reflections::{
    MAX_CAVEATS_BYTES, MAX_FILES, MAX_RECALLED, MAX_REFLECTIONS, MAX_RENDERED_BYTES,
    MAX_SUMMARY_BYTES, MAX_TASK_BYTES, Reflections,
};

use crate::Error;

/// The smallest number of times that a reflection must have been useless before it is dropped.
pub const DROP_AFTER: u32 = 4;
/// A reflection is dropped when its [`helpfulness`](Reflection::helpfulness) is lower than this.
pub const DROP_BELOW: f64 = 0.25;

/// Names a reflection: `<agent>-<YYYYMMDD-HHMMSS>`, and a number if there are several of one second.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReflectionId(pub Arc<str>);

/// The description of a run that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failed {
    /// The name that the agent was configured under.
    pub agent: Arc<str>,
    /// The task of the agent.
    pub task: Arc<str>,
    /// A summary of what happened.
    pub summary: Arc<str>,
    /// The points to look out for.
    pub caveats: Option<Arc<str>>,
    /// The files that it changed.
    pub files_modified: Vec<Arc<str>>,
}

/// A note about a failure, with the outcomes of the runs that received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reflection {
    /// Its name.
    pub id: ReflectionId,
    /// The agent that failed.
    pub agent: Arc<str>,
    /// The task of the agent.
    pub task: Arc<str>,
    /// A summary of what happened.
    pub summary: Arc<str>,
    /// The points to look out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveats: Option<Arc<str>>,
    /// The files that it changed.
    #[serde(default)]
    pub files_modified: Vec<Arc<str>>,
    /// The time when it was recorded, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The number of runs that received it, by outcome.
    #[serde(default)]
    pub tally: Tally,
}

/// The number of runs that received a reflection, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Tally {
    /// Runs that succeeded.
    pub helped: u32,
    /// Runs that failed nevertheless.
    pub useless: u32,
    /// Runs with an unknown outcome.
    pub unknown: u32,
}

/// The outcome of a run that received reflections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It succeeded.
    Helped,
    /// It failed all the same.
    Useless,
    /// It is unknown, or has no meaning: the run was cancelled, or its provider failed.
    Unknown,
}

/// A change of a reflection that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReflectionChange {
    /// Counts a run that received it.
    Count(Outcome),
    /// Removes it.
    Remove,
}

/// The content of a reflection store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The reflections, newest first, including dropped ones.
    pub reflections: Vec<Reflection>,
    /// The entries that were passed over, with the reason: files of others, files that cannot be read.
    pub skipped: Vec<Arc<str>>,
}

/// A place that keeps reflections. Several processes may use one place at a time.
#[async_trait]
pub trait ReflectionStore: Send + Sync + fmt::Debug {
    /// Everything that is kept.
    ///
    /// # Errors
    /// `Store`.
    async fn all(&self) -> Result<Listing, Error>;

    /// Stores a reflection; if its name is in use, with the first free number from 2 on.
    ///
    /// # Errors
    /// `Invalid` if the name is invalid, `Full` if every number is used, `TimedOut`, `Store`.
    async fn add(&self, reflection: &Reflection) -> Result<ReflectionId, Error>;

    /// Changes the current state of a reflection, also with concurrent changes; `false` if it does not exist.
    ///
    /// # Errors
    /// `Conflict` if others were always faster, `TimedOut`, `Store`.
    async fn change(&self, id: &ReflectionId, change: ReflectionChange) -> Result<bool, Error>;
}

#[async_trait]
impl<S: ReflectionStore + ?Sized> ReflectionStore for Arc<S> {
    async fn all(&self) -> Result<Listing, Error> {
        (**self).all().await
    }

    async fn add(&self, reflection: &Reflection) -> Result<ReflectionId, Error> {
        (**self).add(reflection).await
    }

    async fn change(&self, id: &ReflectionId, change: ReflectionChange) -> Result<bool, Error> {
        (**self).change(id, change).await
    }
}

impl Reflection {
    /// A new reflection without counted runs.
    pub fn new(id: ReflectionId, failed: Failed, created_ms: u64) -> Self {
        let Failed {
            agent,
            task,
            summary,
            caveats,
            files_modified,
        } = failed;
        Self {
            id,
            agent,
            task,
            summary,
            caveats,
            files_modified,
            created_ms,
            tally: Tally::default(),
        }
    }

    /// Returns the chance that it helps, from 0 to 1: `(helped + 1) / (helped + useless + 2)`.
    ///
    /// That is the mean of a Beta distribution that begins as Beta(1, 1): one half while nothing is known, and nearer to
    /// the share of runs that it helped the more of them there are. Runs of unknown outcome change nothing.
    pub fn helpfulness(&self) -> f64 {
        let Tally {
            helped, useless, ..
        } = self.tally;
        (f64::from(helped) + 1.0) / (f64::from(helped) + f64::from(useless) + 2.0)
    }

    /// True if it has proved useless and is no longer recalled: it was useless at least [`DROP_AFTER`] times, and its
    /// helpfulness is below [`DROP_BELOW`].
    pub fn is_dropped(&self) -> bool {
        self.tally.useless >= DROP_AFTER && self.helpfulness() < DROP_BELOW
    }
}

impl Tally {
    /// Counts a run.
    pub(crate) fn count(&mut self, outcome: Outcome) {
        let of = match outcome {
            Outcome::Helped => &mut self.helped,
            Outcome::Useless => &mut self.useless,
            Outcome::Unknown => &mut self.unknown,
        };
        *of = of.saturating_add(1);
    }
}

impl Listing {
    /// These reflections, in any order, and the skipped entries.
    pub fn new(mut reflections: Vec<Reflection>, skipped: Vec<Arc<str>>) -> Self {
        reflections
            .sort_by(|one, other| (other.created_ms, &other.id).cmp(&(one.created_ms, &one.id)));
        Self {
            reflections,
            skipped,
        }
    }
}

impl fmt::Display for ReflectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ReflectionId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}
