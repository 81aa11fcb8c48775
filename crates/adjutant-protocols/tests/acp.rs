//! An editor that drives agents over a pipe in memory: what it says, and what it hears, line by line.

#[path = "acp/lent.rs"]
mod lent;
#[path = "acp/wrong.rs"]
mod wrong;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use adjutant_agent::{Agent, Journal, Lane, MemoryJournal, PauseId, Post};
use adjutant_llm::{CallResult, Error, ErrorKind, Request, Script, ScriptedModel, UserMessage};
use adjutant_protocols::acp::{ListWish, OpenSession, SessionPage, SessionWish, serve};
use adjutant_tool::{
    Answer, Approval, Ask, CallContext, Replay, ToolError, ToolSpec, Tools, tool_fn,
};
use adjutant_toolkit::{Edits, Files, TextFiles};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    task::JoinHandle,
};

/// What the sessions of a test share: their log, what their model says, and what was done.
#[derive(Clone, Default)]
struct Desk {
    journal: MemoryJournal,
    scripts: Arc<Mutex<Vec<Script>>>,
    done: Arc<Mutex<Vec<String>>>,
    /// A folder of files, if its agent has tools for some.
    place: Option<Arc<TempDir>>,
}

impl Desk {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            scripts: Arc::new(Mutex::new(scripts.into_iter().collect())),
            ..Self::default()
        }
    }

    fn note(&self, what: impl Into<String>) {
        self.done.lock().expect("nobody panics").push(what.into());
    }

    /// Says something to the session from elsewhere.
    async fn post(&self, post: Post) {
        self.journal
            .post(&"s".into(), post)
            .await
            .expect("memory does not fail");
    }

    fn done(&self) -> Vec<String> {
        std::mem::take(&mut *self.done.lock().expect("nobody panics"))
    }

    /// The tools for the files of its folder, which an editor may lend.
    fn tools(&self, lent: Option<Arc<dyn TextFiles>>) -> Option<[Tools; 2]> {
        let files = Files::new(self.place.as_ref()?.path()).expect("it is a folder");
        let files = lent.into_iter().fold(files, Files::lent_by);
        Some([files.toolbox(), Edits::new(&files).toolbox()])
    }

    /// The agent of a session: `pay` asks first, `ask` asks what its arguments say.
    fn agent(&self) -> Agent {
        let spec =
            |name: &str| ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}));
        let desk = self.clone();
        let pay = tool_fn(
            ToolSpec {
                approval: Approval::Always,
                ..spec("pay")
            },
            move |_: Value, _: CallContext| {
                desk.note("paid");
                async { Ok(CallResult::ok("paid")) }
            },
        );
        let ask = ToolSpec {
            replay: Replay::Resumable,
            ..spec("ask")
        };
        let ask = tool_fn(ask, |args: Value, cx: CallContext| async move {
            let Answer::Give { value } = cx
                .pause(
                    "k",
                    Ask {
                        schema: args,
                        ..Ask::question("Which?")
                    },
                )
                .await?
            else {
                return Err(ToolError::failed("no answer"));
            };
            Ok(CallResult::ok(value.to_string()))
        });
        let edit = tool_fn(spec("edit_file"), |_: Value, cx: CallContext| async move {
            cx.note(
                "plan",
                json!({"steps": [{"text": "Edit", "status": "done"}]}),
            )
            .await?;
            Ok(CallResult::ok("edited"))
        });
        self.model().tool(pay).tool(ask).tool(edit).max_turns(3)
    }

    /// An agent without tools.
    fn model(&self) -> Agent {
        // Sessions that begin again go on with what their model has not said yet.
        let scripts = Arc::clone(&self.scripts);
        let next = move |request: &Request| {
            let mut scripts = scripts.lock().expect("nobody panics");
            assert!(
                !scripts.is_empty(),
                "nothing is left to say to {:?}",
                request.entries.iter().last()
            );
            scripts.remove(0)
        };
        Agent::new(ScriptedModel::new(
            (0..9).map(|_| Script::from_fn(next.clone())),
        ))
    }
}

/// An editor, and the server behind the pipe.
struct Editor {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    server: JoinHandle<std::io::Result<()>>,
    desk: Desk,
    asked: u32,
}

impl Editor {
    fn of(desk: &Desk) -> Self {
        let (near, far) = duplex(1 << 16);
        let ((input, output), (far_input, far_output), own) =
            (split(near), split(far), desk.clone());
        let list = |wish: ListWish| async move {
            match (wish.cwd, wish.cursor) {
                (Some(cwd), None) if cwd.ends_with("nowhere") => Err("no such folder"),
                (_, Some(cursor)) if cursor == "unknown" => Ok(None),
                (_, cursor) => {
                    let sessions =
                        vec![json!({"sessionId": cursor.as_deref().unwrap_or("s"), "cwd": "/w"})];
                    let next = cursor.is_none().then(|| "t".to_owned());
                    Ok(Some(SessionPage { sessions, next }))
                }
            }
        };
        let open = move |wish: SessionWish| {
            let is_known = wish
                .session
                .as_ref()
                .is_none_or(|name| &*name.0 != "unknown");
            let agent = match own.tools(wish.files) {
                Some(_) if wish.terminal.is_some() => {
                    own.model().toolbox(wish.terminal.expect("there is one"))
                }
                Some([files, edits]) => own.model().toolbox(files).toolbox(edits),
                None => own.agent(),
            };
            let agent = agent
                .journal(own.journal.clone())
                .session(wish.session.unwrap_or_else(|| "s".into()));
            let (set, always) = (own.clone(), own.clone());
            let modes = [["plan", "Plan", "Looks."], ["all", "All", "Does."]];
            let set = move |mode: &str| {
                set.note(mode);
                std::future::ready(Ok::<_, Infallible>(()))
            };
            let open = OpenSession::new(agent).modes(modes, || "plan".into(), set);
            let open = open.on_always(move |_| {
                always.note("always");
                Answer::approve()
            });
            async move {
                if wish.cwd.ends_with("nowhere") {
                    Err("no such folder")
                } else {
                    Ok(is_known.then_some(open))
                }
            }
        };
        let server = tokio::spawn(serve(far_input, far_output, open, list));
        Self {
            lines: BufReader::new(input).lines(),
            output,
            server,
            desk: desk.clone(),
            asked: 0,
        }
    }

    /// One that has its session open: a new one, or one that is loaded.
    async fn open(desk: &Desk, method: &str, capabilities: Value) -> (Self, Vec<String>) {
        let mut editor = Self::of(desk);
        editor
            .ask(
                "initialize",
                json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
            )
            .await;
        assert_eq!(editor.answer(&[]).await, ["ok"]);
        editor
            .ask(
                method,
                json!({"sessionId": "s", "cwd": "/w", "mcpServers": []}),
            )
            .await;
        let heard = editor.answer(&[]).await;
        (editor, heard)
    }

    async fn say(&mut self, line: &str) {
        self.output
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("the server reads");
    }

    async fn ask(&mut self, method: &str, params: Value) {
        self.asked += 1;
        self.say(
            &json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
                .to_string(),
        )
        .await;
    }

    /// Prompts, and gives what is heard until the answer.
    async fn prompt(&mut self, text: &str, answers: &[&str]) -> Vec<String> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask(
            "session/prompt",
            json!({"sessionId": "s", "prompt": prompt}),
        )
        .await;
        self.answer(answers).await
    }

    /// What is heard until the newest request is answered, in short; what is asked meanwhile has these answers. `cancel`
    /// stops the prompt, `leave` leaves it.
    async fn answer(&mut self, mut answers: &[&str]) -> Vec<String> {
        let mut heard = Vec::new();
        loop {
            let line = self
                .lines
                .next_line()
                .await
                .expect("the server writes")
                .expect("a line");
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
                "elsewhere" => {
                    let post = Post::Answer {
                        pause: PauseId("main/c1_0_0/k".into()),
                        answer: Answer::give("red"),
                        shown: None,
                    };
                    self.desk.post(post).await;
                    continue;
                }
                "cancelled" => json!({"outcome": {"outcome": "cancelled"}}),
                "cancel" => {
                    self.say(
                        &json!({"method": "session/cancel", "params": {"sessionId": "s"}})
                            .to_string(),
                    )
                    .await;
                    json!({"outcome": {"outcome": "cancelled"}})
                }
                "malformed" => json!({"outcome": "allow"}),
                "error" => {
                    let error = json!({"id": message["id"], "error": {"code": -32601, "message": "no such method"}});
                    self.say(&error.to_string()).await;
                    continue;
                }
                "silent" => continue,
                text if message["method"]
                    .as_str()
                    .is_some_and(|it| it.starts_with("terminal/")) =>
                {
                    serde_json::from_str(text).expect("JSON")
                }
                text if message["method"] == "fs/read_text_file" => json!({"content": text}),
                text if message["method"] == "elicitation/create" => {
                    let value: Value = serde_json::from_str(text).expect("JSON");
                    json!({"action": "accept", "content": {"answer": value}})
                }
                option => json!({"outcome": {"outcome": "selected", "optionId": option}}),
            };
            self.say(&json!({"id": message["id"], "result": result}).to_string())
                .await;
        }
    }

    /// Leaves, and waits until the server has ended.
    async fn leave(self) {
        drop((self.output, self.lines));
        self.server
            .await
            .expect("no panic")
            .expect("an end is no error");
    }
}

/// A message in a few words.
fn short(message: &Value) -> String {
    let part = |it: &Value| match it["type"].as_str() {
        Some("diff") => format!(" {} {} -> {}", it["path"], it["oldText"], it["newText"]),
        Some("content") => format!(" {}", it["content"]["text"].as_str().unwrap_or_default()),
        Some("terminal") => format!(" in {}", it["terminalId"]),
        _ => format!(" {}", it["text"].as_str().unwrap_or_default()),
    };
    let text = |it: &Value| {
        it.as_array()
            .map_or_else(|| part(it), |parts| parts.iter().map(part).collect())
    };
    let (params, update) = (&message["params"], &message["params"]["update"]);
    if let Some(error) = message.get("error") {
        return format!(
            "error {} {}",
            error["code"],
            error["message"].as_str().unwrap_or_default()
        );
    }
    match message["method"].as_str() {
        None if message["result"]["sessions"].is_array() => message["result"].to_string(),
        None => message["result"]["stopReason"]
            .as_str()
            .unwrap_or("ok")
            .to_owned(),
        Some("session/update") => {
            let (kind, status) = (
                update["sessionUpdate"].as_str().unwrap_or_default(),
                &update["status"],
            );
            let id = update["toolCallId"]
                .as_str()
                .map(|id| format!(" {id}"))
                .unwrap_or_default();
            let status = status
                .as_str()
                .map(|it| format!(" {it}"))
                .unwrap_or_default();
            let entries = update
                .get("entries")
                .map(|it| format!(" {it}"))
                .unwrap_or_default();
            format!("{kind}{id}{status}{}{entries}", text(&update["content"]))
                .trim_end()
                .to_owned()
        }
        Some("session/request_permission") => {
            let options: Vec<_> = params["options"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| &it["optionId"])
                .collect();
            format!(
                "? {}{} {}",
                params["toolCall"]["toolCallId"],
                text(&params["toolCall"]["content"]),
                json!(options)
            )
        }
        Some(other) if other.starts_with("terminal/") => {
            let cwd = params
                .get("cwd")
                .map(|cwd| format!(" {cwd} {}", params["args"]))
                .unwrap_or_default();
            format!("{other} {}{cwd}", params["terminalId"])
        }
        Some(other) if other.starts_with("fs/") => {
            format!("{other} {} {}", params["path"], params["content"])
        }
        Some(other) => format!(
            "{other} {} {}",
            params["message"], params["requestedSchema"]
        ),
    }
}

fn pay() -> Script {
    Script::new().call("pay", json!({}))
}

fn done() -> Script {
    Script::new().text("Done.")
}

/// Lines of text, without what they are indented by.
fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

const ASKED: &str = r#"
    tool_call c1_0_0 pending
    tool_call_update c1_0_0
    ? "c1_0_0" Run "pay" with these arguments? ["allow","always","reject"]
    tool_call_update c1_0_0 in_progress"#;
const CHOICE: &str = r#"
    tool_call c1_0_0 pending
    tool_call_update c1_0_0
    tool_call_update c1_0_0 in_progress
    ? "c1_0_0" Which? ["value-0","value-1","reject"]"#;
const PAID: &str = "
    tool_call_update c1_0_0 completed paid
    agent_message_chunk Done.
    end_turn";

/// What the model says, what is answered, what is heard, what is done.
type Row = (
    Vec<Script>,
    &'static [&'static str],
    String,
    &'static [&'static str],
);

/// Prompts once in a session of its own for each row.
async fn check(table: impl IntoIterator<Item = Row>) {
    for (row, (scripts, answers, expect, effects)) in table.into_iter().enumerate() {
        let desk = Desk::new(scripts);
        let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
        let heard = editor.prompt("Go.", answers).await;
        let expect = lines(&expect);
        // Of some the end alone is told.
        let skipped = if expect.len() == 1 {
            heard.len() - 1
        } else {
            0
        };
        assert_eq!(heard[skipped..], expect, "row {row}");
        assert_eq!(desk.done(), effects, "row {row}");
        editor.leave().await;
    }
}

#[tokio::test]
async fn prompt_is_told_as_it_runs_and_asks_for_what_must_be_allowed() {
    let none = || Script::new().call("none", json!({}));
    let edit = json!({"path": "a", "old_text": "x", "new_text": "y"});
    let options = json!({"enum": ["red", "blue"]});
    let failing = Script::new()
        .text("I")
        .fail(Error::new(ErrorKind::Auth, "no such key"));
    let table: [Row; 8] = [
        (vec![pay(), done()], &["allow"], format!("{ASKED}{PAID}"), &["paid"]),
        (vec![pay(), done()], &["always"], format!("{ASKED}{PAID}"), &["always", "paid"]),
        (
            vec![pay(), done()],
            &["reject"],
            format!(
                "{ASKED}
                tool_call_update c1_0_0 failed not executed: a person refused the call: the user said no
                agent_message_chunk Done.
                end_turn"
            ),
            &[],
        ),
        (
            vec![Script::new().call("ask", options.clone()), done()],
            &["value-1"],
            format!("{CHOICE}\ntool_call_update c1_0_0 completed \"blue\"\nagent_message_chunk Done.\nend_turn"),
            &[],
        ),
        (
            vec![Script::new().call("ask", options), done()],
            &["elsewhere"],
            format!(
                "{CHOICE}
                user_message_chunk red
                tool_call_update c1_0_0 completed \"red\"
                agent_message_chunk Done.
                end_turn"
            ),
            &[],
        ),
        (
            vec![Script::new().call("edit_file", edit), done()],
            &[],
            r#"tool_call c1_0_0 pending
            tool_call_update c1_0_0 "/w/a" "x" -> "y"
            tool_call_update c1_0_0 in_progress
            plan  [{"content":"Edit","priority":"medium","status":"completed"}]
            tool_call_update c1_0_0 completed
            agent_message_chunk Done.
            end_turn"#
                .into(),
            &[],
        ),
        (vec![none(), none(), none()], &[], "max_turn_requests".into(), &[]),
        (vec![failing], &[], "error -32603 no such key".into(), &[]),
    ];
    check(table).await;
}

#[tokio::test]
async fn permission_that_is_not_answered_is_a_no_and_cancelled_ends_the_prompt() {
    let refused = |why: &str| {
        format!(
            "{}
            agent_message_chunk [taken as a no, as it was not answered: {why}]
            tool_call_update c1_0_0 in_progress
            tool_call_update c1_0_0 failed not executed: a person refused the call: {why}
            agent_message_chunk Done.
            end_turn",
            ASKED.replace("tool_call_update c1_0_0 in_progress", "")
        )
    };
    let none_of_them = refused("the editor chose none of the options");
    let cancelled = format!(
        "{ASKED}
        tool_call_update c1_0_0 failed cancelled: the run was ended before an answer came
        cancelled"
    );
    let table: [Row; 6] = [
        (vec![pay()], &["cancel"], cancelled.clone(), &[]),
        (vec![pay()], &["cancelled"], cancelled, &[]),
        (vec![pay(), done()], &["none"], none_of_them.clone(), &[]),
        (vec![pay(), done()], &["value-0"], none_of_them.clone(), &[]),
        (vec![pay(), done()], &["malformed"], none_of_them, &[]),
        (
            vec![pay(), done()],
            &["error"],
            refused("no such method"),
            &[],
        ),
    ];
    check(table).await;
}

#[tokio::test]
async fn run_that_is_left_while_it_asks_goes_on_after_a_load_and_does_nothing_twice() {
    let desk = Desk::new([pay(), Script::new().text("I go on.")]);
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    editor.prompt("Go.", &["leave"]).await;
    editor.leave().await;
    let left = "[the last run was left in its middle: your next message goes on with it]";
    let told = format!(
        "user_message_chunk Go.
        tool_call c1_0_0 pending
        tool_call_update c1_0_0
        agent_message_chunk {left}
        ok"
    );
    let asked = r#"? "c1_0_0" Run "pay" with these arguments? ["allow","always","reject"]"#;
    // Whoever does not answer is asked again.
    let (mut editor, heard) = Editor::open(&desk, "session/load", json!({})).await;
    assert_eq!(heard, lines(&told));
    assert_eq!(editor.prompt("Go on.", &["leave"]).await, [asked]);
    editor.leave().await;
    let (mut editor, heard) = Editor::open(&desk, "session/resume", json!({})).await;
    assert_eq!(heard, lines(&format!("agent_message_chunk {left}\nok")));
    let ran = "tool_call_update c1_0_0 in_progress\ntool_call_update c1_0_0 completed paid";
    let expect = format!("{asked}\n{ran}\nagent_message_chunk I go on.\nend_turn");
    assert_eq!(editor.prompt("Go on.", &["allow"]).await, lines(&expect));
    assert_eq!(desk.done(), ["paid"]);
    // The message that it went on with was heard, and stands in the log.
    editor
        .ask(
            "session/load",
            json!({"sessionId": "s", "cwd": "/w", "mcpServers": []}),
        )
        .await;
    let again = "user_message_chunk Go on.\nagent_message_chunk I go on.\nok";
    assert!(editor.answer(&[]).await.ends_with(&lines(again)));
    editor.leave().await;

    let desk = Desk::new([pay(), done()]);
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    editor.prompt("Go.", &["leave"]).await;
    editor.leave().await;
    let (mut editor, _) = Editor::open(&desk, "session/load", json!({})).await;
    assert_eq!(
        editor.prompt("Go on.", &["cancel"]).await,
        lines(&format!("{asked}\ncancelled"))
    );
    assert_eq!(
        editor.prompt("Something else.", &[]).await,
        ["agent_message_chunk Done.", "end_turn"]
    );
    assert_eq!(desk.done(), [""; 0]);
    editor.leave().await;
}

#[tokio::test]
async fn message_that_was_posted_elsewhere_is_told_where_it_is_heard() {
    let desk = Desk::new([done(), done(), Script::new().text("Green.")]);
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    editor.prompt("Go.", &[]).await;
    for (lane, text) in [(Lane::FollowUp, "And blue?"), (Lane::Steering, "Be short.")] {
        desk.post(Post::Message {
            lane,
            content: UserMessage::text(text).into(),
        })
        .await;
    }
    let heard = editor.prompt("What is yellow?", &[]).await;
    let expect = "user_message_chunk Be short.
        agent_message_chunk Done.
        user_message_chunk And blue?
        agent_message_chunk Green.
        end_turn";
    assert_eq!(heard, lines(expect));
    editor.leave().await;
}

#[tokio::test]
async fn question_is_answered_by_the_next_prompt_or_by_a_form() {
    let ask = || Script::new().call("ask", json!({"type": "integer"}));
    let begun = "tool_call c1_0_0 pending
        tool_call_update c1_0_0
        tool_call_update c1_0_0 in_progress
        agent_message_chunk Which?";
    let ended = "tool_call_update c1_0_0 completed 7\nagent_message_chunk Done.\nend_turn";
    let desk = Desk::new([ask(), done()]);
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    assert_eq!(
        editor.prompt("Go.", &[]).await,
        lines(&format!("{begun}\nend_turn"))
    );
    let refused = editor.prompt("seven", &[]).await;
    assert!(
        matches!(&refused[..], [why, end] if why.ends_with("Which?") && end == "end_turn"),
        "{refused:?}"
    );
    assert_eq!(editor.prompt(" 7 ", &[]).await, lines(ended));
    editor.leave().await;
    let (editor, heard) = Editor::open(&desk, "session/load", json!({})).await;
    let past = format!(
        "user_message_chunk Go.\n{begun}\nuser_message_chunk 7\n{}",
        ended.replace("end_turn", "ok")
    );
    assert_eq!(heard, lines(&past));
    editor.leave().await;

    let desk = Desk::new([ask(), done()]);
    let forms = json!({"elicitation": {"form": {}}});
    let (mut editor, _) = Editor::open(&desk, "session/new", forms).await;
    let form = r#"elicitation/create "Which?" {"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]}"#;
    assert_eq!(
        editor.prompt("Go.", &["7"]).await,
        lines(&format!("{begun}\n{form}\n{ended}"))
    );
    editor.leave().await;
}

#[tokio::test]
async fn session_is_loaded_right_behind_its_close_in_the_middle_of_a_prompt() {
    let desk = Desk::new([Script::new().call("pay", json!({}))]);
    let (mut editor, _) = Editor::open(&desk, "session/new", json!({})).await;
    editor.prompt("Pay.", &["leave"]).await;
    editor.ask("session/close", json!({"sessionId": "s"})).await;
    editor
        .ask(
            "session/load",
            json!({"sessionId": "s", "cwd": "/w", "mcpServers": []}),
        )
        .await;
    let answers = [
        editor.answer(&[]).await,
        editor.answer(&[]).await,
        editor.answer(&[]).await,
    ];
    let mut answers = answers.map(|heard| heard.last().cloned());
    answers.sort();
    assert_eq!(
        answers.map(Option::unwrap_or_default),
        ["cancelled", "ok", "ok"]
    );
}
