//! How often a fold is kept beside a log.

/// How many records are worth a fold: reading so many takes as long as a person notices.
pub(crate) const FOLD_EVERY: u64 = 2_000;
