//! The steps that the body of a call has requested, over all entries into it.

use std::{collections::HashMap, sync::Arc};

use adjutant_core::{KnownState, KnownStep, Pause};
use adjutant_tool::{Answer, Ask, Noted, ToolError, ToolErrorKind};
use serde_json::Value;

/// The steps that the body of a call has requested.
///
/// An entry must repeat all requests of earlier entries, with the same kind, before it makes a new one: otherwise it
/// has diverged, even if the body ignores that. Branches of a body may repeat the recorded requests in any order.
#[derive(Debug)]
pub(super) struct Steps {
    known: Vec<KnownStep>,
    index: HashMap<Arc<str>, usize>,
    /// For each request of earlier entries, true if this entry has repeated it. Empty if no repetition is required.
    asked: Vec<bool>,
    /// The number of requests not yet repeated.
    left: usize,
    /// The number of running steps.
    working: usize,
    diverged: Option<ToolError>,
}

/// The known state of a requested pause.
pub(super) enum PauseState {
    /// It is new.
    Fresh,
    /// It waits; `parked` is true if no one here could answer.
    Open { pause: Arc<Pause>, parked: bool },
    /// It was answered.
    Answered(Answer),
}

impl Steps {
    /// Starts from the steps that earlier entries have requested; `strict` is true if this one must repeat them.
    pub(super) fn new(known: Vec<KnownStep>, strict: bool) -> Self {
        let index = known
            .iter()
            .map(|it| Arc::clone(&it.key))
            .zip(0..)
            .collect();
        let asked = if strict {
            vec![false; known.len()]
        } else {
            Vec::new()
        };
        Self {
            known,
            index,
            left: asked.len(),
            asked,
            working: 0,
            diverged: None,
        }
    }

    /// True if the body may make this request now: it is known, or all recorded requests were repeated.
    pub(super) fn may_ask(&self, key: &str) -> bool {
        self.index.contains_key(key) || self.next().is_none()
    }

    /// The body continues without repeating the next recorded request.
    pub(super) fn went_astray(&mut self, key: &str) -> ToolError {
        let next = self.next().map_or("nothing", |known| &known.key);
        self.diverge(format!(
            "the body asks for {key:?}, but {next:?} is noted next"
        ))
    }

    /// Starts a step; returns its known state.
    pub(super) fn begin(&mut self, key: &str) -> Result<Noted, ToolError> {
        let Some(at) = self.find(key) else {
            self.working += 1;
            self.push(key, KnownState::Begun);
            return Ok(Noted::Fresh);
        };
        match &self.known[at].state {
            KnownState::Done(value) => Ok(Noted::Done(value.clone())),
            KnownState::Begun => Ok(Noted::Unknown),
            KnownState::Asked { .. } | KnownState::Answered { .. } => Err(self.mismatch_error(key)),
        }
    }

    /// True if a step was started, and its result is unknown.
    pub(super) fn is_torn(&self) -> bool {
        self.known
            .iter()
            .any(|it| matches!(it.state, KnownState::Begun))
    }

    /// A step came to something.
    pub(super) fn finish(&mut self, key: &str, value: Value) {
        self.working = self.working.saturating_sub(1);
        self.set(key, KnownState::Done(value));
    }

    /// Handles a request.
    pub(super) fn ask(&mut self, key: &str, ask: &Ask) -> Result<PauseState, ToolError> {
        let Some(at) = self.find(key) else {
            return Ok(PauseState::Fresh);
        };
        match &self.known[at].state {
            KnownState::Asked { pause, parked } if pause.ask == *ask => Ok(PauseState::Open {
                pause: Arc::clone(pause),
                parked: *parked,
            }),
            KnownState::Answered { pause, answer } if pause.ask == *ask => {
                Ok(PauseState::Answered(answer.clone()))
            }
            _ => Err(self.mismatch_error(key)),
        }
    }

    /// A pause was not known; it is about to be recorded.
    pub(super) fn record_pause(&mut self, key: &str, pause: &Arc<Pause>) {
        self.push(
            key,
            KnownState::Asked {
                pause: Arc::clone(pause),
                parked: false,
            },
        );
    }

    pub(super) fn record_answer(&mut self, key: &str, pause: &Arc<Pause>, answer: &Answer) {
        self.set(
            key,
            KnownState::Answered {
                pause: Arc::clone(pause),
                answer: answer.clone(),
            },
        );
    }

    /// True if a step is running.
    pub(super) fn is_working(&self) -> bool {
        self.working > 0
    }

    /// Returns the unanswered pauses, in order.
    pub(super) fn open(&self) -> Vec<Arc<Pause>> {
        let open = |it: &KnownStep| match &it.state {
            KnownState::Asked { pause, .. } => Some(Arc::clone(pause)),
            _ => None,
        };
        self.known.iter().filter_map(open).collect()
    }

    /// Returns the difference between this entry, whose body came to its end, and the earlier ones.
    pub(super) fn divergence(&mut self) -> Option<ToolError> {
        if let (None, Some(next)) = (&self.diverged, self.next()) {
            let message = format!(
                "the body ended without asking for {:?}, which is noted",
                next.key
            );
            self.diverge(message);
        }
        self.diverged.take()
    }

    /// Returns the first recorded request that was not repeated.
    fn next(&self) -> Option<&KnownStep> {
        if self.left == 0 {
            return None;
        }
        let at = self.asked.iter().position(|asked| !asked)?;
        self.known.get(at)
    }

    /// Returns the place of the requested key; `None` if it is new.
    fn find(&mut self, key: &str) -> Option<usize> {
        let at = self.index.get(key).copied()?;
        if let Some(asked) = self.asked.get_mut(at) {
            self.left -= usize::from(!std::mem::replace(asked, true));
        }
        Some(at)
    }

    fn push(&mut self, key: &str, state: KnownState) {
        let key: Arc<str> = key.into();
        self.index.insert(Arc::clone(&key), self.known.len());
        self.known.push(KnownStep { key, state });
    }

    fn set(&mut self, key: &str, state: KnownState) {
        if let Some(at) = self.index.get(key) {
            self.known[*at].state = state;
        }
    }

    fn mismatch_error(&mut self, key: &str) -> ToolError {
        self.diverge(format!("{key:?} was noted as something else"))
    }

    fn diverge(&mut self, message: String) -> ToolError {
        let error = ToolError::new(ToolErrorKind::Diverged, message);
        self.diverged.get_or_insert(error).clone()
    }
}
