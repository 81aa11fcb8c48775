//! The server that the official conformance suite wants to see, made of the public API: `cargo xtask mcp-conformance`.
//!
//! It serves on a loopback port, which it prints, without access control.

use std::{error::Error, io::Write, net::TcpListener, time::Duration};

use adjutant_llm::{Audio, CallResult, Content, Document, Image, Source};
use adjutant_mcp::{HttpOptions, McpHost, ServedResource};
use adjutant_tool::{
    Answer, Ask, AskKind, CallContext, ErasedTool, Progress, Replay, ToolError, ToolSpec, Tools,
    tool_fn,
};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A recording without a sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
/// `{}`
const EMPTY_JSON: &str = "e30=";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = McpHost::new("adjutant-conformance")
        .tools(tools())
        .prompts(prompts());
    let host = resources().into_iter().fold(host, McpHost::resource);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    Ok(host.serve_http(listener, HttpOptions::open()).await?)
}

fn tools() -> Tools {
    let name = || form(json!({ "name": { "type": "string" } }), &["name"]);
    let tools = Tools::new("conformance")
        .tool(gives(
            "test_simple_text",
            vec!["This is a simple text response for testing.".into()],
        ))
        .tool(gives("test_image_content", vec![image()]))
        .tool(gives(
            "test_audio_content",
            vec![Content::Audio(Audio {
                media_type: "audio/wav".into(),
                source: data(WAV),
            })],
        ))
        .tool(gives(
            "test_embedded_resource",
            vec![document(
                "test://embedded-resource",
                "text/plain",
                "VGV4dC4=",
            )],
        ))
        .tool(gives(
            "test_multiple_content_types",
            vec![
                "Multiple content types test:".into(),
                image(),
                document(
                    "test://mixed-content-resource",
                    "application/json",
                    EMPTY_JSON,
                ),
            ],
        ))
        .tool(tool_fn(
            spec("test_error_handling", json!({})),
            |_, _| async {
                Err(ToolError::failed(
                    "This tool intentionally returns an error for testing",
                ))
            },
        ))
        .tool(tells("test_tool_with_progress"))
        .tool(tells("test_tool_with_logging"))
        .tool(tells("test_logging_tool"))
        .tool(tool_fn(
            ToolSpec::new(
                "json_schema_2020_12_tool",
                "A tool with much in its schema.",
                schema_2020_12(),
            ),
            |_, _| async { Ok(CallResult::ok("done")) },
        ));
    let tools = tools
        .tool(asks_with("test_sampling", "prompt", |prompt| {
            sampling(&prompt)
        }))
        .tool(asks_with("test_elicitation", "message", |message| Ask {
            prompt: message.into(),
            ..form(
                json!({ "username": text(), "email": text() }),
                &["username", "email"],
            )
        }))
        .tool(asks(
            "test_elicitation_sep1034_defaults",
            vec![vec![("form", defaults())]],
        ))
        .tool(asks(
            "test_elicitation_sep1330_enums",
            vec![vec![("form", enums())]],
        ))
        .tool(asks(
            "test_missing_capability",
            vec![vec![("sample", sampling("Hello"))]],
        ))
        .tool(asks(
            "test_streaming_elicitation",
            vec![vec![("user_name", name())]],
        ));
    let confirm = || form(json!({ "ok": { "type": "boolean" } }), &["ok"]);
    tools
        .tool(asks(
            "test_input_required_result_elicitation",
            vec![vec![("user_name", name())]],
        ))
        .tool(asks(
            "test_input_required_result_sampling",
            vec![vec![(
                "capital_question",
                sampling("What is the capital of France?"),
            )]],
        ))
        .tool(asks(
            "test_input_required_result_list_roots",
            vec![vec![("client_roots", roots())]],
        ))
        .tool(asks(
            "test_input_required_result_request_state",
            vec![vec![("confirm", confirm())]],
        ))
        .tool(asks(
            "test_input_required_result_tampered_state",
            vec![vec![("confirm", confirm())]],
        ))
        .tool(asks(
            "test_input_required_result_multiple_inputs",
            vec![vec![
                ("user_name", name()),
                ("greeting", sampling("Generate a greeting")),
                ("client_roots", roots()),
            ]],
        ))
        .tool(asks(
            "test_input_required_result_multi_round",
            vec![
                vec![("step1", name())],
                vec![(
                    "step2",
                    form(json!({ "color": { "type": "string" } }), &["color"]),
                )],
            ],
        ))
        .tool(asks(
            "test_input_required_result_capabilities",
            vec![vec![
                ("user_name", name()),
                ("greeting", sampling("Generate a greeting")),
            ]],
        ))
}

fn prompts() -> Tools {
    let arguments = json!({ "arg1": text(), "arg2": text() });
    Tools::new("prompts")
        .tool(gives(
            "test_simple_prompt",
            vec!["This is a simple prompt for testing.".into()],
        ))
        .tool(tool_fn(
            spec("test_prompt_with_arguments", arguments),
            |args, _| async move {
                let said = format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    to_text(&args["arg1"]),
                    to_text(&args["arg2"])
                );
                Ok(CallResult::ok(said))
            },
        ))
        .tool(tool_fn(
            spec(
                "test_prompt_with_embedded_resource",
                json!({ "resourceUri": text() }),
            ),
            |args, _| async move {
                let embedded =
                    document(&to_text(&args["resourceUri"]), "text/plain", "RW1iZWRkZWQu");
                Ok(content(vec![
                    embedded,
                    "Please process the embedded resource above.".into(),
                ]))
            },
        ))
        .tool(gives(
            "test_prompt_with_image",
            vec![image(), "Please analyze the image above.".into()],
        ))
        .tool(asks(
            "test_input_required_result_prompt",
            vec![vec![(
                "user_context",
                form(json!({ "context": { "type": "string" } }), &["context"]),
            )]],
        ))
}

fn resources() -> [ServedResource; 4] {
    let fixed = |uri: &'static str, content: Content| {
        ServedResource::new(uri, uri, move |_| {
            let content = content.clone();
            async move { Ok(content) }
        })
        .description("A resource of the suite.")
    };
    let family = ServedResource::new("test://template/{id}/data", "template", |uri| async move {
        let id = uri.split('/').nth(3).unwrap_or_default().to_owned();
        Ok(Content::text(
            json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
                .to_string(),
        ))
    });
    [
        fixed(
            "test://static-text",
            "This is the content of the static text resource.".into(),
        )
        .media_type("text/plain"),
        fixed("test://static-binary", image()).media_type("image/png"),
        fixed("test://watched-resource", "It never changes.".into()).media_type("text/plain"),
        family.media_type("application/json"),
    ]
}

/// A tool that gives this.
fn gives(name: &str, said: Vec<Content>) -> impl ErasedTool + use<> {
    tool_fn(spec(name, json!({})), move |_, _| {
        let said = said.clone();
        async move { Ok(content(said)) }
    })
}

/// A tool that reports progress.
fn tells(name: &str) -> impl ErasedTool + use<> {
    tool_fn(spec(name, json!({})), |_, cx| async move {
        for done in [0, 50, 100] {
            let details = json!({ "progress": done, "total": 100 });
            cx.progress(Progress {
                details,
                ..Progress::text(format!("{done} of 100"))
            });
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(CallResult::ok("done"))
    })
}

/// A tool that asks a question about its argument.
fn asks_with(
    name: &str,
    argument: &'static str,
    ask: fn(String) -> Ask,
) -> impl ErasedTool + use<> {
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..spec(name, json!({ argument: text() }))
    };
    tool_fn(spec, move |args, cx| async move {
        let said = answers(&cx, &[("asked", ask(to_text(&args[argument])))]).await?;
        Ok(CallResult::ok(said))
    })
}

/// A tool that asks in rounds, with several questions in each.
fn asks(name: &str, rounds: Vec<Vec<(&'static str, Ask)>>) -> impl ErasedTool + use<> {
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..spec(name, json!({}))
    };
    tool_fn(spec, move |_, cx| {
        let rounds = rounds.clone();
        async move {
            let mut said = Vec::new();
            for round in &rounds {
                said.push(answers(&cx, round).await?);
            }
            Ok(CallResult::ok(said.join("; ")))
        }
    })
}

async fn answers(cx: &CallContext, asks: &[(&'static str, Ask)]) -> Result<String, ToolError> {
    let asked = asks.iter().map(|(key, ask)| async move {
        Ok::<_, ToolError>(match cx.pause(key, ask.clone()).await? {
            Answer::Give { value } => format!("{key}: action=accept, content={value}"),
            other => format!("{key}: {other:?}"),
        })
    });
    Ok(try_join_all(asked).await?.join("; "))
}

fn spec(name: &str, properties: Value) -> ToolSpec {
    let required: Vec<_> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    ToolSpec::new(name, "A tool of the suite.", schema)
}

fn form(properties: Value, required: &[&str]) -> Ask {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Ask {
        schema,
        ..Ask::question("Please fill this in")
    }
}

fn as_it_is(request: Value) -> Ask {
    Ask {
        data: json!({ "mcp": request }),
        ..Ask::new(AskKind::Question, "asked of the client")
    }
}

fn sampling(prompt: &str) -> Ask {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    as_it_is(
        json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } }),
    )
}

fn roots() -> Ask {
    as_it_is(json!({ "method": "roots/list", "params": {} }))
}

fn defaults() -> Ask {
    let fields = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    form(fields, &[])
}

fn enums() -> Ask {
    let titled =
        json!([{ "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }]);
    let names = json!(["Option One", "Option Two", "Option Three"]);
    let fields = json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    });
    form(fields, &[])
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        }},
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn text() -> Value {
    json!({ "type": "string", "description": "A text." })
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn data(of: &str) -> Source {
    Source::Base64 { data: of.into() }
}

fn image() -> Content {
    Content::Image(Image {
        media_type: "image/png".into(),
        source: data(PNG),
    })
}

fn document(uri: &str, media_type: &str, of: &str) -> Content {
    Content::Document(Document {
        media_type: media_type.into(),
        name: Some(uri.into()),
        source: data(of),
    })
}

fn content(content: Vec<Content>) -> CallResult {
    CallResult {
        content,
        ..CallResult::ok("")
    }
}
