//! Rules of Messages and Chat Completions that go across a request, and options as the served model sees them.

use std::sync::Arc;

use adjutant_llm::{Effort, Format, Options, Script, ScriptedModel, ToolChoice};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Vendor, ask, hello, run};

/// The smallest request with a tool and these fields.
fn body(vendor: Vendor, fields: Value) -> Value {
    let mut body = hello(vendor);
    let schema = json!({"type": "object"});
    body["tools"] = match vendor {
        Vendor::Anthropic => json!([{"name": "t", "input_schema": schema}]),
        Vendor::OpenAi => {
            json!([{"type": "function", "function": {"name": "t", "parameters": schema}}])
        }
        Vendor::Responses => json!([{"type": "function", "name": "t", "parameters": schema}]),
        Vendor::Gemini => {
            json!([{"functionDeclarations": [{"name": "t", "parametersJsonSchema": schema}]}])
        }
    };
    body.as_object_mut()
        .expect("an object")
        .extend(fields.as_object().expect("an object").clone());
    body
}

#[track_caller]
fn refused(vendor: Vendor, fields: Value, message: &str) {
    run(async {
        let server = Loopback::start(ScriptedModel::new([]))
            .await
            .expect("a port");
        let answer = ask(&server, vendor, &body(vendor, fields)).await;
        let told = answer.json()["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        assert_eq!(answer.status, 400, "{told}");
        assert!(told.contains(message), "expected {message:?}, got {told:?}");
    });
}

#[track_caller]
fn understood(vendor: Vendor, fields: Value, expect: Options) {
    run(async {
        let model = Arc::new(ScriptedModel::new([Script::new().text("a")]));
        let server = Loopback::start(Arc::clone(&model)).await.expect("a port");
        let answer = ask(&server, vendor, &body(vendor, fields)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(*model.requests()[0].options, expect);
    });
}

fn schema() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

#[test]
fn options_reach_the_model_when_a_wire_has_them() {
    let named = || Options {
        tool_choice: ToolChoice::Named("t".into()),
        sequential_calls: true,
        ..Options::default()
    };
    let thought = |name: &str| Options {
        thinking: Some(Effort::High),
        format: Some(Format::new(name, schema())),
        ..Options::default()
    };
    let anthropic = |options: Options| Options {
        max_output_tokens: Some(100),
        ..options
    };
    let choice = json!({"type": "tool", "name": "t", "disable_parallel_tool_use": true});
    understood(
        Vendor::Anthropic,
        json!({"tool_choice": choice}),
        anthropic(named()),
    );
    let format = json!({"type": "json_schema", "schema": schema()});
    let output = json!({"output_config": {"effort": "high", "format": format}, "thinking": {"type": "adaptive"}});
    understood(Vendor::Anthropic, output, anthropic(thought("response")));

    let choice = json!({"type": "function", "function": {"name": "t"}});
    understood(
        Vendor::OpenAi,
        json!({"tool_choice": choice, "parallel_tool_calls": false}),
        named(),
    );
    let format = json!({"name": "f", "strict": true, "schema": schema()});
    let output = json!({"type": "json_schema", "json_schema": format});
    understood(
        Vendor::OpenAi,
        json!({"response_format": output, "reasoning_effort": "high"}),
        thought("f"),
    );

    let choice = json!({"type": "function", "name": "t"});
    understood(
        Vendor::Responses,
        json!({"tool_choice": choice, "parallel_tool_calls": false}),
        named(),
    );
    let format = json!({"type": "json_schema", "name": "f", "strict": true, "schema": schema()});
    let output =
        json!({"text": {"format": format}, "reasoning": {"effort": "high", "summary": "auto"}});
    understood(Vendor::Responses, output, thought("f"));

    let choice = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["t"]}});
    let expect = Options {
        tool_choice: ToolChoice::Named("t".into()),
        ..Options::default()
    };
    understood(Vendor::Gemini, json!({"toolConfig": choice}), expect);
    let config = json!({"responseMimeType": "application/json", "responseJsonSchema": schema(),
                        "thinkingConfig": {"thinkingLevel": "HIGH"}});
    understood(
        Vendor::Gemini,
        json!({"generationConfig": config}),
        thought("response"),
    );
}

#[test]
fn messages_refuses_when_thinking_or_output_is_wrong() {
    let refused = |fields: Value, message: &str| refused(Vendor::Anthropic, fields, message);
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    refused(
        json!({"thinking": enabled(1_023)}),
        "thinking: enabled.budget_tokens: Input should be greater",
    );
    refused(
        json!({"thinking": enabled(2_000), "max_tokens": 2_000}),
        "`max_tokens` must be greater than",
    );
    refused(
        json!({"thinking": {"type": "on"}}),
        "thinking: Input tag 'on' found",
    );
    let adaptive = json!({"type": "adaptive"});
    refused(
        json!({"thinking": {"type": "adaptive", "budget_tokens": 2_000}}),
        "Extra inputs are not permitted",
    );
    refused(
        json!({"thinking": adaptive, "tool_choice": {"type": "any"}}),
        "Thinking may not be enabled when",
    );
    refused(
        json!({"thinking": adaptive, "temperature": 0.5}),
        "`temperature` may only be set to 1",
    );
    refused(
        json!({"output_config": {"effort": "huge"}}),
        "output_config.effort: Input should be 'low'",
    );
    let open = json!({"type": "json_schema", "schema": {"type": "object"}});
    refused(
        json!({"output_config": {"format": open}}),
        "'additionalProperties' must be explicitly set to false",
    );
    refused(
        json!({"tool_choice": {"type": "tool", "name": "x"}}),
        "Tool 'x' not found in provided tools",
    );
    refused(
        json!({"tool_choice": {"type": "some"}}),
        "tool_choice: Input tag 'some' found",
    );
    refused(
        json!({"tool_choice": {"type": "any"}, "tools": null}),
        "tool_choice may only be specified while",
    );
}

#[test]
fn messages_refuses_when_cache_marks_are_wrong() {
    let refused = |fields: Value, message: &str| refused(Vendor::Anthropic, fields, message);
    let marked = |ttl: Value| json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": ttl}});
    refused(
        json!({"system": [marked(json!("2h"))]}),
        "system.0.cache_control: ttl: Input should be '5m' or '1h'",
    );
    let late = json!([marked(Value::Null), marked(json!("1h"))]);
    refused(
        json!({"system": late}),
        "a ttl='1h' cache_control block must not come after a ttl='5m'",
    );
    let mark = json!({"type": "ephemeral"});
    let tool = json!({"name": "t", "input_schema": {"type": "object"}, "cache_control": mark});
    let four = json!([
        marked(json!("5m")),
        marked(json!("5m")),
        marked(json!("5m")),
        marked(json!("5m"))
    ]);
    refused(
        json!({"tools": [tool], "system": four}),
        "A maximum of 4 blocks with cache_control may be provided. Found 5",
    );
    let thinking =
        json!({"type": "thinking", "thinking": "a", "signature": "s", "cache_control": mark});
    let messages = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "Go on."},
    ]);
    refused(
        json!({"messages": messages}),
        "messages.1.content.0: cache_control: Extra inputs are not permitted",
    );
}

#[test]
fn messages_refuses_when_thinking_is_out_of_place() {
    let thinking = json!({"type": "thinking", "thinking": "a", "signature": "s"});
    let call = json!({"type": "tool_use", "id": "c", "name": "t", "input": {}});
    let body = |content: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "r"});
        json!({"thinking": {"type": "adaptive"}, "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": [result]},
        ]})
    };
    let late = json!([call, thinking, {"type": "text", "text": "a"}]);
    refused(
        Vendor::Anthropic,
        body(late),
        "messages.1: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    );
    let last = json!([thinking, call, thinking]);
    refused(
        Vendor::Anthropic,
        body(last),
        "The final block in an assistant message cannot be `thinking`.",
    );
}

#[test]
fn chat_refuses_when_options_are_wrong() {
    let refused = |fields: Value, message: &str| refused(Vendor::OpenAi, fields, message);
    let both = json!({"max_tokens": 5, "max_completion_tokens": 5});
    refused(
        both,
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
    );
    refused(
        json!({"reasoning_effort": "huge"}),
        "Invalid value: 'huge'.",
    );
    refused(
        json!({"tool_choice": "some"}),
        "Invalid value: 'some'. Supported values are: 'none', 'auto', 'required'.",
    );
    let choice = json!({"type": "function", "function": {"name": "x"}});
    refused(
        json!({"tool_choice": choice}),
        "Tool choice 'x' not found in 'tools' parameter.",
    );
    refused(
        json!({"tool_choice": "auto", "tools": null}),
        "'tool_choice' is only allowed when 'tools' are specified.",
    );
    refused(
        json!({"parallel_tool_calls": true, "tools": null}),
        "'parallel_tool_calls' is only allowed when",
    );
    refused(
        json!({"prompt_cache_key": "k".repeat(65)}),
        "Invalid 'prompt_cache_key': string too long.",
    );
    let open = json!({"name": "f", "strict": true, "schema": {"type": "object"}});
    let format = json!({"type": "json_schema", "json_schema": open});
    refused(
        json!({"response_format": format}),
        "Invalid schema for response_format 'f': In context=()",
    );
    refused(
        json!({"response_format": {"type": "xml"}}),
        "response_format: Invalid value: 'xml'.",
    );
}
