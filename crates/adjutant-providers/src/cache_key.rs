//! Names of conversations for prompt caches that go by a key: requests with one beginning get one key. Pure.

use adjutant_llm::{Cache, Options, PromptCache, Request};
use serde_json::{Value, json};

use crate::fnv::Fnv;

/// The largest number of characters that a key may have. Source: `prompt_cache_key` as the pi project sends it,
/// 2026-08.
const MAX_KEY: usize = 64;

/// The key of a request: the caller's own, else one of the system prompt and the tools. `None` if no cache is wanted.
pub fn cache_key(request: &Request) -> Option<String> {
    if request.options.cache == Cache::Off {
        return None;
    }
    match &request.options.cache_key {
        Some(key) if key.chars().count() <= MAX_KEY => Some(key.to_string()),
        // Truncating it would give many conversations the same key.
        Some(key) => Some(name(Fnv::new().with(key.as_bytes()))),
        None => Some(name(hash_prefix(request))),
    }
}

/// Returns the field that controls OpenAI's prompt cache in addition to its key, unless the caller sets one of them.
///
/// `longest` is the longest `ttl` that the provider accepts, if it exceeds the usual 30 minutes.
///
/// Source: `response_create_params.py` and `completion_create_params.py` of openai-python 3.57.0, 2026-11:
/// `prompt_cache_options` since GPT-5.6, where `prompt_cache_retention` is deprecated; `ttl` is up to `12h` on Responses and
/// `30m` on Chat Completions; `explicit` without breakpoints stores nothing.
pub(crate) fn cache_control(
    control: PromptCache,
    options: &Options,
    longest: Option<&'static str>,
) -> Option<(&'static str, Value)> {
    const FIELDS: [&str; 2] = ["prompt_cache_retention", "prompt_cache_options"];
    if FIELDS.iter().any(|name| options.extra.contains_key(*name)) {
        return None;
    }
    match (control, options.cache) {
        (PromptCache::Retention, Cache::Long) => Some((FIELDS[0], json!("24h"))),
        (PromptCache::Options, Cache::Long) => longest.map(|ttl| (FIELDS[1], json!({"ttl": ttl}))),
        (PromptCache::Options, Cache::Off) => Some((FIELDS[1], json!({"mode": "explicit"}))),
        _ => None,
    }
}

fn hash_prefix(request: &Request) -> Fnv {
    request
        .tools
        .iter()
        .fold(Fnv::new().with(request.system.as_bytes()), |hash, tool| {
            hash.with(tool.name.as_str())
                .with(tool.description.as_bytes())
                .with(tool.schema.to_string())
        })
}

fn name(hash: Fnv) -> String {
    format!("adjutant-{hash}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use adjutant_llm::{Options, ToolDecl};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(request: Request, expect: Option<&str>) {
        assert_eq!(cache_key(&request).as_deref(), expect);
    }

    #[test]
    fn cache_key_is_the_same_when_a_request_begins_the_same() {
        let tool = || ToolDecl {
            name: "read".into(),
            description: "Reads.".into(),
            schema: Arc::new(json!({"type": "object"})),
        };
        let request = || Request::new().system("Be brief.").tools([tool()]);
        check(request(), Some("adjutant-afb499bff2c39afe"));
        check(request().user("hi"), Some("adjutant-afb499bff2c39afe"));
        check(
            Request::new().system("Be brief."),
            Some("adjutant-9e02443c61cca957"),
        );
        check(Request::new(), Some("adjutant-af64724c8602eb6e"));
    }

    #[test]
    fn cache_key_is_the_callers_own_when_it_is_short() {
        let with = |key: &str| {
            Request::new().options(Options {
                cache_key: Some(key.into()),
                ..Options::default()
            })
        };
        check(with("thread-7"), Some("thread-7"));
        check(with(&"é".repeat(64)), Some(&"é".repeat(64)));
        check(with(&"k".repeat(65)), Some("adjutant-c835a3052438948f"));
        check(
            Request::new().options(Options {
                cache_key: Some("k".into()),
                cache: Cache::Off,
                ..Options::default()
            }),
            None,
        );
    }
}
