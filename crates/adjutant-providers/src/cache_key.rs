//! Names of conversations for prompt caches that go by a key: requests with one beginning get one key. Pure.

use adjutant_llm::{Cache, Request};

/// The largest number of characters that a key may have. Source: `prompt_cache_key` as the pi project sends it,
/// 2026-08.
const MAX_KEY: usize = 64;

/// The 64-bit FNV-1a hash. It is specified, so that a key is the same in every process and version.
///
/// Source: draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm".
#[derive(Debug, Clone, Copy)]
struct Fnv(u64);

/// The key of a request: the caller's own, else one of the system prompt and the tools. `None` if no cache is wanted.
pub fn cache_key(request: &Request) -> Option<String> {
    if request.options.cache == Cache::Off {
        return None;
    }
    match &request.options.cache_key {
        Some(key) if key.chars().count() <= MAX_KEY => Some(key.to_string()),
        // Cutting it would give one key to many conversations.
        Some(key) => Some(Fnv::new().with(key).name()),
        None => Some(of_beginning(request).name()),
    }
}

fn of_beginning(request: &Request) -> Fnv {
    request
        .tools
        .iter()
        .fold(Fnv::new().with(&request.system), |hash, tool| {
            hash.with(tool.name.as_str())
                .with(&tool.description)
                .with(&tool.schema.to_string())
        })
}

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Takes a text, and a byte that no text holds after it, so that texts that are cut elsewhere differ.
    fn with(self, text: &str) -> Self {
        let step =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(text.bytes().chain([0xff]).fold(self.0, step))
    }

    fn name(self) -> String {
        format!("adjutant-{:016x}", self.0)
    }
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
