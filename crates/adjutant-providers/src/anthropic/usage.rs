//! Tokens as the Anthropic Messages API counts them, normalised. Pure.

use adjutant_llm::Usage;
use serde_json::{Map, Value};

/// What a request used, of everything that was said about it so far. What cannot be read counts nothing.
///
/// `input_tokens` leaves out what the cache served or stored. The fields at the top leave out what other samplings of the
/// same request have cost, in which a context was compacted, another model advised, or one declined before its fallback
/// answered; `iterations` lists all of them, and what is billed is their sum. So the sum is not the size of the context:
/// that is the last of `iterations`.
///
/// Source: compaction guide and advisor tool guide, "usage", 2026-11; anthropic-sdk-python `BetaUsage`, 2026-09.
pub(super) fn usage_of(said: &Map<String, Value>) -> Usage {
    let top = counts(|name| said.get(name));
    let none = Vec::new();
    let iterations = said.get("iterations").and_then(Value::as_array).unwrap_or(&none);
    let sum = iterations.iter().map(|it| counts(|name| it.get(name))).fold(Usage::default(), |sum, it| sum + it);
    let cache_write = top.cache_write.max(sum.cache_write);
    let output = top.output.max(sum.output);
    Usage {
        input_uncached: top.input_uncached.max(sum.input_uncached),
        cache_read: top.cache_read.max(sum.cache_read),
        cache_write,
        cache_write_1h: top.cache_write_1h.max(sum.cache_write_1h).min(cache_write),
        output,
        reasoning: top.reasoning.max(sum.reasoning).min(output),
    }
}

fn counts<'a>(field: impl Fn(&str) -> Option<&'a Value>) -> Usage {
    let count = |name: &str| field(name).and_then(Value::as_u64);
    let within = |name: &str, part: &str| field(name).and_then(|it| it.get(part)).and_then(Value::as_u64).unwrap_or(0);
    let hour = within("cache_creation", "ephemeral_1h_input_tokens");
    let minutes = within("cache_creation", "ephemeral_5m_input_tokens");
    Usage {
        input_uncached: count("input_tokens").unwrap_or(0),
        cache_read: count("cache_read_input_tokens").unwrap_or(0),
        cache_write: count("cache_creation_input_tokens").unwrap_or_else(|| hour.saturating_add(minutes)),
        cache_write_1h: hour,
        output: count("output_tokens").unwrap_or(0),
        reasoning: within("output_tokens_details", "thinking_tokens"),
    }
}
