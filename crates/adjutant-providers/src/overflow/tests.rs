//! The texts of each vendor for a request that does not fit, texts that only look like one, and an overflow that no
//! text tells.

use super::*;

/// Each vendor, its text, how much was asked for, and how much fits.
const TEXTS: [(&str, &str, Option<u64>, Option<u64>); 60] = [
    ("others", "context length exceeded", None, None),
    (
        "anthropic",
        "prompt is too long: 213462 tokens > 200000 maximum",
        Some(213_462),
        Some(200_000),
    ),
    (
        "anthropic",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or \
             `max_tokens` and try again",
        Some(209_573),
        Some(200_000),
    ),
    (
        "anthropic",
        "request_too_large: Request exceeds the maximum size",
        None,
        None,
    ),
    (
        "bedrock",
        "Input is too long for requested model.",
        None,
        None,
    ),
    (
        "bedrock",
        "input length and `max_tokens` exceed context limit: too many total text bytes",
        None,
        None,
    ),
    (
        "openai",
        "Your input exceeds the context window of this model. Please adjust your input.",
        None,
        None,
    ),
    (
        "openai",
        "This model's maximum context length is 128,000 tokens. However, you requested 130,096 tokens (126,000 \
             in the messages, 4,096 in the completion).",
        Some(130_096),
        Some(128_000),
    ),
    (
        "azure",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. \
             Please reduce the length of the messages.",
        Some(9_001),
        Some(8_192),
    ),
    (
        "gemini",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        Some(1_200_000),
        Some(1_048_576),
    ),
    (
        "gemini",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        None,
        Some(1_048_576),
    ),
    (
        "xai",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        Some(537_812),
        Some(131_072),
    ),
    (
        "groq",
        "Please reduce the length of the messages or completion.",
        None,
        None,
    ),
    (
        "cerebras",
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        Some(9_000),
        Some(8_192),
    ),
    (
        "openrouter",
        "This endpoint's maximum context length is 262144 tokens. However, you requested about 300010 tokens \
             (200010 of text input, 100000 in the output). Please reduce the length of either one.",
        Some(300_010),
        Some(262_144),
    ),
    (
        "openrouter",
        "anthropic/claude-3-5-sonnet-20241022: prompt is too long: 213462 tokens > 200000 maximum",
        Some(213_462),
        Some(200_000),
    ),
    (
        "vllm",
        "This model's maximum context length is 32768 tokens. However, you requested 4096 output tokens and your \
             prompt contains at least 28673 input tokens",
        Some(32_769),
        Some(32_768),
    ),
    (
        "vllm",
        "You requested 4096 output tokens and your prompt contains at least 8000 input tokens",
        None,
        None,
    ),
    (
        "vllm",
        "You passed 131073 input tokens and requested 0 output tokens. However, the model's context length is \
             only 131072 tokens, resulting in a maximum input length of 131072 tokens. (parameter=input_tokens, \
             value=131073)",
        Some(131_073),
        Some(131_072),
    ),
    (
        "vllm",
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is \
             only 131072 tokens, resulting in a maximum input length of 98304 tokens.",
        Some(131_073),
        Some(131_072),
    ),
    (
        "poolside",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        Some(131_393),
        Some(131_040),
    ),
    (
        "together",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        Some(516_368),
        Some(262_144),
    ),
    (
        "copilot",
        "prompt token count of 217281 exceeds the limit of 128000",
        Some(217_281),
        Some(128_000),
    ),
    (
        "llama.cpp",
        "the request exceeds the available context size (4096 tokens)",
        None,
        Some(4_096),
    ),
    (
        "llama.cpp",
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        Some(5_000),
        Some(4_096),
    ),
    (
        "lmstudio",
        "tokens to keep from the initial prompt is greater than the context length",
        None,
        None,
    ),
    (
        "minimax",
        "invalid params, context window exceeds limit (2013)",
        None,
        None,
    ),
    (
        "kimi",
        "Your request exceeded model token limit: 262144 (requested: 291351)",
        Some(291_351),
        Some(262_144),
    ),
    (
        "mistral",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        Some(40_000),
        Some(32_768),
    ),
    ("z.ai", "model_context_window_exceeded", None, None),
    (
        "ollama",
        "prompt too long; exceeded max context length by 400 tokens",
        None,
        None,
    ),
    (
        "ollama",
        "prompt too long; exceeded context length",
        None,
        None,
    ),
    (
        "dashscope",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
        None,
        Some(983_616),
    ),
    (
        "z.ai",
        "API 调用参数有误，请检查文档。Input validation error: `inputs` tokens + `max_new_tokens` must be <= 16384. \
             Given: 20017 `inputs` tokens and 1024 `max_new_tokens`",
        Some(20_017),
        Some(16_384),
    ),
    ("z.ai", "Prompt exceeds max length", None, None),
    (
        "hugging face",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5012",
        Some(5_012),
        Some(4_095),
    ),
    (
        "nvidia",
        "Prompt length (9000) exceeds maximum input length (8192). Set log level to info",
        Some(9_000),
        Some(8_192),
    ),
    (
        "vllm",
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that \
             `max_model_len` is no smaller than the number of text tokens.",
        Some(40_000),
        Some(32_768),
    ),
    (
        "vllm",
        "the engine prompt length 133999 exceeds the max_model_len 131072. Please reduce prompt.",
        Some(133_999),
        Some(131_072),
    ),
    (
        "fireworks",
        "The prompt is too long: 138421, model maximum context length: 131071",
        Some(138_421),
        Some(131_071),
    ),
    (
        "deepseek",
        "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (131808 in the \
             messages, 8192 in the completion). Please reduce the length of the messages or completion.",
        Some(140_000),
        Some(131_072),
    ),
    (
        "sglang",
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of \
             40000 tokens",
        Some(40_000),
        Some(32_768),
    ),
    (
        "sambanova",
        "Requested generation length 1 is not possible! The provided prompt is 9000 tokens long, so generating 1 tokens \
             requires a sequence length of 9001, but the maximum supported sequence length is just 8192!",
        Some(9_001),
        Some(8_192),
    ),
    (
        "lmstudio",
        "Trying to keep the first 13065 tokens when context the overflows. However, the model is loaded with context \
             length of only 4096 tokens, which is not enough.",
        Some(13_065),
        Some(4_096),
    ),
    (
        "lmstudio",
        "Reached context length of 4096 tokens with this model, but this model does not currently support mid-generation \
             context overflow.",
        None,
        Some(4_096),
    ),
    ("llama.cpp", "Context size has been exceeded.", None, None),
    (
        "ollama",
        "the input length exceeds the context length",
        None,
        None,
    ),
    (
        "vertex",
        "Unable to submit request because the input token count is 1048577 but model only supports up to 1048576. Reduce \
             the input token count and try again.",
        Some(1_048_577),
        Some(1_048_576),
    ),
    (
        "bedrock",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
        Some(9_000),
        Some(8_192),
    ),
    ("moonshot", "Input token length too long", None, None),
    (
        "ds4",
        "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
        Some(32_769),
        Some(32_768),
    ),
    (
        "lm studio",
        "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
        Some(15_028),
        Some(7_424),
    ),
    (
        "siliconflow",
        "length of prompt_tokens (57535) must be less than max_seq_len (32768).",
        Some(57_535),
        Some(32_768),
    ),
    (
        "tabby",
        "Request length 71599 + 2048 is greater than max_seq_len 65536",
        Some(71_599),
        Some(65_536),
    ),
    (
        "others",
        "Input exceeds the model's context window",
        None,
        None,
    ),
    (
        "others",
        "the prompt exceeds the model context length 8192 with 9000 tokens",
        Some(9_000),
        Some(8_192),
    ),
    (
        "volcengine",
        "Total tokens of image and text exceed max message tokens.",
        None,
        None,
    ),
    (
        "cohere",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs",
        None,
        None,
    ),
    (
        "others",
        "context_length_exceeded: token limit exceeded",
        None,
        None,
    ),
    (
        "others",
        "too many tokens: 9000 in gpt-4-1106-preview of 2024-10-22",
        None,
        None,
    ),
];

#[track_caller]
fn check(vendor: &str, text: &str, used: Option<u64>, limit: Option<u64>) {
    assert!(
        is_overflow(Some(400), &text.to_lowercase(), &[]),
        "{vendor}: {text}"
    );
    assert_eq!(numbers(text), Overflow { used, limit }, "{vendor}: {text}");
}

#[test]
fn numbers_are_read_when_a_vendor_says_them() {
    for (vendor, text, used, limit) in TEXTS {
        check(vendor, text, used, limit);
    }
}

#[test]
fn sign_has_a_text_when_it_is_in_the_table() {
    let texts: Vec<_> = TEXTS
        .iter()
        .map(|(_, text, ..)| text.to_lowercase())
        .collect();
    let no_body = [
        "400 (no body)",
        "413 (no body)",
        "400 status code (no body)",
        "413 status code (no body)",
    ];
    for sign in OVERFLOW.iter().filter(|sign| sign.code.is_empty()) {
        let mut all = texts.iter().map(String::as_str).chain(no_body);
        assert!(all.any(|text| sign.occurs(text, &[])), "{:?}", sign.parts);
    }
}

#[test]
fn is_overflow_says_no_when_a_rate_is_meant() {
    for text in [
        "rate limit: too many tokens",
        "too many requests: prompt is too long",
        "throttling error: too many tokens",
        "service unavailable: too many tokens",
        "too many tokens per day",
        "image exceeds the limit of 5242880 bytes",
        "max_tokens is too large: 140000",
        "bad request",
    ] {
        assert!(!is_overflow(Some(400), text, &[]), "{text}");
    }
    assert!(is_overflow(Some(500), "exceeds the context window", &[]));
    assert!(!is_overflow(Some(500), "token limit exceeded", &[]));
    assert!(!is_overflow(Some(401), "prompt is too long", &[]));
    assert!(is_overflow(
        None,
        "",
        &["context_length_exceeded".to_owned()]
    ));
}

#[test]
fn silent_is_an_overflow_when_nothing_was_said_at_a_full_window() {
    let info = ModelInfo {
        context_window: 1_000,
        ..ModelInfo::new("x/y")
    };
    let mut reply = Reply::new("x/y".into(), FinishReason::Length);
    reply.usage.input_uncached = 989;
    assert_eq!(silent(&info, &reply), None);
    reply.usage.cache_read = 1;
    let error = silent(&info, &reply).expect("an overflow");
    assert_eq!(
        (error.kind(), error.details().overflow),
        (
            ErrorKind::Overflow,
            Some(Overflow {
                used: Some(990),
                limit: Some(1_000)
            })
        )
    );
    reply.usage.output = 1;
    assert_eq!(silent(&info, &reply), None);
    let stop = |reply: &Reply| Reply {
        raw_stop: Some("model_context_window_exceeded".into()),
        ..reply.clone()
    };
    let kind = |reply: &Reply| silent(&info, reply).map(|error| error.kind());
    assert_eq!(kind(&stop(&reply)), Some(ErrorKind::Overflow));
    let mut cut = stop(&reply);
    cut.blocks = [adjutant_llm::Block::text("half").into()].into();
    assert_eq!(kind(&cut), None);
    reply.usage.cache_read = 12;
    assert!(silent_overflow(&info, &reply).is_some());
}
