//! Servers of a manifest: shared, asked about, filtered, and never reached with what is not set.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::Outcome;
use adjutant_llm::CallResult;
use adjutant_mcp::{HttpOptions, McpHost};
use adjutant_runtime::{Credentials, ErrorKind};
use adjutant_tool::{Answer, CallContext, Replay, ToolHints, ToolSpec, Tools, tool_fn};
use serde_json::{Value, json};

use crate::stage::{Stage, calls, lead, one, preview, result, run, tools, with};

/// A server that counts its calls, at an address that wants a token.
async fn server() -> (String, Arc<AtomicUsize>) {
    let called = Arc::new(AtomicUsize::new(0));
    let tool = |name: &str| {
        let called = Arc::clone(&called);
        let spec = ToolSpec::new(name, "Looks.", json!({ "type": "object", "properties": {} }));
        let spec = ToolSpec { replay: Replay::Pure, hints: ToolHints { reads_only: Some(true), ..ToolHints::default() }, ..spec };
        tool_fn(spec, move |_: Value, _: CallContext| {
            called.fetch_add(1, Ordering::SeqCst);
            async { Ok(CallResult::ok("a heron")) }
        })
    };
    let host = McpHost::new("birds").tools(Tools::new("birds").tool(tool("look")).tool(tool("peek")));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { host.serve_http(listener, HttpOptions::with_token("very-secret")).await });
    (format!("http://{address}/mcp"), called)
}

/// A manifest whose one agent has the server, with these fields of the server and of the agent.
fn manifest(url: &str, server: Value, agent: Value) -> Value {
    let own = json!({ "url": url, "headers": { "Authorization": "Bearer ${BIRDS_TOKEN}" } });
    let mut manifest = one(with(json!({ "toolboxes": ["birds"] }), agent));
    manifest["mcp"] = json!({ "servers": { "birds": with(own, server) } });
    manifest
}

fn token() -> Credentials {
    Credentials::none().with("BIRDS_TOKEN", "very-secret")
}

#[tokio::test]
async fn tool_of_a_server_waits_for_a_word_unless_the_server_is_believed() {
    let (url, called) = server().await;
    for (fields, rules, waits) in [
        (json!({}), json!({}), true),
        (json!({ "trusted": true }), json!({}), false),
        (json!({}), json!({ "rules": { "allow": ["birds_look"] } }), false),
        (json!({ "trusted": true }), json!({ "rules": { "ask": ["birds_look"] } }), true),
    ] {
        let stage = Stage::new(calls("birds_look", json!({})));
        let builder = stage.builder(manifest(&url, fields.clone(), rules.clone())).credentials(token());
        let engine = builder.build().await.expect("it is right");
        let before = called.load(Ordering::SeqCst);
        let ran = run(&engine).await;
        let pauses = match &ran.outcome {
            Outcome::Paused { pauses } => pauses.clone(),
            _ => Vec::new(),
        };
        assert_eq!((pauses.len(), called.load(Ordering::SeqCst) - before), if waits { (1, 0) } else { (0, 1) }, "{fields} {rules}");
        if let Some(pause) = pauses.first() {
            let ran = lead(&engine).resume(vec![pause.answered(Answer::approve())]).await.expect("it goes on");
            assert_eq!(result(&ran, 0), "a heron", "{fields} {rules}");
        }
    }
}

#[tokio::test]
async fn server_gives_the_tools_that_are_named_under_their_prefix() {
    let (url, _) = server().await;
    for (fields, toolbox, expect) in [
        (json!({}), json!("birds"), &["birds_look", "birds_peek"][..]),
        (json!({ "prefix": "b_", "tools": ["look"] }), json!("birds"), &["b_look"]),
        (json!({}), json!({ "name": "birds", "except": ["*_look"] }), &["birds_peek"]),
    ] {
        let stage = Stage::new([]);
        let builder = stage.builder(manifest(&url, fields, json!({ "toolboxes": [toolbox] }))).credentials(token());
        let engine = builder.build().await.expect("it is right");
        assert_eq!(tools(&preview(&engine).await), expect);
    }
}

#[tokio::test]
async fn engine_is_refused_when_a_server_cannot_be_meant() {
    let stage = Stage::new([]);
    let url = "http://127.0.0.1:9/mcp";
    for (fields, credentials, expect) in [
        (json!({}), Credentials::none(), "the variable BIRDS_TOKEN is not set"),
        (json!({ "prefix": "read_" }), token(), "rules would take its tools for others"),
        (json!({ "url": null, "headers": {}, "command": "no-such-tool" }), token(), "no folder of PATH has a program"),
    ] {
        let builder = stage.builder(manifest(url, fields, json!({}))).credentials(credentials);
        let error = builder.build().await.expect_err(expect);
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(expect), "{error}");
        assert!(!error.to_string().contains("very-secret"), "{error}");
    }
    let error = stage.wrong(one(json!({ "toolboxes": ["birds"] }))).await;
    assert!(error.to_string().contains("names a toolbox that there is not: birds"), "{error}");
}
