//! Data that only the provider of a reply understands: kept exactly, sent back to the same model alone.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

/// Optional JSON data of a wire; cheap to clone. The text is parsed at the first access.
///
/// The wire that made it chooses the shape; other wires ignore it. `null` is nothing.
#[derive(Clone, Default)]
pub struct Extra(Option<Arc<Kept>>);

#[derive(Default)]
struct Kept {
    text: Box<str>,
    value: OnceLock<Value>,
}

impl From<Value> for Extra {
    fn from(value: Value) -> Self {
        Self((!value.is_null()).then(|| {
            Arc::new(Kept {
                value: value.into(),
                ..Kept::default()
            })
        }))
    }
}

/// Text that cannot be a value, such as a number beyond a float, is nothing.
impl From<&RawValue> for Extra {
    fn from(raw: &RawValue) -> Self {
        let text = raw.get();
        Self((text != "null").then(|| {
            Arc::new(Kept {
                text: text.into(),
                ..Kept::default()
            })
        }))
    }
}

/// The JSON; `null` if there is nothing.
impl Deref for Extra {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.0.as_deref().map_or(&Value::Null, |kept| {
            kept.value.get_or_init(|| read(&kept.text))
        })
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// True if it was made of this text, byte for byte.
impl PartialEq<RawValue> for Extra {
    fn eq(&self, raw: &RawValue) -> bool {
        self.0.as_ref().is_some_and(|kept| *kept.text == *raw.get())
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extra").field(&**self).finish()
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
