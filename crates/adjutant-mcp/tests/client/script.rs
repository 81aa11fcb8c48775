//! A server that a test scripts: what it answers to each message of the client.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use adjutant_llm::CallResult;
use adjutant_mcp::{McpServer, ServerConfig, StreamConfig};
use adjutant_tool::{Entered, Identity, Reentry, ToolError, Toolbox, Toolset};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
};

/// What a server does with a message.
pub(crate) enum Act {
    /// It says this.
    Say(Value),
    /// It writes this.
    Write(Vec<u8>),
    /// It writes this so many times.
    Flood(Vec<u8>, usize),
    /// It goes.
    Die,
}

/// What a server does with a message of its n-th connection, from 0.
pub(crate) trait Script: Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static {}

impl<T: Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static> Script for T {}

/// Any script.
pub(crate) type AnyScript = Box<dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync>;

/// Which revision a scripted server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Old,
    New,
}

pub(crate) const BOTH: [Speaks; 2] = [Speaks::Old, Speaks::New];

/// The answer to a request.
pub(crate) fn answer(message: &Value, result: Value) -> Act {
    Act::Say(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

pub(crate) fn refuse(message: &Value, code: i32, why: &str) -> Act {
    Act::Say(
        json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": why}}),
    )
}

pub(crate) fn notify(method: &str, params: Value) -> Act {
    Act::Say(json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// A tool of a list, without arguments.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// What every server does: the beginning, and its list of tools.
pub(crate) fn usual(speaks: Speaks, message: &Value, tools: &[Value]) -> Vec<Act> {
    let can = json!({"tools": {"listChanged": true}});
    let listed = json!({"resultType": "complete", "tools": tools, "ttlMs": 3_600_000, "cacheScope": "public"});
    match (message["method"].as_str().unwrap_or_default(), speaks) {
        ("server/discover", Speaks::New) => {
            let result = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": can, "ttlMs": 0,
                "cacheScope": "public"
            });
            vec![answer(message, result)]
        }
        ("server/discover", Speaks::Old) => vec![refuse(message, -32601, "what?")],
        ("initialize", Speaks::Old) => {
            let info = json!({"name": "scripted", "version": "1"});
            vec![answer(
                message,
                json!({"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info}),
            )]
        }
        ("subscriptions/listen", Speaks::New) => {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": message["id"]});
            let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
            vec![notify("notifications/subscriptions/acknowledged", params)]
        }
        ("tools/list", Speaks::New) => vec![answer(message, listed)],
        ("tools/list", Speaks::Old) => vec![answer(message, json!({"tools": tools}))],
        ("ping", _) => vec![answer(message, json!({}))],
        _ => Vec::new(),
    }
}

/// A stream to a server that follows a script; each connection is a new one.
pub(crate) fn stream(script: impl Script) -> StreamConfig {
    let (script, count) = (Arc::new(script), Mutex::new(0));
    StreamConfig(Arc::new(move || {
        let (ours, theirs) = duplex(64 << 10);
        let mut count = count.lock().expect("nobody panicked");
        tokio::spawn(follow(theirs, Arc::clone(&script), *count));
        *count += 1;
        ours
    }))
}

async fn follow(stream: DuplexStream, script: Arc<impl Script>, connection: usize) {
    let (from, to) = tokio::io::split(stream);
    serve(from, to, |message| script(connection, message)).await;
}

/// Reads messages and acts on each.
pub(crate) async fn serve(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    script: impl Fn(&Value) -> Vec<Act>,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message = serde_json::from_str(&line).expect("the client sends JSON");
        for act in script(&message) {
            let bytes = match act {
                Act::Say(message) => format!("{message}\n").into_bytes(),
                Act::Write(bytes) => bytes,
                Act::Flood(bytes, times) => {
                    for _ in 0..times {
                        if to.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                    continue;
                }
                Act::Die => return,
            };
            if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
                return;
            }
        }
    }
}

/// A server called `s` that follows a script.
pub(crate) fn server(script: impl Script) -> McpServer {
    configured(script, |_| {})
}

pub(crate) fn configured(script: impl Script, change: impl FnOnce(&mut ServerConfig)) -> McpServer {
    let mut config = ServerConfig::new(stream(script));
    change(&mut config);
    McpServer::new("s", config).expect("a server")
}

pub(crate) fn who() -> Identity {
    Identity::root("t".into(), "id", "agent")
}

pub(crate) async fn resolve(server: &McpServer) -> Toolset {
    server.resolve(&who()).await.expect("it gives a set")
}

/// Calls a tool in a run that nobody interrupts.
pub(crate) async fn call(set: &Toolset, name: &str, args: Value) -> Result<CallResult, ToolError> {
    let tool = set.get(name).expect("the set holds it");
    match Reentry::default().enter(|cx| tool.call(args, cx)).await {
        Entered::Ended(result) => Ok(result),
        Entered::Failed(error) => Err(error),
        other => Err(ToolError::failed(format!("it waits: {other:?}"))),
    }
}

pub(crate) fn names(set: &Toolset) -> Vec<&str> {
    set.iter().map(|tool| tool.spec().name().as_str()).collect()
}

pub(crate) fn warnings(set: &Toolset) -> Vec<&str> {
    set.warnings()
        .iter()
        .map(|warning| &*warning.message)
        .collect()
}

/// How often each method was asked for.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<BTreeMap<String, usize>>>);

impl Heard {
    pub(crate) fn note(&self, message: &Value) {
        let method = message["method"].as_str().unwrap_or("(answer)").to_owned();
        *self
            .0
            .lock()
            .expect("nobody panicked")
            .entry(method)
            .or_default() += 1;
    }

    pub(crate) fn of(&self, method: &str) -> usize {
        self.0
            .lock()
            .expect("nobody panicked")
            .get(method)
            .copied()
            .unwrap_or_default()
    }
}
