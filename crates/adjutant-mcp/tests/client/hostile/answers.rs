//! Rows of hostile servers: what they answer and ask.

use serde_json::{Value, json};

use super::{
    super::script::{Act, AnyScript, Speaks, answer, notify, refuse, text, tool, usual},
    Row, *,
};

/// Calls that come to nothing.
pub(super) fn no_results() -> Vec<Row> {
    vec![
        (
            "death at the call",
            on("tools/call", |_| vec![Act::Die]),
            "s_a -> OutcomeUnknown: it closed the connection; whether the call took effect is not known",
        ),
        (
            "silence at the call",
            on("tools/call", |_| Vec::new()),
            "s_a -> OutcomeUnknown: it said nothing for 600s; whether the call took effect is not known",
        ),
        (
            "a wrong id at the call",
            on("tools/call", |_| {
                vec![Act::Say(
                    json!({"jsonrpc": "2.0", "id": 4_711, "result": text("x")}),
                )]
            }),
            "s_a -> OutcomeUnknown: it said nothing for 600s; whether the call took effect is not known",
        ),
        (
            "an answer twice",
            on("tools/call", |it| {
                vec![answer(it, text("one")), answer(it, text("two"))]
            }),
            "s_a -> ok: one",
        ),
        (
            "a result of a wrong type",
            results(json!({"resultType": "complete", "content": "x"})),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "a result of an unknown type",
            results(json!({"resultType": "streaming", "content": []})),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "content of an unknown type",
            results(content(json!([{"type": "hologram"}]))),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "a list in the place of a result",
            on("tools/call", |it| vec![page(it, &[tool("a")], Value::Null)]),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        ("nothing at all", results(json!({})), "s_a -> ok: done"),
        (
            "an error",
            on("tools/call", |it| vec![refuse(it, -32000, "no disk")]),
            "s_a -> failed: it refused the call: no disk (-32000)",
        ),
        (
            "a huge error",
            on("tools/call", |it| vec![refuse(it, 1, &"x".repeat(1 << 20))]),
            "s_a -> failed: it refused the c…(1057)…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (1)",
        ),
        (
            "a huge text",
            results(text(&"x".repeat(5 << 20))),
            "s_a -> ok: xxxxxxxxxxxxxxxxxxxx…(4194361)… the result is left out: it is too long]",
        ),
        (
            "too large a message",
            on("tools/call", |_| vec![Act::Flood(vec![b'x'; 1 << 20], 17)]),
            "s_a -> OutcomeUnknown: it sent a message of more than 16 MiB; whether the call took effect is not known",
        ),
        (
            "too deep a message",
            on("tools/call", |it| {
                vec![Act::Write(
                    format!(
                        "{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": {}}}\n",
                        it["id"],
                        nested(1_000)
                    )
                    .into_bytes(),
                )]
            }),
            "s_a -> OutcomeUnknown: it sent a message that is nested deeper than 127 levels; whether the call took effect is not known",
        ),
    ]
}

/// A server that answers the call with these bytes of a text.
fn raw_text(bytes: &'static [u8]) -> AnyScript {
    on("tools/call", move |it| {
        let line = answer_line(it, "TEXT");
        let (start, end) = line.split_once("TEXT").expect("the text");
        vec![Act::Write(
            [start.as_bytes(), bytes, end.as_bytes()].concat(),
        )]
    })
}

fn answer_line(message: &Value, content: &str) -> String {
    let result = text(content);
    format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
    )
}

/// Results in invalid Unicode: half of an emoji, and an old encoding.
pub(super) fn not_unicode() -> Vec<Row> {
    vec![
        (
            "half of an emoji",
            raw_text(br"a\ud83d b"),
            "s_a -> ok: a\u{fffd} b",
        ),
        (
            "the other half",
            raw_text(br"\uDE00"),
            "s_a -> ok: \u{fffd}",
        ),
        (
            "an old encoding",
            raw_text(b"caf\xe9"),
            "s_a -> ok: caf\u{fffd}",
        ),
        (
            "escapes that are whole",
            raw_text(br"\ud83d\ude00 \\ud83d"),
            "s_a -> ok: \u{1f600} \\ud83d",
        ),
    ]
}

/// Results that a model cannot be shown.
pub(super) fn odd_results() -> Vec<Row> {
    let many = |count| {
        json!(
            (0..count)
                .map(|_| json!({"type": "text", "text": "x"}))
                .collect::<Vec<_>>()
        )
    };
    let image =
        |data: String| content(json!([{"type": "image", "mimeType": "image/png", "data": data}]));
    let wants =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    vec![
        (
            "many parts",
            results(content(many(10_000))),
            "s_a -> ok: x\nx\nx\nx\nx\nx\nx\nx\nx\nx\n…(568)… the result is left out: it is too long]",
        ),
        (
            "an image that is none",
            results(image("<svg>".into())),
            "s_a -> ok: ",
        ),
        (
            "a huge image",
            results(image("A".repeat(6 << 20))),
            "s_a -> ok: ",
        ),
        (
            "bytes of any kind",
            results(content(
                json!([{"type": "resource", "resource": {"uri": "x://y", "mimeType": "application/x-evil", "blob": "AAAA"}}]),
            )),
            "s_a -> ok: [resource x://y of type application/x-evil is left out: 4 bytes]",
        ),
        (
            "what was not declared",
            declared(
                wants.clone(),
                json!({"resultType": "complete", "content": [], "structuredContent": {"n": "one"}}),
            ),
            "s_a -> failed: the result does not fit what the server declares of this tool:\n  - /n: want integer, but got string\n{\"n\":\"one\"}",
        ),
        (
            "less than was declared",
            declared(wants, text("fine")),
            "s_a -> failed: the result lacks the structured content that the server declares of this tool\nfine",
        ),
        (
            "too much that was declared",
            results(
                json!({"resultType": "complete", "content": [], "structuredContent": "x".repeat(5 << 20)}),
            ),
            "s_a -> ok: [5242882 bytes of structured content are left out: they are too many]",
        ),
        (
            "a failure of the tool",
            results(
                json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": "no"}]}),
            ),
            "s_a -> failed: no",
        ),
        (
            "a failure without a word",
            results(json!({"resultType": "complete", "isError": true, "content": []})),
            "s_a -> failed: it failed without a word",
        ),
    ]
}

/// Questions that are none.
pub(super) fn questions() -> Vec<Row> {
    let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}});
    let url = |url: &str| json!({"u": {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": url}}});
    let crowd: serde_json::Map<String, Value> =
        (0..100).map(|at| (format!("{at}"), form.clone())).collect();
    let sampling = json!({"s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}});
    vec![
        (
            "questions without end",
            needs(json!({"q": form}), json!("s")),
            "s_a -> Failed: it asked for input more than 8 times",
        ),
        (
            "come again without end",
            needs(json!({}), json!("s")),
            "s_a -> Failed: it asked for nothing and wanted the call to be sent again more than 8 times",
        ),
        (
            "a need of nothing, and no state",
            results(json!({"resultType": "input_required", "inputRequests": {}})),
            "s_a -> failed: it needs something first and does not say what",
        ),
        (
            "a crowd of questions",
            needs(json!(crowd), json!("s")),
            "s_a -> Failed: it asks for more than 16 things at once, or in more than 1048576 bytes",
        ),
        (
            "a huge state",
            needs(json!({}), json!("x".repeat(2 << 20))),
            "s_a -> Failed: it asks for more than 16 things at once, or in more than 1048576 bytes",
        ),
        (
            "a need of nothing",
            results(json!({"resultType": "input_required"})),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "a question of an unknown kind",
            needs(
                json!({"q": {"method": "shell/run", "params": {}}}),
                json!("s"),
            ),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "an address that is a script",
            needs(url("javascript:alert(1)"), json!("s")),
            "s_a -> Failed: it sends people to an address that is none of the web",
        ),
        (
            "an address without end",
            needs(
                url(&format!("https://x.example/{}", "x".repeat(10_000))),
                json!("s"),
            ),
            "s_a -> Failed: it sends people to an address that is none of the web",
        ),
        (
            "a model where there is none",
            needs(sampling, json!("s")),
            "s_a -> Failed: it asks for the answer of a model, and none answers here",
        ),
    ]
}

/// Tasks that lead nowhere.
pub(super) fn tasks() -> Vec<Row> {
    let task = |id: String| json!({"resultType": "task", "taskId": id, "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null});
    let with_task = move |get: fn(&Value) -> Vec<Act>| -> AnyScript {
        let made = json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null});
        Box::new(move |_, message| match message["method"].as_str() {
            Some("tools/call") => vec![answer(message, made.clone())],
            Some("tasks/get") => get(message),
            _ => usual(Speaks::New, message, &[tool("a")]),
        })
    };
    vec![
        (
            "a task of no name that can be kept",
            results(task("x".repeat(1 << 20))),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "a task that nobody knows",
            with_task(|it| vec![refuse(it, -32602, "what task?")]),
            "s_a -> failed: it knows nothing of the task any more: what task?",
        ),
        (
            "a task that is silent",
            with_task(|_| Vec::new()),
            "s_a -> Failed: it did not say what became of the task",
        ),
        (
            "a task that is none",
            with_task(|it| vec![answer(it, json!({"resultType": "complete"}))]),
            "s_a -> failed: it answered with something that is no task",
        ),
        (
            "a task that ends in anything",
            with_task(|it| {
                vec![answer(
                    it,
                    json!({"resultType": "complete", "taskId": "t", "status": "completed", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null, "result": {"content": 5}}),
                )]
            }),
            "s_a -> failed: it ended the task with no result of a tool",
        ),
    ]
}

/// More than anybody asked for, and other than it.
pub(super) fn storms() -> Vec<Row> {
    vec![
        (
            "an id that is the text of the number",
            on("tools/call", |it| {
                vec![Act::Say(
                    json!({"jsonrpc": "2.0", "id": it["id"].to_string(), "result": text("x")}),
                )]
            }),
            "s_a -> OutcomeUnknown: it sent an answer with a text as its id; whether the call took effect is not known",
        ),
        (
            "a storm of changed lists",
            on("tools/call", |it| {
                let storm = format!(
                    "{}\n",
                    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                );
                vec![
                    Act::Flood(storm.into_bytes(), 10_000),
                    answer(it, text("fine")),
                ]
            }),
            "s_a -> ok: fine",
        ),
        (
            "progress without end",
            on("tools/call", |it| {
                let token = &it["params"]["_meta"]["progressToken"];
                let progress =
                    json!({"progressToken": token, "progress": 1, "message": "x".repeat(2_000)});
                let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
                vec![
                    Act::Flood(format!("{report}\n").into_bytes(), 1_000),
                    answer(it, text("fine")),
                ]
            }),
            "s_a -> ok: fine",
        ),
        (
            "notifications of unknown kinds",
            on("tools/call", |it| {
                let odd = Act::Flood(
                    b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/odd\", \"params\": [1]}\n"
                        .to_vec(),
                    1_000,
                );
                vec![
                    odd,
                    notify("notifications/cancelled", json!({"requestId": it["id"]})),
                    answer(it, text("fine")),
                ]
            }),
            "s_a -> ok: fine",
        ),
        (
            "a flood of questions in place",
            of(Speaks::Old, "tools/call", |it| {
                let ask = |at| json!({"jsonrpc": "2.0", "id": format!("q{at}"), "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}});
                let mut acts: Vec<Act> = (0..1_000).map(|at| Act::Say(ask(at))).collect();
                acts.push(answer(
                    it,
                    json!({"content": [{"type": "text", "text": "fine"}]}),
                ));
                acts
            }),
            "s_a -> ok: fine",
        ),
        (
            "a question of an unknown form in place",
            of(Speaks::Old, "tools/call", |it| {
                let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"message": 5}});
                vec![
                    Act::Say(ask),
                    answer(it, json!({"content": [{"type": "text", "text": "fine"}]})),
                ]
            }),
            "s_a -> ok: fine",
        ),
    ]
}
