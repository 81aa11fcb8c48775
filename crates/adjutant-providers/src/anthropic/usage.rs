//! Tokens as the Anthropic Messages API counts them, normalised. Pure.

use adjutant_llm::Usage;
use serde_json::{Map, Value};

use crate::raw_usage::count;

/// The counts of a request so far: they are cumulative, and a value that is missing, `null` or no count leaves the old
/// one.
#[derive(Debug, Default)]
pub(super) struct Counts {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cache_write_1h: Option<u64>,
    cache_write_5m: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    /// The sum of all samplings that are listed.
    iterations: Usage,
}

impl Counts {
    /// Reads the current counts.
    pub(super) fn add(&mut self, said: &Map<String, Value>) {
        self.set(|name| said.get(name));
        if let Some(list) = said.get("iterations").and_then(Value::as_array) {
            self.iterations = list
                .iter()
                .map(sampling_usage)
                .fold(Usage::default(), |sum, it| sum + it);
        }
    }

    /// In disjoint classes.
    ///
    /// `input_tokens` excludes tokens that the cache served or stored. The top-level fields exclude the cost of other
    /// samplings of the same request: a compaction, the advice of another model, or a declined attempt before its
    /// fallback answered. `iterations` lists all of them, and the bill is their sum. So the sum is not the size of
    /// the context: the last of `iterations` is.
    ///
    /// Source: compaction guide and advisor tool guide, "usage", 2026-11; anthropic-sdk-python `BetaUsage`, 2026-09.
    pub(super) fn normal(&self) -> Usage {
        let (top, sum) = (self.top(), self.iterations);
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

    fn set<'a>(&mut self, field: impl Fn(&str) -> Option<&'a Value>) {
        let within =
            |name: &str, part: &str| field(name).and_then(|it| it.get(part)).and_then(count);
        let set = |known: &mut Option<u64>, said: Option<u64>| *known = said.or(*known);
        set(&mut self.input, field("input_tokens").and_then(count));
        set(
            &mut self.cache_read,
            field("cache_read_input_tokens").and_then(count),
        );
        set(
            &mut self.cache_write,
            field("cache_creation_input_tokens").and_then(count),
        );
        set(
            &mut self.cache_write_1h,
            within("cache_creation", "ephemeral_1h_input_tokens"),
        );
        set(
            &mut self.cache_write_5m,
            within("cache_creation", "ephemeral_5m_input_tokens"),
        );
        set(&mut self.output, field("output_tokens").and_then(count));
        set(
            &mut self.reasoning,
            within("output_tokens_details", "thinking_tokens"),
        );
    }

    fn top(&self) -> Usage {
        let hour = self.cache_write_1h.unwrap_or(0);
        Usage {
            input_uncached: self.input.unwrap_or(0),
            cache_read: self.cache_read.unwrap_or(0),
            cache_write: self
                .cache_write
                .unwrap_or_else(|| hour.saturating_add(self.cache_write_5m.unwrap_or(0))),
            cache_write_1h: hour,
            output: self.output.unwrap_or(0),
            reasoning: self.reasoning.unwrap_or(0),
        }
    }
}

/// Returns the usage of one sampling.
fn sampling_usage(said: &Value) -> Usage {
    let mut counts = Counts::default();
    counts.set(|name| said.get(name));
    counts.top()
}
