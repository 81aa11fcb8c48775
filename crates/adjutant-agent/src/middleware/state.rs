//! Access of a middleware beyond the drive that it wraps: the conversation, bills, warnings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::Record;
use adjutant_llm::{Model, NanoUsd, Transcript, Usage, Warning};

use super::DriveContext;

/// The data for the middleware of one drive, and the records and warnings that it adds.
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

    /// Sets the conversation so far.
    pub(crate) fn show(&self, history: &Transcript) {
        self.state().history = history.clone();
    }

    /// Takes the pending records and warnings.
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

    /// The complete conversation: before the drive its start, and after it with its additions.
    pub fn history(&self) -> Transcript {
        self.shared.state().history.clone()
    }

    /// Adds a helper's model usage to the run, as soon as the middleware has ended.
    ///
    /// Usage billed by a drive whose run never started is lost: no run can record it.
    pub fn bill(&self, by: impl Into<Arc<str>>, usage: Usage, cost: Option<NanoUsd>) {
        self.shared.state().billed.push(Record::Billed {
            by: by.into(),
            usage,
            cost,
        });
    }

    /// Sends a warning to observers of the run, as soon as the middleware has ended.
    pub fn warn(&self, warning: Warning) {
        self.shared.state().warnings.push(warning);
    }
}
