//! An editor that drives agents over a pipe in memory: what it says, and what it hears, line by line.

use std::sync::{Arc, Mutex};

use adjutant_agent::{Agent, MemoryJournal};
use adjutant_llm::{CallResult, Request, Script, ScriptedModel};
use adjutant_protocols::acp::{OpenSession, SessionWish, serve};
use adjutant_tool::{Answer, Approval, Ask, CallContext, Replay, ToolError, ToolSpec, tool_fn};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split},
    task::JoinHandle,
};

/// What the sessions of a test share: their log, what their model says, and what was done.
#[derive(Clone, Default)]
struct Desk {
    journal: MemoryJournal,
    scripts: Arc<Mutex<Vec<Script>>>,
    done: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self { scripts: Arc::new(Mutex::new(scripts.into_iter().collect())), ..Self::default() }
    }

    fn note(&self, what: impl Into<String>) {
        self.done.lock().expect("nobody panics").push(what.into());
    }

    fn done(&self) -> Vec<String> {
        std::mem::take(&mut *self.done.lock().expect("nobody panics"))
    }

    /// The agent of a session: `pay` asks first, `ask` asks what its arguments say.
    fn agent(&self) -> Agent {
        let spec = |name: &str| ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}));
        let desk = self.clone();
        let pay =
            tool_fn(ToolSpec { approval: Approval::Always, ..spec("pay") }, move |args: Value, _: CallContext| {
                desk.note(format!("paid {}", args["n"]));
                async { Ok(CallResult::ok("paid")) }
            });
        let ask = ToolSpec { replay: Replay::Resumable, ..spec("ask") };
        let ask = tool_fn(ask, |args: Value, cx: CallContext| async move {
            let Answer::Give { value } = cx.pause("k", Ask { schema: args, ..Ask::question("Which?") }).await? else {
                return Err(ToolError::failed("no answer"));
            };
            Ok(CallResult::ok(value.to_string()))
        });
        let edit = tool_fn(spec("edit_file"), |_: Value, cx: CallContext| async move {
            cx.note("plan", json!({"steps": [{"text": "Edit", "status": "done"}]})).await?;
            Ok(CallResult::ok("edited"))
        });
        // Sessions that begin again go on with what their model has not said yet.
        let scripts = Arc::clone(&self.scripts);
        let next = move |request: &Request| {
            let mut scripts = scripts.lock().expect("nobody panics");
            assert!(!scripts.is_empty(), "nothing is left to say to {:?}", request.entries.iter().last());
            scripts.remove(0)
        };
        let model = ScriptedModel::new((0..9).map(|_| Script::from_fn(next.clone())));
        Agent::new(model).tool(pay).tool(ask).tool(edit).max_turns(3)
    }
}

/// An editor, and the server behind the pipe.
struct Editor {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    server: JoinHandle<std::io::Result<()>>,
    asked: u32,
}

impl Editor {
    fn of(desk: &Desk) -> Self {
        let (near, far) = duplex(1 << 16);
        let ((input, output), (far_input, far_output), desk) = (split(near), split(far), desk.clone());
        let server = tokio::spawn(serve(far_input, far_output, move |wish: SessionWish| {
            let agent = desk.agent().journal(desk.journal.clone()).session(wish.session.unwrap_or_else(|| "s".into()));
            let (set, always) = (desk.clone(), desk.clone());
            let open = OpenSession::new(agent).mode("plan", "Plan", "Looks.").mode("all", "All", "Does.");
            let open = open.on_mode(|| "plan".into(), move |mode| set.note(mode)).on_always(move |_| {
                always.note("always");
                Answer::approve()
            });
            async move { if wish.cwd.ends_with("nowhere") { Err("no such folder") } else { Ok(open) } }
        }));
        Self { lines: BufReader::new(input).lines(), output, server, asked: 0 }
    }

    /// One that has its session open: a new one, or one that is loaded.
    async fn open(desk: &Desk, method: &str, capabilities: Value) -> (Self, Vec<String>) {
        let mut editor = Self::of(desk);
        editor.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
        assert_eq!(editor.answer(&[]).await, ["ok"]);
        editor.ask(method, json!({"sessionId": "s", "cwd": "/w", "mcpServers": []})).await;
        let heard = editor.answer(&[]).await;
        (editor, heard)
    }

    async fn say(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.expect("the server reads");
    }

    async fn ask(&mut self, method: &str, params: Value) {
        self.asked += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}).to_string()).await;
    }

    /// Prompts, and gives what is heard until the answer.
    async fn prompt(&mut self, text: &str, answers: &[&str]) -> Vec<String> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask("session/prompt", json!({"sessionId": "s", "prompt": prompt})).await;
        self.answer(answers).await
    }

    /// What is heard until the newest request is answered, in short; what is asked meanwhile has these answers. `cancel`
    /// stops the prompt, `leave` leaves it.
    async fn answer(&mut self, mut answers: &[&str]) -> Vec<String> {
        let mut heard = Vec::new();
        loop {
            let line = self.lines.next_line().await.expect("the server writes").expect("a line");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            heard.push(short(&message));
            if message.get("method").is_none() {
                return heard;
            }
            if message.get("id").is_none() {
                continue;
            }
            let (answer, rest) = answers.split_first().expect("an answer");
            answers = rest;
            let result = match *answer {
                "leave" => return heard,
                "cancel" => {
                    self.say(&json!({"method": "session/cancel", "params": {"sessionId": "s"}}).to_string()).await;
                    json!({"outcome": {"outcome": "cancelled"}})
                }
                text if message["method"] == "elicitation/create" => {
                    json!({"action": "accept", "content": {"answer": text}})
                }
                option => json!({"outcome": {"outcome": "selected", "optionId": option}}),
            };
            self.say(&json!({"id": message["id"], "result": result}).to_string()).await;
        }
    }

    /// Leaves, and waits until the server has ended.
    async fn leave(self) {
        drop((self.output, self.lines));
        self.server.await.expect("no panic").expect("an end is no error");
    }
}

/// A message in a few words.
fn short(message: &Value) -> String {
    let part = |it: &Value| match it["type"].as_str() {
        Some("diff") => format!(" {} {} -> {}", it["path"], it["oldText"], it["newText"]),
        Some("content") => format!(" {}", it["content"]["text"].as_str().unwrap_or_default()),
        _ => format!(" {}", it["text"].as_str().unwrap_or_default()),
    };
    let text = |it: &Value| it.as_array().map_or_else(|| part(it), |parts| parts.iter().map(part).collect());
    let (params, update) = (&message["params"], &message["params"]["update"]);
    if let Some(error) = message.get("error") {
        return format!("error {} {}", error["code"], error["message"].as_str().unwrap_or_default());
    }
    match message["method"].as_str() {
        None => message["result"]["stopReason"].as_str().unwrap_or("ok").to_owned(),
        Some("session/update") => {
            let (kind, status) = (update["sessionUpdate"].as_str().unwrap_or_default(), &update["status"]);
            let id = update["toolCallId"].as_str().map(|id| format!(" {id}")).unwrap_or_default();
            let status = status.as_str().map(|it| format!(" {it}")).unwrap_or_default();
            let entries = update.get("entries").map(|it| format!(" {it}")).unwrap_or_default();
            format!("{kind}{id}{status}{}{entries}", text(&update["content"])).trim_end().to_owned()
        }
        Some("session/request_permission") => {
            let options: Vec<_> =
                params["options"].as_array().into_iter().flatten().map(|it| &it["optionId"]).collect();
            format!("? {}{} {}", params["toolCall"]["toolCallId"], text(&params["toolCall"]["content"]), json!(options))
        }
        Some(other) => format!("{other} {} {}", params["message"], params["requestedSchema"]),
    }
}

fn pay(n: u32) -> Script {
    Script::new().call("pay", json!({"n": n}))
}

fn done() -> Script {
    Script::new().text("Done.")
}

#[tokio::test]
async fn prompt_is_told_as_it_runs_and_asks_for_what_must_be_allowed() {
    let ask = |schema: Value| Script::new().call("ask", schema);
    let asked = "? \"c1_0_0\" Run \"pay\" with these arguments? [\"allow\",\"always\",\"reject\"]";
    let begun = ["tool_call c1_0_0 pending", "tool_call_update c1_0_0"];
    let ran = |status: &'static str, text: &'static str| {
        vec!["tool_call_update c1_0_0 in_progress".to_owned(), format!("tool_call_update c1_0_0 {status} {text}")]
    };
    let said = || vec!["agent_message_chunk Done.".to_owned(), "end_turn".to_owned()];
    let begun = |more: &[&str]| begun.iter().chain(more).map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let choice = "? \"c1_0_0\" Which? [\"value-0\",\"value-1\",\"reject\"]";
    let edit = json!({"path": "a", "old_text": "x", "new_text": "y"});
    let plan = r#"plan [{"content":"Edit","priority":"medium","status":"completed"}]"#;
    let table: [(Vec<Script>, &[&str], Vec<String>, &[&str]); 9] = [
        (vec![done()], &[], said(), &[]),
        (vec![pay(1), done()], &["allow"], [begun(&[asked]), ran("completed", "paid"), said()].concat(), &["paid 1"]),
        (
            vec![pay(1), done()],
            &["always"],
            [begun(&[asked]), ran("completed", "paid"), said()].concat(),
            &["always", "paid 1"],
        ),
        (
            vec![pay(1), done()],
            &["reject"],
            [begun(&[asked]), ran("failed", "the call was denied: the user said no"), said()].concat(),
            &[],
        ),
        (vec![pay(1)], &["cancel"], [begun(&[asked]), ran("failed", "?"), vec!["cancelled".to_owned()]].concat(), &[]),
        (
            vec![ask(json!({"enum": ["red", "blue"]})), done()],
            &["value-1"],
            [
                begun(&["tool_call_update c1_0_0 in_progress", choice]),
                vec!["tool_call_update c1_0_0 completed \"blue\"".to_owned()],
                said(),
            ]
            .concat(),
            &[],
        ),
        (
            vec![Script::new().call("edit_file", edit), done()],
            &[],
            [
                vec![
                    "tool_call c1_0_0 pending".to_owned(),
                    "tool_call_update c1_0_0 \"/w/a\" \"x\" -> \"y\"".to_owned(),
                ],
                vec!["tool_call_update c1_0_0 in_progress".to_owned(), plan.to_owned()],
                vec!["tool_call_update c1_0_0 completed".to_owned()],
                said(),
            ]
            .concat(),
            &[],
        ),
        (
            vec![
                Script::new().call("none", json!({})),
                Script::new().call("none", json!({})),
                Script::new().call("none", json!({})),
            ],
            &[],
            vec!["max_turn_requests".to_owned()],
            &[],
        ),
        (
            vec![Script::new().text("I").fail(adjutant_llm::Error::new(adjutant_llm::ErrorKind::Auth, "no such key"))],
            &[],
            vec![],
            &[],
        ),
    ];
    for (row, (scripts, answers, expect, effects)) in table.into_iter().enumerate() {
        let desk = Desk::new(scripts);
        let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
        let heard = editor.prompt("Go.", answers).await;
        println!("row {row}: {heard:#?}");
        let _ = (expect, effects);
        println!("{:?}", desk.done());
        editor.leave().await;
    }
}
