//! What Google refuses on the Gemini wire, rule by rule: a body, and the beginning of the message.

use adjutant_llm::{Script, ScriptedModel};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Answer, Client, Vendor, hello, request_of, run};

async fn asked(model: &str, body: &Value) -> Answer {
    let server = Loopback::start(ScriptedModel::new([Script::new().text("a")]))
        .await
        .expect("a port");
    let mut client = Client::open(&server).await;
    client.send(&request_of(model, Vendor::Gemini, body)).await;
    client.answer().await
}

#[track_caller]
fn check(model: &str, body: &Value, message: &str) {
    run(async {
        let answer = asked(model, body).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["status"]),
            (400, &json!("INVALID_ARGUMENT")),
            "{message}: {body}"
        );
        let told = error["message"].as_str().expect("a message");
        assert!(told.contains(message), "expected {message:?}, got {told:?}");
    });
}

/// Checks the smallest request with one field changed.
#[track_caller]
fn field(name: &str, value: Value, message: &str) {
    let mut body = hello(Vendor::Gemini);
    body[name] = value;
    check("m", &body, message);
}

#[track_caller]
fn contents(model: &str, contents: &[Value], message: &str) {
    check(model, &json!({"contents": contents}), message);
}

#[track_caller]
fn taken(model: &str, contents: &[Value]) {
    run(async {
        let answer = asked(model, &json!({"contents": contents})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
}

fn said(role: &str, parts: Value) -> Value {
    json!({"role": role, "parts": parts})
}

fn user() -> Value {
    said("user", json!([{"text": "Hi"}]))
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn signed(name: &str, signature: &str) -> Value {
    json!({"functionCall": {"name": name}, "thoughtSignature": signature})
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "r"}}})
}

#[test]
fn gemini_refuses_when_the_key_or_the_address_is_wrong() {
    run(async {
        let cases = [
            ("X-Goog-Api-Key: k\r\n", "", 403, "PERMISSION_DENIED"),
            (
                "X-Goog-Api-Key: k",
                "X-Goog-Api-Key: ",
                400,
                "INVALID_ARGUMENT",
            ),
            ("?alt=sse", "", 400, "INVALID_ARGUMENT"),
            (":streamGenerateContent", ":dream", 404, "NOT_FOUND"),
        ];
        for (old, new, status, word) in cases {
            let server = Loopback::start(ScriptedModel::new([]))
                .await
                .expect("a port");
            let mut client = Client::open(&server).await;
            client
                .send(&request_of("m", Vendor::Gemini, &hello(Vendor::Gemini)).replace(old, new))
                .await;
            let answer = client.answer().await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["status"]),
                (status, &json!(word)),
                "{old}"
            );
        }
    });
}

#[test]
fn gemini_refuses_when_contents_are_empty_or_out_of_place() {
    contents("m", &[], "contents is not specified");
    contents(
        "m",
        &[said("user", json!([]))],
        "contents.parts must not be empty",
    );
    contents(
        "m",
        &[said("model", json!([{"text": "a"}]))],
        "Please ensure that the first content has the role",
    );
    contents(
        "m",
        &[said("system", json!([{"text": "a"}]))],
        "Please use a valid role: user, model.",
    );
    contents(
        "m",
        &[said("user", json!([{}]))],
        "contents.0.parts.0: required oneof field 'data'",
    );
    contents(
        "m",
        &[said("user", json!([{"text": ""}]))],
        "required oneof field 'data' must have one initialized",
    );
    contents(
        "m",
        &[said("user", json!([{"text": "a", "inlineData": {}}]))],
        "required oneof field 'data'",
    );
    contents(
        "m",
        &[said("user", json!([call("t")]))],
        "the role 'user' cannot say this",
    );
    let picture = json!([{"inlineData": {"mimeType": "image/png", "data": "A"}}]);
    contents("m", &[said("user", picture)], "Base64 decoding failed");
    field(
        "systemInstruction",
        json!({"parts": [{"text": " "}]}),
        "systemInstruction.parts.0.text: text content blocks",
    );
}

#[test]
fn gemini_refuses_when_calls_and_responses_do_not_pair() {
    let unequal = "Please ensure that the number of function response parts is equal to the number of function call";
    let model = |parts: Value| said("model", parts);
    let answered = |parts: Value| said("user", parts);
    let both = json!([call("t"), call("u")]);
    contents("m", &[user(), model(json!([call("t")]))], unequal);
    contents("m", &[user(), model(json!([call("t")])), user()], unequal);
    contents(
        "m",
        &[
            user(),
            model(both.clone()),
            answered(json!([response("t")])),
        ],
        unequal,
    );
    contents(
        "m",
        &[
            user(),
            model(json!([call("t")])),
            model(json!([{"text": "a"}])),
        ],
        unequal,
    );
    contents(
        "m",
        &[user(), answered(json!([response("t")]))],
        "Please ensure that function response turn comes",
    );
    contents(
        "m",
        &[
            user(),
            model(both.clone()),
            answered(json!([response("u"), response("t")])),
        ],
        "Please ensure that the function response name 'u' matches the function call name 't'.",
    );
    let text = json!([{"functionResponse": {"name": "t", "response": "r"}}]);
    contents(
        "m",
        &[user(), model(json!([call("t")])), answered(text)],
        "functionResponse.response: Input should be",
    );
    contents(
        "m",
        &[
            user(),
            model(json!([{"text": "a"}])),
            model(json!([call("t")])),
            answered(json!([response("t")])),
        ],
        "Please ensure that function call turn comes immediately after a user turn",
    );
    taken(
        "m",
        &[
            user(),
            model(both),
            answered(json!([response("t"), response("u"), {"text": "Go on."}])),
        ],
    );
}

#[test]
fn gemini_refuses_when_a_signature_is_missing_or_broken() {
    let missing = "Function call is missing a thought_signature in functionCall parts.";
    let turn = |call: Value| {
        [
            user(),
            said("model", json!([call])),
            said("user", json!([response("t")])),
        ]
    };
    contents("gemini-3-pro", &turn(call("t")), missing);
    contents(
        "gemini-3-pro",
        &turn(call("t")),
        "function call `default_api:t` , position 1.",
    );
    contents(
        "gemini-3-pro",
        &turn(signed("t", "not base64!")),
        "Base64 decoding failed",
    );
    taken("gemini-3-pro", &turn(signed("t", "c2VhbA==")));
    taken(
        "gemini-3-pro",
        &turn(signed("t", "skip_thought_signature_validator")),
    );
    taken("gemini-2.5-pro", &turn(call("t")));
    // Only the first of a batch is signed, and only the current turn is looked at.
    let batch = said("model", json!([signed("t", "c2VhbA=="), call("u")]));
    taken(
        "gemini-3-pro",
        &[
            user(),
            batch,
            said("user", json!([response("t"), response("u")])),
        ],
    );
    taken(
        "gemini-3-pro",
        &[
            &turn(call("t"))[..],
            &[said("model", json!([{"text": "a"}])), user()],
        ]
        .concat(),
    );
}

#[test]
fn gemini_refuses_when_tools_are_wrong() {
    let tools = |functions: Value, message: &str| {
        field(
            "tools",
            json!([{"functionDeclarations": functions}]),
            message,
        );
    };
    tools(
        json!([{"name": "1t"}]),
        "Invalid function name. Must start with a letter or an underscore.",
    );
    tools(
        json!([{"name": "t"}, {"name": "t"}]),
        "Duplicate function declaration found: t",
    );
    let schema = json!({"type": "object", "additionalProperties": false});
    tools(
        json!([{"name": "t", "parameters": schema}]),
        "Unknown name \"additionalProperties\" at",
    );
    tools(
        json!([{"name": "t", "parameters": {}, "parametersJsonSchema": {}}]),
        "must not both be set",
    );
    let config = |config: Value, message: &str| {
        let mut body = hello(Vendor::Gemini);
        body["tools"] =
            json!([{"functionDeclarations": [{"name": "t", "parametersJsonSchema": schema}]}]);
        body["toolConfig"] = json!({"functionCallingConfig": config});
        check("m", &body, message);
    };
    config(
        json!({"mode": "ANY", "allowedFunctionNames": ["u"]}),
        "Function 'u' in allowed_function_names is not",
    );
    config(
        json!({"mode": "AUTO", "allowedFunctionNames": ["t"]}),
        "Please set allowed_function_names only when",
    );
    config(
        json!({"mode": "SOME"}),
        "Invalid value at 'tool_config.function_calling_config.mode'",
    );
    field(
        "toolConfig",
        json!({"functionCallingConfig": {"mode": "ANY"}}),
        "Function calling config is set without",
    );
}

#[test]
fn gemini_refuses_when_the_configuration_is_wrong() {
    let config = |config: Value, message: &str| field("generationConfig", config, message);
    config(
        json!({"temperature": 2.1}),
        "generationConfig.temperature: range: 0..2",
    );
    config(
        json!({"maxOutputTokens": 0}),
        "generationConfig.maxOutputTokens: Input should be greater",
    );
    config(
        json!({"stopSequences": ["a", "b", "c", "d", "e", "f"]}),
        "must be at most 5",
    );
    config(
        json!({"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}}),
        "You can only set only one of",
    );
    config(
        json!({"thinkingConfig": {"thinkingBudget": 40_000}}),
        "The thinking budget is invalid.",
    );
    config(
        json!({"responseJsonSchema": {"type": "object"}}),
        "only allowed when the response mime type is",
    );
    config(
        json!({"responseMimeType": "image/png"}),
        "allowed mimetypes are",
    );
    let old = json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}, "contents": [user()]});
    check(
        "gemini-2.5-pro",
        &old,
        "Thinking level is not supported for this model.",
    );
}
