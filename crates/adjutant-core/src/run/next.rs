//! The decisions that a run may make next.

use std::sync::Arc;

use crate::{
    activity::{Activities, ActivityId},
    outcome::Outcome,
    pause::Pause,
    record::Record,
};

/// A decision of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Next {
    /// These records follow from what is there.
    Decide(Vec<Record>),
    /// These acts may begin now, in this order.
    Start(Activities),
    /// Something in flight must end first.
    Wait {
        /// The time to stop waiting, in milliseconds since 1970-01-01 UTC.
        until_ms: Option<u64>,
        /// The activities that should end early.
        stop: Vec<ActivityId>,
    },
    /// Only the outside can go on: these pauses wait for answers.
    Park(Vec<Arc<Pause>>),
    /// The run has ended.
    Done(Outcome),
}
