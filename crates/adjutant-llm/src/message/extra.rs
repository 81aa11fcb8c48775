//! Data that only the provider of a block understands: kept exactly, sent back to the same model alone.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// JSON that a wire keeps beside a block, or nothing; cheap to clone.
///
/// The wire that made a block chooses the shape; other wires ignore it. `null` is nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra(Option<Arc<Value>>);

impl Extra {
    /// This JSON.
    pub fn new(value: Value) -> Self {
        Self((!value.is_null()).then(|| Arc::new(value)))
    }

    /// True if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The JSON; `null` if there is nothing.
    pub fn value(&self) -> &Value {
        self.0.as_deref().unwrap_or(&Value::Null)
    }

    /// A text member of the JSON, if it is an object that has it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value().get(name)?.as_str()
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}
