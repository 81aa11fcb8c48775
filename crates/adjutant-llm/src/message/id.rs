//! Identifiers. Newtypes only; how they are minted is the business of who mints them.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Identifies one tool call of a model by its turn, attempt and block.
///
/// Unique within a thread. Text form: `c<turn>_<attempt>_<block>`, which every provider accepts as a call id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The turn of the thread, counted from 1.
    pub turn: u64,
    /// The attempt at the turn's reply, counted from 0.
    pub attempt: u32,
    /// The block of the reply, counted from 0.
    pub block: u32,
}

/// Text that is not a call id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a call id of the form c<turn>_<attempt>_<block>: {0:?}")]
pub struct CallIdError(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}_{}_{}", self.turn, self.attempt, self.block)
    }
}

impl FromStr for CallId {
    type Err = CallIdError;

    fn from_str(text: &str) -> Result<Self, CallIdError> {
        let parse = || {
            let mut parts = text.strip_prefix('c')?.split('_');
            let id = CallId {
                turn: parts.next()?.parse().ok()?,
                attempt: parts.next()?.parse().ok()?,
                block: parts.next()?.parse().ok()?,
            };
            parts.next().is_none().then_some(id)
        };
        parse().ok_or_else(|| CallIdError(text.chars().take(80).collect()))
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CallIdVisitor;
        impl de::Visitor<'_> for CallIdVisitor {
            type Value = CallId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a call id")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CallId, E> {
                text.parse().map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_str(CallIdVisitor)
    }
}

/// Names one entry of a transcript; grows with every entry and is never used twice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EntryId(pub u64);

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(#[serde(deserialize_with = "crate::reading::text")] pub Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    )* };
}

text_id! {
    /// Names one conversation in a log.
    ThreadId;
    /// Names a tool as the model sees it.
    ToolName;
    /// Names a model as `provider/model`.
    ModelId;
}
