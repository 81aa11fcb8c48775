//! The driver: takes the next step from the run and lets an executor perform it. It has no other knowledge, on
//! purpose.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    activity::{Activity, ActivityId},
    error::Error,
    journal::Stamped,
    outcome::Outcome,
    pause::Pause,
    record::Record,
    run::{Few, Next, Run},
};

/// An executor of activities: tokio tasks here, a durable engine elsewhere. Called from one task, one method at a time.
pub trait Executor {
    /// The activities in flight. An activity that is in the log and not in flight is orphaned.
    fn busy(&self) -> &BTreeSet<ActivityId>;

    /// Starts an activity; it is in flight until `next` has returned its records. An activity that ends immediately
    /// adds its records to `ended`, and is never in flight; it must do one of the two.
    fn start(&mut self, run: &Run, act: Activity, ended: &mut Vec<Record>);

    /// Requests that activities end early: cancel, a grace period, abort. Idempotent.
    fn stop(&mut self, acts: &[ActivityId]);

    /// Waits for an event, at most until a time in milliseconds since 1970-01-01 UTC, and adds the received records.
    ///
    /// Cancel: nothing is lost.
    fn next(
        &mut self,
        until_ms: Option<u64>,
        heard: &mut Vec<Record>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Numbers and stores records, and notifies observers. Records that an external effect depends on are durable
    /// before that, the others by the time the executor waits. Returns the records with their positions.
    ///
    /// Cancel: the log may hold the records or not; the executor must not be used again.
    fn commit(
        &mut self,
        records: &mut Vec<Record>,
    ) -> impl Future<Output = Result<&[Arc<Stamped>], Error>> + Send;
}

/// The way in which a drive ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Exit {
    /// With the end of the run.
    Done(Outcome),
    /// Waiting for the outside; another drive continues with the answers.
    Parked(Vec<Arc<Pause>>),
}

/// Performs a run until it ends or parks.
///
/// Cancel: every record so far is in the log; another drive continues from there.
///
/// # Errors
/// The error of the executor while it performs or records.
pub async fn drive<P: Executor>(run: &mut Run, executor: &mut P) -> Result<Exit, Error> {
    // Mostly one comes at a time, and thousands of drives may wait.
    let (mut records, mut acts) = (Vec::with_capacity(2), Few::default());
    loop {
        record(run, executor, &mut records).await?;
        if !acts.is_empty() {
            std::mem::take(&mut acts)
                .into_iter()
                .for_each(|act| executor.start(run, act, &mut records));
            if records.is_empty() && executor.busy().is_empty() {
                return Err(Error::Stuck);
            }
            continue;
        }
        // A waiting drive does not hold the earlier decision.
        let until_ms = match run.next(executor.busy()) {
            Next::Decide(decided) => {
                records.extend(decided);
                continue;
            }
            Next::Start(begin) => {
                records.extend(run.intent(&begin));
                acts = begin;
                continue;
            }
            Next::Wait { until_ms, stop } => {
                executor.stop(&stop);
                until_ms
            }
            Next::Park(pauses) => return Ok(Exit::Parked(pauses)),
            Next::Done(outcome) => return Ok(Exit::Done(outcome)),
        };
        executor.next(until_ms, &mut records).await?;
    }
}

/// Commits records and folds them into the run.
///
/// # Errors
/// The error of the executor while it records, or of the run while it folds.
pub async fn commit<P: Executor>(
    run: &mut Run,
    executor: &mut P,
    mut records: Vec<Record>,
) -> Result<(), Error> {
    record(run, executor, &mut records).await
}

async fn record<P: Executor>(
    run: &mut Run,
    executor: &mut P,
    records: &mut Vec<Record>,
) -> Result<(), Error> {
    if records.is_empty() {
        return Ok(());
    }
    for stamped in executor.commit(records).await? {
        run.apply(stamped)?;
    }
    Ok(())
}
