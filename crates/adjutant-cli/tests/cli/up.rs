//! `adjutant up`: an operator in the foreground.

mod walk;

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use serde_json::Value;

use crate::{agent::Project, command::adjutant};

/// An operator at work; it is asked to end when it is dropped.
struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// What was read and not waited for yet.
    unseen: Vec<Value>,
}

impl Up {
    fn start(project: &Project, args: &[&str]) -> Self {
        let mut command = adjutant(&[&["up", "--json"], args].concat());
        command.current_dir(project.path());
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self {
            child,
            lines,
            unseen: Vec::new(),
        }
    }

    /// Waits until an agent stands so, after what was waited for of it before.
    #[track_caller]
    fn until(&mut self, agent: &str, status: &str) {
        loop {
            if let Some(at) = self
                .unseen
                .iter()
                .position(|it| it["agent"] == agent && it["status"] == status)
            {
                let mut before = 0..=at;
                self.unseen
                    .retain(|it| before.next().is_none() || it["agent"] != agent);
                return;
            }
            let line = self
                .lines
                .next()
                .unwrap_or_else(|| unreachable!("{agent} never was {status}"));
            self.unseen.push(
                serde_json::from_str(&line.expect("it is text")).expect("every line is JSON"),
            );
        }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill can be called").success());
    }

    /// Asks it to end: the last line, and the exit code.
    fn end(mut self, signal: &str) -> (Value, Option<i32>) {
        self.signal(signal);
        let last = self
            .lines
            .by_ref()
            .last()
            .expect("it tells its end")
            .expect("it is text");
        let status = self.child.wait().expect("it ends");
        (
            serde_json::from_str(&last).expect("it is JSON"),
            status.code(),
        )
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The agents that the control plane lists.
fn agents(project: &Project) -> Vec<Value> {
    let file = std::fs::read(project.path().join(".adjutant/run/control.json"))
        .expect("it tells where it listens");
    let file: Value = serde_json::from_slice(&file).expect("it is JSON");
    let [address, token] = ["address", "token"].map(|field| file[field].as_str().expect("a text"));
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let request = format!(
        "GET /v1/agents HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("it answers");
    let body = answer.split_once("\r\n\r\n").expect("it has a body").1;
    let list: Value = serde_json::from_str(body).expect("it is JSON");
    list["agents"].as_array().expect("a list").clone()
}

#[test]
fn agents_are_made_supervised_and_stopped_when_an_operator_works() {
    let project = Project::new();
    std::fs::write(
        project.path().join("b.agent.yaml"),
        "name: bob\nmodel: offline/planner\n",
    )
    .expect("it is written");
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    up.until("bob", "ready");
    let listed = agents(&project);
    let told: Vec<(&str, &str)> = listed
        .iter()
        .map(|it| {
            (
                it["agent"].as_str().expect("a name"),
                it["status"].as_str().expect("a word"),
            )
        })
        .collect();
    assert_eq!(told, [("ada", "ready"), ("bob", "ready")]);
    assert!(
        project
            .done(&["agent", "prompt", "bob", "Hi", "-q"])
            .starts_with("I am offline")
    );
    // Orders are obeyed by the operator.
    assert_eq!(project.done(&["agent", "stop", "bob"]), "bob: stopped\n");
    up.until("bob", "stopped");
    assert_eq!(project.done(&["agent", "restart", "ada"]), "ada: ready\n");
    up.until("ada", "stopped");
    up.until("ada", "ready");
    // One that is made meanwhile is found.
    project.done(&["agent", "create", "--name", "carl"]);
    assert_eq!(project.done(&["agent", "start", "carl"]), "carl: ready\n");
    assert_eq!(project.done(&["agent", "rm", "bob"]), "bob: removed\n");
    let (last, code) = up.end("-TERM");
    assert_eq!((&last["notice"], code), (&"ended".into(), Some(0)));
    let mut stopped: Vec<&str> = last["stopped"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    stopped.sort_unstable();
    assert_eq!(
        (stopped, &last["left"]),
        (vec!["ada", "carl"], &Value::Array(Vec::new()))
    );
}

#[test]
fn second_operator_is_refused_when_one_works() {
    let project = Project::new();
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    let pid = up.child.id();
    let busy = format!("error: another operator (process {pid}) works on DIR/.adjutant/run");
    let hint = "hint: one operator works on a folder of agents; `adjutant agent ps` shows them";
    project.refused(&["up"], 2, &[&busy, hint]);
    let (_, code) = up.end("-INT");
    assert_eq!(code, Some(130));
}

#[test]
fn next_operator_adopts_agents_when_one_was_killed() {
    let project = Project::new();
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    let address = |project: &Project| {
        let listed: Value =
            serde_json::from_str(&project.done(&["agent", "ps", "--json"])).expect("it is JSON");
        listed["address"].clone()
    };
    let before = address(&project);
    drop(up);
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    assert_eq!(address(&project), before);
    let (last, _) = up.end("-TERM");
    assert_eq!(last["stopped"], serde_json::json!(["ada"]));
}

#[test]
fn changed_manifest_is_used_and_what_the_agent_has_is_kept() {
    let project = Project::new();
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    project.done(&["agent", "prompt", "ada", "Who are you?", "-q"]);
    up.end("-TERM");
    let write = |text: &str| {
        std::fs::write(project.path().join("adjutant.yaml"), text).expect("it is written")
    };
    write("name: ada\nmodel: offline/planner\ninstructions: Be brief.\n");
    let told = |project: &Project| -> Value {
        serde_json::from_str(&project.done(&["agent", "ps", "--json"])).expect("it is JSON")
    };
    let before = told(&project);
    let dry = project.run(&["agent", "update", "ada", "--dry-run"]);
    assert_eq!(dry.stdout, "ada: nothing was done\n");
    assert!(
        dry.stderr
            .contains(r#"ada: field agents.ada.instructions: "Be brief." is new"#),
        "{}",
        dry.stderr
    );
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    // Another one while it runs, from a second terminal.
    write("name: ada\nmodel: offline/planner\ninstructions: Be very brief.\n");
    let updated = project.run(&["agent", "update", "ada"]);
    assert_eq!(
        (updated.code, updated.stdout.as_str()),
        (Some(0), "ada: updated, ready\n"),
        "{updated:#?}"
    );
    assert!(
        updated
            .stderr
            .contains(r#"instructions: "Be brief." -> "Be very brief.""#),
        "{}",
        updated.stderr
    );
    assert_eq!(
        project.done(&["agent", "update", "ada"]),
        "ada: nothing has changed\n"
    );
    // One that cannot begin is taken back.
    let broken = project.run(&[
        "agent",
        "update",
        "ada",
        "--model",
        "anthropic/claude-sonnet-5",
    ]);
    assert_eq!(broken.code, Some(1), "{broken:#?}");
    assert!(
        broken
            .stderr
            .contains("error: the update of ada failed and was taken back, what ran before runs: ")
    );
    project.done(&["agent", "prompt", "ada", "And now?", "-q"]);
    assert_eq!(
        (&told(&project)["id"], &told(&project)["status"]),
        (&before["id"], &"ready".into())
    );
    up.end("-TERM");
    write("name: ada\nmodel: offline/planner\n");
    let refused = project.run(&["up", "--recreate"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("ada: --recreate destroys its sessions, memories, board and notes (")
    );
    let hint = "hint: `adjutant up .` updates them and keeps all of it; `adjutant up . --recreate --yes` destroys it\n";
    assert!(
        refused
            .stderr
            .ends_with(&format!("so nothing was done\n{hint}")),
        "{}",
        refused.stderr
    );
    assert_eq!(told(&project)["id"], before["id"]);
    let mut up = Up::start(&project, &["--recreate", "--yes"]);
    up.until("ada", "ready");
    up.end("-TERM");
    assert_ne!(told(&project)["id"], before["id"]);
}

#[test]
fn update_that_waits_for_a_start_outlives_a_dry_run_and_an_operator() {
    let project = Project::new();
    let id = project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    project.done(&["agent", "stop", "ada"]);
    let updated = project.done(&["agent", "update", "ada", "--set", "instructions=Be brief."]);
    assert_eq!(
        updated,
        "ada: updated; it begins with that when it is started\n"
    );
    assert_eq!(
        project.done(&["agent", "update", "ada", "--dry-run"]),
        "ada: nothing was done\n"
    );
    let mut up = Up::start(&project, &[]);
    up.until("ada", "stopped");
    project.done(&["agent", "start", "ada"]);
    let agent = project
        .path()
        .join(format!(".adjutant/run/{}/agent.json", id.trim()));
    assert!(
        std::fs::read_to_string(agent)
            .expect("it is there")
            .contains("Be brief.")
    );
    up.end("-TERM");
}

#[test]
fn process_that_is_frozen_or_killed_is_told_so_and_begun_again() {
    let project = Project::new();
    let mut up = Up::start(&project, &[]);
    up.until("ada", "ready");
    let process = |project: &Project| {
        let run = std::fs::read_dir(project.path().join(".adjutant/run"))
            .expect("it is there")
            .flatten();
        let host = run
            .filter_map(|it| std::fs::read(it.path().join("host.json")).ok())
            .next()
            .expect("one agent");
        serde_json::from_slice::<Value>(&host).expect("it is JSON")["pid"].to_string()
    };
    let signal = |name: &str, pid: &str| {
        assert!(
            Command::new("kill")
                .args([name, pid])
                .status()
                .expect("kill can be called")
                .success()
        );
    };
    for (name, reason) in [("-STOP", "frozen"), ("-KILL", "crashed")] {
        signal(name, &process(&project));
        up.until("ada", "failed");
        up.until("ada", "ready");
        let told: Value =
            serde_json::from_str(&project.done(&["agent", "ps", "--json"])).expect("it is JSON");
        assert_eq!(told["status"], "ready", "{reason}");
    }
    // Without an operator, the command itself finds out.
    drop(up);
    signal("-STOP", &process(&project));
    let told = project.done(&["agent", "status", "ada"]);
    assert_eq!(
        told,
        "failed (frozen): its process was stopped by a signal\n"
    );
    signal("-CONT", &process(&project));
    assert_eq!(project.done(&["agent", "status", "ada"]), "ready\n");
}

#[test]
fn cure_is_named_when_there_is_nothing_to_supervise() {
    let project = Project::new();
    std::fs::remove_file(project.path().join("adjutant.yaml")).expect("it is there");
    let lines = [
        "error: there is no manifest here, and no agent: .",
        "hint: `adjutant init` writes a manifest that runs at once",
    ];
    project.refused(&["up"], 2, &lines);
    let seen = project.run(&["up", "none"]);
    assert!(
        seen.stderr
            .starts_with("error: cannot read the directory: none\n"),
        "{}",
        seen.stderr
    );
}
