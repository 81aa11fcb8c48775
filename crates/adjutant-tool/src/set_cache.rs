//! The cached sets of an adapted toolbox, found by the parts they were built from.

use std::sync::{Mutex, PoisonError};

use crate::Toolset;

/// The largest number of sets that are kept. More than one, because agents that share a toolbox may each resolve it to
/// something else.
const MAX_KEPT: usize = 16;

/// The sets that were made last, the latest in front.
#[derive(Debug, Default)]
pub(crate) struct SetCache(Mutex<Vec<Made>>);

#[derive(Debug)]
struct Made {
    from: Vec<Toolset>,
    keep: Vec<bool>,
    set: Toolset,
}

impl SetCache {
    /// Returns the set that these sets make together.
    pub(crate) fn get_or_make(&self, from: &[Toolset], make: impl FnOnce() -> Toolset) -> Toolset {
        self.get_or_filter(from, Vec::new(), make)
    }

    /// Returns the set that the marked tools of these sets make together.
    pub(crate) fn get_or_filter(
        &self,
        from: &[Toolset],
        keep: Vec<bool>,
        make: impl FnOnce() -> Toolset,
    ) -> Toolset {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match kept
            .iter()
            .position(|it| it.keep == keep && is_same(&it.from, from))
        {
            Some(at) => kept.remove(at),
            None => Made {
                from: from.to_vec(),
                keep,
                set: make(),
            },
        };
        let set = made.set.clone();
        kept.insert(0, made);
        kept.truncate(MAX_KEPT);
        set
    }
}

fn is_same(some: &[Toolset], others: &[Toolset]) -> bool {
    some.len() == others.len()
        && some
            .iter()
            .zip(others)
            .all(|(one, other)| one.is_same(other))
}
