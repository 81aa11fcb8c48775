//! The digest of a file's content, as it is used in logs and as a file name.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest in 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Digest(String);

impl Digest {
    pub(crate) fn compute(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(64);
        for byte in Sha256::digest(bytes) {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// The name of the file that stores this content; `None` if this is not a valid digest, as in a forged log.
    pub(crate) fn name(&self) -> Option<&str> {
        let is_one = self.0.len() == 64 && self.0.bytes().all(|it| it.is_ascii_hexdigit());
        is_one.then_some(self.0.as_str())
    }
}
