//! What OpenAI refuses on the Responses wire, rule by rule: a body, and the beginning of the message.

use adjutant_llm::{Script, ScriptedModel};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Vendor, ask, hello, run};

#[track_caller]
fn check(body: &Value, message: &str) {
    run(async {
        let server = Loopback::start(ScriptedModel::new([]))
            .await
            .expect("a port");
        let answer = ask(&server, Vendor::Responses, body).await;
        let error = answer.json()["error"].clone();
        assert!(matches!(answer.status, 400 | 404), "{message}: {body}");
        assert_eq!(error["type"], "invalid_request_error");
        let told = error["message"].as_str().expect("a message");
        assert!(
            told.starts_with(message),
            "expected {message:?}, got {told:?}"
        );
    });
}

/// Checks the smallest request with one field changed; `null` takes it away.
#[track_caller]
fn field(name: &str, value: Value, message: &str) {
    let mut body = hello(Vendor::Responses);
    body[name] = value;
    check(&body, message);
}

/// Checks what follows a first user message.
#[track_caller]
fn items(items: &[Value], message: &str) {
    let mut all = vec![json!({"role": "user", "content": "Hi"})];
    all.extend_from_slice(items);
    field("input", json!(all), message);
}

#[track_caller]
fn taken(items: Value) {
    run(async {
        let server = Loopback::start(ScriptedModel::new([Script::new().text("a")]))
            .await
            .expect("a port");
        let mut body = hello(Vendor::Responses);
        body["input"] = items;
        let answer = ask(&server, Vendor::Responses, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
}

fn call(call_id: &str) -> Value {
    json!({"type": "function_call", "call_id": call_id, "name": "t", "arguments": "{}"})
}

fn output(call_id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call_id, "output": "r"})
}

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"})
}

fn user() -> Value {
    json!({"role": "user", "content": "Go on."})
}

#[test]
fn responses_refuses_when_a_field_is_missing_or_wrong() {
    field("model", Value::Null, "Missing required parameter: 'model'.");
    field("input", Value::Null, "Missing required parameter: 'input'.");
    field("input", json!([]), "Invalid 'input': empty array.");
    field(
        "stream",
        json!(false),
        "stream: only streams are served here",
    );
    field(
        "messages",
        json!([]),
        "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved",
    );
    field(
        "max_tokens",
        json!(20),
        "Unsupported parameter: 'max_tokens'.",
    );
    field("stop", json!("x"), "Unknown parameter: 'stop'.");
    field(
        "max_output_tokens",
        json!(15),
        "Invalid 'max_output_tokens': integer below minimum value.",
    );
    field("temperature", json!(2.1), "temperature: range: 0..2");
    field(
        "reasoning",
        json!({"effort": "huge"}),
        "Invalid value: 'huge'. Supported values are: 'none',",
    );
    field(
        "include",
        json!(["everything"]),
        "Invalid value: 'everything'.",
    );
    field("store", json!("no"), "store: Invalid type.");
    field(
        "prompt_cache_key",
        json!("k".repeat(65)),
        "Invalid 'prompt_cache_key': string too long.",
    );
    field(
        "previous_response_id",
        json!("resp_1"),
        "Previous response with id 'resp_1' not found.",
    );
    field(
        "tool_choice",
        json!("required"),
        "Tool choice 'required' must be specified with 'tools' parameter.",
    );
    field(
        "tool_choice",
        json!({"type": "function", "name": "x"}),
        "Tool choice 'x' not found in 'tools' parameter.",
    );
}

#[test]
fn responses_refuses_when_a_schema_is_not_strict() {
    let tools = |tool: Value, message: &str| field("tools", json!([tool]), message);
    tools(json!({"type": "function"}), "tools.0.name: Field required");
    tools(
        json!({"type": "function", "name": "a b"}),
        "tools.0.name: String should match",
    );
    tools(
        json!({"type": "function", "name": "t"}),
        "tools.0.parameters: Field required",
    );
    let tool = |parameters: Value| json!({"type": "function", "name": "t", "strict": true, "parameters": parameters});
    tools(
        tool(json!({})),
        "Invalid schema for function 't': schema must be a JSON Schema of 'type: \"object\"'",
    );
    tools(
        tool(json!({"type": "object"})),
        "Invalid schema for function 't': In context=(), 'additionalProperties' is required to be supplied and to be",
    );
    let inner =
        json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]});
    let outer = json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false});
    tools(
        tool(outer),
        "Invalid schema for function 't': In context=('properties', 'a'), 'additionalProperties' is required",
    );
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    tools(
        tool(optional.clone()),
        "Invalid schema for function 't': In context=(), 'required' is required to be",
    );
    let format =
        json!({"format": {"type": "json_schema", "name": "f", "strict": true, "schema": optional}});
    field(
        "text",
        format,
        "Invalid schema for response_format 'f': In context=(), 'required' is required",
    );
}

#[test]
fn responses_refuses_when_content_is_unknown() {
    let said = |role: &str, part: Value| json!({"role": role, "content": [part]});
    items(
        &[said("user", json!({"type": "output_text", "text": "a"}))],
        "Invalid value: 'output_text'. Supported",
    );
    items(
        &[said(
            "assistant",
            json!({"type": "input_text", "text": "a"}),
        )],
        "Invalid value: 'input_text'. Supported",
    );
    items(
        &[json!({"role": "tool", "content": "a"})],
        "Invalid 'input[1].role': Invalid value: 'tool'.",
    );
    items(
        &[json!({"type": "video"})],
        "Invalid 'input[1].type': Invalid value: 'video'.",
    );
    let picture = json!({"type": "input_image", "image_url": "data:image/png,AA"});
    items(
        &[said("user", picture)],
        "Invalid 'input[1].content[0].image_url': Expected a base64-encoded data URL.",
    );
}

#[test]
fn responses_refuses_when_ids_are_wrong() {
    let with = |mut item: Value, name: &str, value: &str| {
        item[name] = value.into();
        item
    };
    let long = format!("fc_{}", "a".repeat(62));
    items(
        &[with(call("c"), "id", "call_1")],
        "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
    );
    items(
        &[with(call("c"), "id", &long)],
        "Invalid 'input[1].id': string too long. Expected a string with maximum",
    );
    items(
        &[call(&"c".repeat(65))],
        "Invalid 'input[1].call_id': string too long.",
    );
    items(
        &[with(call("c"), "name", "a b")],
        "input.1.name: String should match pattern",
    );
    let twice = [with(call("a"), "id", "fc_1"), with(call("b"), "id", "fc_1")];
    items(&twice, "Duplicate item found with id fc_1.");
    items(
        &[call("a"), call("a")],
        "Duplicate item found with call_id a.",
    );
    items(
        &[json!({"type": "item_reference", "id": "msg_1"})],
        "Item with id 'msg_1' not found.",
    );
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    items(
        &[bare, call("a"), output("a")],
        "Item with id 'rs_1' not found. Items are not persisted when `store`",
    );
}

#[test]
fn responses_refuses_when_calls_and_outputs_do_not_pair() {
    items(
        &[output("a")],
        "No tool call found for function call output with call_id a.",
    );
    items(
        &[call("a"), output("b")],
        "No tool call found for function call output with call_id b.",
    );
    items(&[call("a")], "No tool output found for function call a.");
    items(
        &[call("a"), call("b"), output("a"), user()],
        "No tool output found for function call b.",
    );
    items(
        &[call("a"), output("a"), output("a")],
        "Duplicate function call output found with call_id a.",
    );
    taken(json!([
        user(),
        call("a"),
        call("b"),
        output("b"),
        output("a")
    ]));
    taken(json!([
        user(),
        call("a"),
        output("a"),
        call("b"),
        output("b"),
        user()
    ]));
}

#[test]
fn responses_refuses_reasoning_when_nothing_follows_it() {
    let lonely =
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.";
    items(&[reasoning("rs_1")], lonely);
    items(&[reasoning("rs_1"), user()], lonely);
    items(&[call("a"), output("a"), reasoning("rs_1"), user()], lonely);
    items(
        &[json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "e"})],
        "input.1.summary: Field required",
    );
    taken(json!([user(), reasoning("rs_1"), call("a"), output("a")]));
    taken(json!([user(), reasoning("rs_1"), {"role": "assistant", "content": "a"}, user()]));
}
