//! What a strict server has signed comes back unrefused; everything else does not.

use std::sync::Arc;

use adjutant_llm::{Script, ScriptedModel, Thinking};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Answer, Client, Vendor, ask, hello, request_of, run};

fn signed(seal: &str) -> Script {
    let mut thinking = Thinking::new("Hm.");
    thinking.signature = Some(seal.into());
    Script::new().thinking(thinking).text("Yes.")
}

async fn strict(scripts: impl IntoIterator<Item = Script>) -> Loopback {
    let setup = Loopback::setup(Arc::new(ScriptedModel::new(scripts))).strict_signatures();
    setup.start().await.expect("a port")
}

/// A request that sends back a signature.
fn back(vendor: Vendor, seal: &str) -> Value {
    let mut body = hello(vendor);
    match vendor {
        Vendor::Anthropic => {
            let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": seal});
            let reply = json!({"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]});
            let user = json!({"role": "user", "content": "Go on."});
            body["messages"] = json!([body["messages"][0], reply, user]);
        }
        Vendor::Responses => {
            let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal});
            let said = json!({"role": "assistant", "content": "Yes."});
            body["input"] = json!([{"role": "user", "content": "Hi"}, reasoning, said]);
        }
        Vendor::Gemini => {
            let part = json!({"text": "Yes.", "thoughtSignature": seal});
            let user = json!({"role": "user", "parts": [{"text": "Go on."}]});
            body["contents"] =
                json!([body["contents"][0], {"role": "model", "parts": [part]}, user]);
        }
        Vendor::OpenAi => {}
    }
    body
}

fn told(answer: &Answer) -> String {
    answer.json()["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn signatures_are_taken_when_this_server_has_sent_them() {
    run(async {
        let seal = "c2VhbA==";
        let refusals = [
            (
                Vendor::Anthropic,
                "messages.1.content.0: Invalid `signature` in `thinking` block",
            ),
            (
                Vendor::Responses,
                "The encrypted content for item rs_1 could not be verified.",
            ),
            (Vendor::Gemini, "Corrupted thought signature."),
        ];
        for (vendor, refusal) in refusals {
            let server = strict([
                signed(seal),
                Script::new().text("So."),
                Script::new().text("So."),
            ])
            .await;
            let answer = ask(&server, vendor, &back(vendor, seal)).await;
            assert_eq!(answer.status, 400);
            assert!(told(&answer).starts_with(refusal), "{}", told(&answer));
            assert_eq!(ask(&server, vendor, &hello(vendor)).await.status, 200);
            assert_eq!(server.signatures(), [seal]);
            assert_eq!(ask(&server, vendor, &back(vendor, seal)).await.status, 200);
            // Another wire and another model have not sent it.
            let other = if vendor == Vendor::Gemini {
                Vendor::Anthropic
            } else {
                Vendor::Gemini
            };
            assert_eq!(ask(&server, other, &back(other, seal)).await.status, 400);
            let mut body = back(vendor, seal);
            body["model"] = "other".into();
            let mut client = Client::open(&server).await;
            client.send(&request_of("other", vendor, &body)).await;
            assert_eq!(client.answer().await.status, 400, "{vendor:?}");
        }
    });
}

#[test]
fn signatures_are_taken_from_anyone_when_a_server_is_not_strict() {
    run(async {
        for vendor in [Vendor::Anthropic, Vendor::Responses, Vendor::Gemini] {
            let server = Loopback::start(ScriptedModel::new([Script::new().text("So.")]))
                .await
                .expect("a port");
            assert_eq!(
                ask(&server, vendor, &back(vendor, "c2VhbA==")).await.status,
                200,
                "{vendor:?}"
            );
        }
    });
}

#[test]
fn responses_refuses_items_when_their_reasoning_is_missing() {
    run(async {
        let server = strict([
            signed("c2VhbA=="),
            Script::new().text("So."),
            Script::new().text("So."),
        ])
        .await;
        let answer = ask(&server, Vendor::Responses, &hello(Vendor::Responses))
            .await
            .text();
        let last = answer.trim_end().rsplit("data: ").next().expect("an event");
        let last: Value = serde_json::from_str(last).expect("JSON");
        let output = last["response"]["output"].as_array().expect("the output");
        let mut body = hello(Vendor::Responses);
        body["input"] = json!([{"role": "user", "content": "Hi"}, output[1], {"role": "user", "content": "Go on."}]);
        let (id, reasoning) = (
            output[1]["id"].as_str().expect("an id"),
            output[0]["id"].as_str().expect("an id"),
        );
        let expect = format!(
            "Item '{id}' of type 'message' was provided without its required 'reasoning' item: '{reasoning}'."
        );
        assert_eq!(told(&ask(&server, Vendor::Responses, &body).await), expect);
        body["input"] = json!([{"role": "user", "content": "Hi"}, output[0], output[1]]);
        assert_eq!(ask(&server, Vendor::Responses, &body).await.status, 200);
        // Without its id nobody knows what an item was said after.
        let mut bare = output[1].clone();
        bare.as_object_mut().expect("an object").shift_remove("id");
        body["input"] = json!([{"role": "user", "content": "Hi"}, bare]);
        assert_eq!(ask(&server, Vendor::Responses, &body).await.status, 200);
    });
}
