//! The walk of `docs/lifecycle.md` in two terminals: asked, answered, killed, updated, moved. Its commands are those of the document.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Command, Stdio},
};

use adjutant::llm::{Gate, Script, ScriptedModel};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use super::Up;
use crate::command::{Seen, Vendor, says, seen};

/// A user who reads the document, with a model that the test writes.
struct Walk {
    base: tempfile::TempDir,
    /// The folder that both terminals are in.
    here: &'static str,
    server: Loopback,
    manifest: String,
    /// The commands that were not typed yet.
    lines: std::vec::IntoIter<String>,
}

impl Walk {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lifecycle.md");
        let text = fs::read_to_string(file).expect("it is there");
        let walk = text
            .split("\n## ")
            .find(|it| it.starts_with("A walk in two terminals"))
            .expect("the walk");
        let manifest = walk
            .split("```yaml\n")
            .nth(1)
            .and_then(|it| it.split("```").next())
            .expect("a manifest");
        let lines: Vec<String> = walk
            .lines()
            .filter_map(|line| line.strip_prefix("$ "))
            .map(str::to_owned)
            .collect();
        let base = tempfile::tempdir().expect("a folder");
        let server = Loopback::start_blocking(ScriptedModel::new(scripts)).expect("a port");
        let manifest = manifest.replace("offline/planner", Vendor::Anthropic.model());
        let mut walk = Self {
            base,
            here: "",
            server,
            manifest,
            lines: lines.into_iter(),
        };
        walk.go("here");
        walk
    }

    /// Goes to an empty folder.
    fn go(&mut self, to: &'static str) {
        self.here = to;
        fs::create_dir(self.path("")).expect("it is made");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(self.here).join(name)
    }

    fn write(&self) {
        fs::write(self.path("adjutant.yaml"), &self.manifest).expect("it is written");
    }

    /// The next command of the document, which begins so; with what a test adds to it.
    #[track_caller]
    fn next(&mut self, begins: &str, more: &str) -> Command {
        let line = self.lines.next().expect("the document goes on");
        assert!(line.starts_with(begins), "{begins}: {line}");
        self.shell(&format!("exec {}{more}", line.trim_end_matches(" &")))
    }

    /// The shell of a user whose `PATH` has the command.
    fn shell(&self, line: &str) -> Command {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_adjutant"));
        let path = format!(
            "{}:/usr/bin:/bin",
            program.parent().expect("a folder").display()
        );
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", line])
            .current_dir(self.path(""))
            .env_clear();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .env("PATH", path)
            .env("XDG_STATE_HOME", self.base.path().join("state"));
        command.envs(Vendor::Anthropic.variables(&self.server));
        command
    }

    /// Types the next command; it ends well. What it wrote to standard output.
    #[track_caller]
    fn done(&mut self, begins: &str) -> String {
        let seen = seen(self.next(begins, ""));
        assert_eq!(
            seen.code,
            Some(0),
            "{begins}\n{}\n{}",
            seen.stdout,
            seen.stderr
        );
        seen.stdout
    }

    /// Whether the newest request that the model got holds all of these.
    #[track_caller]
    fn asked(&self, parts: &[&str]) {
        let request = self.server.requests().pop().expect("it was asked");
        let text = String::from_utf8_lossy(&request.body);
        assert!(
            parts.iter().all(|part| text.contains(part)),
            "{parts:?}: {text}"
        );
    }
}

/// Follows what a command tells until a line holds this.
#[track_caller]
fn follow(mut command: Command, part: &str) {
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert!(
        lines.any(|line| line.expect("it is text").contains(part)),
        "{part}"
    );
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

impl Drop for Walk {
    fn drop(&mut self) {
        // What cannot be stopped is told by the test.
        let _ = self.shell("exec adjutant agent stop --all").output();
    }
}

#[test]
fn agent_is_answered_killed_updated_and_moved_as_the_document_says() {
    let gate = Gate::default();
    let mut walk = Walk::new([
        Script::new().call("run_command", json!({"command": "sleep 20"})),
        says("It slept, and then").delta_chars(4).wait_at(1, &gate),
        says("I am back."),
        says("To sleep."),
        says("I am."),
    ]);
    walk.write();
    walk.done("mkdir garden");
    let mut up = Up::of(walk.next("adjutant up", " --json"));
    up.until("ada", "ready");

    // It asks, and is answered from elsewhere.
    let asked = seen(walk.next("adjutant agent prompt ada", ""));
    assert_eq!(asked.code, Some(5), "{asked:#?}");
    assert!(
        asked
            .stderr
            .contains("\nhint: adjutant agent approve ada main/c1_0_0@"),
        "{asked:#?}"
    );
    let waits = walk.done("adjutant agent pauses");
    assert!(
        waits.starts_with("ada  main  ") && waits.contains(r#"run_command {"command":"sleep 20"}"#),
        "{waits}"
    );
    let mut approve = walk.next(
        "adjutant agent approve ada",
        " --edit '{\"command\": \"true\"}'",
    );
    let mut approving = approve.spawn().expect("it starts");
    let mut said = [0; 4];
    approving
        .stdout
        .as_mut()
        .expect("it is piped")
        .read_exact(&mut said)
        .expect("the agent is in its answer");
    assert_eq!(&said, b"It s");

    // It is killed at work, and finishes by itself.
    assert!(
        walk.lines
            .next()
            .is_some_and(|line| line.starts_with("kill -KILL "))
    );
    let run = fs::read_dir(walk.path(".adjutant/run"))
        .expect("it is there")
        .flatten();
    let host = run
        .filter_map(|it| fs::read(it.path().join("host.json")).ok())
        .next()
        .expect("one agent");
    let pid = serde_json::from_slice::<Value>(&host).expect("it is JSON")["pid"].to_string();
    assert!(
        Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .expect("kill can be called")
            .success()
    );
    let cut: Seen = approving.wait_with_output().expect("it ends").into();
    assert_eq!(cut.code, Some(1), "{cut:#?}");
    assert!(
        cut.stderr.contains("error: the agent ada does not answer"),
        "{cut:#?}"
    );
    gate.open();
    up.until("ada", "failed");
    up.until("ada", "ready");
    follow(
        walk.shell("exec adjutant agent logs ada -f"),
        r#""outcome":"finished""#,
    );
    follow(walk.next("adjutant agent status ada", " --watch"), "ready");
    let shown = walk.done("adjutant sessions show main");
    assert!(
        shown.contains("I am back.") && shown.contains("approved"),
        "{shown}"
    );

    // It is updated, and its conversation is kept.
    walk.manifest += "instructions: You look after the garden.\n";
    walk.write();
    assert_eq!(
        walk.done("adjutant agent update ada"),
        "ada: updated, ready\n"
    );
    assert_eq!(walk.done("adjutant agent prompt ada"), "To sleep.\n");
    walk.asked(&["You look after the garden.", "sleep 20", "I am back."]);

    // It moves, and remembers.
    assert_eq!(walk.done("adjutant agent stop ada"), "ada: stopped\n");
    walk.done("adjutant agent export ada");
    assert_eq!(up.end("-INT").1, Some(130));
    fs::remove_dir_all(walk.path("")).expect("it is deleted");
    walk.go("there");
    walk.done("mkdir garden");
    let imported = walk.done("adjutant agent import");
    assert!(imported.starts_with("imported ada: "), "{imported}");
    assert_eq!(walk.done("adjutant agent start ada"), "ada: ready\n");
    assert_eq!(walk.done("adjutant agent prompt ada"), "I am.\n");
    walk.asked(&[
        "You look after the garden.",
        "sleep 20",
        "I am back.",
        "To sleep.",
        "Are you still there?",
    ]);
    assert_eq!((walk.lines.next(), walk.server.request_count()), (None, 5));
}
