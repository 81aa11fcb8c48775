//! Overflows of the context window: how vendors say it, how some do not say it, and the numbers in it. Pure.

use adjutant_llm::{Error, ErrorKind, FinishReason, ModelInfo, Overflow, Reply};

/// Texts that mean an overflow: all parts of a row must occur. Compared in lower case.
///
/// Source: overflow texts of some twenty vendors as collected by the pi project, 2026-08; `context length is only` is what
/// vLLM says since 2026-03 (its issues).
const OVERFLOW: &[&[&str]] = &[
    &["prompt is too long"],
    &["request_too_large"],
    &["input is too long for requested model"],
    &["input length and", "exceed context limit"],
    &["too many total text bytes"],
    &["exceeds the context window"],
    &["maximum context length"],
    &["context length is only"],
    &["input token count", "exceeds the maximum"],
    &["maximum prompt length is"],
    &["reduce the length of the messages"],
    &["maximum allowed input length"],
    &["longer than the model's context length"],
    &["token count", "exceeds the limit of"],
    &["exceeds the available context size"],
    &["greater than the context length"],
    &["context window exceeds limit"],
    &["exceeded model token limit"],
    &["model_context_window_exceeded"],
    &["prompt too long; exceeded"],
    &["requested", "output tokens", "prompt contains"],
    &["context_length_exceeded"],
    &["too many tokens"],
    &["token limit exceeded"],
    &["400 (no body)"],
    &["413 (no body)"],
    &["400 status code (no body)"],
    &["413 status code (no body)"],
];

/// Texts that look like an overflow and are none.
const NO_OVERFLOW: &[&str] = &[
    "rate limit",
    "too many requests",
    "throttling error:",
    "service unavailable:",
];

/// True if a refusal means that the request was too long; `text` is in lower case.
pub(crate) fn is_overflow(status: Option<u16>, text: &str, codes: &[String]) -> bool {
    if NO_OVERFLOW.iter().any(|it| text.contains(it)) {
        return false;
    }
    // A server that fails may name the context window in passing.
    let plausible =
        status.is_none_or(|status| (200..300).contains(&status) || (400..500).contains(&status));
    let occurs = |part: &&str| {
        text.contains(part) || codes.iter().any(|code| code.eq_ignore_ascii_case(part))
    };
    status == Some(413) || plausible && OVERFLOW.iter().any(|parts| parts.iter().all(occurs))
}

/// The texts that stand before the number of tokens that fit, in lower case.
const BEFORE_LIMIT: &[&str] = &[
    "maximum context length",
    "maximum prompt length",
    "maximum allowed input length",
    "maximum number of tokens allowed",
    "context length",
    "context size",
    "context window",
    "limit of",
    "token limit",
    ">",
];

/// A request that is more often as long as fits is no request, but a number of something else.
const MAX_RATIO: u64 = 50;

/// The numbers that a text of an overflow names, as far as it is clear which is which.
pub(crate) fn numbers(text: &str) -> Overflow {
    let text = text.to_lowercase();
    // Bodies are limited too, and what is too long may be something else.
    if text.contains("byte") {
        return Overflow::default();
    }
    // Smaller numbers count something else.
    let numbers: Vec<(usize, u64)> = counts(&text).filter(|(_, count)| *count >= 256).collect();
    let named = |words: &&str| {
        let end = text.find(*words)? + words.len();
        numbers
            .iter()
            .find(|(at, _)| (end..end + 24).contains(at))
            .map(|(_, count)| *count)
    };
    // MiniMax adds a code: `(2013)`. Ollama gives only the difference.
    if text.contains("context window exceeds limit") || text.contains("context length by ") {
        return Overflow::default();
    }
    let limit = BEFORE_LIMIT.iter().find_map(named);
    let most = numbers.iter().map(|(_, count)| *count).max();
    match (limit, most) {
        (Some(limit), _) => {
            let plausible =
                |count: &u64| *count != limit && *count <= limit.saturating_mul(MAX_RATIO);
            let others = numbers.iter().map(|(_, count)| *count).filter(plausible);
            // The length of the request is given as one number, or as two that come first.
            let sum = others.clone().take(2).fold(0_u64, u64::saturating_add);
            let used = others
                .max()
                .filter(|most| *most > limit)
                .or((sum > limit).then_some(sum));
            Overflow {
                used,
                limit: Some(limit),
            }
        }
        (None, _) => {
            let mut counts: Vec<u64> = numbers.iter().map(|(_, count)| *count).collect();
            counts.sort_unstable();
            counts.dedup();
            match counts[..] {
                // Of two numbers the larger one is what was asked for, unless they are its parts.
                [limit, used]
                    if used <= limit.saturating_mul(MAX_RATIO)
                        && !text.contains("output tokens") =>
                {
                    Overflow {
                        used: Some(used),
                        limit: Some(limit),
                    }
                }
                _ => Overflow::default(),
            }
        }
    }
}

/// The whole numbers of a text, thousands separated or not, and where they stand. Digits of names do not count.
fn counts(text: &str) -> impl Iterator<Item = (usize, u64)> {
    let is_part = |it: char| it.is_ascii_digit() || it == ',';
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let begin = at + text.get(at..)?.find(|it: char| it.is_ascii_digit())?;
            let end = text[begin..]
                .find(|it: char| !is_part(it))
                .map_or(text.len(), |length| begin + length);
            at = end;
            let named = text[..begin]
                .ends_with(|it: char| it.is_alphanumeric() || "-_./@".contains(it))
                || text[end..].starts_with(|it: char| it.is_alphanumeric() || "-_".contains(it));
            if named {
                continue;
            }
            let digits: String = text[begin..end]
                .chars()
                .filter(char::is_ascii_digit)
                .collect();
            if let Ok(count) = digits.parse() {
                return Some((begin, count));
            }
        }
    })
}

/// An overflow that a provider passed over in silence: a reply cut off before its first word, by an input that fills the
/// window.
///
/// Source: what Xiaomi's MiMo does, as the pi project found, 2026-08.
pub(crate) fn silent(info: &ModelInfo, reply: &Reply) -> Option<Error> {
    let input = reply.usage.input();
    let full = u128::from(input) * 100 >= u128::from(info.context_window) * 99;
    if reply.stop != FinishReason::Length || reply.usage.output > 0 || !full {
        return None;
    }
    Some(error(info, input))
}

/// An overflow that was answered as if nothing were wrong: more input than the window holds.
///
/// Source: what Z.ai does, as the pi project found, 2026-08. Only for providers that do: a window may be set too small.
pub(crate) fn ignored(info: &ModelInfo, reply: &Reply) -> Option<Error> {
    let input = reply.usage.input();
    (input > info.context_window).then(|| error(info, input))
}

fn error(info: &ModelInfo, input: u64) -> Error {
    let limit = info.context_window;
    let text = format!(
        "{} was sent {input} tokens, which do not fit its window of {limit} and were cut off",
        info.id
    );
    Error::new(ErrorKind::Overflow, text).with(|it| {
        it.overflow = Some(Overflow {
            used: Some(input),
            limit: Some(limit),
        })
    })
}

#[cfg(test)]
mod tests;
