//! What a hostile server does, and what it comes to: within the limits of time and size, and in words.

use std::sync::Mutex;

use adjutant_llm::Status;
use adjutant_tool::{CallContext, Toolset};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::script::{Act, Speaks, answer, names, notify, refuse, resolve, server, text, tool, usual, warnings};

type Row = (&'static str, Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync>, &'static str);

/// A server of the newer revision that answers one method in its own way.
fn on(
    method: &'static str,
    act: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static,
) -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
    of(Speaks::New, method, act)
}

fn of(
    speaks: Speaks,
    method: &'static str,
    act: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static,
) -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
    Box::new(move |_, message| match message["method"].as_str() {
        Some(known) if known == method => act(message),
        Some("tools/call") => vec![answer(message, text("fine"))],
        _ => usual(speaks, message, &[tool("a")]),
    })
}

/// A server that lists these tools.
fn lists(tools: Vec<Value>) -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
    on("tools/list", move |message| vec![page(message, &tools, Value::Null)])
}

/// A server that answers calls with this.
fn results(result: Value) -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
    on("tools/call", move |message| vec![answer(message, result.clone())])
}

fn page(message: &Value, tools: &[Value], next: Value) -> Act {
    let mut result = json!({"resultType": "complete", "tools": tools, "ttlMs": 3_600_000, "cacheScope": "public"});
    if !next.is_null() {
        result["nextCursor"] = next;
    }
    answer(message, result)
}

fn schema(schema: Value) -> Vec<Value> {
    vec![json!({"name": "bad", "inputSchema": schema}), tool("a")]
}

fn content(parts: Value) -> Value {
    json!({"resultType": "complete", "content": parts})
}

fn declared(schema: Value, result: Value) -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
    Box::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => vec![answer(message, result.clone())],
        Some("tools/list") => {
            let tool = json!({"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema});
            vec![page(message, &[tool], Value::Null)]
        }
        _ => usual(Speaks::New, message, &[]),
    })
}

fn needs(requests: Value, state: Value) -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
    results(json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}))
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// A schema whose check would take three to the power of fifteen steps.
fn bomb() -> Value {
    let link = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        (format!("d{at}"), json!({"allOf": [next, next, next]}))
    };
    let mut defs: serde_json::Map<String, Value> = (0..15).map(link).collect();
    defs.insert("d15".into(), json!({"type": "string"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

/// What a set holds, what it warns of, and what a call of its first tool comes to, in one text.
async fn told(set: &Toolset) -> String {
    let mut told = match names(set) {
        all if all.len() > 8 => format!("{} tools", all.len()),
        all => all.join(" "),
    };
    for warning in warnings(set) {
        told += &format!(" | {}", short(&warning.replace("MCP server \"s\": ", "")));
    }
    let Some(tool) = set.iter().next() else { return told };
    let came = match tool.call(json!({}), CallContext::detached()).await {
        Ok(result) => {
            let how = if result.status == Status::Ok { "ok" } else { "failed" };
            format!("{how}: {}", result.text())
        }
        Err(error) => format!("{:?}: {}", error.kind, error.message),
    };
    format!("{told} -> {}", short(&came.replace("MCP server \"s\": ", "")))
}

/// A text, or its beginning, length and end.
fn short(text: &str) -> String {
    match text.len() {
        ..300 => text.to_owned(),
        length => format!("{}…({length})…{}", &text[..24], &text[length - 40..]),
    }
}

fn beginnings() -> Vec<Row> {
    vec![
        ("silence", Box::new(|_, _| Vec::new()), " | it did not start within 30s; it is tried again"),
        (
            "death at the first message",
            Box::new(|_, _| vec![Act::Die]),
            " | it closed the connection before it said which revision it speaks; it is tried again",
        ),
        (
            "death at the list",
            on("tools/list", |_| vec![Act::Die]),
            " | it closed the connection before it listed its tools; it is tried again",
        ),
        (
            "death within a message",
            on("tools/list", |_| vec![Act::Write(b"{\"jsonrpc\": \"2.0\", \"id\"".to_vec()), Act::Die]),
            " | it closed the connection before it listed its tools; it is tried again",
        ),
        (
            "a beginning that is none",
            on("server/discover", |it| vec![answer(it, json!(7))]),
            " | it answered the first message with something else than the protocol has; it is tried again",
        ),
        (
            "only a revision of its own",
            on("server/discover", |it| {
                vec![answer(
                    it,
                    json!({"resultType": "complete", "supportedVersions": ["1999-01-01"], "capabilities": {}, "ttlMs": 0, "cacheScope": "public"}),
                )]
            }),
            " | it speaks none of our revisions, but 1999-01-01; it is tried again",
        ),
        (
            "a revision of the future",
            of(Speaks::Old, "initialize", |it| {
                vec![answer(
                    it,
                    json!({"protocolVersion": "2099-01-01", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}),
                )]
            }),
            " | it speaks revision 2099-01-01, which is not known here; it is tried again",
        ),
        (
            "refusal of the beginning",
            of(Speaks::Old, "initialize", |it| vec![refuse(it, -32600, "no")]),
            " | it refused to begin: no; it is tried again",
        ),
        (
            "a wrong id at the beginning",
            of(Speaks::Old, "initialize", |_| vec![Act::Say(json!({"jsonrpc": "2.0", "id": "x", "result": {}}))]),
            " | it answered the first message with something else than the protocol has; it is tried again",
        ),
        (
            "noise before every answer",
            Box::new(|_, message| {
                let mut acts = vec![Act::Write(b"Server started!\n\n{not json\n\xff\xfe\n".to_vec())];
                acts.extend(match message["method"].as_str() {
                    Some("tools/call") => vec![answer(message, text("fine"))],
                    _ => usual(Speaks::New, message, &[tool("a")]),
                });
                acts
            }),
            "s_a -> ok: fine",
        ),
        (
            "a line without end",
            on("server/discover", |_| vec![Act::Flood(vec![b'x'; 1 << 20], 20)]),
            " | it sent a message of more than 16 MiB before it said which revision it speaks; it is tried again",
        ),
        (
            "depth at the beginning",
            on("server/discover", |_| vec![Act::Write(nested(200).into_bytes())]),
            " | it sent a message that is nested deeper than 127 levels before it said which revision it speaks; it is tried again",
        ),
        ("silence at the list", on("tools/list", |_| Vec::new()), " | it did not start within 30s; it is tried again"),
        (
            "refusal of the list",
            on("tools/list", |it| vec![refuse(it, -32603, "broken")]),
            " | it refused to list its tools: broken; it is tried again",
        ),
        (
            "a list that is none",
            on("tools/list", |it| vec![answer(it, json!({"resultType": "complete", "tools": "all"}))]),
            " | it answered with something that is no list of tools; it is tried again",
        ),
    ]
}

fn listings() -> Vec<Row> {
    let many = |count: usize| (0..count).map(|at| tool(&format!("t{at}"))).collect::<Vec<_>>();
    let fat = |cursor: &str| {
        let tool = |at| json!({"name": format!("t{cursor}{at}"), "description": "x".repeat(1 << 20), "inputSchema": {"type": "object"}});
        (0..9).map(tool).collect::<Vec<_>>()
    };
    let round = Mutex::new(0);
    vec![
        (
            "pages without end",
            on("tools/list", move |it| {
                let mut round = round.lock().expect("nobody panicked");
                *round += 1;
                vec![page(it, &[tool(&format!("t{round}"))], json!(format!("{round}")))]
            }),
            "100 tools | its list has no end: the tools of 100 pages are offered -> ok: fine",
        ),
        (
            "pages in a circle",
            on("tools/list", |it| vec![page(it, &[tool("a")], json!("again"))]),
            "s_a | a second tool is called s_a; only the first one is offered | its list leads in a circle: the tools of one round are offered -> ok: fine",
        ),
        (
            "too many tools",
            lists(many(3_000)),
            "1000 tools | its list is too long: the first 1000 tools are offered -> ok: fine",
        ),
        (
            "too large a list",
            on("tools/list", move |it| {
                let cursor = it["params"]["cursor"].as_str().unwrap_or_default();
                vec![page(it, &fat(cursor), json!(format!("{cursor}x")))]
            }),
            "15 tools | its list is too long: the first 15 tools are offered -> ok: fine",
        ),
        (
            "two of one name",
            lists(vec![tool("a"), tool("a")]),
            "s_a | a second tool is called s_a; only the first one is offered -> ok: fine",
        ),
        (
            "odd names",
            lists(vec![tool("a b/ü"), tool(""), tool(&"n".repeat(200)), tool("\u{1b}[31m")]),
            "s_a_b___736afe65 s__e3b0c442 s_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_1be63cc0 s___31m_83a73878 -> ok: fine",
        ),
        (
            "a tool without a schema",
            lists(vec![json!({"name": "bad"}), tool("a")]),
            "s_a | its tool \"bad\" is left out: missing field `inputSchema` -> ok: fine",
        ),
        (
            "a tool that is none",
            lists(vec![json!(5), tool("a")]),
            "s_a | its tool \"?\" is left out: invalid type: integer `5`, expected struct Tool -> ok: fine",
        ),
        (
            "a schema of no object",
            lists(schema(json!({"type": "string"}))),
            "s_a | its tool \"bad\" is left out: its schema is not that of an object -> ok: fine",
        ),
        (
            "a schema that is none",
            lists(schema(json!({"type": "object", "properties": 5}))),
            "s_a | its tool \"bad\" is left out: not a JSON schema: schema:///root.json# is not valid against metaschema -> ok: fine",
        ),
        (
            "a reference elsewhere",
            lists(schema(json!({"type": "object", "properties": {"x": {"$ref": "http://169.254.169.254/s.json"}}}))),
            "s_a | its tool \"bad\" is left out: its schema refers to \"http://169.254.169.254/s.json\", which is not in it -> ok: fine",
        ),
        (
            "a bomb of references",
            lists(schema(bomb())),
            "s_a | its tool \"bad\" is left out: its schema refers to itself too often -> ok: fine",
        ),
        (
            "a reference to itself",
            lists(vec![json!({"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "#"}}}})]),
            "s_a -> ok: fine",
        ),
        (
            "a deep schema",
            lists(schema(
                serde_json::from_str(&format!("{{\"type\": \"object\", \"x\": {}}}", nested(100))).expect("JSON"),
            )),
            "s_a | its tool \"bad\" is left out: its schema is nested deeper than 64 levels -> ok: fine",
        ),
        (
            "a large schema",
            lists(schema(json!({"type": "object", "description": "x".repeat(100_000)}))),
            "s_a | its tool \"bad\" is left out: its schema has more than 65536 bytes -> ok: fine",
        ),
        (
            "a schema for results that is none",
            declared(json!({"$ref": "#/nowhere"}), text("fine")),
            "s_a | results of its tool \"a\" are not checked, what it declares of them: its schema refers to \"#/nowhere\", which is not in it -> ok: fine",
        ),
    ]
}

fn calls() -> Vec<Row> {
    let many = |count| json!((0..count).map(|_| json!({"type": "text", "text": "x"})).collect::<Vec<_>>());
    let image = |data: String| content(json!([{"type": "image", "mimeType": "image/png", "data": data}]));
    let wants = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
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
            on("tools/call", |_| vec![Act::Say(json!({"jsonrpc": "2.0", "id": 4_711, "result": text("x")}))]),
            "s_a -> OutcomeUnknown: it said nothing for 600s; whether the call took effect is not known",
        ),
        (
            "an answer twice",
            on("tools/call", |it| vec![answer(it, text("one")), answer(it, text("two"))]),
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
                    format!("{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": {}}}\n", it["id"], nested(1_000))
                        .into_bytes(),
                )]
            }),
            "s_a -> OutcomeUnknown: it sent a message that is nested deeper than 127 levels; whether the call took effect is not known",
        ),
        (
            "many parts",
            results(content(many(10_000))),
            "s_a -> ok: x\nx\nx\nx\nx\nx\nx\nx\nx\nx\n…(568)… the result is left out: it is too long]",
        ),
        (
            "an image that is none",
            results(image("<svg>".into())),
            "s_a -> ok: [an image that cannot be read is left out: 5 bytes]",
        ),
        (
            "a huge image",
            results(image("A".repeat(6 << 20))),
            "s_a -> ok: [6291456 bytes of media are left out: they are too many]",
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
            "a failure of the tool",
            results(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": "no"}]})),
            "s_a -> failed: no",
        ),
        (
            "a failure without a word",
            results(json!({"resultType": "complete", "isError": true, "content": []})),
            "s_a -> failed: it failed without a word",
        ),
    ]
}

fn questions() -> Vec<Row> {
    let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}});
    let url = |url: &str| json!({"u": {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": url}}});
    let crowd: serde_json::Map<String, Value> = (0..100).map(|at| (format!("{at}"), form.clone())).collect();
    let sampling = json!({"s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}});
    let task = |id: String| json!({"resultType": "task", "taskId": id, "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null});
    let with_task = move |get: fn(&Value) -> Vec<Act>| -> Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync> {
        let made = json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null});
        Box::new(move |_, message| match message["method"].as_str() {
            Some("tools/call") => vec![answer(message, made.clone())],
            Some("tasks/get") => get(message),
            _ => usual(Speaks::New, message, &[tool("a")]),
        })
    };
    vec![
        (
            "questions without end",
            needs(json!({"q": form}), json!("s")),
            "s_a -> Failed: it asked for input more than 8 times",
        ),
        ("come again without end", needs(json!({}), json!("s")), "s_a -> Failed: it asked for input more than 8 times"),
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
            needs(json!({"q": {"method": "shell/run", "params": {}}}), json!("s")),
            "s_a -> failed: it answered with something that is no result of a tool",
        ),
        (
            "an address that is a script",
            needs(url("javascript:alert(1)"), json!("s")),
            "s_a -> Failed: it sends people to an address that is none of the web",
        ),
        (
            "an address without end",
            needs(url(&format!("https://x.example/{}", "x".repeat(10_000))), json!("s")),
            "s_a -> Failed: it sends people to an address that is none of the web",
        ),
        (
            "a model where there is none",
            needs(sampling, json!("s")),
            "s_a -> Failed: it asks for the answer of a model, and none answers here",
        ),
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
        ("a task that is silent", with_task(|_| Vec::new()), "s_a -> Failed: it did not say what became of the task"),
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
        (
            "a storm of changed lists",
            on("tools/call", |it| {
                let storm = format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                vec![Act::Flood(storm.into_bytes(), 10_000), answer(it, text("fine"))]
            }),
            "s_a -> ok: fine",
        ),
        (
            "progress without end",
            on("tools/call", |it| {
                let token = &it["params"]["_meta"]["progressToken"];
                let progress = json!({"progressToken": token, "progress": 1, "message": "x".repeat(2_000)});
                let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
                vec![Act::Flood(format!("{report}\n").into_bytes(), 1_000), answer(it, text("fine"))]
            }),
            "s_a -> ok: fine",
        ),
        (
            "notifications of unknown kinds",
            on("tools/call", |it| {
                let odd = Act::Flood(
                    b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/odd\", \"params\": [1]}\n".to_vec(),
                    1_000,
                );
                vec![odd, notify("notifications/cancelled", json!({"requestId": it["id"]})), answer(it, text("fine"))]
            }),
            "s_a -> ok: fine",
        ),
        (
            "a flood of questions in place",
            of(Speaks::Old, "tools/call", |it| {
                let ask = |at| json!({"jsonrpc": "2.0", "id": format!("q{at}"), "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}});
                let mut acts: Vec<Act> = (0..1_000).map(|at| Act::Say(ask(at))).collect();
                acts.push(answer(it, json!({"content": [{"type": "text", "text": "fine"}]})));
                acts
            }),
            "s_a -> ok: fine",
        ),
        (
            "a question of an unknown form in place",
            of(Speaks::Old, "tools/call", |it| {
                let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"message": 5}});
                vec![Act::Say(ask), answer(it, json!({"content": [{"type": "text", "text": "fine"}]}))]
            }),
            "s_a -> ok: fine",
        ),
    ]
}

/// Longer than all limits of a call together; nobody waits for it in fact.
const LONGEST: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn hostile_server_is_an_error_or_a_warning() {
    let rows: Vec<Row> = [beginnings(), listings(), calls(), questions()].into_iter().flatten().collect();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (what, script, expect) in rows {
        let server = server(script);
        let came = async { told(&resolve(&server).await).await };
        let came = timeout(LONGEST, came).await.unwrap_or_else(|_| "no end".to_owned());
        if came != expect {
            wrong.push(format!("{what}\n  came:   {came:?}\n  expect: {expect:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn call_of_a_set_that_is_gone_is_an_answer_of_the_server() {
    let listed = Mutex::new(0);
    let server = server(move |_, message: &Value| match message["method"].as_str() {
        Some("tools/list") => {
            let mut listed = listed.lock().expect("nobody panicked");
            *listed += 1;
            vec![page(message, &[tool(if *listed == 1 { "a" } else { "b" })], Value::Null)]
        }
        Some("tools/call") if message["params"]["name"] == "a" => {
            vec![notify("notifications/tools/list_changed", json!({})), refuse(message, -32602, "unknown tool")]
        }
        Some("tools/call") => vec![answer(message, text("b"))],
        _ => usual(Speaks::New, message, &[]),
    });
    let turn = resolve(&server).await;
    let expect = "s_a -> failed: it refused the call: unknown tool (-32602)";
    assert_eq!((told(&turn).await.as_str(), told(&turn).await.as_str()), (expect, expect));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(told(&resolve(&server).await).await, "s_b -> ok: b");
}
