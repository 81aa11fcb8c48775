//! The classification table, with cases that must not match.

use super::*;

#[track_caller]
fn check(status: u16, body: &str, expect: ErrorKind) {
    assert_eq!(
        Refusal::from_body(status, body).kind(),
        expect,
        "{status} {body}"
    );
}

#[track_caller]
fn overflow(status: u16, text: &str) {
    check(
        status,
        &serde_json::json!({"error": {"message": text}}).to_string(),
        ErrorKind::Overflow,
    );
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
    check(
        400,
        r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#,
        ErrorKind::Overflow,
    );
    check(
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"x"}}"#,
        ErrorKind::Overflow,
    );
    check(413, "", ErrorKind::Overflow);
    for body in [
        "<html><title>413 Request Entity Too Large</title></html>",
        r#"{"error":{"message":"Payload Too Large"}}"#,
        r#"{"error":{"message":"request entity too large","type":"invalid_request_error"}}"#,
    ] {
        check(413, body, ErrorKind::Invalid);
        assert!(
            !Refusal::from_body(413, body)
                .into_error("x", body)
                .is_retryable()
        );
    }
    check(400, "", ErrorKind::Overflow);
}

#[test]
fn kind_is_no_overflow_when_the_words_only_look_like_one() {
    check(
        429,
        r#"{"error":{"message":"Too many tokens, please wait"}}"#,
        ErrorKind::RateLimited,
    );
    check(
        400,
        r#"{"message":"Throttling error: Too many tokens"}"#,
        ErrorKind::Invalid,
    );
    check(
        503,
        r#"{"message":"Service unavailable: too many tokens"}"#,
        ErrorKind::Overloaded,
    );
    check(
        400,
        r#"{"error":{"message":"rate limit: token limit exceeded"}}"#,
        ErrorKind::Invalid,
    );
    check(
        500,
        r#"{"error":{"message":"maximum context length lookup failed"}}"#,
        ErrorKind::Overloaded,
    );
    check(
        400,
        r#"{"error":{"message":"image exceeds the limit of 5 MB"}}"#,
        ErrorKind::Invalid,
    );
    check(
        400,
        r#"{"error":{"message":"messages: at least one message is required"}}"#,
        ErrorKind::Invalid,
    );
    check(404, "", ErrorKind::Config);
}

#[test]
fn kind_follows_code_then_status_when_it_is_another_failure() {
    let coded = |code: &str| {
        serde_json::json!({"type": "error", "error": {"type": code, "message": "m"}}).to_string()
    };
    check(401, &coded("authentication_error"), ErrorKind::Auth);
    check(403, &coded("permission_error"), ErrorKind::Auth);
    check(403, &coded("billing_error"), ErrorKind::Auth);
    check(404, &coded("not_found_error"), ErrorKind::Config);
    check(429, &coded("rate_limit_error"), ErrorKind::RateLimited);
    check(
        429,
        r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        ErrorKind::Auth,
    );
    check(500, &coded("api_error"), ErrorKind::Overloaded);
    check(529, &coded("overloaded_error"), ErrorKind::Overloaded);
    check(400, &coded("invalid_request_error"), ErrorKind::Invalid);
    check(401, &coded("invalid_request_error"), ErrorKind::Auth);
    check(
        400,
        r#"{"error":{"code":"content_filter","message":"m"}}"#,
        ErrorKind::Refused,
    );
    check(408, "late", ErrorKind::Timeout);
    check(502, "<html>bad gateway</html>", ErrorKind::Overloaded);
    check(307, "", ErrorKind::Config);
    check(422, r#"{"detail":"no"}"#, ErrorKind::Invalid);
    check(
        429,
        r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#,
        ErrorKind::RateLimited,
    );
}

#[test]
fn kind_is_found_in_the_error_when_there_is_no_status() {
    let kind = |text: &str| {
        let value: Value = serde_json::from_str(text).expect("JSON");
        Refusal::from_value(&value).map(|refusal| refusal.kind())
    };
    assert_eq!(
        kind(r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        Some(ErrorKind::Overloaded)
    );
    assert_eq!(
        kind(r#"{"error":{"code":502,"message":"Provider returned error"}}"#),
        Some(ErrorKind::Overloaded)
    );
    assert_eq!(
        kind(r#"{"error":"Server error: try again"}"#),
        Some(ErrorKind::Overloaded)
    );
    assert_eq!(
        kind(r#"{"error":{"message":"prompt is too long"}}"#),
        Some(ErrorKind::Overflow)
    );
    assert_eq!(
        kind(r#"{"error":{"type":"invalid_request_error","message":"no"}}"#),
        Some(ErrorKind::Invalid)
    );
    assert_eq!(
        kind(r#"{"error":{"message":"who knows"}}"#),
        Some(ErrorKind::Protocol)
    );
    assert_eq!(kind(r#"{"error":null,"choices":[]}"#), None);
}

#[test]
fn error_keeps_what_was_said_when_it_is_made() {
    let body =
        r#"{"error":{"type":"invalid_request_error","code":"bad","message":"no such tool"}}"#;
    let error = Refusal::from_body(400, body).into_error("x/y answered 400", body);
    assert_eq!(error.message(), "x/y answered 400 (bad): no such tool");
    assert_eq!(
        (
            error.details().status,
            error.details().code.as_deref(),
            error.details().body.as_deref()
        ),
        (Some(400), Some("bad"), Some(body))
    );
}

/// The status, code, text and kind that are read out of what a vendor answers.
#[track_caller]
fn read(status: u16, body: &str, code: Option<&str>, text: &str, kind: ErrorKind) {
    let refusal = Refusal::from_body(status, body);
    let got = (
        refusal.status,
        refusal.code.as_deref(),
        &*refusal.text,
        refusal.kind(),
    );
    assert_eq!(got, (Some(status), code, text, kind), "{body}");
}

#[test]
fn refusal_is_read_when_each_vendor_says_it_its_way() {
    use ErrorKind::{Auth, Config, Invalid, Overflow, Overloaded, RateLimited, Refused};
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#;
    read(
        529,
        body,
        Some("overloaded_error"),
        "Overloaded",
        Overloaded,
    );
    let body = r#"{"error":{"message":"No money.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
    read(429, body, Some("insufficient_quota"), "No money.", Auth);
    let body = r#"{"error":{"message":"No such model.","type":"invalid_request_error","code":"model_not_found"}}"#;
    read(404, body, Some("model_not_found"), "No such model.", Config);
    let body = r#"{"error":{"code":"content_filter","message":"m","status":400,"innererror":{"code":"x"}}}"#;
    read(400, body, Some("content_filter"), "m", Refused);
    let key = r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":
        [{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]"#;
    read(
        400,
        key,
        Some("INVALID_ARGUMENT"),
        "API key not valid.",
        Auth,
    );
    read(
        503,
        r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#,
        Some("UNAVAILABLE"),
        "m",
        Overloaded,
    );
    let mistral = r#"{"object":"error","message":"Bad order","type":"invalid_request_message_order","code":"3230"}"#;
    read(400, mistral, Some("3230"), "Bad order", Invalid);
    read(
        404,
        r#"{"error":"model \"x\" not found, try pulling it first"}"#,
        None,
        NO_MODEL,
        Config,
    );
    let cerebras = r#"{"message":"Quota","type":"too_many_requests_error","param":"quota","code":"request_quota_exceeded"}"#;
    read(
        429,
        cerebras,
        Some("request_quota_exceeded"),
        "Quota",
        RateLimited,
    );
    read(400, "", None, "400 (no body)", Overflow);
    read(
        402,
        r#"{"error":{"code":402,"message":"Insufficient credits"}}"#,
        None,
        "Insufficient credits",
        Auth,
    );
    let vllm =
        r#"{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}"#;
    read(400, vllm, Some("BadRequestError"), "m", Invalid);
    let fields = r#"{"detail":[{"loc":["body","messages",0],"msg":"field required","type":"missing"},{"loc":[],"x":1}]}"#;
    read(
        422,
        fields,
        None,
        "body.messages.0: field required",
        Invalid,
    );
    read(
        502,
        "<html>bad gateway</html>",
        None,
        "<html>bad gateway</html>",
        Overloaded,
    );
    read(500, "null", None, "null", Overloaded);
}

const NO_MODEL: &str = r#"model "x" not found, try pulling it first"#;

#[test]
fn refusal_holds_what_was_said_behind_a_router_when_it_passes_it_on() {
    use ErrorKind::{Invalid, Overflow, Refused};
    let routed = |code: u16, metadata: Value| {
        serde_json::json!({"error": {"code": code, "message": "Provider returned error", "metadata": metadata}})
            .to_string()
    };
    let text = "Provider returned error: prompt is too long: 213462 tokens > 200000 maximum";
    let inner = r#"{"type":"error","error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#;
    read(
        400,
        &routed(
            400,
            serde_json::json!({"raw": inner, "provider_name": "Anthropic"}),
        ),
        None,
        text,
        Overflow,
    );
    read(
        400,
        &routed(400, serde_json::json!({"raw": "no"})),
        None,
        "Provider returned error: no",
        Invalid,
    );
    read(
        400,
        &routed(400, serde_json::json!({"raw": null})),
        None,
        "Provider returned error",
        Invalid,
    );
    let flagged = serde_json::json!({"reasons": ["violence"], "flagged_input": "…"});
    read(
        403,
        &routed(403, flagged),
        Some("flagged_input"),
        "Provider returned error",
        Refused,
    );
}

#[test]
fn kind_follows_the_status_when_a_code_of_the_server_is_used_for_a_bad_request() {
    check(
        400,
        r#"{"error":{"type":"api_error","message":"no such field"}}"#,
        ErrorKind::Invalid,
    );
    check(
        422,
        r#"{"error":{"type":"server_error","message":"no such field"}}"#,
        ErrorKind::Invalid,
    );
    check(
        409,
        r#"{"error":{"status":"ABORTED","message":"m"}}"#,
        ErrorKind::Overloaded,
    );
    check(
        401,
        r#"{"error":{"type":"api_error","message":"who are you"}}"#,
        ErrorKind::Auth,
    );
    // More than the limit of a minute fits no minute: it must become shorter.
    let groq = r#"{"error":{"message":"Request too large: Limit 6000, Requested 11229","code":"rate_limit_exceeded"}}"#;
    check(413, groq, ErrorKind::Overflow);
}

#[test]
fn error_says_how_long_to_wait_when_the_body_does() {
    let wait = |delay: &str| {
        let info = serde_json::json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
        let body = serde_json::json!({"error": {"code": 429, "message": "m", "details": [{"reason": "R"}, info]}});
        Refusal::from_body(429, &body.to_string())
            .into_error("x", "")
            .retry_after()
    };
    assert_eq!(wait("34.5s"), Some(Duration::from_millis(34_500)));
    assert_eq!(wait("0s"), Some(Duration::ZERO));
    assert_eq!(
        (
            wait("-3s"),
            wait("soon"),
            wait(""),
            wait("1e99s"),
            wait("99999999999h")
        ),
        (
            None,
            None,
            None,
            None,
            Some(Duration::from_secs(365 * 24 * 60 * 60))
        )
    );
}

#[test]
fn kind_is_generation_when_the_model_wrote_something_unusable() {
    for (status, body) in [
        (
            400,
            r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function>"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Failed to generate JSON.","code":"json_validate_failed"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Parsing failed.","code":"output_parse_failed"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"tool call validation failed: attempted to call tool 'x'","type":"invalid_request_error"}}"#,
        ),
        (
            500,
            r#"{"error":{"message":"The function call generated by the model is invalid","type":"internal_server_error","code":"500"}}"#,
        ),
        (
            500,
            r#"{"error":"error parsing tool call: raw='{\"a\"}]', err=invalid character"}"#,
        ),
        (
            500,
            r#"{"error parsing tool call":"invalid character 'c' looking for beginning of value"}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"Failed to parse input at pos 184: x"}}"#,
        ),
        (
            400,
            r#"{"error":"Failed to parse tool call: Unexpected end of content"}"#,
        ),
        (
            424,
            r#"{"message":"Model produced invalid sequence as part of ToolUse."}"#,
        ),
        (
            502,
            r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"Failed to call a function.\"}}"}}}"#,
        ),
    ] {
        assert_eq!(
            Refusal::from_body(status, body).kind(),
            ErrorKind::Generation,
            "{body}"
        );
    }
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "function_call_filter: UNEXPECTED_TOOL_CALL",
    ] {
        assert!(is_failed_generation(reason), "{reason}");
    }
    assert!(!is_failed_generation("tool_calls"));
}

/// Bodies of refusals as they come, with their status, and what each is.
#[test]
fn refusals_are_overflows_when_vendors_wrap_them_in_their_own_way() {
    let table = [
        (
            400,
            r#"{"error":{"code":"1261","message":"Prompt 超长"}}"#,
            ErrorKind::Overflow,
        ),
        (
            400,
            r#"{"error":{"code":1261,"message":"Prompt"}}"#,
            ErrorKind::Overflow,
        ),
        (
            400,
            r#"{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}"#,
            ErrorKind::Invalid,
        ),
        (
            400,
            r#"{"error":{"code":"1210","message":"API 调用参数有误，请检查文档。"}}"#,
            ErrorKind::Invalid,
        ),
        (
            422,
            r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 0 `max_new_tokens`","error_type":"validation"}"#,
            ErrorKind::Overflow,
        ),
        (
            422,
            r#"{"error":"Input validation error: `max_new_tokens` must be <= 4096. Given: 20000"}"#,
            ErrorKind::Invalid,
        ),
        (
            413,
            r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens.","details":"x"}}"#,
            ErrorKind::Overflow,
        ),
        (
            400,
            r#"{"error":{"code":"tokens_limit_reached","message":"too large"}}"#,
            ErrorKind::Overflow,
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size","code":"rate_limit_exceeded"}}"#,
            ErrorKind::Overflow,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached on tokens per min: Limit 30000, Requested 40000. maximum context length","code":"rate_limit_exceeded"}}"#,
            ErrorKind::RateLimited,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"request (9412 tokens) does not fit","type":"exceed_context_size_error","n_prompt_tokens":9412,"n_ctx":8192}}"#,
            ErrorKind::Overflow,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}"#,
            ErrorKind::Overflow,
        ),
        (
            500,
            r#"{"error":{"message":"too many tokens in flight"}}"#,
            ErrorKind::Overloaded,
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Range of input length should be [1, 129024]\"}}","provider_name":"Alibaba"}}}"#,
            ErrorKind::Overflow,
        ),
        (
            400,
            r#"{"detail":"{\"error\":{\"type\":\"exceed_context_size_error\",\"message\":\"request (5 tokens) exceeds the available context size\"}}"}"#,
            ErrorKind::Overflow,
        ),
        (
            400,
            r#"{"object":"error","message":"Prompt contains too much","type":"invalid_request_error","code":"3051"}"#,
            ErrorKind::Overflow,
        ),
        (
            400,
            r#"{"error":{"message":"Range of max_tokens should be [1, 8192]","code":"invalid_parameter_error"}}"#,
            ErrorKind::Invalid,
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens is too large: 40000. This model supports at most 16384 completion tokens, whereas you provided 40000."}}"#,
            ErrorKind::Invalid,
        ),
        (
            400,
            r#"{"message":"Too many tokens, please wait before trying again."}"#,
            ErrorKind::Invalid,
        ),
    ];
    for (status, body, expect) in table {
        assert_eq!(
            Refusal::from_body(status, body).kind(),
            expect,
            "{status} {body}"
        );
        if expect == ErrorKind::Overflow && status != 413 {
            let in_stream = crate::wire::refusal(&"x/y".into(), body);
            assert_eq!(in_stream.kind(), expect, "in a stream: {body}");
        }
    }
}
