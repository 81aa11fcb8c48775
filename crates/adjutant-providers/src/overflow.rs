//! Overflows of the context window: the vendors' error texts, silent overflows, and the numbers in the texts. Pure.

use adjutant_llm::{Error, ErrorKind, FinishReason, ModelInfo, Overflow, Reply};

/// A sign of an overflow: a code, or a text of which all parts occur. Compared in lower case.
struct Sign {
    code: &'static str,
    parts: &'static [&'static str],
}

const fn code(code: &'static str) -> Sign {
    Sign { code, parts: &[] }
}

const fn text(parts: &'static [&'static str]) -> Sign {
    Sign { code: "", parts }
}

/// The signs by vendor; each one has an original text in the tests.
///
/// Source where no other is named: the list of the pi project, 2026-08. The others are from public reports and from the
/// servers' sources, 2026-11.
const OVERFLOW: &[Sign] = &[
    // Anthropic, Fireworks, and Claude behind Bedrock, Vertex and OpenRouter.
    text(&["prompt is too long"]),
    text(&["request_too_large"]),
    text(&["input length and", "exceed context limit"]),
    // Bedrock.
    text(&["input is too long"]),
    text(&["too many total text bytes"]),
    text(&["too many input tokens"]),
    // OpenAI, Azure, DeepSeek, Cerebras, NVIDIA, vLLM and SGLang.
    text(&["context_length_exceeded"]),
    text(&["context length exceeded"]),
    text(&["exceeds the context window"]),
    text(&["maximum context length is"]),
    text(&["maximum context length of"]),
    text(&["maximum context length:"]),
    text(&["reduce the length of the messages"]),
    // vLLM: `vllm/renderers` and `vllm/v1/engine`, 2026-03.
    text(&["context length is only"]),
    text(&["longer than the maximum model length"]),
    text(&["exceeds the max_model_len"]),
    text(&["requested", "output tokens", "prompt contains"]),
    // Gemini and Vertex.
    text(&["input token count", "exceeds the maximum"]),
    text(&["input token count", "only supports up to"]),
    // xAI.
    text(&["maximum prompt length is"]),
    // Poolside.
    text(&["maximum allowed input length"]),
    // Together and SGLang.
    text(&["longer than the model's context length"]),
    // TGI, which Together, Hugging Face and Z.ai run: `router/src/validation.rs`, 2025-12; Z.ai's code is 1210 then.
    text(&["inputs` tokens + `max_new_tokens` must be"]),
    text(&["`inputs` must have less than"]),
    // TensorRT-LLM behind NVIDIA: `tensorrt_llm/executor`, 2026-01.
    text(&["prompt length", "exceeds maximum input length"]),
    // Copilot.
    code("model_max_prompt_tokens_exceeded"),
    text(&["token count", "exceeds the limit of"]),
    // GitHub Models: 413, "Max size: 8000 tokens", 2026-02.
    code("tokens_limit_reached"),
    // llama-server: `tools/server/server-context.cpp`, 2026-03. The status is 500 before 2025-10.
    code("exceed_context_size_error"),
    text(&["exceeds the available context size"]),
    text(&["context size has been exceeded"]),
    // LM Studio: lmstudio-ai/lmstudio-bug-tracker 237 and 1054, 2025.
    text(&["greater than the context length"]),
    text(&["trying to keep the first", "context length of only"]),
    text(&["reached context length of", "with this model"]),
    // LM Studio: anomalyco/opencode 11141 and lmstudio-ai/lmstudio-bug-tracker 2256, 2026.
    text(&["cannot truncate prompt", "n_ctx"]),
    // SiliconFlow: langgenius/dify 19394, 2025-05.
    text(&["must be less than max_seq_len"]),
    // tabbyAPI: SillyTavern/SillyTavern 3543, 2025-02.
    text(&["greater than max_seq_len"]),
    // Ollama, also for embeddings.
    text(&["prompt too long; exceeded"]),
    text(&["exceeds the context length"]),
    // DwarfStar 4.
    text(&["but the configured context size is"]),
    // MiniMax.
    text(&["context window exceeds limit"]),
    // Moonshot.
    text(&["exceeded model token limit"]),
    text(&["input token length too long"]),
    // DashScope, also behind Xunfei: "Error messages", alibabacloud.com/help/en/model-studio, 2026-11.
    text(&["range of input length should be"]),
    // Z.ai: "Error codes", docs.z.ai, 2026-11: 1261 is "Prompt exceeds max length"; 1210 and 1301 are something else.
    code("1261"),
    text(&["prompt exceeds max length"]),
    text(&["model_context_window_exceeded"]),
    // Volcengine Ark.
    text(&["tokens of image and text exceed max message tokens"]),
    // SambaNova.
    text(&["the maximum supported sequence length is"]),
    // Mistral: "too large for model with N maximum context length", or its code.
    code("3051"),
    // Cohere and others. These texts mean the window only in a refused request, not in a server error.
    text(&["maximum context length"]),
    text(&["exceeds", "context window"]),
    text(&["exceeds", "context length"]),
    text(&["too many tokens"]),
    text(&["token limit exceeded"]),
    text(&["400 (no body)"]),
    text(&["413 (no body)"]),
    text(&["400 status code (no body)"]),
    text(&["413 status code (no body)"]),
];
/// The number of signs at the end of the list that count only where the request is to blame.
const VAGUE: usize = 9;

/// Texts that resemble an overflow but are other errors.
const NO_OVERFLOW: &[&str] = &[
    "rate limit",
    "too many requests",
    "throttling error:",
    "service unavailable:",
];
/// Texts about a rate of tokens; of a single request that no rate allows (413) they mean an overflow.
const RATE: &[&str] = &["per min", "per day", "please wait"];
/// Texts of a 413 that concern the conversation. Without them a gateway refused the size of the body.
///
/// Source: Groq's "Request too large for model … on tokens per minute", console.groq.com/docs/rate-limits, 2026-11.
const CONVERSATION: &[&str] = &["token", "context", "prompt", "message", "requested"];

/// The reason to stop at the end of the context window, of Anthropic and Z.ai.
///
/// Source: "Handling stop reasons", platform.claude.com, and "Chat Completion", docs.z.ai, 2026-11.
const WINDOW_STOP: &str = "model_context_window_exceeded";

/// True if a refusal means that the request was too long; `text` is in lower case.
pub(crate) fn is_overflow(status: Option<u16>, text: &str, codes: &[String]) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|it| text.contains(it));
    if has(NO_OVERFLOW) || status != Some(413) && has(RATE) {
        return false;
    }
    let signs = match status {
        Some(413) if has(CONVERSATION) => return true,
        Some(401..=403 | 404 | 408 | 429 | 504) => return false,
        // A server that fails may name the context window in passing.
        Some(500..) => &OVERFLOW[..OVERFLOW.len() - VAGUE],
        _ => OVERFLOW,
    };
    signs.iter().any(|sign| sign.occurs(text, codes))
}

impl Sign {
    fn occurs(&self, text: &str, codes: &[String]) -> bool {
        let is_code = |name: &str| codes.iter().any(|code| code.eq_ignore_ascii_case(name));
        if self.parts.is_empty() {
            return is_code(self.code);
        }
        let mut parts = self.parts.iter();
        parts.all(|part| text.contains(part) || is_code(part))
    }
}

/// The texts that stand before the number of tokens that fit, in lower case.
const BEFORE_LIMIT: &[&str] = &[
    "maximum context length",
    "maximum prompt length",
    "maximum allowed input length",
    "maximum model length",
    "maximum number of tokens allowed",
    "max_model_len",
    "max_seq_len",
    "n_ctx",
    "max input tokens",
    "input length should be",
    "must be <=",
    "must have less than",
    "sequence length is just",
    "only supports up to",
    "max size:",
    "context length",
    "context size",
    "context window",
    "limit of",
    "token limit",
    "maximum input length",
    ">",
];

/// A request that exceeds the limit more often than this is implausible: the number has another meaning.
const MAX_RATIO: u64 = 50;

/// Reads the numbers of a text of an overflow. A number that may count something else is left out.
pub(crate) fn numbers(text: &str) -> Overflow {
    let text = text.to_lowercase();
    // Bodies have limits too, and the text may describe another excess.
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
                // Of two numbers the larger one is the requested amount, unless the numbers are its parts.
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
    if reply.stop != FinishReason::Length {
        return None;
    }
    if reply.raw_stop.as_deref() == Some(WINDOW_STOP) && reply.blocks.is_empty() {
        let text = format!("{} stopped at its context window before it wrote", info.id);
        return Some(
            Error::new(ErrorKind::Overflow, text)
                .with(|it| it.overflow = Some(Overflow::default())),
        );
    }
    let input = reply.usage.input();
    let window = info.window()?;
    let full = u128::from(input) * 100 >= u128::from(window) * 99;
    if reply.usage.output > 0 || !full {
        return None;
    }
    Some(error(info, input))
}

/// An overflow that was answered as if nothing were wrong: more input than the window holds.
///
/// Source: what Z.ai does, as the pi project found, 2026-08. Only for providers that do: a window may be set too small.
pub(crate) fn silent_overflow(info: &ModelInfo, reply: &Reply) -> Option<Error> {
    let input = reply.usage.input();
    let is_over = info.limits.is_known() && input > info.window()?;
    is_over.then(|| error(info, input))
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
