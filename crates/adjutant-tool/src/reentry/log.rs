//! The notes of the entries into one call, in order.

use std::sync::Arc;

use serde_json::Value;

use super::{Cut, Entered};
use crate::{Answer, Ask, Noted, ToolError, ToolErrorKind};

/// The notes of the entries into one call, in order.
#[derive(Default)]
pub(super) struct Log {
    steps: Vec<Step>,
    /// Counts the entries; the door of an earlier one is closed.
    entry: usize,
    /// The number of different keys that this entry has requested.
    at: usize,
    cut: Option<Cut>,
    is_cut: bool,
    diverged: Option<ToolError>,
}

struct Step {
    key: Arc<str>,
    state: State,
    asked: usize,
    ran: usize,
}

enum State {
    Begun,
    Done(Value),
    Asked(Ask),
    Answered(Ask, Answer),
}

impl Log {
    /// Opens the door of the next entry, which is dropped at the cut.
    pub(super) fn enter(&mut self, cut: Option<Cut>) -> usize {
        (self.at, self.cut, self.is_cut, self.diverged) = (0, cut, false, None);
        self.entry += 1;
        self.entry
    }

    /// Ends the entry, and returns its outcome.
    pub(super) fn leave<T>(&mut self, outcome: Option<Result<T, ToolError>>) -> Entered<T> {
        self.entry += 1;
        if let Some(error) = self.diverged.take() {
            return Entered::Failed(error);
        }
        if self.is_cut {
            return Entered::Dropped;
        }
        match (outcome, self.steps.get(self.at)) {
            (Some(Err(error)), _) => Entered::Failed(error),
            (Some(Ok(_)), Some(step)) => {
                let message = format!(
                    "the body ended without asking for {:?}, which is noted",
                    step.key
                );
                Entered::Failed(ToolError::new(ToolErrorKind::Diverged, message))
            }
            (Some(Ok(output)), None) => Entered::Ended(output),
            (None, _) => Entered::Waiting(self.steps.iter().filter_map(Step::waiting).collect()),
        }
    }

    /// A step begins; `None` if the entry is dropped here.
    pub(super) fn begin(&mut self, key: &str) -> Result<Option<Noted>, ToolError> {
        let Some(at) = self.find(key, None)? else {
            return Ok(self.push(key, State::Begun).map(|_| Noted::Fresh));
        };
        if self.cuts(at, &[Cut::Before, Cut::Within, Cut::After]) {
            return Ok(None);
        }
        Ok(Some(match &self.steps[at].state {
            State::Done(value) => Noted::Done(value.clone()),
            _ => Noted::Unknown,
        }))
    }

    /// A step came to something; `None` if the entry is dropped here.
    pub(super) fn finish(&mut self, key: &str, value: Value) -> Result<Option<()>, ToolError> {
        let begun = |step: &Step| *step.key == *key && matches!(step.state, State::Begun);
        let Some(at) = self.steps.iter().position(begun) else {
            return Err(self.diverge(format!("step {key:?} ended, but was not begun")));
        };
        if self.cuts(at, &[Cut::Within]) {
            return Ok(None);
        }
        self.steps[at].state = State::Done(value);
        Ok((!self.cuts(at, &[Cut::After])).then_some(()))
    }

    /// Handles a request; `None` if the entry is dropped here, because of the cut or to wait.
    pub(super) fn pause(&mut self, key: &str, ask: Ask) -> Result<Option<Answer>, ToolError> {
        let found = self
            .find(key, Some(&ask))?
            .or_else(|| self.push(key, State::Asked(ask)));
        let Some(at) = found else { return Ok(None) };
        if self.cuts(at, &[Cut::Before, Cut::Within, Cut::After]) {
            return Ok(None);
        }
        Ok(match &self.steps[at].state {
            State::Answered(_, answer) => Some(answer.clone()),
            _ => None,
        })
    }

    /// Answers a pause that waits.
    pub(super) fn answer(&mut self, key: &str, answer: Answer) -> Result<(), ToolError> {
        let step = self.steps.iter_mut().find(|step| *step.key == *key);
        let Some(Step { state, .. }) = step else {
            return Err(not_waiting_error(key));
        };
        let State::Asked(ask) = &*state else {
            return Err(not_waiting_error(key));
        };
        answer.fits(ask)?;
        *state = State::Answered(ask.clone(), answer);
        Ok(())
    }

    /// True if this entry is the last one, and not over.
    pub(super) fn is_in(&self, entry: usize) -> bool {
        self.entry == entry
    }

    pub(super) fn keys(&self) -> Vec<Arc<str>> {
        self.steps
            .iter()
            .map(|step| Arc::clone(&step.key))
            .collect()
    }

    pub(super) fn request_count(&self, key: &str) -> usize {
        self.steps
            .iter()
            .find(|step| *step.key == *key)
            .map_or(0, |step| step.asked)
    }

    pub(super) fn ran(&self, key: &str) -> usize {
        self.steps
            .iter()
            .find(|step| *step.key == *key)
            .map_or(0, |step| step.ran)
    }

    /// Returns the place of the next requested key; `None` if it is new.
    fn find(&mut self, key: &str, ask: Option<&Ask>) -> Result<Option<usize>, ToolError> {
        let Some(at) = self.steps.iter().position(|step| *step.key == *key) else {
            return match self.steps.get(self.at) {
                None => Ok(None),
                Some(next) => Err(self.diverge(format!(
                    "the body asks for {key:?}, but {:?} is noted next",
                    next.key
                ))),
            };
        };
        if !self.steps[at].is_for(ask) {
            return Err(self.diverge(format!("{key:?} was noted as something else")));
        }
        if at > self.at {
            let next = &self.steps[self.at].key;
            return Err(self.diverge(format!(
                "the body asks for {key:?}, but {next:?} is noted next"
            )));
        }
        self.at = self.at.max(at + 1);
        self.steps[at].asked += 1;
        Ok(Some(at))
    }

    /// Notes a new step and gives its place; `None` if the entry is dropped before.
    fn push(&mut self, key: &str, state: State) -> Option<usize> {
        if self.cuts(self.at, &[Cut::Before]) {
            return None;
        }
        let ran = usize::from(matches!(state, State::Begun));
        self.steps.push(Step {
            key: key.into(),
            state,
            asked: 1,
            ran,
        });
        self.at = self.steps.len();
        Some(self.at - 1)
    }

    /// True if the entry is dropped here, or was before: then the log learns nothing more.
    fn cuts(&mut self, at: usize, cuts: &[fn(usize) -> Cut]) -> bool {
        self.is_cut |= cuts.iter().any(|cut| self.cut == Some(cut(at + 1)));
        self.is_cut
    }

    fn diverge(&mut self, message: String) -> ToolError {
        let error = ToolError::new(ToolErrorKind::Diverged, message);
        self.diverged.get_or_insert(error).clone()
    }
}

impl Step {
    /// True if it is a pause with this question, or a step if there is no question.
    fn is_for(&self, ask: Option<&Ask>) -> bool {
        match &self.state {
            State::Begun | State::Done(_) => ask.is_none(),
            State::Asked(noted) | State::Answered(noted, _) => ask == Some(noted),
        }
    }

    fn waiting(&self) -> Option<(Arc<str>, Ask)> {
        match &self.state {
            State::Asked(ask) => Some((Arc::clone(&self.key), ask.clone())),
            _ => None,
        }
    }
}

fn not_waiting_error(key: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidArguments,
        format!("nothing waits for an answer to {key:?}"),
    )
}
