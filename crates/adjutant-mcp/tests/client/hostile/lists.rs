//! Rows of hostile servers: how they begin, and what they list.

use serde_json::json;

use super::{
    super::script::{Act, Speaks, answer, refuse, text, tool, usual},
    Row, *,
};

/// A server that does not begin.
pub(super) fn beginnings() -> Vec<Row> {
    vec![
        (
            "silence",
            Box::new(|_, _| Vec::new()),
            " | it did not start within 30s; it is tried again",
        ),
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
            on("tools/list", |_| {
                vec![
                    Act::Write(b"{\"jsonrpc\": \"2.0\", \"id\"".to_vec()),
                    Act::Die,
                ]
            }),
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
            of(Speaks::Old, "initialize", |it| {
                vec![refuse(it, -32600, "no")]
            }),
            " | it refused to begin: no; it is tried again",
        ),
    ]
}

/// A server that begins in its own way.
pub(super) fn noisy_beginnings() -> Vec<Row> {
    vec![
        (
            "a wrong id at the beginning",
            of(Speaks::Old, "initialize", |_| {
                vec![Act::Say(json!({"jsonrpc": "2.0", "id": "x", "result": {}}))]
            }),
            " | it sent an answer with a text as its id before it said which revision it speaks; it is tried again",
        ),
        (
            "noise before every answer",
            Box::new(|_, message| {
                let mut acts = vec![Act::Write(
                    b"Server started!\n\n{not json\n\xff\xfe\n".to_vec(),
                )];
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
            on("server/discover", |_| {
                vec![Act::Flood(vec![b'x'; 1 << 20], 20)]
            }),
            " | it sent a message of more than 16 MiB before it said which revision it speaks; it is tried again",
        ),
        (
            "depth at the beginning",
            on("server/discover", |_| {
                vec![Act::Write(nested(200).into_bytes())]
            }),
            " | it sent a message that is nested deeper than 127 levels before it said which revision it speaks; it is tried again",
        ),
        (
            "silence at the list",
            on("tools/list", |_| Vec::new()),
            " | it did not start within 30s; it is tried again",
        ),
        (
            "refusal of the list",
            on("tools/list", |it| vec![refuse(it, -32603, "broken")]),
            " | it refused to list its tools: broken; it is tried again",
        ),
        (
            "a list that is none",
            on("tools/list", |it| {
                vec![answer(
                    it,
                    json!({"resultType": "complete", "tools": "all"}),
                )]
            }),
            " | it answered with something that is no list of tools; it is tried again",
        ),
    ]
}

/// Lists that have no end, or nearly none.
pub(super) fn long_lists() -> Vec<Row> {
    let many = |count: usize| {
        (0..count)
            .map(|at| tool(&format!("t{at}")))
            .collect::<Vec<_>>()
    };
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
                vec![page(
                    it,
                    &[tool(&format!("t{round}"))],
                    json!(format!("{round}")),
                )]
            }),
            "100 tools | its list has no end: the tools of 100 pages are offered -> ok: fine",
        ),
        (
            "pages in a circle",
            on("tools/list", |it| {
                vec![page(it, &[tool("a")], json!("again"))]
            }),
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
    ]
}

/// Tools that no model can be shown.
pub(super) fn odd_tools() -> Vec<Row> {
    vec![
        (
            "two of one name",
            lists(vec![tool("a"), tool("a")]),
            "s_a | a second tool is called s_a; only the first one is offered -> ok: fine",
        ),
        (
            "odd names",
            lists(vec![
                tool("a b/ü"),
                tool(""),
                tool(&"n".repeat(200)),
                tool("\u{1b}[31m"),
            ]),
            "s_a_b___736afe65 s__e3b0c442 s_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_1be63cc0 s___31m_83a73878 -> ok: fine",
        ),
        (
            "a tool without a schema",
            lists(vec![json!({"name": "bad"}), tool("a")]),
            "s_bad s_a -> ok: fine",
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
            "s_bad s_a | its tool \"bad\" is offered without parts of its schema that cannot be read: /properties -> ok: fine",
        ),
        (
            "a reference elsewhere",
            lists(schema(
                json!({"type": "object", "properties": {"x": {"$ref": "http://169.254.169.254/s.json"}}}),
            )),
            "s_bad s_a | its tool \"bad\" is offered without parts of its schema that cannot be read: /properties/x/$ref -> ok: fine",
        ),
        (
            "a bomb of references",
            lists(schema(bomb())),
            "s_a | its tool \"bad\" is left out: its schema refers to itself too often -> ok: fine",
        ),
        (
            "a reference to itself",
            lists(vec![
                json!({"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "#"}}}}),
            ]),
            "s_a -> ok: fine",
        ),
        (
            "a deep schema",
            lists(schema(
                serde_json::from_str(&format!("{{\"type\": \"object\", \"x\": {}}}", nested(100)))
                    .expect("JSON"),
            )),
            "s_a | its tool \"bad\" is left out: its schema is nested deeper than 64 levels -> ok: fine",
        ),
        (
            "a large schema",
            lists(schema(
                json!({"type": "object", "description": "x".repeat(100_000)}),
            )),
            "s_a | its tool \"bad\" is left out: its schema has more than 65536 bytes -> ok: fine",
        ),
        (
            "a schema for results that is none",
            declared(json!({"$ref": "#/nowhere"}), text("fine")),
            "s_a | results of its tool \"a\" are not checked, what it declares of them: its schema refers to \"#/nowhere\", which is not in it -> ok: fine",
        ),
    ]
}
