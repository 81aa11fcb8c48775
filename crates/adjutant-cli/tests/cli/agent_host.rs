//! The process of one agent: it serves its workspace, ends when it is asked to, and tells why it could not begin.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use adjutant::runtime::{
    Prompter, Workspace,
    host::HostFile,
    http::Client,
    prompt::{MessagesRequest, PromptRequest},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long another process may take for what it is waited for.
const LONG: Duration = Duration::from_secs(60);

fn workspace(model: &str, needs: &[&str]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let agent = json!({"name": "demo", "model": model});
    let manifest = json!({"name": "demo", "entry_agent": "demo", "agents": [agent]});
    let resolved = json!({"manifest": manifest, "sources": [], "needs": needs});
    let prepared = json!({"resolved": resolved, "provenance": {"files": []}, "prepared_ms": 0});
    fs::write(folder.path().join("prepared.json"), prepared.to_string()).expect("it is written");
    fs::create_dir(folder.path().join("work")).expect("it is made");
    folder
}

fn host(folder: &Path, start: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_adjutant"))
        .args(["agent-host".as_ref(), folder.as_os_str()])
        .env_clear()
        .env("ADJUTANT_AGENT_START", start)
        .current_dir(folder.join("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it begins")
}

/// Waits until a process has told what is looked for.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < LONG, "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn listening(folder: &Path, start: &str) -> HostFile {
    until(|| {
        HostFile::read(&Workspace::at(folder))
            .ok()
            .filter(|file| file.start.to_string() == start)
    })
}

fn told(child: Child) -> (Option<i32>, Vec<Value>) {
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stderr).expect("text");
    (
        output.status.code(),
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect(),
    )
}

fn ended(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("ended.json")).expect("it was told"))
        .expect("JSON")
}

const ONE: &str = "00000000-0000-4000-8000-000000000001";
const TWO: &str = "00000000-0000-4000-8000-000000000002";

#[tokio::test]
async fn agent_host_serves_until_it_is_stopped_and_again_on_its_port() {
    let folder = workspace("offline/planner", &[]);
    let child = host(folder.path(), ONE);
    let file = listening(folder.path(), ONE);
    let mode = fs::metadata(folder.path().join("host.json"))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!((mode & 0o777, file.pid), (0o600, child.id()));
    let client = Client::new(file.address, file.token.clone()).expect("a client");
    assert!(client.ready().await.expect("it answers"));
    let reply = client
        .prompt(PromptRequest::new("the-prompt-nobody-logs").session("talk"))
        .await
        .expect("an answer");
    assert!(!reply.text.is_empty());

    let (code, lines) = told(host(folder.path(), TWO));
    assert_eq!(
        (code, lines.last().and_then(|line| line.get("kind"))),
        (Some(1), Some(&json!("busy")))
    );
    assert!(client.ready().await.expect("the first one goes on"));

    client.stop().await.expect("it hears");
    let (code, lines) = told(child);
    let events: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.get("event").and_then(Value::as_str))
        .collect();
    assert_eq!(code, Some(0), "{lines:?}");
    assert_eq!(
        events,
        [
            "host_started",
            "host_ready",
            "prompt_began",
            "prompt_ended",
            "host_ended"
        ]
    );
    assert!(
        lines
            .iter()
            .all(|line| !line.to_string().contains("nobody-logs"))
    );
    let prompt = lines.get(3).expect("a line");
    assert_eq!(
        (prompt.get("session"), prompt.get("outcome")),
        (Some(&json!("talk")), Some(&json!("finished")))
    );
    assert_eq!(
        ended(folder.path()),
        json!({"start": ONE, "status": "stopped"})
    );

    let child = host(folder.path(), TWO);
    let again = listening(folder.path(), TWO);
    assert_eq!(again.address, file.address);
    assert_ne!(again.token, file.token);
    let client = Client::new(again.address, again.token).expect("a client");
    let page = client
        .messages(MessagesRequest::new().session("talk"))
        .await
        .expect("it was kept");
    assert_eq!(
        page.messages.first().map(|message| message.text.as_str()),
        Some("the-prompt-nobody-logs")
    );
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .expect("kill runs");
    assert!(killed.success());
    let (code, lines) = told(child);
    assert_eq!(code, Some(0), "{lines:?}");
    assert_eq!(
        ended(folder.path()),
        json!({"start": TWO, "status": "stopped"})
    );
}

#[test]
fn agent_host_tells_why_it_cannot_begin() {
    let cases = [
        (
            workspace("anthropic/claude-sonnet-4-5", &["ANTHROPIC_API_KEY"]),
            "model",
        ),
        (workspace("no-such-provider/model", &[]), "model"),
    ];
    for (folder, reason) in cases {
        let (code, lines) = told(host(folder.path(), ONE));
        let told = ended(folder.path());
        assert_eq!(
            (code, told.get("status")),
            (Some(1), Some(&json!("failed"))),
            "{lines:?}"
        );
        assert_eq!(told.get("reason"), Some(&json!(reason)), "{told}");
        let failed = lines
            .iter()
            .find(|line| line.get("event") == Some(&json!("host_failed")));
        assert_eq!(
            failed.and_then(|line| line.get("message")),
            told.get("message")
        );
    }
    let empty = TempDir::new().expect("a folder");
    fs::create_dir(empty.path().join("work")).expect("it is made");
    let (code, _) = told(host(empty.path(), ONE));
    assert_eq!(
        (code, ended(empty.path()).get("status")),
        (Some(1), Some(&json!("failed")))
    );
}
