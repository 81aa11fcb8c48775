//! The fingerprint of a request: everything that can change the answer.

use std::{borrow::Cow, fmt, io, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::{Entry, Options, Request, ToolDecl};

/// The hash begins with this.
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
/// Each byte is followed by a multiplication with this.
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Identifies a request: a hash of the system prompt, tools, entries, options, turn and attempt.
///
/// Parts that cannot change the answer are excluded: ids and sizes of entries, entries of the application, headers,
/// and the cache key. It is not a protection: collisions can be constructed.
///
/// Shape: 32 hexadecimal digits, the 128-bit FNV-1a hash of the parts as JSON.
///
/// Source: G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, "The FNV Non-Cryptographic Hash Algorithm".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

/// The parts of a request that can change the answer.
#[derive(Serialize)]
struct KeyParts<'a> {
    system: &'a str,
    tools: &'a [ToolDecl],
    entries: Vec<&'a Entry>,
    options: Cow<'a, Options>,
    turn: u64,
    attempt: u32,
}

impl Fingerprint {
    /// The fingerprint of a request.
    pub fn from_request(request: &Request) -> Self {
        let mut hash = Fnv(BASIS);
        // Writing JSON into a hash cannot fail: all keys are texts.
        let _ = serde_json::to_writer(&mut hash, &KeyParts::from_request(request));
        Self(hash.0)
    }
}

impl<'a> KeyParts<'a> {
    fn from_request(request: &'a Request) -> Self {
        let entries = request.entries.iter().map(|stored| &stored.entry);
        let options = match &request.options.cache_key {
            Some(_) => Cow::Owned(Options {
                cache_key: None,
                ..Options::clone(&request.options)
            }),
            None => Cow::Borrowed(Arc::as_ref(&request.options)),
        };
        Self {
            system: &request.system,
            tools: &request.tools,
            entries: entries
                .filter(|entry| !matches!(entry, Entry::Custom(_)))
                .collect(),
            options,
            turn: request.turn(),
            attempt: request.attempt,
        }
    }
}

/// The parts of a request that can change the answer, as JSON.
pub(super) fn value(request: &Request) -> Value {
    serde_json::to_value(KeyParts::from_request(request)).unwrap_or_default()
}

struct Fnv(u128);

impl io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn hash_is_the_published_one_when_the_input_is() {
        let hash = |text: &str| {
            let mut hash = Fnv(BASIS);
            hash.write_all(text.as_bytes())
                .expect("a hash takes everything");
            Fingerprint(hash.0).to_string()
        };
        let published = [
            ("", "6c62272e07bb014262b821756295c58d"),
            ("a", "d228cb696f1a8caf78912b704e4a8964"),
            ("foobar", "343e1662793c64bf6f0d3597ba446f18"),
        ];
        assert_eq!(
            published.map(|(text, _)| hash(text)),
            published.map(|(_, digits)| digits.to_owned())
        );
    }
}
