//! Numbers as SQLite keeps them: 64 bits with a sign.

/// The number, or the largest that can be kept.
pub(super) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count, or the largest that can be kept.
pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the number that was kept; a number below 0 was never written.
pub(super) fn read(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
