//! The classification table, with cases that must not match.

use super::*;

#[track_caller]
fn check(status: u16, body: &str, expect: ErrorKind) {
    assert_eq!(Refusal::of_body(status, body).kind(), expect, "{status} {body}");
}

#[track_caller]
fn overflow(status: u16, text: &str) {
    check(status, &serde_json::json!({"error": {"message": text}}).to_string(), ErrorKind::Overflow);
}

#[test]
fn kind_is_overflow_when_a_vendor_says_so() {
    for text in [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "input length and `max_tokens` exceed context limit: too many total text bytes",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        "prompt token count of 217281 exceeds the limit of 128000",
        "the request exceeds the available context size. try increasing the context size",
        "tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144 (requested: 291351)",
        "Prompt contains 40000 tokens: too large for model with 32768 maximum context length",
        "prompt too long; exceeded max context length by 4 tokens",
        "You requested 4096 output tokens and your prompt contains at least 8000 input tokens",
        "Too many tokens in the prompt",
    ] {
        overflow(400, text);
    }
    check(400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, ErrorKind::Overflow);
    check(413, r#"{"type":"error","error":{"type":"request_too_large","message":"x"}}"#, ErrorKind::Overflow);
    check(413, "<html>", ErrorKind::Overflow);
    check(400, "", ErrorKind::Overflow);
}

#[test]
fn kind_is_no_overflow_when_the_words_only_look_like_one() {
    check(429, r#"{"error":{"message":"Too many tokens, please wait"}}"#, ErrorKind::RateLimited);
    check(400, r#"{"message":"Throttling error: Too many tokens"}"#, ErrorKind::Invalid);
    check(503, r#"{"message":"Service unavailable: too many tokens"}"#, ErrorKind::Overloaded);
    check(400, r#"{"error":{"message":"rate limit: token limit exceeded"}}"#, ErrorKind::Invalid);
    check(500, r#"{"error":{"message":"maximum context length lookup failed"}}"#, ErrorKind::Overloaded);
    check(400, r#"{"error":{"message":"image exceeds the limit of 5 MB"}}"#, ErrorKind::Invalid);
    check(400, r#"{"error":{"message":"messages: at least one message is required"}}"#, ErrorKind::Invalid);
    check(404, "", ErrorKind::Config);
}

#[test]
fn kind_follows_code_then_status_when_it_is_another_failure() {
    let coded = |code: &str| serde_json::json!({"type": "error", "error": {"type": code, "message": "m"}}).to_string();
    check(401, &coded("authentication_error"), ErrorKind::Auth);
    check(403, &coded("permission_error"), ErrorKind::Auth);
    check(403, &coded("billing_error"), ErrorKind::Auth);
    check(404, &coded("not_found_error"), ErrorKind::Config);
    check(429, &coded("rate_limit_error"), ErrorKind::RateLimited);
    check(429, r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#, ErrorKind::Auth);
    check(500, &coded("api_error"), ErrorKind::Overloaded);
    check(529, &coded("overloaded_error"), ErrorKind::Overloaded);
    check(400, &coded("invalid_request_error"), ErrorKind::Invalid);
    check(401, &coded("invalid_request_error"), ErrorKind::Auth);
    check(400, r#"{"error":{"code":"content_filter","message":"m"}}"#, ErrorKind::Refused);
    check(408, "late", ErrorKind::Timeout);
    check(502, "<html>bad gateway</html>", ErrorKind::Overloaded);
    check(307, "", ErrorKind::Config);
    check(422, r#"{"detail":"no"}"#, ErrorKind::Invalid);
    check(429, r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#, ErrorKind::RateLimited);
}

#[test]
fn kind_is_found_in_the_error_when_there_is_no_status() {
    let kind = |text: &str| {
        let value: Value = serde_json::from_str(text).expect("JSON");
        Refusal::of_value(&value).map(|refusal| refusal.kind())
    };
    assert_eq!(kind(r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#), Some(ErrorKind::Overloaded));
    assert_eq!(kind(r#"{"error":{"code":502,"message":"Provider returned error"}}"#), Some(ErrorKind::Overloaded));
    assert_eq!(kind(r#"{"error":"Server error: try again"}"#), Some(ErrorKind::Overloaded));
    assert_eq!(kind(r#"{"error":{"message":"prompt is too long"}}"#), Some(ErrorKind::Overflow));
    assert_eq!(kind(r#"{"error":{"type":"invalid_request_error","message":"no"}}"#), Some(ErrorKind::Invalid));
    assert_eq!(kind(r#"{"error":{"message":"who knows"}}"#), Some(ErrorKind::Protocol));
    assert_eq!(kind(r#"{"error":null,"choices":[]}"#), None);
}

#[test]
fn error_keeps_what_was_said_when_it_is_made() {
    let body = r#"{"error":{"type":"invalid_request_error","code":"bad","message":"no such tool"}}"#;
    let error = Refusal::of_body(400, body).into_error("x/y answered 400", body);
    assert_eq!(error.message(), "x/y answered 400 (bad): no such tool");
    assert_eq!((error.status(), error.code(), error.body()), (Some(400), Some("bad"), Some(body)));
}
