//! Hazards of vendors and servers as they behave: pieces in another order, answers in another form, schemas that they refuse.
//!
//! Data of a single wire has no effect on the others.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{
    Call, CallResult, Content, ErrorKind, Image, Reply, Request, Retry, Script, Source, Thinking,
    ToolDecl, Usage, UserMessage,
};
use serde_json::{Value, json};

use super::{
    Limits, Subject, Verdict,
    stage::{HazardStage, ensure, hello, results, same, turn, with_tools},
};
use crate::{Fault, Paused, Setup};

/// Two calls, each in pieces of five letters.
fn two_calls() -> Script {
    Script::new()
        .call("look", json!({"city": "Bonn"}))
        .call("find", json!({"city": "Trier"}))
        .delta_chars(5)
}

fn replace(what: &str, with: &str) -> Fault {
    Fault::Replace {
        what: what.to_owned().into(),
        with: with.to_owned().into(),
    }
}

fn calls(reply: &Reply) -> Vec<(String, String)> {
    let pair = |call: &Call| (call.name.as_str().to_owned(), call.args.to_string());
    reply.calls().map(pair).collect()
}

/// Replaces bytes in a reply with two calls, and expects both calls.
async fn both_calls(subject: &dyn Subject, faults: &[Fault]) -> Verdict {
    let breaks = |setup: Setup| {
        let faults = faults.iter().cloned();
        faults.fold(setup, |setup, fault| setup.fault_all(fault))
    };
    let stage = HazardStage::broken(subject, Limits::patient(), [two_calls()], breaks).await?;
    let reply = stage.reply(with_tools()).await?;
    let pair = |name: &str, args: &str| (name.to_owned(), args.to_owned());
    let expected = vec![
        pair("look", r#"{"city":"Bonn"}"#),
        pair("find", r#"{"city":"Trier"}"#),
    ];
    same("the calls", calls(&reply), expected)
}

pub(super) async fn index_drift(subject: &dyn Subject) -> Verdict {
    let drifts = [
        replace(r#"{"index":0,"function""#, r#"{"index":7,"function""#),
        replace(r#"{"index":1,"function""#, r#"{"index":8,"function""#),
    ];
    both_calls(subject, &drifts).await
}

pub(super) async fn text_index(subject: &dyn Subject) -> Verdict {
    let texts = [
        replace(r#"[{"index":0,"#, r#"[{"index":"0","#),
        replace(r#"[{"index":1,"#, r#"[{"index":"1","#),
    ];
    both_calls(subject, &texts).await
}

pub(super) async fn same_index(subject: &dyn Subject) -> Verdict {
    both_calls(subject, &[replace(r#"[{"index":1,"#, r#"[{"index":0,"#)]).await
}

pub(super) async fn full_arguments_again(subject: &dyn Subject) -> Verdict {
    let again =
        json!({"tool_calls": [{"index": 0, "function": {"arguments": r#"{"city":"Bonn"}"#}}]});
    let fault = replace(r#""delta":{}"#, &format!(r#""delta":{again}"#));
    both_calls(subject, &[fault]).await
}

pub(super) async fn split_surrogate(subject: &dyn Subject) -> Verdict {
    // Each half ends or begins a delta: all three texts have nine letters before the second half.
    let script = Script::new()
        .thinking(Thinking::new("think <A><B>."))
        .text("write <A><B>.")
        .call_raw("look", r#"{"c":"<A><B>"}"#)
        .delta_chars(9);
    let breaks = |setup: Setup| {
        setup
            .fault_all(replace("<A>", "\\ud83d"))
            .fault_all(replace("<B>", "\\ude00"))
    };
    let stage = HazardStage::broken(subject, Limits::patient(), [script], breaks).await?;
    let reply = stage.reply(with_tools()).await?;
    same("the text", reply.text().as_str(), "write \u{1f600}.")?;
    let thinking = reply.blocks.iter().find_map(|block| match &**block {
        adjutant_llm::Block::Thinking(it) => Some(it.text.to_string()),
        _ => None,
    });
    same(
        "the thinking",
        thinking.as_deref(),
        Some("think \u{1f600}."),
    )?;
    let read = |call: &Call| serde_json::from_str::<Value>(&call.args).unwrap_or_default();
    let args: Vec<Value> = reply.calls().map(read).collect();
    same("the arguments", args, vec![json!({"c": "\u{1f600}"})])
}

pub(super) async fn keep_alive(subject: &dyn Subject) -> Verdict {
    let is_lines = subject.oracle().is_some_and(|it| it.is_lines());
    let bytes: &[u8] = if is_lines { b"\n" } else { b": keep-alive\n\n" };
    let pause = Fault::Pause {
        before: Paused::Frame(1),
        times: 8,
        every: Duration::from_millis(100),
        bytes: bytes.into(),
    };
    let limits = Limits {
        silence: Duration::from_millis(400),
        ..Limits::patient()
    };
    let script = Script::new().text("At last.");
    let stage = HazardStage::broken(subject, limits, [script], |it| it.fault_all(pause)).await?;
    let reply = stage.reply(hello()).await?;
    same("the text", reply.text().as_str(), "At last.")
}

pub(super) async fn whole_body(subject: &dyn Subject) -> Verdict {
    if subject.oracle().is_some() {
        return Ok(());
    }
    // Each wire reads its own members.
    let text = json!({"type": "text", "text": "All at once."});
    let output = json!({"type": "output_text", "text": "All at once.", "annotations": []});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [output]});
    let choice = json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "All at once."}});
    let candidate = json!({"content": {"role": "model", "parts": [{"text": "All at once."}]}, "finishReason": "STOP"});
    let body = json!({
        "id": "one", "type": "message", "role": "assistant", "model": "m", "created": 1,
        "content": [text], "stop_reason": "end_turn",
        "object": "response", "status": "completed", "output": [message],
        "choices": [choice],
        "candidates": [candidate],
        "usage": {"input_tokens": 7, "output_tokens": 3, "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
    });
    let whole = Fault::Status {
        code: 200,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Some(body.to_string().into()),
    };
    let scripts = [Script::new().text("Never said.")];
    let stage = HazardStage::broken(subject, Limits::patient(), scripts, |it| {
        it.fault_all(whole)
    })
    .await?;
    let reply = stage.reply(hello()).await?;
    same("the text", reply.text().as_str(), "All at once.")?;
    same(
        "the usage",
        (reply.usage.input(), reply.usage.output),
        (7, 3),
    )
}

pub(super) async fn content_type(subject: &dyn Subject) -> Verdict {
    for media_type in [
        "text/plain; charset=utf-8",
        "application/json",
        "application/octet-stream",
    ] {
        let fault = Fault::ContentType(media_type.into());
        let script = Script::new().text("Hello, you.");
        let stage = HazardStage::broken(subject, Limits::patient(), [script], |it| {
            it.fault_all(fault)
        })
        .await?;
        let reply = stage.reply(hello()).await?;
        same("the text", reply.text().as_str(), "Hello, you.")?;
    }
    Ok(())
}

pub(super) async fn late_usage(subject: &dyn Subject) -> Verdict {
    let usage = Usage {
        input_uncached: 700,
        output: 60,
        ..Usage::default()
    };
    let pause = Fault::Pause {
        before: Paused::Usage,
        times: 1,
        every: Duration::from_secs(1),
        bytes: bytes::Bytes::new(),
    };
    let script = Script::new().text("Yes.").usage(usage);
    let stage = HazardStage::broken(subject, Limits::patient(), [script], |it| {
        it.fault_all(pause)
    })
    .await?;
    let reply = stage.reply(hello()).await?;
    same(
        "the usage",
        (reply.usage.input(), reply.usage.output),
        (700, 60),
    )
}

pub(super) async fn generation_error(subject: &dyn Subject) -> Verdict {
    // As Groq refuses it, and as Gemini ends such a reply.
    let body = json!({"error": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<function=look{\"city\"",
    }});
    let refused = Fault::Status {
        code: 400,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Some(body.to_string().into()),
    };
    let script = || Script::new().call("look", json!({"city": "Bonn"}));
    let mut stage = HazardStage::broken(subject, Limits::patient(), [script(), script()], |it| {
        it.fault(0, refused)
    })
    .await?;
    stage.model = Arc::new(Retry::new(Arc::clone(&stage.model)));
    let reply = stage.reply(with_tools()).await?;
    same("the calls", reply.calls().count(), 1)?;
    same("the requests", stage.server.request_count(), 2)?;
    same(
        "the request that was repeated",
        stage.request_body(1)?,
        stage.request_body(0)?,
    )
}

pub(super) async fn media_error(subject: &dyn Subject) -> Verdict {
    // Anthropic and OpenAI.
    for text in [
        "messages.0.content.1.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/webp image",
        "Could not process image",
        "The image data you provided does not represent a valid image. Please check your input and try again.",
    ] {
        let body =
            json!({"type": "error", "error": {"message": text, "type": "invalid_request_error"}});
        let fault = Fault::Status {
            code: 400,
            headers: vec![("content-type".into(), "application/json".into())],
            body: Some(body.to_string().into()),
        };
        let scripts = [Script::new().text("Never said.")];
        let stage = HazardStage::broken(subject, Limits::patient(), scripts, |it| {
            it.fault_all(fault)
        })
        .await?;
        let mut message = UserMessage::text("What is this?");
        message.content.push(Content::Image(Image {
            media_type: "image/png".into(),
            source: Source::Base64 {
                data: "iVBORw0KGgo=".into(),
            },
        }));
        let error = stage.ask(Request::new().user(message)).await.error(&[])?;
        ensure(error.details().refused.is_some(), || {
            format!("the error does not name the media: {error}")
        })?;
    }
    Ok(())
}

pub(super) async fn overflow_texts(subject: &dyn Subject) -> Verdict {
    // Alibaba's DashScope, llama.cpp, LM Studio, and OpenAI.
    for text in [
        "Range of input length should be [1, 30720]",
        "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.",
    ] {
        let body =
            json!({"error": {"message": text, "type": "invalid_request_error", "code": null}});
        let fault = Fault::Status {
            code: 400,
            headers: vec![("content-type".into(), "application/json".into())],
            body: Some(body.to_string().into()),
        };
        let scripts = [Script::new().text("Never said.")];
        let stage = HazardStage::broken(subject, Limits::patient(), scripts, |it| {
            it.fault_all(fault)
        })
        .await?;
        let error = stage.ask(hello()).await.error(&[])?;
        same(text, error.kind(), ErrorKind::Overflow)?;
    }
    Ok(())
}

/// A request with one tool: its name, and the properties of its arguments.
fn with_tool(name: &str, properties: Value) -> Request {
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    hello().tools([ToolDecl {
        name: name.into(),
        description: "Looks.".into(),
        schema: Arc::new(schema),
    }])
}

/// Sends a tool, lets the provider call it with the name and key of the declaration, and sends the call back. Returns the
/// declaration.
async fn round_trip(subject: &dyn Subject, request: Request) -> Result<ToolDecl, String> {
    let shown = |request: &Request| -> (String, String) {
        let tool = request.tools.first();
        let key = tool.and_then(|tool| {
            tool.schema["properties"]
                .as_object()?
                .keys()
                .next()
                .cloned()
        });
        let name = tool.map(|tool| tool.name.as_str().to_owned());
        (name.unwrap_or_default(), key.unwrap_or_default())
    };
    let script = Script::from_fn(move |request| {
        let (name, key) = shown(request);
        Script::new().call(name, json!({key: "Bonn"}))
    });
    let stage = HazardStage::new(subject, [script, Script::new().text("Done.")]).await?;
    let mut second = request.clone();
    let reply = stage.reply(request.clone()).await?;
    let (name, key) = shown(&request);
    let expected = vec![(name, json!({key: "Bonn"}).to_string())];
    same("the calls", calls(&reply), expected)?;
    second.entries.push(turn(&reply, |_| CallResult::ok("r"))?);
    stage.reply(second).await?;
    let (understood, (name, key)) = (stage.understood(1)?, shown(&stage.understood(0)?));
    same(
        "the results",
        results(&understood),
        vec![(name, "r".to_owned())],
    )?;
    let back = stage.request_body(1)?.to_string();
    ensure(back.contains(&key), || {
        format!("the call went back without the key {key:?}")
    })?;
    let tool = understood.tools.first().cloned();
    tool.ok_or_else(|| "the tool was not declared".to_owned())
}

pub(super) async fn tuple_schema(subject: &dyn Subject) -> Verdict {
    let tuple = json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false});
    let request = with_tool("look", json!({"city": {"type": "string"}, "pair": tuple}));
    let tool = round_trip(subject, request).await?;
    let pair = &tool.schema["properties"]["pair"];
    ensure(
        !pair["items"].is_array() || subject.oracle().is_some(),
        || format!("the tuple is declared as {pair}"),
    )
}

pub(super) async fn property_keys(subject: &dyn Subject) -> Verdict {
    let long = "k".repeat(80);
    for key in ["año", "a b", "$ref", "", &long] {
        let request = with_tool("look", json!({key: {"type": "string"}}));
        let tool = round_trip(subject, request).await?;
        let keys = tool.schema["properties"].as_object();
        let fits = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
        let is_good = |key: &String| (1..=64).contains(&key.len()) && key.chars().all(fits);
        let is_declared = keys.is_some_and(|keys| keys.keys().all(is_good));
        ensure(is_declared || subject.oracle().is_some(), || {
            format!("declared as {}", tool.schema)
        })?;
    }
    Ok(())
}

pub(super) async fn tool_names(subject: &dyn Subject) -> Verdict {
    for name in ["math.factorial", "rechne aus", "größe", &"n".repeat(80)] {
        let request = with_tool(name, json!({"city": {"type": "string"}}));
        round_trip(subject, request).await?;
    }
    Ok(())
}

pub(super) async fn vendor_ids(subject: &dyn Subject) -> Verdict {
    let script = Script::new().call("look", json!({"city": "Bonn"}));
    let stage = HazardStage::new(subject, [script, Script::new().text("Done.")]).await?;
    let mut request = with_tools();
    let reply = stage.reply(request.clone()).await?;
    request.entries.push(turn(&reply, |_| CallResult::ok("r"))?);
    stage.reply(request).await?;
    let back = stage.request_body(1)?.to_string();
    for id in reply.calls().filter_map(|call| call.wire_id.clone()) {
        ensure(back.contains(&*id), || {
            format!("the vendor's id {id} did not go back: {back}")
        })?;
    }
    Ok(())
}
