//! How often a fold is kept beside a log.

/// How many records are worth a fold; as it also takes a quarter of the log, long logs are folded rarely.
pub(crate) const FOLD_EVERY: u64 = 256;
