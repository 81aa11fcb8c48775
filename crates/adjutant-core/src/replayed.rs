//! Replay: reads a log again, without a model and without tools; the log provides all results.

mod fold;
mod speaking;

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::ThreadId;
use adjutant_tool::Identity;

use crate::{
    error::Error,
    event::Event,
    journal::Stamped,
    number::{RunNo, Seq, TurnNo},
    record::{Config, Difference, Record},
    run::Run,
};

pub use fold::EventFold;

/// The settings of a replay.
#[derive(Debug, Clone)]
pub struct Rewind {
    /// The first agent of the log.
    pub who: Arc<Identity>,
    /// The fingerprint that each turn of the first agent is compared with; none is by default.
    pub config: Option<Arc<Config>>,
    /// The last record of the walk; the whole log by default.
    pub until: Option<Seq>,
}

/// The result of a replay.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Replayed {
    /// The fold of the first agent's conversation.
    pub run: Run,
    /// The folds of the conversations under it.
    pub children: BTreeMap<ThreadId, Run>,
    /// The events that a live run would have emitted, without deltas, progress and warnings.
    pub events: Vec<Event>,
    /// The turns of the first agent whose requests were made with other data than today's, in order.
    pub divergences: Vec<Divergence>,
    /// The turns of the first agent that were recorded without a fingerprint.
    pub unrecorded: Vec<TurnNo>,
    /// The number of records that there were.
    pub records: usize,
}

/// A turn whose request was made with other data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The run.
    pub run: RunNo,
    /// The turn.
    pub turn: TurnNo,
    /// The fields; turns with equal requests share them.
    pub differences: Arc<[Difference]>,
}

impl Rewind {
    /// A walk over the whole log of this agent.
    pub fn new(who: impl Into<Arc<Identity>>) -> Self {
        Self {
            who: who.into(),
            config: None,
            until: None,
        }
    }

    /// Walks over the records of a log, from its first one on.
    ///
    /// # Errors
    /// `Defect` if they do not fold.
    pub fn play(&self, records: impl IntoIterator<Item = Arc<Stamped>>) -> Result<Replayed, Error> {
        let mut replayed = Replayed::default();
        let mut known: Option<(Arc<Config>, Arc<[Difference]>)> = None;
        let is_wanted =
            |stamped: &Arc<Stamped>| self.until.is_none_or(|until| stamped.seq <= until);
        let mut events = EventFold::new(Arc::clone(&self.who), Seq(0));
        for stamped in records.into_iter().take_while(is_wanted) {
            replayed.records += 1;
            events.push(&stamped)?;
            replayed
                .events
                .extend(std::iter::from_fn(|| events.ready.pop_front()));
            if stamped.thread != self.who.thread {
                replayed
                    .children
                    .entry(stamped.thread.clone())
                    .or_default()
                    .apply(&stamped)?;
                continue;
            }
            replayed.run.apply(&stamped)?;
            if let Record::Prepared {
                turn, stop: None, ..
            } = &stamped.record
            {
                replayed.compare(*turn, self.config.as_ref(), &mut known);
            }
        }
        replayed
            .events
            .extend(std::iter::from_fn(|| events.pop_at_end()));
        Ok(replayed)
    }
}

impl Replayed {
    /// Compares the request of a turn with another fingerprint; `known` caches the result for the latest one.
    fn compare(
        &mut self,
        turn: TurnNo,
        now: Option<&Arc<Config>>,
        known: &mut Option<(Arc<Config>, Arc<[Difference]>)>,
    ) {
        let Some(recorded) = self.run.config() else {
            return self.unrecorded.push(turn);
        };
        let Some(now) = now else { return };
        let differences = match known {
            Some((of, differences)) if Arc::ptr_eq(of, recorded) => Arc::clone(differences),
            _ => recorded.differences(now).into(),
        };
        *known = Some((Arc::clone(recorded), Arc::clone(&differences)));
        if !differences.is_empty() {
            self.divergences.push(Divergence {
                run: self.run.run(),
                turn,
                differences,
            });
        }
    }
}
