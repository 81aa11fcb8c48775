//! A client that speaks lines of JSON, and the tools that it calls.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use adjutant_llm::{CallResult, Content, Entry, Image, Request, Source};
use adjutant_mcp::McpHost;
use adjutant_tool::{
    Answer, Approval, Ask, Progress, Replay, Sampler, ToolError, ToolSpec, Tools, tool_fn,
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rev {
    New,
    Old,
}

pub(crate) const BOTH: [Rev; 2] = [Rev::New, Rev::Old];

/// A client of one host.
pub(crate) struct Client {
    rev: Rev,
    can: Value,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
    next: u64,
}

impl Client {
    /// Opens a connection; the client can do everything.
    pub(crate) async fn open(host: &McpHost, rev: Rev) -> Self {
        let can = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        Self::able(host, rev, can).await
    }

    /// Opens a connection; the client can do this.
    pub(crate) async fn able(host: &McpHost, rev: Rev, can: Value) -> Self {
        let (here, there) = tokio::io::duplex(1 << 20);
        let host = host.clone();
        tokio::spawn(async move {
            let (read, write) = tokio::io::split(there);
            host.serve_io(read, write).await
        });
        let (read, out) = tokio::io::split(here);
        let mut client = Self {
            rev,
            can,
            lines: BufReader::new(read).lines(),
            out,
            next: 1,
        };
        if rev == Rev::Old {
            let info = json!({ "name": "test", "version": "1" });
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": client.can, "clientInfo": info });
            let opened = client.ask("initialize", params).await;
            assert_eq!(
                opened["result"]["protocolVersion"], "2025-11-25",
                "{opened}"
            );
            client
                .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .await;
        }
        client
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    pub(crate) async fn line(&mut self, line: &str) {
        self.out
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// The next message; none if the connection ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.unwrap_or_default()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Sends a request and returns its id.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        if self.rev == Rev::New {
            params["_meta"] = meta(&self.can, &params["_meta"]);
        }
        let id = self.next;
        self.next += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Sends a request and waits for its answer, past notifications.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        loop {
            let message = self.next().await.unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) async fn call(&mut self, name: &str, args: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": args }))
            .await
    }

    /// Comes again with answers.
    pub(crate) async fn retry(
        &mut self,
        name: &str,
        args: Value,
        state: &Value,
        answers: Value,
    ) -> Value {
        let params = json!({ "name": name, "arguments": args, "requestState": state, "inputResponses": answers });
        self.ask("tools/call", params).await
    }
}

/// What each request since 2026-07-28 says of its client.
pub(crate) fn meta(can: &Value, more: &Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": can,
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        meta[name] = value.clone();
    }
    meta
}

/// The first text of a result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {answer}"))
}

/// Tools of every kind; the counter counts what was really done.
pub(crate) fn tools(done: &Arc<AtomicU32>) -> Tools {
    let count = |done: &Arc<AtomicU32>| {
        let done = Arc::clone(done);
        move || done.fetch_add(1, Ordering::SeqCst)
    };
    let object = || json!({ "type": "object" });
    let (pay, step) = (count(done), count(done));
    let price = json!({ "type": "object", "properties": { "price": { "type": "integer" } }, "required": ["price"] });
    let priced = ToolSpec {
        output_schema: Some(Arc::new(price.clone())),
        ..ToolSpec::new("price", "A price.", object())
    };
    let paid = ToolSpec {
        approval: Approval::Always,
        title: Some("Pay".into()),
        ..ToolSpec::new("pay", "Pays.", price)
    };
    let asking = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("name", "Asks for a name.", object())
    };
    let slow = ToolSpec::new("slow", "Waits until it is stopped.", object());
    Tools::new("test")
        .tool(tool_fn(ToolSpec::new("echo", "Says it again.", object()), |args, _| async move {
            Ok(CallResult::ok(args["say"].as_str().unwrap_or("nothing")))
        }))
        .tool(tool_fn(ToolSpec::new("picture", "Shows.", object()), |_, _| async {
            let source = Source::Base64 { data: "AAAA".into() };
            let image = Content::Image(Image { media_type: "image/png".into(), source });
            Ok(CallResult { content: vec![image], ..CallResult::ok("") })
        }))
        .tool(tool_fn(priced, |_, _| async {
            Ok(CallResult { details: json!({ "price": 3 }), ..CallResult::ok("3 euros") })
        }))
        .tool(tool_fn(ToolSpec::new("broken", "Fails.", object()), |_, _| async { Err(ToolError::failed("no luck")) }))
        .tool(tool_fn(ToolSpec::new("panics", "Panics.", object()), |_, _| async { panic!("on purpose") }))
        .tool(tool_fn(paid, move |args, _| {
            pay();
            async move { Ok(CallResult::ok(format!("paid {}", args["price"]))) }
        }))
        .tool(tool_fn(asking, move |_, cx| {
            let step = step.clone();
            async move {
                cx.once("step", || async { Ok(step()) }).await?;
                let name = json!({ "type": "string", "minLength": 2 });
                let schema = json!({ "type": "object", "properties": { "name": name }, "required": ["name"] });
                let ask = Ask { schema, ..Ask::question("Who are you?") };
                Ok(CallResult::ok(match cx.pause("who", ask).await? {
                    Answer::Give { value } => format!("hello {}", value["name"]),
                    other => format!("no name: {other:?}"),
                }))
            }
        }))
        .tool(tool_fn(ToolSpec::new("samples", "Asks a model.", object()), |_, cx| async move {
            let model = cx.get::<dyn Sampler>().ok_or_else(|| ToolError::failed("there is none"))?;
            let request =
                Request { entries: [Entry::User("hello".into())].into_iter().collect(), ..Request::default() };
            Ok(CallResult::ok(model.sample(request).await?.text()))
        }))
        .tool(tool_fn(slow, |_, cx| async move {
            cx.progress(Progress { details: json!({ "progress": 7, "total": 9 }), ..Progress::text("waiting") });
            cx.cancel.cancelled().await;
            Ok(CallResult::ok("stopped"))
        }))
}
