//! Callers that mean harm, over HTTP and over streams: each is refused, and the next one is served.

use std::sync::Arc;

use adjutant_mcp::{HttpOptions, McpHost};
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::client::{BOTH, Client, Rev, meta, tools};

const TOKEN: &str = "a-long-secret";

fn host() -> McpHost {
    McpHost::new("test").tools(tools(&Arc::default()))
}

/// A request as a good client makes it, and one change.
struct Row {
    what: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
    expect: u16,
}

fn call(name: &str, args: Value) -> Value {
    let params =
        json!({ "name": name, "arguments": args, "_meta": meta(&json!({}), &Value::Null) });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

fn row(what: &'static str, expect: u16) -> Row {
    let headers = [
        ("host", "127.0.0.1:80"),
        ("authorization", "Bearer a-long-secret"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let headers = headers
        .map(|(name, value)| (name, value.to_owned()))
        .to_vec();
    Row {
        what,
        headers,
        body: call("echo", json!({ "say": "hi" })).to_string(),
        expect,
    }
}

impl Row {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name, value.into()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    fn body(self, body: impl ToString) -> Self {
        Self {
            body: body.to_string(),
            ..self
        }
    }
}

async fn send(router: &Router, row: Row) -> (StatusCode, String) {
    let request = row
        .headers
        .into_iter()
        .fold(Request::post("/mcp"), |it, (name, value)| {
            it.header(name, value)
        });
    let response = router
        .clone()
        .oneshot(request.body(Body::from(row.body)).unwrap())
        .await
        .unwrap();
    let status = response.status();
    (
        status,
        String::from_utf8_lossy(&to_bytes(response.into_body(), 1 << 20).await.unwrap())
            .into_owned(),
    )
}

fn rows() -> Vec<Row> {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let unversioned = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": {} } });
    vec![
        row("no token", 401).without("authorization"),
        row("another token", 401).with("authorization", "Bearer b-long-secret"),
        row("a part of the token", 401).with("authorization", "Bearer a-long-secre"),
        row("more than the token", 401).with("authorization", "Bearer a-long-secret2"),
        row("another scheme", 401).with("authorization", "Basic a-long-secret"),
        row("a token without a scheme", 401).with("authorization", TOKEN),
        row("a foreign host", 403).with("host", "evil.example"),
        row("a foreign host that looks like ours", 403).with("host", "127.0.0.1.evil.example"),
        row("a foreign origin", 403).with("origin", "https://evil.example"),
        row("no origin at all, as a page in a sandbox has", 403).with("origin", "null"),
        row("an origin that is none", 403).with("origin", "evil"),
        row("another port of this machine", 403).with("origin", "http://127.0.0.1:5173"),
        row("another name of this machine", 403).with("origin", "http://localhost:80"),
        row("another scheme", 403).with("origin", "https://127.0.0.1"),
        row("a name that begins alike", 403).with("origin", "http://127.0.0.1.evil.example"),
        row("another type of body", 415).with("content-type", "text/plain"),
        row("no wish for events", 406).with("accept", "text/html"),
        row("no JSON", 415).body("tools/call"),
        row("no object", 415).body("3"),
        row("JSON of great depth", 415).body(deep),
        row("a batch", 415).body(json!([call("echo", json!({})), call("echo", json!({}))])),
        row("a huge batch", 413).body(format!("[{}1]", "1,".repeat(9 << 20))),
        row("a body that is too large", 413).body(" ".repeat((16 << 20) + 1)),
        row("another method than its header", 400).with("mcp-method", "tools/list"),
        row("another tool than its header", 400).with("mcp-name", "pay"),
        row("a revision that is not ours", 400).with("mcp-protocol-version", "2099-01-01"),
        row("a session that is none", 404)
            .with("mcp-session-id", "mine")
            .without("mcp-protocol-version")
            .body(&unversioned),
    ]
}

#[tokio::test]
async fn a_hostile_request_is_refused_and_the_next_one_is_served() {
    let router = host().router(HttpOptions::with_token(TOKEN));
    for row in rows() {
        let (what, expect) = (row.what, row.expect);
        let (status, body) = send(&router, row).await;
        assert_eq!(status.as_u16(), expect, "{what}: {body}");
        assert!(!body.contains(TOKEN), "{what}");
        let (status, body) = send(&router, self::row("a good request", 200)).await;
        assert!(
            status == 200 && body.contains("\"text\":\"hi\""),
            "after {what}: {status} {body}"
        );
    }
}

#[tokio::test]
async fn the_page_of_this_machine_is_served_when_everybody_may_call() {
    let open = host().router(HttpOptions::open());
    let own = row("", 200)
        .without("authorization")
        .with("origin", "http://127.0.0.1");
    assert_eq!(send(&open, own).await.0, 200);
    let other = row("", 403)
        .without("authorization")
        .with("origin", "http://localhost:5173");
    assert_eq!(send(&open, other).await.0, 403);
    let known = HttpOptions::with_token(TOKEN)
        .host("mcp.example.org")
        .origin("https://example.org:443");
    let far = row("", 200)
        .with("host", "mcp.example.org")
        .with("origin", "https://example.org");
    assert_eq!(send(&host().router(known), far).await.0, 200);
}

#[tokio::test]
async fn a_session_is_begun_and_ended_when_a_client_of_2025_comes() {
    let router = host().router(HttpOptions::with_token(TOKEN));
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let request = |method: &str, session: Option<&str>, body: String| {
        let base = row("", 200)
            .without("mcp-protocol-version")
            .without("mcp-method")
            .without("mcp-name");
        let request = base.headers.into_iter().fold(
            Request::builder().method(method).uri("/mcp"),
            |it, (name, value)| it.header(name, value),
        );
        let request = session
            .into_iter()
            .fold(request, |it, session| it.header("mcp-session-id", session));
        request.body(Body::from(body)).unwrap()
    };
    let opened = router
        .clone()
        .oneshot(request("POST", None, opening.to_string()))
        .await
        .unwrap();
    assert_eq!(opened.status(), 200);
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    drop(to_bytes(opened.into_body(), 1 << 20).await.unwrap());
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let told = router
        .clone()
        .oneshot(request("POST", Some(&session), ready))
        .await
        .unwrap();
    assert_eq!(told.status(), 202);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string();
    let listed = router
        .clone()
        .oneshot(request("POST", Some(&session), list.clone()))
        .await
        .unwrap();
    let body = to_bytes(listed.into_body(), 1 << 20).await.unwrap();
    assert!(String::from_utf8_lossy(&body).contains("\"echo\""));
    let ended = router
        .clone()
        .oneshot(request("DELETE", Some(&session), String::new()))
        .await
        .unwrap();
    assert!(ended.status().is_success(), "{}", ended.status());
    let late = router
        .clone()
        .oneshot(request("POST", Some(&session), list))
        .await
        .unwrap();
    assert_eq!(late.status(), 404);
}

#[tokio::test]
async fn a_hostile_message_is_refused_and_the_next_one_is_served() {
    let wrong = [
        ("an unknown tool", call("nothing", json!({})), json!(-32602)),
        (
            "a tool without a name",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "_meta": meta(&json!({}), &Value::Null) } }),
            json!(-32601),
        ),
        (
            "an unknown method",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/steal", "params": { "_meta": meta(&json!({}), &Value::Null) } }),
            json!(-32601),
        ),
    ];
    for rev in BOTH {
        let mut client = Client::open(&host(), rev).await;
        for (what, message, code) in wrong.clone() {
            client.send(message).await;
            let said = client.next().await.unwrap();
            assert_eq!(said["error"]["code"], code, "{what} at {rev:?}: {said}");
        }
        for arguments in [
            json!({ "price": "much" }),
            json!({}),
            json!({ "price": { "price": 3 } }),
        ] {
            let said = client.call("pay", arguments).await;
            assert_eq!(said["result"]["isError"], true, "{said}");
        }
        for line in [
            "{",
            "[]",
            "3",
            "\u{0}",
            "{\"jsonrpc\":\"2.0\",\"id\":9}",
            &"[".repeat(1_000_000),
        ] {
            client.line(line).await;
        }
        let said = client.call("echo", json!({ "say": "hi" })).await;
        assert_eq!(said["result"]["content"][0]["text"], "hi", "{rev:?}");
    }
}

#[tokio::test]
async fn a_line_is_left_out_when_it_is_too_long() {
    let mut client = Client::open(&host(), Rev::New).await;
    client.call("echo", json!({})).await;
    client.line(&" ".repeat((16 << 20) + 2)).await;
    assert_eq!(
        client.call("echo", json!({ "say": "hi" })).await["result"]["isError"],
        false
    );
}
