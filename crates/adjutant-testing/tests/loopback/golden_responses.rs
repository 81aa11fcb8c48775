//! The events of whole streams on the Responses wire.

use adjutant_llm::{FinishReason, FixedWorld, Script, ScriptedModel, Thinking, Usage};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Vendor, ask, hello, run};

/// The data of all events; each event's name must be the type of its data, its number one more than the one before.
async fn events(script: Script) -> Vec<Value> {
    let setup =
        Loopback::setup(ScriptedModel::new([script])).world(FixedWorld::at_ms(1_694_268_190_000));
    let server = setup.start().await.expect("a port");
    let answer = ask(&server, Vendor::Responses, &hello(Vendor::Responses)).await;
    assert!(answer.whole);
    let text = answer.text();
    let frame = |(at, frame): (usize, &str)| {
        let (name, data) = frame.split_once('\n').expect("two lines");
        let data: Value =
            serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
        assert_eq!(
            name,
            format!("event: {}", data["type"].as_str().expect("a type"))
        );
        assert_eq!(data["sequence_number"], at);
        data
    };
    text.trim_end()
        .split("\n\n")
        .enumerate()
        .map(frame)
        .collect()
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

fn item(prefix: &str, at: usize) -> String {
    format!("{prefix}_{:024}{at:024}", 0)
}

/// Checks the events between the first two and the last one, and the output of the last one.
#[track_caller]
fn check(script: Script, expect: &[Value], output: &[Value]) {
    run(async {
        let events = events(script.usage(usage())).await;
        let middle: Vec<Value> = events[2..events.len() - 1]
            .iter()
            .map(|event| {
                let mut event = event.clone();
                event
                    .as_object_mut()
                    .expect("an object")
                    .shift_remove("sequence_number");
                event
            })
            .collect();
        assert_eq!(middle, expect);
        assert_eq!(
            events[events.len() - 1]["response"]["output"],
            json!(output)
        );
    });
}

#[test]
fn responses_begins_and_ends_with_the_whole_response() {
    run(async {
        let events = events(Script::new().usage(usage())).await;
        let mut response = json!({
            "id": format!("resp_{:048}", 0), "object": "response", "created_at": 1_694_268_190,
            "status": "in_progress", "background": false, "error": null, "incomplete_details": null,
            "instructions": null, "max_output_tokens": null, "model": "m", "output": [],
            "parallel_tool_calls": true, "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null}, "service_tier": "auto", "store": false,
            "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "top_p": 1.0,
            "truncation": "disabled", "usage": null, "metadata": {},
        });
        let created =
            json!({"type": "response.created", "sequence_number": 0, "response": response});
        let going =
            json!({"type": "response.in_progress", "sequence_number": 1, "response": response});
        response["status"] = "completed".into();
        response["usage"] = json!({
            "input_tokens": 28, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 40,
        });
        let done =
            json!({"type": "response.completed", "sequence_number": 2, "response": response});
        assert_eq!(events, [created, going, done]);
    });
}

#[test]
fn responses_streams_text_when_the_model_speaks() {
    let id = item("msg", 0);
    let place = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "item_id": id, "output_index": 0, "content_index": 0});
        event
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        event
    };
    let part = |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
    let whole = json!({"id": id, "type": "message", "status": "completed", "role": "assistant",
                       "content": [part("Grüße")], "phase": "final_answer"});
    let expect = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": id, "type": "message",
               "status": "in_progress", "role": "assistant", "content": []}}),
        place("response.content_part.added", json!({"part": part("")})),
        place(
            "response.output_text.delta",
            json!({"delta": "Grü", "logprobs": []}),
        ),
        place(
            "response.output_text.delta",
            json!({"delta": "ße", "logprobs": []}),
        ),
        place("response.output_text.done", json!({"text": "Grüße"})),
        place("response.content_part.done", json!({"part": part("Grüße")})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": whole}),
    ];
    check(
        Script::new().text("Grüße").delta_chars(3),
        &expect,
        &[whole],
    );
}

#[test]
fn responses_streams_reasoning_when_it_has_a_summary_and_when_it_has_none() {
    let mut signed = Thinking::new("Hm.");
    signed.signature = Some("c2VhbA==".into());
    let mut withheld = Thinking::new("");
    withheld.signature = Some("Y2lwaGVy".into());
    withheld.redacted = true;
    let ids = [item("rs", 0), item("rs", 1)];
    let place = json!({"item_id": ids[0], "output_index": 0, "summary_index": 0});
    let event = |kind: &str, more: Value| {
        let mut event = json!({"type": kind});
        for fields in [&place, &more] {
            event
                .as_object_mut()
                .expect("an object")
                .extend(fields.as_object().expect("an object").clone());
        }
        event
    };
    let added = |at: usize| {
        json!({"type": "response.output_item.added", "output_index": at, "item": {"id": ids[at], "type": "reasoning",
               "summary": [], "encrypted_content": "gAAAAAB"}})
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let whole = json!({"id": ids[0], "type": "reasoning", "summary": [part("Hm.")], "encrypted_content": "c2VhbA=="});
    let bare =
        json!({"id": ids[1], "type": "reasoning", "summary": [], "encrypted_content": "Y2lwaGVy"});
    let done = |at: usize, item: &Value| json!({"type": "response.output_item.done", "output_index": at, "item": item});
    let expect = [
        added(0),
        event(
            "response.reasoning_summary_part.added",
            json!({"part": part("")}),
        ),
        event(
            "response.reasoning_summary_text.delta",
            json!({"delta": "Hm."}),
        ),
        event(
            "response.reasoning_summary_text.done",
            json!({"text": "Hm."}),
        ),
        event(
            "response.reasoning_summary_part.done",
            json!({"part": part("Hm.")}),
        ),
        done(0, &whole),
        added(1),
        done(1, &bare),
    ];
    check(
        Script::new().thinking(signed).thinking(withheld),
        &expect,
        &[whole, bare],
    );
}

#[test]
fn responses_streams_calls_after_a_message_that_comments() {
    run(async {
        let script = Script::new()
            .text("So.")
            .call_raw("t", "{\"a\": 1}")
            .call_raw("u", "")
            .usage(usage());
        let events = events(script).await;
        let last = &events[events.len() - 1];
        assert_eq!(last["type"], "response.completed");
        let output = &last["response"]["output"];
        assert_eq!(
            (&output[0]["phase"], &output[0]["type"]),
            (&json!("commentary"), &json!("message"))
        );
        let call = |at: usize, call_id: &str, name: &str, arguments: &str| {
            json!({"id": item("fc", at), "type": "function_call", "status": "completed", "arguments": arguments,
                   "call_id": call_id, "name": name})
        };
        assert_eq!(
            output[1],
            call(1, "call_010000000000010000000001", "t", "{\"a\": 1}")
        );
        assert_eq!(output[2], call(2, "call_010000000000010000000002", "u", ""));
        let kinds: Vec<&str> = events
            .iter()
            .skip(8)
            .map(|it| it["type"].as_str().expect("a type"))
            .collect();
        let arguments = [
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
        ];
        let (added, done) = ("response.output_item.added", "response.output_item.done");
        assert_eq!(
            kinds,
            [
                added,
                arguments[0],
                arguments[1],
                done,
                added,
                arguments[1],
                done,
                "response.completed"
            ]
        );
        assert_eq!(events[9]["delta"], "{\"a\": 1}");
        assert_eq!(events[10]["arguments"], "{\"a\": 1}");
    });
}

#[test]
fn responses_ends_incomplete_or_with_a_refusal_when_the_model_stops_so() {
    run(async {
        for (stop, reason) in [
            (FinishReason::Length, "max_output_tokens"),
            (FinishReason::Filtered, "content_filter"),
        ] {
            let events = events(Script::new().text("Ha").stop(stop)).await;
            let last = &events[events.len() - 1];
            assert_eq!(
                (&last["type"], &last["response"]["status"]),
                (&json!("response.incomplete"), &json!("incomplete"))
            );
            assert_eq!(
                last["response"]["incomplete_details"],
                json!({"reason": reason})
            );
        }
        let events = events(Script::new().stop(FinishReason::Refused)).await;
        assert_eq!(events[4]["type"], "response.refusal.delta");
        let last = &events[events.len() - 1];
        assert_eq!(last["type"], "response.completed");
        let said = json!({"type": "refusal", "refusal": "I'm sorry, I can't help with that."});
        assert_eq!(last["response"]["output"][0]["content"], json!([said]));
    });
}

#[test]
fn responses_fails_as_a_whole_when_the_model_fails() {
    run(async {
        let failure = adjutant_llm::Error::new(adjutant_llm::ErrorKind::RateLimited, "slow down");
        let events = events(Script::new().text("Ha").fail(failure)).await;
        let last = &events[events.len() - 1];
        assert_eq!(
            (&last["type"], &last["response"]["status"]),
            (&json!("response.failed"), &json!("failed"))
        );
        let error = json!({"code": "rate_limit_exceeded", "message": "slow down"});
        assert_eq!(last["response"]["error"], error);
    });
}
