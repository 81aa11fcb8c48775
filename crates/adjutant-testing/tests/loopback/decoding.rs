//! What the served model sees: whole requests, put together again from each wire.

use std::sync::Arc;

use adjutant_llm::{
    Block, Call, CallId, CallResult, Content, Document, Entry, FinishReason, Image, Options,
    Origin, Reply, Request, Script, ScriptedModel, Source, Status, Thinking, ToolDecl, Turn,
    UserMessage,
};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::client::{Vendor, ask, run};

#[track_caller]
fn check(vendor: Vendor, body: Value, expect: &Request) {
    run(async {
        let model = Arc::new(ScriptedModel::new([Script::new().text("a")]));
        let server = Loopback::start(Arc::clone(&model)).await.expect("a port");
        let answer = ask(&server, vendor, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(&model.requests()[0], expect);
    });
}

fn turn(blocks: Vec<Block>, results: Vec<CallResult>) -> Entry {
    let stop = if results.is_empty() {
        FinishReason::End
    } else {
        FinishReason::Calls
    };
    let mut reply = Reply::new("m".into(), stop);
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    let ids: Vec<CallId> = reply.calls().map(|call| call.id).collect();
    let mut open = Turn::open(Arc::new(reply));
    for (id, result) in ids.into_iter().zip(results) {
        open.put(id, Arc::new(result)).expect("each call once");
    }
    Entry::Turn(open.close().expect("each call has its result"))
}

fn call(block: u32, wire_id: &str, args: &str) -> Block {
    let id = CallId {
        turn: 1,
        attempt: 0,
        block,
    };
    Block::Call(Call {
        id,
        wire_id: Some(wire_id.into()),
        name: "t".into(),
        args: args.into(),
        extra: Default::default(),
    })
}

fn tool() -> ToolDecl {
    let schema = Arc::new(json!({"type": "object"}));
    ToolDecl {
        name: "t".into(),
        description: "Does.".into(),
        schema,
    }
}

fn expected(blocks: Vec<Block>, results: Vec<CallResult>, content: Vec<Content>) -> Request {
    let mut request = Request::new()
        .system("S")
        .tools([tool()])
        .user(UserMessage::from(content));
    request = request.options(Options {
        max_output_tokens: Some(9),
        temperature: Some(0.5),
        stop: vec!["X".into()],
        ..Options::default()
    });
    request.entries.push(turn(blocks, results));
    request
}

#[test]
fn messages_gives_the_whole_request() {
    let thinking = |text: &str, signature: &str, redacted| {
        Block::Thinking(Thinking {
            text: text.into(),
            signature: Some(signature.into()),
            redacted,
            extra: Default::default(),
        })
    };
    let content = vec![
        Content::text("Hi"),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: Source::Base64 {
                data: "AA==".into(),
            },
        }),
        Content::Document(Document {
            media_type: "application/pdf".into(),
            name: Some("D".into()),
            source: Source::Url {
                url: "https://d.example".into(),
            },
        }),
    ];
    let blocks = vec![
        thinking("Hm", "s", false),
        thinking("", "c", true),
        Block::text("So"),
        call(3, "toolu_1", "{\"a\":1}"),
        call(4, "c1_0_1", "{}"),
    ];
    let results = vec![CallResult::ok("r1"), CallResult::new(Status::Failed, "r2")];
    let mut expect = expected(blocks, results, content);
    expect.entries.push(Entry::User("And".into()));
    let body = json!({
        "model": "m", "max_tokens": 9, "temperature": 0.5, "stop_sequences": ["X"], "stream": true, "unknown": [1],
        "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "t", "description": "Does.", "input_schema": {"type": "object"}},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                {"type": "document", "title": "D", "source": {"type": "url", "url": "https://d.example"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "c"},
                {"type": "text", "text": "So"},
                {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"a": 1}},
                {"type": "tool_use", "id": "c1_0_1", "name": "t", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1_0_1", "is_error": true, "content": "r2"},
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "r1"}]},
                {"type": "text", "text": "And"},
            ]},
        ],
    });
    check(Vendor::Anthropic, body, &expect);
}

#[test]
fn messages_accepts_a_last_reply_when_it_was_paused() {
    let block =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let mut expect = Request::new().user("Hi").options(Options {
        max_output_tokens: Some(9),
        ..Options::default()
    });
    expect.entries.push(turn(
        vec![Block::Opaque {
            issuer: "anthropic".into(),
            value: block.clone(),
        }],
        vec![],
    ));
    let messages =
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [block]}]);
    check(
        Vendor::Anthropic,
        json!({"model": "m", "max_tokens": 9, "stream": true, "messages": messages}),
        &expect,
    );
}

#[test]
fn chat_gives_the_whole_request() {
    let content = vec![
        Content::text("Hi"),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: Source::Base64 {
                data: "AA==".into(),
            },
        }),
        Content::Document(Document {
            media_type: "application/pdf".into(),
            name: Some("d.pdf".into()),
            source: Source::Base64 {
                data: "BB==".into(),
            },
        }),
    ];
    let thinking = Block::Thinking(Thinking {
        text: "Hm".into(),
        signature: None,
        redacted: false,
        extra: Default::default(),
    });
    let blocks = vec![
        thinking,
        Block::text("So"),
        call(2, "call_1", "{\"a\": 1.0}"),
        call(3, "call_2", "{}"),
    ];
    let mut expect = expected(
        blocks,
        vec![CallResult::ok("r1"), CallResult::ok("")],
        content,
    );
    let reminder = UserMessage {
        origin: Origin::Reminder {
            by: "system".into(),
        },
        ..UserMessage::text("Mind.")
    };
    expect.entries.push(Entry::User(reminder));
    expect.entries.push(turn(vec![Block::text("Ok")], vec![]));
    let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
    let body = json!({
        "model": "m", "max_completion_tokens": 9, "temperature": 0.5, "stop": "X", "stream": true, "unknown": [1],
        "tools": [{"type": "function", "function": {
            "name": "t", "description": "Does.", "parameters": {"type": "object"},
        }}],
        "messages": [
            {"role": "developer", "content": "S"},
            {"role": "user", "content": [
                {"type": "text", "text": "Hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                {"type": "file", "file": {"filename": "d.pdf", "file_data": "data:application/pdf;base64,BB=="}},
            ]},
            {"role": "assistant", "content": "So", "reasoning_content": "Hm",
             "tool_calls": [called("call_1", "{\"a\": 1.0}"), called("call_2", "{}")]},
            {"role": "tool", "tool_call_id": "call_2", "content": ""},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "r1"}]},
            {"role": "system", "content": "Mind."},
            {"role": "assistant", "content": "Ok"},
        ],
    });
    check(Vendor::OpenAi, body, &expect);
}

#[test]
fn responses_gives_the_whole_request() {
    let content = vec![
        Content::text("Hi"),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: Source::Base64 {
                data: "AA==".into(),
            },
        }),
        Content::Document(Document {
            media_type: "application/pdf".into(),
            name: Some("d.pdf".into()),
            source: Source::Base64 {
                data: "BB==".into(),
            },
        }),
    ];
    let mut thinking = Thinking::new("One.\n\nTwo.");
    thinking.signature = Some("cipher".into());
    let blocks = vec![
        Block::Thinking(thinking),
        Block::text("So"),
        call(2, "call_1", "{\"a\": 1.0}"),
        call(3, "call_2", "not JSON"),
    ];
    let mut expect = expected(
        blocks,
        vec![CallResult::ok("r1"), CallResult::ok("")],
        content,
    );
    expect = expect
        .options(Options {
            max_output_tokens: Some(16),
            temperature: Some(0.5),
            ..Options::default()
        })
        .system("S\n\nAlso.");
    let reminder = UserMessage {
        origin: Origin::Reminder {
            by: "system".into(),
        },
        ..UserMessage::text("Mind.")
    };
    expect.entries.push(Entry::User(reminder));
    expect.entries.push(turn(vec![Block::text("Ok")], vec![]));
    let called = |id: &str, call_id: &str, arguments: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "name": "t", "arguments": arguments});
    let summary =
        json!([{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]);
    let said = json!([{"type": "output_text", "text": "So", "annotations": []}]);
    let body = json!({
        "model": "m", "max_output_tokens": 16, "temperature": 0.5, "stream": true, "store": false, "unknown": [1],
        "include": ["reasoning.encrypted_content"], "instructions": "S",
        "tools": [
            {"type": "function", "name": "t", "description": "Does.", "parameters": {"type": "object"}, "strict": false},
            {"type": "web_search"},
        ],
        "input": [
            {"role": "developer", "content": "Also."},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                {"type": "input_file", "filename": "d.pdf", "file_data": "data:application/pdf;base64,BB=="},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "cipher"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": said, "phase": "commentary"},
            called("fc_1", "call_1", "{\"a\": 1.0}"),
            called("fc_2", "call_2", "not JSON"),
            {"type": "function_call_output", "call_id": "call_2", "output": ""},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "r1"}]},
            {"role": "system", "content": "Mind."},
            {"role": "assistant", "content": "Ok"},
        ],
    });
    check(Vendor::Responses, body, &expect);
}

#[test]
fn gemini_gives_the_whole_request() {
    let content = vec![
        Content::text("Hi"),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: Source::Base64 {
                data: "AA==".into(),
            },
        }),
        Content::Document(Document {
            media_type: "application/pdf".into(),
            name: Some("D".into()),
            source: Source::Url {
                url: "https://d.example".into(),
            },
        }),
    ];
    let blocks = vec![
        Block::Thinking(Thinking::new("Hm")),
        Block::text("So"),
        call(2, "call_0", "{\"b\":1,\"a\":2}"),
        call(3, "call_1", "{}"),
    ];
    let results = vec![CallResult::ok("r1"), CallResult::new(Status::Failed, "r2")];
    let mut expect = expected(blocks, results, content);
    expect.entries.push(Entry::User("And".into()));
    let body = json!({
        "unknown": [1], "systemInstruction": {"parts": [{"text": "S"}]},
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "stopSequences": ["X"]},
        "tools": [
            {"functionDeclarations": [
                {"name": "t", "description": "Does.", "parametersJsonSchema": {"type": "object"}},
            ]},
            {"googleSearch": {}},
        ],
        "contents": [
            {"role": "user", "parts": [
                {"text": "Hi"},
                {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                {"fileData": {"mimeType": "application/pdf", "displayName": "D", "fileUri": "https://d.example"}},
            ]},
            {"role": "model", "parts": [
                {"text": "Hm", "thought": true},
                {"text": "So"},
                {"functionCall": {"id": "x", "name": "t", "args": {"b": 1, "a": 2}}, "thoughtSignature": "c2VhbA=="},
                {"functionCall": {"name": "t"}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "x", "name": "t", "response": {"output": "r1"}}},
                {"functionResponse": {"name": "t", "response": {"error": "r2"}}},
                {"text": "And"},
            ]},
        ],
    });
    check(Vendor::Gemini, body, &expect);
}
