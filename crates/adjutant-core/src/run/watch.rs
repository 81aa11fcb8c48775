//! What someone who looks at a run from outside sees of it.

use adjutant_llm::{CallId, Usage};

use super::Run;

impl Run {
    /// What all runs of the thread used: the agent itself, and with everything under it.
    pub fn usage(&self) -> (Usage, Usage) {
        let (own, total) = self.past;
        self.current.as_ref().map_or((own, total), |it| (own + it.usage, total + it.usage + it.spent))
    }

    /// How many tokens the provider counted in the newest request that it counted.
    pub fn counted(&self) -> Option<u64> {
        self.measured.map(|measured| measured.tokens)
    }

    /// The calls that have begun and not ended, in the order in which they began.
    pub fn at_work(&self) -> Vec<CallId> {
        let Some(working) = self.working().filter(|_| self.is_open()) else { return Vec::new() };
        let begun =
            working.slots.iter().filter(|slot| !slot.done).filter_map(|slot| Some((slot.launched_ms?, slot.call)));
        let mut begun: Vec<_> = begun.collect();
        begun.sort_by_key(|(at_ms, _)| *at_ms);
        begun.into_iter().map(|(_, call)| call).collect()
    }
}
