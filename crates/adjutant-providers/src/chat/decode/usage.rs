//! The usage that servers report, in classes that do not overlap.

use adjutant_llm::Usage;

use crate::chat::wire;

/// Usage in disjoint classes; reasoning that a server counts separately is added to the output.
pub(super) fn normal(said: &wire::Usage) -> Usage {
    let count = |count: Option<u64>| count.unwrap_or(0);
    let (input, output) = (count(said.prompt_tokens), count(said.completion_tokens));
    let details = said.prompt_tokens_details.as_ref();
    // Some servers report zero in one field and the real count in another.
    let cached = [
        details.and_then(|it| it.cached_tokens),
        said.prompt_cache_hit_tokens,
        said.cached_tokens,
    ];
    let cache_read = count(cached.into_iter().flatten().max()).min(input);
    let cache_write = count(details.and_then(|it| it.cache_write_tokens)).min(input - cache_read);
    let thought = said
        .completion_tokens_details
        .as_ref()
        .and_then(|it| it.reasoning_tokens);
    let reasoning = count(thought.or(said.reasoning_tokens));
    let beside = reasoning > output
        || said.total_tokens
            == input
                .checked_add(output)
                .and_then(|it| it.checked_add(reasoning));
    let output = if beside {
        output.saturating_add(reasoning)
    } else {
        output
    };
    Usage {
        input_uncached: input - cache_read - cache_write,
        cache_read,
        cache_write,
        cache_write_1h: 0,
        output,
        reasoning,
    }
}
