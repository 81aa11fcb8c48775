//! Servers that are programs, or stand behind HTTP: the real clock, and no other machine.

use std::{io::Write, path::Path, sync::Arc};

use adjutant_mcp::{ErrorKind, HttpConfig, McpServer, ServerConfig, StdioConfig};
use adjutant_toolkit::Sandbox;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::script::{
    Act, BOTH, Speaks, answer, call, names, resolve, serve, text, tool, usual, warnings,
};

/// What the program of a test is, when it is started once more.
const VARIABLE: &str = "ADJUTANT_TEST_SERVER";

/// A sandbox without a process namespace, so that the tests see its processes; otherwise the best one of this machine.
fn sandbox() -> Option<Sandbox> {
    let landlock = Sandbox::landlock();
    held(match landlock.refuses() {
        None => landlock,
        Some(_) => Sandbox::new(),
    })
}

fn held(sandbox: Sandbox) -> Option<Sandbox> {
    match sandbox.refuses() {
        None => Some(sandbox.read(std::env::current_exe().expect("a program"))),
        Some(why) => {
            tell(&format!("SKIPPED: {why}"));
            None
        }
    }
}

/// Shows a row, whoever looks.
fn tell(row: &str) {
    // A closed output is no failure of what is tested.
    let _ = writeln!(std::io::stdout(), "{row}");
}

/// This program as a server.
fn program(sandbox: Sandbox, role: &str) -> ServerConfig {
    let mut config = StdioConfig::new(std::env::current_exe().expect("a program"), sandbox);
    config.args = ["--exact", "programs::server_of_another_test", "--nocapture"]
        .map(Arc::from)
        .into();
    config.env = [(VARIABLE.into(), role.into())].into();
    ServerConfig::new(config)
}

/// Is a server if another test starts it, and nothing otherwise.
#[test]
fn server_of_another_test() {
    let Ok(role) = std::env::var(VARIABLE) else {
        return;
    };
    if role == "host" {
        return host();
    }
    let speaks = if role.starts_with("old") {
        Speaks::Old
    } else {
        Speaks::New
    };
    if role.ends_with("complains") {
        let _ = writeln!(
            std::io::stderr(),
            "{}\nno key was given",
            "x".repeat(100_000)
        );
        std::process::exit(3);
    }
    let answers = move |message: &Value| match message["method"].as_str() {
        Some("tools/call") => match message["params"]["name"].as_str() {
            Some("exit") => std::process::exit(7),
            Some("env") => {
                let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                vec![answer(message, text(&names.join(" ")))]
            }
            Some("spawn") => {
                let child = std::process::Command::new("/bin/sh")
                    .args(["-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"])
                    .output();
                let pid = String::from_utf8_lossy(&child.expect("a shell").stdout)
                    .trim()
                    .to_owned();
                vec![answer(
                    message,
                    text(&format!("{pid} {}", std::process::id())),
                )]
            }
            _ => vec![answer(message, text("hello"))],
        },
        _ => usual(
            speaks,
            message,
            &["hello", "exit", "env", "spawn"].map(tool),
        ),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    // Blocking, as most servers are: a thread reads, so that nothing of the test's runtime is needed.
    runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(theirs);
        let (send, mut lines) = tokio::sync::mpsc::channel::<Vec<u8>>(8);
        std::thread::spawn(move || {
            for line in std::io::stdin().lines() {
                let Ok(line) = line else { return };
                if send.blocking_send(format!("{line}\n").into_bytes()).is_err() {
                    return;
                }
            }
        });
        let serving = serve(from, to, answers);
        let speaking = async {
            let mut chunk = [0; 4096];
            loop {
                tokio::select! {
                    line = lines.recv() => match line {
                        Some(line) => ours.write_all(&line).await.expect("it reads"),
                        None => return,
                    },
                    read = ours.read(&mut chunk) => {
                        let mut out = std::io::stdout();
                        out.write_all(&chunk[..read.expect("it writes")]).and_then(|()| out.flush()).expect("a pipe");
                    }
                }
            }
        };
        tokio::select! { () = serving => {}, () = speaking => {} }
    });
    std::process::exit(0);
}

#[tokio::test]
async fn program_is_listed_and_called_in_both_revisions() {
    let sandboxes = [Sandbox::landlock(), Sandbox::bwrap()]
        .into_iter()
        .filter_map(held);
    for (sandbox, role) in
        sandboxes.flat_map(|sandbox| [(sandbox.clone(), "old"), (sandbox, "new")])
    {
        let server = McpServer::new("p", program(sandbox, role)).expect("a server");
        let set = resolve(&server).await;
        assert_eq!(
            (names(&set), warnings(&set)),
            (vec!["p_hello", "p_exit", "p_env", "p_spawn"], vec![]),
            "{role}"
        );
        assert_eq!(
            call(&set, "p_hello", json!({}))
                .await
                .expect("it answers")
                .text(),
            "hello",
            "{role}"
        );
        let env = call(&set, "p_env", json!({}))
            .await
            .expect("it answers")
            .text();
        assert!(
            env.contains("PATH") && env.contains("HOME") && env.contains(VARIABLE),
            "{env}"
        );
        assert!(
            !env.contains("CARGO_PKG_NAME") && !env.contains("CARGO_MANIFEST_DIR"),
            "{env}"
        );
    }
}

#[tokio::test]
async fn program_is_begun_again_after_it_exits() {
    let Some(sandbox) = sandbox() else { return };
    let server = McpServer::new("p", program(sandbox, "new")).expect("a server");
    let set = resolve(&server).await;
    let error = call(&set, "p_exit", json!({})).await.expect_err("it exits");
    assert!(
        error
            .message
            .ends_with("; whether the call took effect is not known"),
        "{}",
        error.message
    );
    assert_eq!(
        call(&set, "p_hello", json!({}))
            .await
            .expect("it is there again")
            .text(),
        "hello"
    );
}

#[tokio::test]
async fn failed_start_shows_the_end_of_the_error_output() {
    let Some(sandbox) = sandbox() else { return };
    let server = McpServer::new("p", program(sandbox, "complains")).expect("a server");
    let set = resolve(&server).await;
    let shown = warnings(&set)[0];
    assert!(
        shown.ends_with("xxx\nno key was given; it is tried again") && shown.len() < 4_096,
        "{shown}"
    );
    let mut config = program(Sandbox::refusing("a test says so"), "new");
    config.start_limit = std::time::Duration::from_millis(1);
    let error = McpServer::new("p", config)
        .expect("a server")
        .ready()
        .await
        .expect_err("nothing holds it");
    assert!(
        matches!(error.kind, ErrorKind::Invalid | ErrorKind::TimedOut),
        "{error}"
    );
}

/// True if a process is there, and no zombie.
fn lives(pid: &str) -> bool {
    let status =
        std::fs::read_to_string(Path::new("/proc").join(pid).join("status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[tokio::test]
async fn program_ends_with_everything_that_it_began_when_the_last_handle_is_dropped() {
    let Some(sandbox) = sandbox() else { return };
    let server = McpServer::new("p", program(sandbox, "new")).expect("a server");
    let set = resolve(&server).await;
    let pids = call(&set, "p_spawn", json!({}))
        .await
        .expect("it answers")
        .text();
    let pids: Vec<&str> = pids.split(' ').collect();
    // Of another namespace they have other numbers there.
    let is_seen = pids.iter().all(|pid| lives(pid));
    let other = server.clone();
    drop(server);
    assert_eq!(
        call(&set, "p_hello", json!({}))
            .await
            .expect("a handle is left")
            .text(),
        "hello"
    );
    drop(other);
    let error = call(&set, "p_hello", json!({}))
        .await
        .expect_err("nobody holds it");
    assert_eq!(&*error.message, "the server of this tool was let go of");
    if !is_seen {
        return tell("SKIPPED: its processes are of another namespace");
    }
    gone(&pids).await;
}

/// Waits until none of these processes is there.
async fn gone(pids: &[&str]) {
    let waits = async {
        while pids.iter().any(|pid| lives(pid)) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), waits).await;
    assert!(ended.is_ok(), "some of {pids:?} live on");
}

/// A server behind HTTP that follows a script; gives its address.
async fn http(script: impl Fn(&Value) -> Vec<Act> + Clone + Send + Sync + 'static) -> String {
    listening(script).await.0
}

async fn listening(
    script: impl Fn(&Value) -> Vec<Act> + Clone + Send + Sync + 'static,
) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(exchange(stream, script.clone()));
        }
    });
    (format!("http://{address}/mcp"), serving)
}

/// One request and its answer: JSON, or nothing for a notification.
async fn exchange(stream: TcpStream, script: impl Fn(&Value) -> Vec<Act>) {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length, mut method) = (String::new(), 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
            return;
        }
        let lower = line.trim().to_lowercase();
        match lower.split_once(": ") {
            Some(("content-length", value)) => length = value.parse().expect("a length"),
            None if lower.is_empty() => break,
            None => method = lower,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    let message: Value = if method.starts_with("post") {
        serde_json::from_slice(&body).expect("JSON")
    } else {
        Value::Null
    };
    let said = script(&message).into_iter().find_map(|act| {
        if let Act::Say(said) = act {
            Some(said)
        } else {
            None
        }
    });
    let reply = match said.filter(|said| said.get("id").is_some()) {
        _ if message.is_null() => {
            "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_owned()
        }
        None => {
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
        Some(said) => {
            let body = said.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        }
    };
    stream.write_all(reply.as_bytes()).await.expect("it reads");
}

#[tokio::test]
async fn server_behind_http_is_listed_and_called_in_both_revisions() {
    for speaks in BOTH {
        let url = http(move |message: &Value| match message["method"].as_str() {
            Some("tools/call") => vec![answer(message, text("hello"))],
            Some("subscriptions/listen") => vec![super::script::refuse(message, -32601, "no")],
            _ => usual(speaks, message, &[tool("hello")]),
        })
        .await;
        let server =
            McpServer::new("h", ServerConfig::new(HttpConfig::new(url))).expect("a server");
        let set = resolve(&server).await;
        assert_eq!(
            (names(&set), warnings(&set)),
            (vec!["h_hello"], vec![]),
            "{speaks:?}"
        );
        assert_eq!(
            call(&set, "h_hello", json!({}))
                .await
                .expect("it answers")
                .text(),
            "hello",
            "{speaks:?}"
        );
    }
}

#[tokio::test]
async fn call_has_a_known_end_when_nobody_listens_any_more() {
    let (url, serving) =
        listening(|message: &Value| usual(Speaks::New, message, &[tool("hello")])).await;
    let server = McpServer::new("h", ServerConfig::new(HttpConfig::new(url))).expect("a server");
    let set = resolve(&server).await;
    serving.abort();
    let _ = serving.await;
    let error = call(&set, "h_hello", json!({}))
        .await
        .expect_err("nobody is there");
    assert_eq!(
        error.kind,
        adjutant_tool::ToolErrorKind::Failed,
        "{}",
        error.message
    );
    assert!(
        error
            .message
            .starts_with("MCP server \"h\": it cannot be reached: "),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn program_ends_when_its_host_is_killed() {
    let Some(_) = sandbox() else { return };
    let mut host = std::process::Command::new(std::env::current_exe().expect("a program"));
    host.args(["--exact", "programs::server_of_another_test", "--nocapture"])
        .env(VARIABLE, "host");
    let mut host = host
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a host");
    let said = std::io::BufReader::new(host.stdout.take().expect("its output"));
    let pids = std::io::BufRead::lines(said)
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("PIDS ").map(str::to_owned));
    let pids = pids.expect("it says them");
    let pids: Vec<&str> = pids.split(' ').collect();
    let is_seen = pids.iter().all(|pid| lives(pid));
    host.kill().expect("it is ours");
    host.wait().expect("it ends");
    if is_seen {
        gone(&pids).await
    } else {
        tell("SKIPPED: its processes are of another namespace")
    }
}

/// The host of a server, until it is killed.
fn host() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let server = McpServer::new("p", program(sandbox().expect("there was one"), "new"))
            .expect("a server");
        let set = resolve(&server).await;
        tell(&format!(
            "\nPIDS {}",
            call(&set, "p_spawn", json!({}))
                .await
                .expect("it answers")
                .text()
        ));
        std::future::pending::<()>().await;
    });
}
