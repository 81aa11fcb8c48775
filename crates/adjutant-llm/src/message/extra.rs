//! Data that only the provider of a block understands: kept exactly, sent back to the same model alone.

use std::{ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// JSON that a wire keeps beside a block, or nothing; cheap to clone.
///
/// The wire that made a block chooses the shape; other wires ignore it. `null` is nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra(Option<Arc<Value>>);

impl From<Value> for Extra {
    fn from(value: Value) -> Self {
        Self((!value.is_null()).then(|| Arc::new(value)))
    }
}

/// The JSON; `null` if there is nothing.
impl Deref for Extra {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.0.as_deref().unwrap_or(&Value::Null)
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
