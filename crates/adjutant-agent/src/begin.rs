//! The beginning of a drive.

use adjutant_core::{Answered, Limits, Terms};
use adjutant_llm::Entry;

/// The limits of one run that differ from its agent's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// The most turns; `Some(None)` for no limit.
    pub(crate) max_turns: Option<Option<u32>>,
    /// The time by which it must have ended, in milliseconds since 1970-01-01 UTC.
    pub(crate) deadline_ms: Option<u64>,
}

impl Bounds {
    /// Puts the bounds into these limits.
    pub(crate) fn narrow(self, limits: &mut Limits) {
        limits.max_turns = self.max_turns.unwrap_or(limits.max_turns);
        limits.deadline_ms = self.deadline_ms.or(limits.deadline_ms);
    }

    /// These limits with the bounds; `None` if they stay as they are.
    pub(crate) fn over(self, limits: &Limits) -> Option<Limits> {
        let mut bounded = limits.clone();
        self.narrow(&mut bounded);
        (bounded != *limits).then_some(bounded)
    }
}

/// The way in which a drive starts. The terms are the settings of this run only.
pub(crate) enum Begin {
    /// A new run; without prompts it continues with the existing conversation.
    Run {
        prompts: Vec<Entry>,
        limits: Limits,
        terms: Option<Box<Terms>>,
    },
    /// The run that is open, with these answers; it may be bounded in another way from here on, and go by other terms.
    Resume {
        answers: Vec<Answered>,
        bounds: Bounds,
        terms: Option<Box<Terms>>,
    },
    /// The end of the run that is open.
    Cancel,
}

impl Begin {
    /// A run without its own settings.
    pub(crate) fn run(prompts: Vec<Entry>, limits: Limits) -> Self {
        Self::Run {
            prompts,
            limits,
            terms: None,
        }
    }

    /// The open run continues unchanged.
    pub(crate) fn resume(answers: Vec<Answered>) -> Self {
        Self::Resume {
            answers,
            bounds: Bounds::default(),
            terms: None,
        }
    }
}
