//! The decisions that a run may make next.

use std::{ops::Deref, sync::Arc};

use smallvec::{SmallVec, smallvec};

use crate::{
    activity::{Activity, ActivityId},
    outcome::Outcome,
    pause::Pause,
    record::Record,
};

/// A decision of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Next {
    /// These records follow from the state.
    Decide(Vec<Record>),
    /// These acts may begin now, in this order.
    Start(Few<Activity>),
    /// Something in flight must end first.
    Wait {
        /// The time to stop waiting, in milliseconds since 1970-01-01 UTC.
        until_ms: Option<u64>,
        /// The activities that should end early.
        stop: Vec<ActivityId>,
    },
    /// Only the outside can continue the run: these pauses wait for answers.
    Park(Vec<Arc<Pause>>),
    /// The run has ended.
    Done(Outcome),
}

/// Some things in order: mostly one, which needs no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Few<T>(SmallVec<[T; 1]>);

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.0.extend(items);
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<T> for Few<T> {
    fn from(one: T) -> Self {
        Self(smallvec![one])
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
