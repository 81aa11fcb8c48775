//! An editor that drives agents over a pipe in memory: what it says, and what it hears, line by line.

use std::{path::PathBuf, sync::Arc};

use adjutant_agent::{Agent, MemoryJournal};
use adjutant_llm::{CallResult, Gate, Script, ScriptedModel};
use adjutant_protocols::acp::{OpenSession, SessionWish, serve};
use adjutant_tool::{Answer, Approval, Ask, CallContext, Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split},
    task::JoinHandle,
};

/// An editor, and the server behind the pipe.
struct Editor {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Editor {
    /// Opens sessions of these scripts, kept in this journal.
    async fn new(journal: &MemoryJournal, scripts: impl Fn() -> Vec<Script> + Send + Sync + 'static) -> Self {
        let (near, far) = duplex(4096);
        let ((input, output), (far_input, far_output), journal) = (split(near), split(far), journal.clone());
        let server = tokio::spawn(serve(far_input, far_output, move |wish: SessionWish| {
            let name = wish.session.unwrap_or_else(|| "s".into());
            let agent = agent(scripts()).journal(journal.clone()).session(name);
            let open = OpenSession::new(agent).mode("plan", "Plan", "Looks.").mode("all", "All", "Does.");
            let open = open.on_mode(|| "plan".into(), |_| {}).on_always(|_| Answer::Approve { args: None, for_run: true });
            async move { if wish.cwd.ends_with("nowhere") { Err("no such folder") } else { Ok(open) } }
        }));
        let mut editor = Self { lines: BufReader::new(input).lines(), output, server };
        editor.ask(0, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
        assert_eq!(editor.hear().await["result"]["protocolVersion"], 1);
        editor
    }

    async fn say(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.expect("the server reads");
    }

    async fn ask(&mut self, id: u32, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
    }

    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("the server writes").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

fn agent(scripts: Vec<Script>) -> Agent {
    let spec = |name: &str| ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}));
    let pay = tool_fn(ToolSpec { approval: Approval::Always, ..spec("pay") }, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("paid"))
    });
    Agent::new(ScriptedModel::new(scripts)).tool(pay)
}

#[tokio::test]
async fn first() {
    let journal = MemoryJournal::default();
    let mut editor = Editor::new(&journal, || vec![Script::new().text("I pay.").call("pay", json!({"n": 1})), Script::new().text("Done.")]).await;
    editor.ask(1, "session/new", json!({"cwd": "/w", "mcpServers": []})).await;
    println!("{}", editor.hear().await);
    editor.ask(2, "session/prompt", json!({"sessionId": "s", "prompt": [{"type": "text", "text": "Go."}]})).await;
    loop {
        let heard = editor.hear().await;
        println!("{heard}");
        if heard["method"] == "session/request_permission" {
            editor.say(&json!({"id": heard["id"], "result": {"outcome": {"outcome": "selected", "optionId": "allow"}}}).to_string()).await;
        }
        if heard["id"] == 2 && heard.get("method").is_none() { break; }
    }
}
