//! What the vendors refuse, rule by rule: a body, and the beginning of the message.

use adjutant_llm::ScriptedModel;
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Client, Vendor, ask, hello, request, run};

#[track_caller]
fn check(vendor: Vendor, body: &Value, message: &str) {
    run(async {
        let server = Loopback::start(ScriptedModel::new([]))
            .await
            .expect("a port");
        let answer = ask(&server, vendor, body).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["type"]),
            (400, &json!("invalid_request_error")),
            "{message}: {body}"
        );
        let told = error["message"].as_str().expect("a message");
        assert!(
            told.starts_with(message),
            "expected {message:?}, got {told:?}"
        );
    });
}

/// Checks the smallest request with one field changed; `null` takes it away.
#[track_caller]
fn field(vendor: Vendor, name: &str, value: Value, message: &str) {
    let mut body = hello(vendor);
    body[name] = value;
    check(vendor, &body, message);
}

#[track_caller]
fn messages(messages: Value, message: &str) {
    field(Vendor::Anthropic, "messages", messages, message);
}

/// Checks a first user message of this content.
#[track_caller]
fn content(content: Value, message: &str) {
    messages(json!([{"role": "user", "content": content}]), message);
}

/// Checks what stands between a question and a last user message of this content.
#[track_caller]
fn replied(reply: Value, last: Value, message: &str) {
    let first = json!({"role": "user", "content": "Hi"});
    let reply = json!({"role": "assistant", "content": reply});
    messages(
        json!([first, reply, {"role": "user", "content": last}]),
        message,
    );
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "t", "input": {}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "r"})
}

#[test]
fn key_is_refused_when_it_is_missing_or_empty() {
    run(async {
        let server = Loopback::start(ScriptedModel::new([]))
            .await
            .expect("a port");
        let cases = [
            (
                Vendor::Anthropic,
                "X-Api-Key: k\r\n",
                "",
                401,
                "authentication_error",
            ),
            (
                Vendor::Anthropic,
                "X-Api-Key: k",
                "X-Api-Key: ",
                401,
                "authentication_error",
            ),
            (
                Vendor::Anthropic,
                "anthropic-version: 2023-06-01\r\n",
                "",
                400,
                "invalid_request_error",
            ),
            (
                Vendor::OpenAi,
                "Authorization: Bearer k\r\n",
                "",
                401,
                "invalid_request_error",
            ),
            (
                Vendor::OpenAi,
                "Bearer k",
                "Bearer ",
                401,
                "invalid_request_error",
            ),
            (
                Vendor::OpenAi,
                "content-type: application/json",
                "content-type: text/plain",
                400,
                "invalid_request_error",
            ),
        ];
        for (vendor, old, new, status, kind) in cases {
            let mut client = Client::open(&server).await;
            client
                .send(&request(vendor, &hello(vendor)).replace(old, new))
                .await;
            let answer = client.answer().await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["type"]),
                (status, &json!(kind)),
                "{old}"
            );
        }
    });
}

#[test]
fn messages_refuses_when_a_field_is_missing_or_wrong() {
    let field =
        |name: &str, value: Value, message: &str| field(Vendor::Anthropic, name, value, message);
    field("model", Value::Null, "model: Field required");
    field(
        "model",
        json!(""),
        "model: String should have at least 1 character",
    );
    field("max_tokens", Value::Null, "max_tokens: Field required");
    field(
        "max_tokens",
        json!(0),
        "max_tokens: Input should be greater than or equal to 1",
    );
    field("messages", Value::Null, "messages: Field required");
    field(
        "messages",
        json!([]),
        "messages: at least one message is required",
    );
    field(
        "stream",
        json!(false),
        "stream: only streams are served here",
    );
    field("temperature", json!(1.1), "temperature: range: 0..1");
    field(
        "stop_sequences",
        json!([" "]),
        "stop_sequences.0: each stop sequence must contain non-whitespace",
    );
    field(
        "system",
        json!([{"type": "text", "text": ""}]),
        "system.0.text: text content blocks must contain",
    );
    check(
        Vendor::Anthropic,
        &json!([]),
        "The request body is not a JSON object",
    );
    let marked = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    field(
        "system",
        json!([marked, marked, marked, marked, marked]),
        "A maximum of 4 blocks with cache_control",
    );
}

#[test]
fn messages_refuses_when_a_tool_is_wrong() {
    let tools = |tools: Value, message: &str| field(Vendor::Anthropic, "tools", tools, message);
    let tool = json!({"name": "t", "input_schema": {"type": "object"}});
    tools(
        json!([{"name": "t"}]),
        "tools.0.input_schema: Field required",
    );
    tools(
        json!([{"name": "t", "input_schema": {}}]),
        "tools.0.input_schema.type: Field required",
    );
    tools(
        json!([{"name": "t", "input_schema": {"type": "string"}}]),
        "tools.0.input_schema.type: Input should be",
    );
    tools(
        json!([{"name": "a b", "input_schema": {"type": "object"}}]),
        "tools.0.name: String should match",
    );
    tools(json!([tool, tool]), "tools: Tool names must be unique");
}

#[test]
fn messages_refuses_when_content_is_empty_or_unknown() {
    content(
        json!(""),
        "messages.0.content: text content blocks must contain non-whitespace text",
    );
    content(
        json!([]),
        "messages.0: all messages must have non-empty content",
    );
    content(
        json!(["a"]),
        "messages.0.content.0: Input should be a valid dictionary",
    );
    content(
        json!([{"type": "text", "text": " \n"}]),
        "messages.0.content.0.text: text content blocks must",
    );
    content(
        json!([{"type": "video"}]),
        "messages.0.content.0: Input tag 'video'",
    );
    content(
        json!([tool_use("a")]),
        "messages.0.content.0: Input tag 'tool_use'",
    );
    content(
        json!([{"type": "image", "source": {"type": "base64", "data": "AA=="}}]),
        "messages.0.content.0.source.media_type: Field required",
    );
    replied(
        json!([{"type": "image"}]),
        json!("a"),
        "messages.1.content.0: Input tag 'image'",
    );
    replied(
        json!([{"type": "thinking", "thinking": "a"}]),
        json!("a"),
        "messages.1.content.0.signature: Field",
    );
    let unsigned = json!([{"type": "thinking", "thinking": "a", "signature": ""}]);
    replied(
        unsigned,
        json!("a"),
        "messages.1.content.0: Invalid `signature`",
    );
}

#[test]
fn messages_refuses_when_roles_are_out_of_place() {
    messages(
        json!([{"role": "assistant", "content": "a"}]),
        "messages: first message must use the \"user\" role",
    );
    messages(
        json!([{"role": "tool", "content": "a"}]),
        "messages.0.role: Input should be 'user' or 'assistant'",
    );
    messages(
        json!([{"role": "system", "content": "a"}]),
        "messages.0: role 'system' is not supported",
    );
    let prefill = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
    messages(
        prefill,
        "This model does not support assistant message prefill",
    );
}

#[test]
fn messages_refuses_when_calls_and_results_do_not_pair() {
    let unanswered =
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: b.";
    content(
        json!([tool_result("a")]),
        "messages.0.content.0: unexpected `tool_use_id` found",
    );
    replied(
        json!([tool_use("a")]),
        json!([tool_result("b")]),
        "messages.2.content.0: unexpected `tool_use_id`",
    );
    replied(
        json!([tool_use("a"), tool_use("b")]),
        json!([tool_result("a")]),
        unanswered,
    );
    replied(json!([tool_use("b")]), json!("no result"), unanswered);
    let twice = json!([tool_result("a"), tool_result("a")]);
    replied(
        json!([tool_use("a")]),
        twice,
        "messages.2.content.1: each tool_use must have a single result",
    );
    let late = json!([{"type": "text", "text": "x"}, tool_result("a")]);
    replied(
        json!([tool_use("a")]),
        late,
        "messages.2.content.1: `tool_result` blocks must come before",
    );
    replied(
        json!([tool_use("a"), tool_use("a")]),
        json!("x"),
        "messages.1.content.1: `tool_use` ids must be unique",
    );
    let user = |content: Value| json!({"role": "user", "content": content});
    let reply = json!({"role": "assistant", "content": [tool_use("a"), tool_use("b")]});
    let scattered = json!([
        user(json!("x")),
        reply,
        user(json!([tool_result("a")])),
        user(json!([tool_result("b")]))
    ]);
    messages(scattered, unanswered);
    messages(
        json!([user(json!("x")), reply]),
        "messages.1: `tool_use` ids were found without",
    );
}

#[test]
fn messages_refuses_when_a_call_is_malformed() {
    replied(
        json!([tool_use("a.b")]),
        json!("x"),
        "messages.1.content.0.id: String should match pattern",
    );
    replied(
        json!([tool_use(&"a".repeat(65))]),
        json!("x"),
        "messages.1.content.0.id: String should have at most 64",
    );
    let input = json!([{"type": "tool_use", "id": "a", "name": "t", "input": "{}"}]);
    replied(
        input,
        json!("x"),
        "messages.1.content.0.input: Input should be a valid dictionary",
    );
    let picture = json!({"type": "image", "source": {"type": "url", "url": "https://x.example"}});
    let failed = json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [picture]}]);
    replied(
        json!([tool_use("a")]),
        failed,
        "messages.2.content.0: all content must be type \"text\"",
    );
    let empty = json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": ""}]}]);
    replied(
        json!([tool_use("a")]),
        empty,
        "messages.2.content.0.content.0.text: text content blocks must contain",
    );
}

#[test]
fn messages_refuses_when_thinking_is_missing_before_results() {
    let mut body = hello(Vendor::Anthropic);
    body["max_tokens"] = json!(4096);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    body["messages"] = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [tool_use("a")]},
        {"role": "user", "content": [tool_result("a")]},
    ]);
    check(
        Vendor::Anthropic,
        &body,
        "messages.1: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    );
}

/// Checks a conversation of the Chat Completions wire after a first user message.
#[track_caller]
fn chat(messages: &[Value], message: &str) {
    let mut all = vec![json!({"role": "user", "content": "Hi"})];
    all.extend_from_slice(messages);
    field(Vendor::OpenAi, "messages", json!(all), message);
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "r"})
}

#[test]
fn chat_refuses_when_a_field_is_missing_or_wrong() {
    let field =
        |name: &str, value: Value, message: &str| field(Vendor::OpenAi, name, value, message);
    field("model", Value::Null, "you must provide a model parameter");
    field(
        "messages",
        Value::Null,
        "Missing required parameter: 'messages'.",
    );
    field("messages", json!([]), "[] is too short - 'messages'");
    field(
        "stream",
        json!(false),
        "stream: only streams are served here",
    );
    field(
        "max_completion_tokens",
        json!(0),
        "max_completion_tokens: Input should be greater than",
    );
    field("temperature", json!(2.1), "temperature: range: 0..2");
    field(
        "stop",
        json!(["a", "b", "c", "d", "e"]),
        "stop: expected an array of 1 to 4 strings",
    );
    field("tools", json!([]), "tools: [] is too short - 'tools'");
    let tools = |function: Value| json!([{"type": "function", "function": function}]);
    field(
        "tools",
        tools(json!({"name": "t"})),
        "tools.0.function.parameters: Field required",
    );
    field(
        "tools",
        tools(json!({"name": "t", "parameters": {}})),
        "Invalid schema for function 't': schema must be",
    );
    field(
        "tools",
        tools(json!({"name": "a b", "parameters": {}})),
        "tools.0.function.name: String should match",
    );
}

#[test]
fn chat_refuses_when_content_is_empty_or_unknown() {
    let said = |role: &str, content: Value| json!({"role": role, "content": content});
    chat(
        &[said("user", json!(""))],
        "messages.1.content: text content blocks must contain",
    );
    chat(
        &[said("user", json!([]))],
        "messages.1.content: empty array.",
    );
    chat(
        &[said("user", json!(["a"]))],
        "messages.1.content.0: Input should be a valid dictionary",
    );
    chat(
        &[said("user", json!([{"type": "text", "text": ""}]))],
        "messages.1.content.0.text: text content blocks",
    );
    chat(
        &[said("user", json!([{"type": "video"}]))],
        "messages.1.content.0: Invalid value: 'video'.",
    );
    chat(
        &[said("user", Value::Null)],
        "messages.1.content: Field required",
    );
    chat(
        &[said("assistant", Value::Null)],
        "Invalid value for 'content': expected a string, got null.",
    );
    chat(
        &[said("function", json!("a"))],
        "messages.1.role: Invalid value: 'function'.",
    );
    let picture = json!([{"type": "image_url", "image_url": {"url": "data:image/png,AA"}}]);
    chat(
        &[said("user", picture)],
        "messages.1.content.0.image_url.url: expected a base64-encoded data URL",
    );
}

#[test]
fn chat_refuses_when_calls_and_results_do_not_pair() {
    let orphan =
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message";
    let unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                      'tool_call_id'. The following tool_call_ids did not have response messages: b";
    chat(&[tool("a")], orphan);
    chat(&[calls(&["a"]), tool("b")], orphan);
    chat(&[calls(&["a", "b"]), tool("a")], unanswered);
    chat(
        &[
            calls(&["b"]),
            json!({"role": "user", "content": "x"}),
            tool("b"),
        ],
        unanswered,
    );
    chat(
        &[calls(&["a", "b"]), tool("a"), tool("a")],
        "Duplicate value for 'tool_call_id'.",
    );
    chat(&[calls(&[])], "messages.1: [] is too short - 'tool_calls'");
    chat(
        &[calls(&["a", "a"])],
        "messages.1.tool_calls.1: the ids of tool calls must be unique",
    );
}

#[test]
fn chat_refuses_when_a_call_is_malformed() {
    let longest = "a".repeat(41);
    chat(
        &[calls(&["a b"])],
        "messages.1.tool_calls.0.id: String should match pattern",
    );
    chat(
        &[calls(&[&longest])],
        "messages.1.tool_calls.0.id: String should have at most 40",
    );
    for arguments in [json!("{\"a\":"), json!("[1]"), json!("")] {
        let mut message = calls(&["a"]);
        message["tool_calls"][0]["function"]["arguments"] = arguments;
        chat(
            &[message],
            "messages.1.tool_calls.0.function.arguments: expected the text of a JSON object",
        );
    }
}
