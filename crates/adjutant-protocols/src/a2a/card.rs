//! The description of an agent for its callers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::push::PushTargets;

/// The extension of agents that process a message once, however often it is sent with the same id.
///
/// Its URI is the address of its description.
pub const HEARS_ONCE: &str = "https://github.com/adjutant-rs/adjutant/blob/main/docs/protocols.md#messages-that-are-heard-once";

/// The description of an agent: its purpose, its address, its capabilities.
///
/// It declares streaming and text, and push notifications if they are enabled.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentCard {
    /// The name of the agent.
    pub name: Arc<str>,
    /// The purpose of the agent.
    pub description: Arc<str>,
    /// The address of its JSON-RPC endpoint.
    pub url: Arc<str>,
    /// The version of the agent, not of the protocol.
    pub version: Arc<str>,
    /// True if a caller shows a token: `Authorization: Bearer`.
    pub wants_token: bool,
    /// The things that it can do; its purpose without any.
    pub skills: Vec<Skill>,
    /// The hosts that updates of tasks are pushed to; nothing is pushed without it.
    pub pushes: Option<PushTargets>,
}

/// Something that an agent can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The id.
    pub id: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The description.
    pub description: Arc<str>,
    /// Words that it is found by.
    pub tags: Vec<Arc<str>>,
}

impl AgentCard {
    /// Of version 1, for callers without a token.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        url: impl Into<Arc<str>>,
    ) -> Self {
        let (name, description, url) = (name.into(), description.into(), url.into());
        Self {
            name,
            description,
            url,
            version: "1".into(),
            wants_token: false,
            skills: Vec::new(),
            pushes: None,
        }
    }

    /// The card as JSON.
    pub(super) fn value(&self) -> Value {
        let own = Skill {
            id: Arc::clone(&self.name),
            name: Arc::clone(&self.name),
            description: Arc::clone(&self.description),
            tags: vec!["agent".into()],
        };
        let skills = if self.skills.is_empty() {
            std::slice::from_ref(&own)
        } else {
            &self.skills
        };
        let skills: Vec<Value> = skills
            .iter()
            .map(|it| json!({"id": it.id, "name": it.name, "description": it.description, "tags": it.tags}))
            .collect();
        let mut card = json!({
            "name": self.name,
            "description": self.description,
            "supportedInterfaces": [{"url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "version": self.version,
            "capabilities": {
                "streaming": true, "pushNotifications": self.pushes.is_some(), "extendedAgentCard": false,
                "extensions": [{"uri": HEARS_ONCE, "description": "A message is heard once.", "required": false}],
            },
            "defaultInputModes": ["text/plain", "application/json", "image/*", "audio/*", "application/pdf"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": skills,
        });
        if self.wants_token {
            card["securitySchemes"] =
                json!({"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
            card["securityRequirements"] = json!([{"schemes": {"bearer": {"list": []}}}]);
        }
        card
    }
}
