//! The bytes of whole streams on the Gemini wire.

use adjutant_llm::{Extra, FinishReason, FixedWorld, Script, ScriptedModel, Thinking, Usage};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Client, Vendor, hello, request_of, run};

/// The candidates of all responses; what is around them is checked.
#[track_caller]
fn check(model: &str, script: Script, expect: &[Value]) {
    run(async {
        let usage = Usage {
            input_uncached: 20,
            cache_read: 5,
            cache_write: 3,
            cache_write_1h: 0,
            output: 12,
            reasoning: 4,
        };
        let setup =
            Loopback::setup(ScriptedModel::new([script.usage(usage)])).world(FixedWorld::at_ms(0));
        let server = setup.start().await.expect("a port");
        let mut client = Client::open(&server).await;
        client
            .send(&request_of(model, Vendor::Gemini, &hello(Vendor::Gemini)))
            .await;
        let answer = client.answer().await;
        assert!(answer.whole);
        let text = answer.text();
        let responses: Vec<Value> = text
            .strip_suffix("\r\n\r\n")
            .expect("the lines end as this vendor ends them")
            .split("\r\n\r\n")
            .map(|frame| {
                serde_json::from_str(frame.strip_prefix("data: ").expect("data")).expect("JSON")
            })
            .collect();
        let last = responses.last().expect("a response");
        assert_eq!(
            last["usageMetadata"],
            json!({
                "promptTokenCount": 28, "candidatesTokenCount": 8, "totalTokenCount": 40, "cachedContentTokenCount": 5,
                "thoughtsTokenCount": 4,
            })
        );
        assert!(
            responses
                .iter()
                .all(|it| it["modelVersion"] == model && it["usageMetadata"].is_object())
        );
        let candidates: Vec<Value> = responses
            .iter()
            .map(|it| it["candidates"][0].clone())
            .collect();
        assert_eq!(candidates, expect);
    });
}

fn part(part: Value) -> Value {
    json!({"content": {"parts": [part], "role": "model"}, "index": 0})
}

fn end(reason: &str, part: Value) -> Value {
    json!({"finishReason": reason, "index": 0, "content": {"parts": [part], "role": "model"}})
}

fn signed(text: &str, place: Value) -> Thinking {
    let mut thinking = Thinking::new(text);
    thinking.signature = Some("c2VhbA==".into());
    thinking.extra = Extra::from(place);
    thinking
}

#[test]
fn gemini_streams_text_and_thoughts_when_the_model_speaks() {
    let script = Script::new()
        .thinking(Thinking::new("Hm."))
        .text("Grüße")
        .delta_chars(3);
    let expect = [
        part(json!({"text": "Hm.", "thought": true})),
        part(json!({"text": "Grü"})),
        part(json!({"text": "ße"})),
        end("STOP", json!({"text": ""})),
    ];
    check("gemini-2.5-flash", script, &expect);
}

#[test]
fn gemini_puts_a_signature_where_the_script_says() {
    let said = part(json!({"text": "Yes."}));
    let thought = part(json!({"text": "Hm.", "thought": true}));
    let script = |place| Script::new().thinking(signed("Hm.", place)).text("Yes.");
    let at_the_end = end("STOP", json!({"text": "", "thoughtSignature": "c2VhbA=="}));
    check(
        "gemini-3-pro",
        script(Value::Null),
        &[thought.clone(), said.clone(), at_the_end],
    );
    let on_text = part(json!({"text": "Yes.", "thoughtSignature": "c2VhbA=="}));
    let bare = end("STOP", json!({"text": ""}));
    check(
        "gemini-3-pro",
        script(json!({"place": "text"})),
        &[thought.clone(), on_text, bare.clone()],
    );
    let on_thought = part(json!({"text": "", "thought": true, "thoughtSignature": "c2VhbA=="}));
    check(
        "gemini-3-pro",
        script(json!({"place": "thought"})),
        &[thought, on_thought, said, bare],
    );
}

#[test]
fn gemini_sends_calls_whole_and_signs_the_first() {
    let script = || {
        Script::new()
            .call_raw("t", "{\"b\": 1, \"a\": 2}")
            .call_raw("u", "")
    };
    let end = end("STOP", json!({"text": ""}));
    let minted = "AWFkanV0YW50IGdlbWluaSBnZW1pbmktMyAwIDA=";
    let first = json!({"functionCall": {"name": "t", "args": {"b": 1, "a": 2}, "id": "010000000000010000000000"},
                       "thoughtSignature": minted});
    let second = json!({"functionCall": {"name": "u", "id": "010000000000010000000001"}});
    check(
        "gemini-3",
        script(),
        &[part(first), part(second), end.clone()],
    );
    let first = json!({"functionCall": {"name": "t", "args": {"b": 1, "a": 2}}});
    let second = json!({"functionCall": {"name": "u"}});
    check(
        "gemini-2.5-pro",
        script(),
        &[part(first), part(second), end.clone()],
    );
    let given = json!({"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "c2VhbA=="});
    let script = Script::new()
        .thinking(signed("", Value::Null))
        .call_raw("t", "{}");
    check("gemini-2.5-pro", script, &[part(given), end]);
}

#[test]
fn gemini_finishes_with_the_vendors_reason() {
    let empty = json!({"text": ""});
    let cases = [
        (FinishReason::Length, "MAX_TOKENS"),
        (FinishReason::Filtered, "SAFETY"),
        (FinishReason::Refused, "PROHIBITED_CONTENT"),
        (FinishReason::Sequence, "STOP"),
    ];
    for (stop, reason) in cases {
        let said = part(json!({"text": "Ha"}));
        check(
            "m",
            Script::new().text("Ha").stop(stop),
            &[said, end(reason, empty.clone())],
        );
    }
    // A prompt that is refused has no candidates.
    check(
        "m",
        Script::new().stop(FinishReason::Refused),
        &[Value::Null],
    );
    // Arguments that are no object have no form here.
    let malformed = json!({"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0});
    check("m", Script::new().call_raw("t", "{\"a\":"), &[malformed]);
}
