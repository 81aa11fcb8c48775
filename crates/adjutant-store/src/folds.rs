//! The interval at which a fold is stored next to a log.

/// The number of records for a new fold; since it must also be a quarter of the log, long logs are folded rarely.
pub(crate) const FOLD_EVERY: u64 = 256;
