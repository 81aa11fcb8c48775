//! Tokens as the Gemini API counts them, normalised. Pure.

use adjutant_llm::Usage;
use serde_json::{Map, Value};

use crate::raw_usage::count;

/// Tokens so far. The prompt includes what the cache served; the candidates leave out the thoughts.
///
/// Source: `UsageMetadata` in python-genai and java-genai, 2026-11.
#[derive(Debug, Default)]
pub(super) struct Counts {
    prompt: Option<u64>,
    cached: Option<u64>,
    tool_use_prompt: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl Counts {
    /// Reads the current counts: counts are cumulative, and a missing, `null` or invalid one keeps its value.
    pub(super) fn add(&mut self, said: &Map<String, Value>) {
        let set = |known: &mut Option<u64>, name: &str| {
            *known = said.get(name).and_then(count).or(*known)
        };
        set(&mut self.prompt, "promptTokenCount");
        set(&mut self.cached, "cachedContentTokenCount");
        set(&mut self.tool_use_prompt, "toolUsePromptTokenCount");
        set(&mut self.candidates, "candidatesTokenCount");
        set(&mut self.thoughts, "thoughtsTokenCount");
    }

    /// In disjoint classes.
    pub(super) fn normal(&self) -> Usage {
        let prompt = self.prompt.unwrap_or(0);
        let cache_read = self.cached.unwrap_or(0).min(prompt);
        let reasoning = self.thoughts.unwrap_or(0);
        Usage {
            input_uncached: (prompt - cache_read).saturating_add(self.tool_use_prompt.unwrap_or(0)),
            cache_read,
            output: self.candidates.unwrap_or(0).saturating_add(reasoning),
            reasoning,
            ..Usage::default()
        }
    }
}
