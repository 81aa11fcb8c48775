//! An editor that begins the command, and a session that outlives a kill.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use adjutant::llm::Script;
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::command::{Vendor, adjutant, says, seen, serve, usage};

struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u32,
}

impl Editor {
    fn begin(server: &Loopback, folder: &Path, lent: &Value) -> Self {
        let store = folder.join("sessions").to_string_lossy().into_owned() + "/";
        let mut command = adjutant(&[
            "acp",
            "--model",
            Vendor::Anthropic.model(),
            "--quiet",
            "--store",
            &store,
        ]);
        command
            .envs(Vendor::Anthropic.variables(server))
            .env("HOME", folder);
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut editor = Self {
            child,
            input,
            output,
            asked: 0,
        };
        editor.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": lent}),
            "",
        );
        editor
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    /// Asks, and gives what is heard until the answer; who is asked for permission meanwhile gives this option, or kills.
    fn ask(&mut self, method: &str, params: Value, option: &str) -> Vec<Value> {
        self.asked += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let mut heard: Vec<Value> = Vec::new();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("it writes UTF-8");
            let message: Value = serde_json::from_str(&line).expect("a line of JSON");
            heard.push(message.clone());
            if message["method"] == "session/request_permission" {
                if option == "kill" {
                    self.child.kill().expect("it runs");
                    return heard;
                }
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
                self.say(&json!({"id": message["id"], "result": outcome}));
            } else if message["method"]
                .as_str()
                .is_some_and(|method| method.starts_with("fs/"))
            {
                self.say(&json!({"id": message["id"], "result": {"content": "open\n"}}));
            } else if message["method"].is_null() && message["id"] == self.asked {
                return heard;
            }
        }
    }

    fn prompt(&mut self, session: &Value, text: &str, option: &str) -> Vec<Value> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
            option,
        )
    }

    fn leave(self) {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        assert!(child.wait().expect("it ends").success());
    }
}

fn permissions(heard: &[Value]) -> usize {
    heard
        .iter()
        .filter(|it| it["method"] == "session/request_permission")
        .count()
}

#[test]
fn editor_drives_the_agent_of_its_folder_and_loads_a_session_whose_agent_was_killed() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let root = folder.path().join("work");
    fs::create_dir(&root).expect("a folder");
    let write = |path: &str| {
        let args = json!({"path": path, "content": "new\n"});
        Script::new().call("write_file", args).usage(usage())
    };
    let server = serve([
        write("a.txt"),
        says("Written."),
        write("c.txt"),
        says("Both."),
        write("d.txt"),
        says("No."),
        write("d.txt"),
        says("No."),
        write("d.txt"),
        says("No."),
        write("b.txt"),
        says("Done."),
    ]);
    let mut editor = Editor::begin(&server, folder.path(), &json!({}));
    let place = |session: &Value| json!({"sessionId": session, "cwd": root, "mcpServers": []});
    let opened = editor
        .ask("session/new", place(&Value::Null), "")
        .pop()
        .expect("an answer");
    let session = &opened["result"]["sessionId"];
    let other = editor
        .ask("session/new", place(&Value::Null), "")
        .pop()
        .expect("an answer");
    assert!(
        other["result"]["sessionId"].is_string() && other["result"]["sessionId"] != *session,
        "{other}"
    );

    let heard = editor.prompt(session, "Write a.txt.", "allow");
    let asked = heard
        .iter()
        .find(|it| it["method"] == "session/request_permission")
        .expect("it is asked");
    let diff = json!({"type": "diff", "path": root.join("a.txt"), "newText": "new\n"});
    assert_eq!(asked["params"]["toolCall"]["content"][1], diff);
    assert_eq!(
        heard.last().expect("an answer")["result"],
        json!({"stopReason": "end_turn"})
    );
    assert_eq!(
        fs::read_to_string(root.join("a.txt")).expect("it is written"),
        "new\n"
    );

    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "edits"}),
        "",
    );
    assert_eq!(
        permissions(&editor.prompt(session, "Write c.txt.", "reject")),
        0
    );
    assert!(root.join("c.txt").is_file());

    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "plan"}),
        "",
    );
    assert_eq!(
        permissions(&editor.prompt(session, "Write d.txt.", "allow")),
        0
    );
    assert!(!root.join("d.txt").exists());
    editor.leave();
    // Whoever goes on with it without an editor only looks too.
    let (store, name) = (
        folder
            .path()
            .join("sessions")
            .to_string_lossy()
            .into_owned()
            + "/",
        session.as_str(),
    );
    let mut run = adjutant(&[
        "run",
        "Write d.txt.",
        "--session",
        name.expect("a name"),
        "--store",
        &store,
        "-q",
    ]);
    run.args(["--model", Vendor::Anthropic.model(), "--root"])
        .arg(&root)
        .envs(Vendor::Anthropic.variables(&server));
    seen(run).check(0, "No.\n", "");
    // Another agent knows that the session only looks, and whatever it is told later.
    let mut editor = Editor::begin(&server, folder.path(), &json!({}));
    let unknown = json!({"sessionId": "unknown", "cwd": root, "mcpServers": []});
    assert_eq!(
        editor
            .ask("session/load", unknown, "")
            .pop()
            .expect("an answer")["error"]["code"],
        -32002
    );
    let loaded = editor
        .ask("session/load", place(session), "")
        .pop()
        .expect("an answer");
    assert_eq!(
        loaded["result"]["modes"]["currentModeId"], "plan",
        "{loaded}"
    );
    assert_eq!(
        permissions(&editor.prompt(session, "Write d.txt.", "allow")),
        0
    );
    assert!(!root.join("d.txt").exists());
    let page = |editor: &mut Editor, cwd: &Path| {
        editor
            .ask("session/list", json!({"cwd": cwd}), "")
            .pop()
            .expect("an answer")["result"]["sessions"]
            .clone()
    };
    let listed = page(&mut editor, &root);
    let listed: Vec<_> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter(|it| it["sessionId"] == *session)
        .collect();
    assert_eq!(
        (listed.len(), &listed[0]["title"], &listed[0]["cwd"]),
        (1, &"Write a.txt.".into(), &json!(root))
    );
    assert_eq!(page(&mut editor, folder.path()), json!([]));
    let wrong = editor
        .ask("session/list", json!({"cursor": "none"}), "")
        .pop()
        .expect("an answer");
    assert_eq!(wrong["error"]["code"], -32602);
    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "ask"}),
        "",
    );
    editor.prompt(session, "Write b.txt.", "kill");
    editor.child.wait().expect("it ends");
    let mut editor = Editor::begin(&server, folder.path(), &json!({}));
    let elsewhere = json!({"sessionId": session, "cwd": folder.path(), "mcpServers": []});
    let refused = editor
        .ask("session/load", elsewhere, "")
        .pop()
        .expect("an answer");
    let why = refused["error"]["message"].as_str().expect("a text");
    assert!(
        why.starts_with("the session is about another directory: "),
        "{why}"
    );
    let told = editor.ask("session/load", place(session), "");
    let said: Vec<&str> = told
        .iter()
        .filter_map(|it| it["params"]["update"]["content"]["text"].as_str())
        .collect();
    assert_eq!(
        said[..3],
        ["Write a.txt.", "Written.", "Write c.txt."],
        "{said:?}"
    );
    assert!(!root.join("b.txt").exists());
    let heard = editor.prompt(session, "Go on.", "allow");
    assert_eq!(permissions(&heard), 1);
    assert_eq!(
        heard.last().expect("an answer")["result"],
        json!({"stopReason": "end_turn"})
    );
    assert_eq!(
        fs::read_to_string(root.join("b.txt")).expect("it is written"),
        "new\n"
    );
    editor.leave();
}

#[test]
fn tools_use_what_the_editor_lends_under_the_rules_of_the_session() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("a.txt"), "saved\n").expect("a file");
    let call = |tool: &str, args: Value| Script::new().call(tool, args).usage(usage());
    let edit = || {
        call(
            "edit_file",
            json!({"path": "a.txt", "old_text": "open", "new_text": "new"}),
        )
    };
    let run = || call("run_in_terminal", json!({"command": "touch b.txt"}));
    let read = call("read_file", json!({"path": "a.txt"}));
    let server = serve([
        read,
        edit(),
        run(),
        says("No."),
        edit(),
        run(),
        says("Done."),
    ]);
    let lent = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    let mut editor = Editor::begin(&server, folder.path(), &lent);
    let opened = editor
        .ask(
            "session/new",
            json!({"cwd": folder.path(), "mcpServers": []}),
            "",
        )
        .pop();
    let session = &opened.expect("an answer")["result"]["sessionId"];
    let wrote = |heard: &[Value]| {
        let wrote = heard
            .iter()
            .filter(|it| it["method"] == "fs/write_text_file");
        wrote
            .map(|it| it["params"]["content"].to_string())
            .collect::<Vec<_>>()
    };
    let made = |heard: &[Value]| {
        heard
            .iter()
            .filter(|it| it["method"] == "terminal/create")
            .count()
    };
    // Where only looking is allowed, the editor changes and runs nothing either, whoever is asked.
    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "plan"}),
        "",
    );
    let heard = editor.prompt(session, "Change it.", "allow");
    assert_eq!((wrote(&heard), made(&heard)), (Vec::new(), 0));
    // What no sandbox holds is asked about where nothing else is.
    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "all"}),
        "",
    );
    let heard = editor.prompt(session, "Change it.", "reject");
    assert_eq!(
        (permissions(&heard), wrote(&heard)),
        (1, vec![r#""new\n""#.to_owned()])
    );
    assert_eq!(made(&heard), 0);
    assert_eq!(
        fs::read_to_string(folder.path().join("a.txt")).expect("it is there"),
        "saved\n"
    );
    editor.leave();
}

#[test]
fn option_is_refused_when_the_editor_decides_it() {
    let hint = "hint: the editor sends the prompts, and displays everything\n";
    seen(adjutant(&["acp", "--json"])).check(
        2,
        "",
        &format!("error: --json is not for editors\n{hint}"),
    );
    let seen = seen(adjutant(&["acp", "adjutant.yaml", "--mode", "all"]));
    assert!(
        seen.code == Some(2) && seen.stderr.contains("cannot be used with"),
        "{seen:?}"
    );
}
