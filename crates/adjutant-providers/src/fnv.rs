//! The 64-bit FNV-1a hash. It is specified, so that it is the same in every process and version.
//!
//! Source: draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm".

use std::fmt;

/// A hash so far; it is written in 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes, and a byte that no text holds after them, so that texts that are cut elsewhere differ.
    #[must_use]
    pub(crate) fn with(self, bytes: impl AsRef<[u8]>) -> Self {
        let step =
            |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(bytes.as_ref().iter().chain(&[0xff]).fold(self.0, step))
    }
}

impl fmt::Display for Fnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
