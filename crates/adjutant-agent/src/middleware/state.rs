//! Access of a middleware beyond the drive that it wraps: the conversation, bills, warnings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::Record;
use adjutant_llm::{Model, NanoUsd, Transcript, Usage, Warning};

use super::DriveContext;

/// The data that the middleware of one drive may look at, and the records and warnings that it leaves.
#[derive(Debug)]
pub(crate) struct MiddlewareState {
    model: Arc<dyn Model>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    history: Transcript,
    billed: Vec<Record>,
    warnings: Vec<Warning>,
}

impl MiddlewareState {
    pub(crate) fn new(model: &Arc<dyn Model>, history: &Transcript) -> Self {
        let state = State {
            history: history.clone(),
            ..State::default()
        };
        Self {
            model: Arc::clone(model),
            state: Mutex::new(state),
        }
    }

    /// Shows what was said by now.
    pub(crate) fn show(&self, history: &Transcript) {
        self.state().history = history.clone();
    }

    /// Takes what is to be recorded and told.
    pub(crate) fn take(&self) -> (Vec<Record>, Vec<Warning>) {
        let mut state = self.state();
        (
            std::mem::take(&mut state.billed),
            std::mem::take(&mut state.warnings),
        )
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DriveContext {
    /// The model of the agent.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.shared.model
    }

    /// Everything that was said: before the drive what it goes on from, after it what it has added too.
    pub fn history(&self) -> Transcript {
        self.shared.state().history.clone()
    }

    /// Counts what a helper spent on models as the run's, as soon as the middleware has ended.
    ///
    /// What is billed by a drive whose run never began is lost: there is nobody to pay.
    pub fn bill(&self, by: impl Into<Arc<str>>, usage: Usage, cost: Option<NanoUsd>) {
        self.shared.state().billed.push(Record::Billed {
            by: by.into(),
            usage,
            cost,
        });
    }

    /// Tells observers of the run that something went less well than it should, as soon as the middleware has ended.
    pub fn warn(&self, warning: Warning) {
        self.shared.state().warnings.push(warning);
    }
}
