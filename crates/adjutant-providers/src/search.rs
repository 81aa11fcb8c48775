//! The search in the web that a provider runs itself.

use adjutant_llm::ModelId;
use serde_json::{Value, json};

/// Declares the search in the web that the provider of a model runs itself, for `Options::server_tools`; `None` if it is not known
/// to have one.
///
/// Its cost and sources are up to the provider, and its findings are part of the reply. The agent's rules do not
/// apply to it.
///
/// Source: the providers' documents of 2026-11: Anthropic's web search tool, OpenAI's for Responses, Gemini's grounding by Google.
pub fn web_search(model: &ModelId) -> Option<Value> {
    match model.as_str().split_once('/')?.0 {
        "anthropic" => Some(json!({ "type": "web_search_20250305", "name": "web_search" })),
        "openai" => Some(json!({ "type": "web_search" })),
        "gemini" => Some(json!({ "googleSearch": {} })),
        _ => None,
    }
}
