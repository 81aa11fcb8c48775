//! The fingerprint of a request: its parts besides the conversation.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{ModelId, ModelInfo, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;

/// The parts that requests are made with besides the conversation; recorded when they change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The model.
    pub model: ModelId,
    /// The abilities of the model if its server reported them or if they were assumed: a resumed run uses the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Arc<ModelInfo>>,
    /// The digest of the system prompt.
    pub system: Digest,
    /// The digest of each tool: its name, description and schema.
    pub tools: BTreeMap<ToolName, Digest>,
    /// The options for the model's answer.
    pub options: Value,
}

/// A field in which two fingerprints differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Difference {
    /// The field: `model`, `system`, `tools.<name>`, `options.<name>`.
    pub field: Arc<str>,
    /// The recorded value; `None` without one.
    pub recorded: Option<Arc<str>>,
    /// The current value; `None` without one.
    pub now: Option<Arc<str>>,
}

impl Config {
    /// The fields in which a later fingerprint differs from this one, in order.
    pub fn differences(&self, now: &Config) -> Vec<Difference> {
        let (recorded, now) = (self.fields(), now.fields());
        let mut names: Vec<&Arc<str>> = recorded.keys().chain(now.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let differs = |field: &&Arc<str>| recorded.get(*field) != now.get(*field);
        let difference = |field: &Arc<str>| Difference {
            field: Arc::clone(field),
            recorded: recorded.get(field).cloned(),
            now: now.get(field).cloned(),
        };
        names.into_iter().filter(differs).map(difference).collect()
    }

    fn fields(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let mut fields = BTreeMap::from([
            (Arc::from("model"), Arc::from(self.model.to_string())),
            (Arc::from("system"), Arc::from(self.system.to_string())),
        ]);
        let tools = self
            .tools
            .iter()
            .map(|(name, digest)| (format!("tools.{name}"), digest.to_string()));
        fields.extend(tools.map(|(field, digest)| (field.into(), digest.into())));
        let options = self.options.as_object().into_iter().flatten();
        fields.extend(
            options
                .map(|(name, value)| (format!("options.{name}").into(), value.to_string().into())),
        );
        fields
    }
}
