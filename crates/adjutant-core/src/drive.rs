//! The driver: asks the run what is next, and lets an executor perform it. It knows nothing else, on purpose.

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
    /// The activities that are in flight. What is in the log and not in flight is orphaned.
    fn busy(&self) -> &BTreeSet<ActivityId>;

    /// Begins to perform an activity; it is in flight until `next` gave its records. One that ends at once puts its
    /// records into `ended`, and is never in flight; it must do one of the two.
    fn start(&mut self, run: &Run, act: Activity, ended: &mut Vec<Record>);

    /// Asks activities to end early: cancel, a grace period, abort. Asking twice is asking once.
    fn stop(&mut self, acts: &[ActivityId]);

    /// Waits for something to happen, at most until a time in milliseconds since 1970-01-01 UTC, and adds what was
    /// heard.
    ///
    /// Cancel: nothing is lost.
    fn next(
        &mut self,
        until_ms: Option<u64>,
        heard: &mut Vec<Record>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Takes records, numbers them, keeps them, and shows them to observers: those that something outside depends on are durable
    /// before that, the others by the time the executor waits. Gives them with their places.
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
    /// Waiting for the outside; another drive goes on with the answers.
    Parked(Vec<Arc<Pause>>),
}

/// Performs a run until it ends or parks.
///
/// Cancel: every record so far is in the log; another drive goes on from there.
///
/// # Errors
/// Whatever keeps the executor from performing or recording.
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
        // A drive that waits does not hold what was decided before.
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
/// Whatever keeps the executor from recording, or the run from folding.
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
