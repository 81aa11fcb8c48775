//! The interval at which a fold is kept beside a log.

/// The number of records that is worth a fold; as it also takes a quarter of the log, long logs are folded rarely.
pub(crate) const FOLD_EVERY: u64 = 256;
