//! The options of a request as fields of its body.

use std::sync::Arc;

use adjutant_llm::{
    Cache, Effort, ModelInfo, PromptCache, Request, Structured, ToolChoice, ToolDecl, Warning,
    WarningKind,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    super::wire::{Declaration, Tool},
    RESERVED, thinking,
};
use crate::{
    cache_key::{cache_control, cache_key},
    dialect::{Dialect, LimitField, StructuredField},
    options::{self, Effective},
    pieces::format_name,
    segments::member,
    strict,
    tool_names::wire_name,
};

/// The largest number of stop texts that are sent. Source: the error "Expected an array with maximum length 4",
/// continuedev/continue 2461, 2024-10, and the reference of OpenAI's chat completions.
const MAX_STOPS: usize = 4;

/// The fields of one body before its messages; fields that the caller set are left to the caller.
pub(super) struct BodyFields<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) info: &'a ModelInfo,
    pub(super) request: &'a Request,
    /// True if cache marks set the retention time.
    pub(super) is_marked: bool,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) warnings: &'a mut Vec<Warning>,
}

impl<'a> BodyFields<'a> {
    /// Writes all fields; returns the text that must be added to the system prompt instead.
    pub(super) fn write(&mut self) -> Option<String> {
        let request = self.request;
        let options = options::effective(self.info, &request.options, self.warnings);
        self.limit(options.max_output_tokens);
        member(self.out, "stream", &true);
        if self.dialect.stream_options {
            self.add("stream_options", &json!({"include_usage": true}));
        }
        if self.dialect.store {
            self.add("store", &false);
        }
        if let Some(temperature) = options.temperature {
            self.add("temperature", &temperature);
        }
        if let Some(part) = options.top_p {
            self.add("top_p", &part);
        }
        if let Some(seed) = options.seed {
            self.add("seed", &seed);
        }
        self.stop(options.stop);
        let tools = self.tools(&options);
        if let Some(effort) = self.effort(options.thinking, &tools) {
            thinking::write(self, effort, options.max_output_tokens);
        }
        let added = self.format();
        if !tools.is_empty() {
            self.choice(&options);
        }
        self.cache();
        for (name, value) in options::extra(&request.options, &RESERVED, self.warnings) {
            member(self.out, name, value);
        }
        if !tools.is_empty() {
            member(self.out, "tools", &tools);
        }
        added
    }

    /// Adds a field, unless the caller sets it itself.
    pub(super) fn add(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if !self.request.options.extra.contains_key(name) {
            member(self.out, name, value);
        }
    }

    pub(super) fn warn_dropped(&mut self, what: &str, why: &str) {
        let text = format!("{what} was dropped: {} {why}", self.info.id);
        self.warnings.push(Warning {
            kind: WarningKind::OptionDropped,
            message: text.into(),
        });
    }

    fn limit(&mut self, limit: Option<u64>) {
        let extra = &self.request.options.extra;
        let own = !extra.contains_key("max_completion_tokens") && !extra.contains_key("max_tokens");
        let name = match self.dialect.limit {
            LimitField::MaxCompletionTokens => "max_completion_tokens",
            LimitField::MaxTokens => "max_tokens",
        };
        if let Some(tokens) = limit.filter(|_| own) {
            self.add(name, &tokens);
        }
    }

    fn stop(&mut self, asked: &[Arc<str>]) {
        if asked.is_empty() {
            return;
        }
        if !self.dialect.stop {
            return self.warn_dropped("stop", "has no word for it");
        }
        let mut stop: Vec<_> = asked.iter().filter(|text| !text.is_empty()).collect();
        if stop.len() < asked.len() {
            self.warn_dropped("an empty stop", "takes none");
        }
        if stop.len() > MAX_STOPS {
            let text = format!(
                "stop was cut from {} texts to {MAX_STOPS}: {} takes no more",
                stop.len(),
                self.info.id
            );
            self.warnings.push(Warning {
                kind: WarningKind::OptionDropped,
                message: text.into(),
            });
            stop.truncate(MAX_STOPS);
        }
        if !stop.is_empty() {
            self.add("stop", &stop);
        }
    }

    /// Returns the effort for a request with these tools.
    fn effort(&mut self, asked: Option<Effort>, tools: &[Tool<'_>]) -> Option<Effort> {
        let can_stop = self.info.efforts.contains(&Effort::Off);
        if self.dialect.thinks_beside_tools || tools.is_empty() || !can_stop {
            return asked;
        }
        if asked.is_some_and(|asked| asked != Effort::Off) {
            self.warn_dropped("thinking", "does not think beside tools on this wire");
        }
        Some(Effort::Off)
    }

    /// Sets the cache key of the conversation and its retention time.
    fn cache(&mut self) {
        let request = self.request;
        if let Some(key) = cache_key(request).filter(|_| self.dialect.cache_key) {
            self.add("prompt_cache_key", &key);
        }
        let control = if self.dialect.cache_options {
            self.info.prompt_cache
        } else {
            PromptCache::Key
        };
        match cache_control(control, &request.options, None) {
            Some((name, value)) => self.add(name, &value),
            None if request.options.cache == Cache::Long && !self.is_marked => {
                self.warn_dropped("cache", "has no parameter for a long one");
            }
            None => {}
        }
    }

    /// Writes the schema of the reply, or returns the instruction that replaces it.
    fn format(&mut self) -> Option<String> {
        let format = self.request.options.format.as_ref()?;
        let field = match self.info.structured {
            Structured::Prompt => StructuredField::None,
            _ => self.dialect.structured,
        };
        match field {
            StructuredField::Schema => {
                let strict = strict::strict(&format.schema).filter(|_| self.dialect.strict_schemas);
                let is_strict = strict.is_some();
                let schema = strict.unwrap_or_else(|| (*format.schema).clone());
                let mut named = json!({"name": format_name(&format.name), "schema": schema});
                if is_strict {
                    named["strict"] = Value::Bool(true);
                }
                self.add(
                    "response_format",
                    &json!({"type": "json_schema", "json_schema": named}),
                );
                return None;
            }
            StructuredField::Object => self.add("response_format", &json!({"type": "json_object"})),
            StructuredField::None => {
                let text = format!(
                    "the format is asked for in words alone: {} has no mode for it",
                    self.info.id
                );
                self.warnings.push(Warning {
                    kind: WarningKind::Degraded,
                    message: text.into(),
                });
            }
        }
        let schema = &format.schema;
        Some(format!(
            "Answer with one JSON object that fits this JSON schema, and with nothing else:\n{schema}"
        ))
    }

    /// The tools that are declared.
    fn tools(&mut self, options: &Effective<'_>) -> Vec<Tool<'a>> {
        let request = self.request;
        let (ours, servers) = (request.tools.iter(), request.options.server_tools.iter());
        if !self.dialect.tools {
            if ours.len() + servers.len() > 0 {
                self.warn_dropped("tools", "takes none");
            }
            return Vec::new();
        }
        if *options.tool_choice == ToolChoice::None && !self.dialect.choice_none {
            return Vec::new();
        }
        let declare = |it: &'a ToolDecl| Tool::Ours {
            kind: "function",
            function: Declaration {
                name: wire_name(it.name.as_str()),
                description: &it.description,
                parameters: strict::for_tool(&it.schema),
            },
        };
        ours.map(declare).chain(servers.map(Tool::Server)).collect()
    }

    /// Writes which calls the reply may or must make, and how many.
    fn choice(&mut self, options: &Effective<'_>) {
        let required = &self.dialect.choice_required;
        let words = Some(&**required).filter(|it| !it.is_empty());
        if self.dialect.tool_stream {
            self.add("tool_stream", &true);
        }
        let thinks = !self.info.efforts.is_empty() && options.thinking != Some(Effort::Off);
        match (options.tool_choice, words) {
            (ToolChoice::Named(_) | ToolChoice::Required, _)
                if thinks && !self.dialect.forced_thinking =>
            {
                self.warn_dropped("tool_choice", "cannot be made to call while it thinks");
            }
            (ToolChoice::None, _) => self.add("tool_choice", "none"),
            (ToolChoice::Named(name), _) if self.dialect.choice_named => {
                self.add(
                    "tool_choice",
                    &json!({"type": "function", "function": {"name": wire_name(name.as_str())}}),
                );
            }
            (ToolChoice::Required, Some(word)) => self.add("tool_choice", word),
            (ToolChoice::Named(name), Some(word)) => {
                self.add("tool_choice", word);
                let text = format!(
                    "any call is demanded instead of {name}: {} cannot be told which",
                    self.info.id
                );
                self.warnings.push(Warning {
                    kind: WarningKind::OptionDropped,
                    message: text.into(),
                });
            }
            (ToolChoice::Named(_) | ToolChoice::Required, None) => {
                self.warn_dropped("tool_choice", "cannot be made to call")
            }
            _ => {}
        }
        match (options.sequential_calls, self.dialect.parallel_calls) {
            (true, true) => self.add("parallel_tool_calls", &false),
            (true, false) => self.warn_dropped("sequential_calls", "has no word for it"),
            (false, _) => {}
        }
    }
}
