//! The bytes of whole streams, on the wires of Messages and Chat Completions.

use std::time::Duration;

use adjutant_llm::{
    Chunk, Error, ErrorKind, FinishReason, FixedWorld, ModelInfo, RateLimits, Script,
    ScriptedModel, Thinking, Usage, model_fn,
};
use adjutant_testing::Loopback;
use serde_json::json;

use crate::client::{Answer, VENDORS, Vendor, ask, hello, run};

const AT_MS: u64 = 1_694_268_190_000;

async fn serve(script: Script, vendor: Vendor) -> Answer {
    let setup = Loopback::setup(ScriptedModel::new([script])).world(FixedWorld::at_ms(AT_MS));
    let server = setup.start().await.expect("a port");
    ask(&server, vendor, &hello(vendor)).await
}

#[track_caller]
fn check(script: Script, vendor: Vendor, expect: &str) {
    run(async {
        let answer = serve(script, vendor).await;
        assert_eq!(answer.text(), expect);
        assert!(answer.whole);
    });
}

fn usage() -> Usage {
    Usage {
        input_uncached: 20,
        cache_read: 5,
        cache_write: 3,
        cache_write_1h: 0,
        output: 12,
        reasoning: 4,
    }
}

/// A frame of the Chat Completions wire.
fn frame(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-{}\",\"object\":\"chat.completion.chunk\",\"created\":1694268190,\"model\":\"m\",\
         \"service_tier\":\"default\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":null}}\n\n",
        "0".repeat(29)
    )
}

/// The frames after the last choice.
fn chat_end() -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-{}\",\"object\":\"chat.completion.chunk\",\"created\":1694268190,\"model\":\"m\",\
         \"service_tier\":\"default\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[],\"usage\":{{\
         \"prompt_tokens\":28,\"completion_tokens\":12,\"total_tokens\":40,\
         \"prompt_tokens_details\":{{\"cached_tokens\":5,\"audio_tokens\":0}},\
         \"completion_tokens_details\":{{\"reasoning_tokens\":4,\"audio_tokens\":0,\
         \"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}}}}}\n\ndata: [DONE]\n\n",
        "0".repeat(29)
    )
}

/// The events of the Messages wire, each by its data; the name is the data's type.
fn events(data: &[&str]) -> String {
    let start = "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_010000000000000000000000\",\"type\":\"message\",\
                 \"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"stop_reason\":null,\"stop_sequence\":null,\
                 \"usage\":{\"input_tokens\":6,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\
                 \"output_tokens\":1}}}";
    let name = |data: &str| data.split('"').nth(3).expect("a type").to_owned();
    let whole = std::iter::once(&start).chain(data);
    whole
        .map(|data| format!("event: {}\ndata: {data}\n\n", name(data)))
        .collect()
}

fn message_delta(reason: &str) -> String {
    format!(
        "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},\"usage\":{{\
         \"input_tokens\":20,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":5,\"output_tokens\":12}}}}"
    )
}

const PING: &str = "{\"type\": \"ping\"}";
const STOP: &str = "{\"type\":\"message_stop\"}";

#[test]
fn messages_streams_text_when_the_model_speaks() {
    let script = Script::new()
        .text("Grüße,\n\"Welt\"!")
        .delta_chars(9)
        .usage(usage());
    let expect = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        PING,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße,\n\"W"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"elt\"!"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        &message_delta("end_turn"),
        STOP,
    ]);
    check(script, Vendor::Anthropic, &expect);
}

#[test]
fn messages_streams_thinking_when_it_is_signed_and_when_it_is_withheld() {
    let signed = Thinking {
        text: "Hm.".into(),
        signature: Some("sig==".into()),
        redacted: false,
        extra: Default::default(),
    };
    let omitted = Thinking {
        text: "".into(),
        signature: Some("sig2".into()),
        redacted: false,
        extra: Default::default(),
    };
    let withheld = Thinking {
        text: "".into(),
        signature: Some("cipher".into()),
        redacted: true,
        extra: Default::default(),
    };
    let script = Script::new()
        .thinking(signed)
        .thinking(omitted)
        .thinking(withheld)
        .usage(usage());
    let expect = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        PING,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig=="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"sig2"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"cipher"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        &message_delta("end_turn"),
        STOP,
    ]);
    check(script, Vendor::Anthropic, &expect);
}

#[test]
fn messages_streams_calls_when_they_are_parallel() {
    let script = Script::new()
        .call("add", json!({"a": 1}))
        .call_raw("now", "")
        .usage(usage());
    let expect = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_010000000000010000000000","name":"add","input":{}}}"#,
        PING,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_010000000000010000000001","name":"now","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        &message_delta("tool_use"),
        STOP,
    ]);
    check(script, Vendor::Anthropic, &expect);
}

#[test]
fn messages_streams_opaque_blocks_and_the_length_stop() {
    let block =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let script = Script::new()
        .opaque("anthropic", block)
        .text("Half")
        .stop(FinishReason::Length)
        .usage(usage());
    let expect = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
        PING,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Half"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        &message_delta("max_tokens"),
        STOP,
    ]);
    check(script, Vendor::Anthropic, &expect);
}

#[test]
fn chat_streams_text_when_the_model_speaks() {
    let script = Script::new()
        .text("Grüße, \"Welt\"!")
        .delta_chars(9)
        .usage(usage());
    let expect = [
        frame(
            r#"{"role":"assistant","content":"","refusal":null}"#,
            "null",
        ),
        frame(r#"{"content":"Grüße, \"W"}"#, "null"),
        frame(r#"{"content":"elt\"!"}"#, "null"),
        frame("{}", "\"stop\""),
        chat_end(),
    ];
    check(script, Vendor::OpenAi, &expect.concat());
}

#[test]
fn chat_streams_thinking_and_the_length_stop() {
    let thinking = Thinking {
        text: "Hm.".into(),
        signature: None,
        redacted: false,
        extra: Default::default(),
    };
    let script = Script::new()
        .thinking(thinking)
        .text("Half")
        .stop(FinishReason::Length)
        .usage(usage());
    let expect = [
        frame(
            r#"{"role":"assistant","content":null,"refusal":null}"#,
            "null",
        ),
        frame(r#"{"reasoning_content":"Hm."}"#, "null"),
        frame(r#"{"content":"Half"}"#, "null"),
        frame("{}", "\"length\""),
        chat_end(),
    ];
    check(script, Vendor::OpenAi, &expect.concat());
}

#[test]
fn chat_streams_calls_when_they_are_parallel() {
    let script = Script::new()
        .call("add", json!({"a": 1}))
        .call("now", json!({}))
        .usage(usage());
    let first = |index: usize, name: &str| {
        let id = format!("call_01000000000001000000000{index}");
        let function =
            format!(r#""type":"function","function":{{"name":"{name}","arguments":""}}"#);
        frame(
            &format!(r#"{{"tool_calls":[{{"index":{index},"id":"{id}",{function}}}]}}"#),
            "null",
        )
    };
    let expect = [
        frame(
            r#"{"role":"assistant","content":null,"refusal":null}"#,
            "null",
        ),
        first(0, "add"),
        frame(
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}"#,
            "null",
        ),
        first(1, "now"),
        frame(
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}"#,
            "null",
        ),
        frame("{}", "\"tool_calls\""),
        chat_end(),
    ];
    check(script, Vendor::OpenAi, &expect.concat());
}

#[test]
fn chat_leaves_the_usage_out_when_it_was_not_asked_for() {
    run(async {
        let server = Loopback::start(ScriptedModel::new([Script::new()
            .text("a")
            .stop(FinishReason::Refused)]))
        .await;
        let server = server.expect("a port");
        let mut body = hello(Vendor::OpenAi);
        body["stream_options"] = json!({});
        let text = ask(&server, Vendor::OpenAi, &body).await.text();
        assert!(!text.contains("usage"), "{text}");
        assert!(
            text.contains("\"delta\":{\"refusal\":\"I'm sorry, I can't help with that.\"}"),
            "{text}"
        );
        assert!(
            text.ends_with("\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"),
            "{text}"
        );
    });
}

#[test]
fn answers_carry_the_vendors_headers() {
    let shown = |limits: RateLimits, vendor: Vendor| {
        let mut headers = Vec::new();
        run(async {
            let model = model_fn(ModelInfo::new("x/y"), move |_| {
                let start = Chunk::Start {
                    attempt: 0,
                    model: "x/y".into(),
                    limits: Box::new(limits),
                    warnings: Vec::new(),
                };
                let done =
                    Chunk::Done(adjutant_llm::Reply::new("x/y".into(), FinishReason::End).into());
                Box::pin(Chunks(vec![done, start]))
            });
            let setup = Loopback::setup(model).world(FixedWorld::at_ms(AT_MS));
            let server = setup.start().await.expect("a port");
            headers = ask(&server, vendor, &hello(vendor)).await.headers;
        });
        headers
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
    };
    let mut limits = RateLimits::default();
    limits.requests_left = Some(7);
    limits.tokens_left = Some(900);
    limits.reset_after = Some(Duration::from_secs(360));
    let stream = [
        "content-type: text/event-stream; charset=utf-8",
        "cache-control: no-cache",
        "transfer-encoding: chunked",
    ];
    let anthropic = [
        "request-id: req_010000000000000000000000",
        "anthropic-ratelimit-requests-remaining: 7",
        "anthropic-ratelimit-requests-reset: 2023-09-09T14:09:10Z",
        "anthropic-ratelimit-tokens-remaining: 900",
        "anthropic-ratelimit-tokens-reset: 2023-09-09T14:09:10Z",
    ];
    assert_eq!(
        shown(limits, Vendor::Anthropic),
        [&stream[..], &anthropic[..]].concat()
    );
    let openai = [
        "x-request-id: req_00000000000000000000000000000000",
        "openai-version: 2020-10-01",
        "x-ratelimit-remaining-requests: 7",
        "x-ratelimit-reset-requests: 6m0s",
        "x-ratelimit-remaining-tokens: 900",
        "x-ratelimit-reset-tokens: 6m0s",
    ];
    assert_eq!(
        shown(limits, Vendor::OpenAi),
        [&stream[..], &openai[..]].concat()
    );
}

/// Chunks, the last one first.
struct Chunks(Vec<Chunk>);

impl futures_core::Stream for Chunks {
    type Item = Result<Chunk, Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop().map(Ok))
    }
}

#[test]
fn model_errors_become_statuses_when_nothing_was_said() {
    let error = || {
        let error = Error::new(ErrorKind::RateLimited, "slow down");
        error.with(|it| it.retry_after = Some(Duration::from_millis(1_500)))
    };
    run(async {
        let answer = serve(Script::new().fail(error()), Vendor::Anthropic).await;
        let expect = json!({
            "type": "error", "error": {"type": "rate_limit_error", "message": "slow down"},
            "request_id": "req_010000000000000000000000",
        });
        assert_eq!((answer.status, answer.json()), (429, expect));
        assert_eq!(answer.header("retry-after-ms"), Some("1500"));
        let answer = serve(Script::new().fail(error()), Vendor::OpenAi).await;
        let expect = json!({"error": {
            "message": "slow down", "type": "requests", "param": null, "code": "rate_limit_exceeded",
        }});
        assert_eq!((answer.status, answer.json()), (429, expect));
    });
}

#[test]
fn model_errors_become_frames_when_something_was_said() {
    run(async {
        for vendor in VENDORS {
            let script = Script::new()
                .text("a")
                .fail(Error::new(ErrorKind::Overloaded, "Overloaded"));
            let answer = serve(script, vendor).await;
            let end = match vendor {
                Vendor::Anthropic => {
                    "event: error\n\
                     data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
                }
                Vendor::OpenAi => {
                    "data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"server_error\",\"param\":null,\
                     \"code\":null}}\n\n"
                }
                Vendor::Responses => "\"metadata\":{}}}\n\n",
                Vendor::Gemini => {
                    "data: {\"error\":{\"code\":503,\"message\":\"Overloaded\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n"
                }
            };
            assert_eq!((answer.status, answer.whole), (200, true));
            assert!(answer.text().ends_with(end), "{}", answer.text());
        }
    });
}
