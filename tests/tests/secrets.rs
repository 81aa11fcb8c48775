//! A marked credential is used, and stands nowhere: a hunt through all that an agent in a process of its own leaves and tells.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::{
        fs::{PermissionsExt, chown, lchown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant::{
    llm::{Script, ScriptedModel},
    runtime::{
        Credentials, Engine, Entry, Home, Manifest, Overrides, Prompter,
        host::HostFile,
        http::Client,
        prompt::{MessagesRequest, ObjectRequest, PromptRequest, SessionsRequest},
    },
};
use adjutant_testing::{Fault, Loopback};
use adjutant_tests::hunt::{Hunt, Mark, holds};
use futures_util::StreamExt;
use serde_json::json;

/// The credential; nothing else on this machine is like it.
const KEY: &str = "sk-hunted-Qz7Lw0Xv93RtK5mNp8Ya";
/// The variable that holds it.
const VARIABLE: &str = "HUNTED_API_KEY";
/// What must be found wherever a prompt may be: where it is not, nothing else would be found either.
const WITNESS: &str = "witness-Bq4Tz81Ue6";
/// How long an agent may take to stand somewhere.
const WITHIN: Duration = Duration::from_secs(60);

/// Prints its environment; then, of each process above it, its command, its environment, and where its memory can be read.
///
/// It has no sandbox: what is hidden from it is hidden from those that have one.
const SPY: &str = r#"#!/bin/sh
echo "my environment:"; env; echo "my input:"; cat
pid=$$
while [ "$pid" -gt 1 ]; do
  echo "process $pid:"; tr '\0' ' ' < /proc/$pid/cmdline; echo
  tr '\0' '\n' < /proc/$pid/environ | grep -a -e HUNTED -e ADJUTANT_AGENT=
  ls -l /proc/$pid/fd
  pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)
done
echo "all environments:"
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -a HUNTED
echo "my folder:"; ls -a . ..
exit 0
"#;

/// Whom root becomes: nothing can be hidden from the tools of an almighty one.
const NOBODY: u32 = 65_534;

/// Hunts for the credential, which may be nowhere, and for the token of the agent, which only stands in its `host.json`.
struct Hunts {
    key: Hunt,
    token: Hunt,
}

/// A project with an operator at work; the operator is killed when this is dropped.
struct Field {
    folder: tempfile::TempDir,
    /// Where the program lies, if it is a copy.
    _beside: tempfile::TempDir,
    program: PathBuf,
    model: Arc<ScriptedModel>,
    server: Loopback,
    operator: Child,
}

impl Hunts {
    fn look(&mut self, place: &str, bytes: impl AsRef<[u8]>) {
        self.key.look(place, bytes.as_ref());
        self.token.look(place, bytes.as_ref());
    }

    fn files(&mut self, folder: &Path) {
        self.key
            .files(folder, &|_| false)
            .expect("all files can be read");
        let is_host = |path: &Path| path.file_name().is_some_and(|name| name == "host.json");
        self.token
            .files(folder, &is_host)
            .expect("all files can be read");
        assert!(
            self.key.commands() > 2 && self.token.commands() > 2,
            "there are no processes"
        );
    }

    #[track_caller]
    fn check(&self) {
        let found: Vec<&String> = self.key.found.iter().chain(&self.token.found).collect();
        assert!(found.is_empty(), "secrets are told: {found:#?}");
    }
}

impl Field {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("project");
        fs::create_dir(&project).expect("a folder");
        let spy = project.join("spy.sh");
        fs::write(&spy, SPY).expect("it can be written");
        fs::set_permissions(&spy, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let model = Arc::new(ScriptedModel::new([]));
        // The third and the fourth request are refused by a server that repeats the key, as it is and encoded.
        let mark = Mark::new("it", KEY);
        let encoded = mark
            .forms()
            .filter(|(form, _)| form.ends_with("escapes") || *form == "in base64");
        let encoded: String = encoded
            .map(|(_, form)| format!(" {}", String::from_utf8_lossy(form)))
            .collect();
        let repeats = |code| {
            Fault::Status {
            code,
            headers: vec![("x-key".to_owned(), KEY.to_owned())],
            body: Some(
                format!("{{\"error\":{{\"message\":\"bad key {KEY}{encoded}\",\"type\":\"x\",\"code\":\"{KEY}\"}}}}")
                    .into(),
            ),
        }
        };
        let server = Loopback::setup(Arc::clone(&model))
            .fault(3, repeats(401))
            .fault(4, repeats(500));
        let server = server.start_blocking().expect("a port");
        fs::write(
            project.join("adjutant.yaml"),
            manifest(&server.openai_base_url()),
        )
        .expect("it can be written");
        let log = fs::File::create(folder.path().join("up.log")).expect("a file");
        let errors = log.try_clone().expect("a file");
        let beside = tempfile::tempdir().expect("a folder");
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_adjutant-program"));
        if is_root() {
            let copy = beside.path().join("adjutant");
            fs::copy(&program, &copy).expect("it can be copied");
            fs::set_permissions(beside.path(), fs::Permissions::from_mode(0o755))
                .expect("it is ours");
            program = copy;
            for path in [
                folder.path(),
                &project,
                &spy,
                &project.join("adjutant.yaml"),
            ] {
                chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
            }
        }
        let operator = command(&program, &project)
            .args(["up", "--json", "--trust"])
            .stdout(log)
            .stderr(errors)
            .spawn();
        Self {
            operator: operator.expect("it starts"),
            folder,
            _beside: beside,
            program,
            model,
            server,
        }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Waits until the agent is up; and gives it, and what its process told.
    fn agent(&mut self) -> (Entry, HostFile) {
        let home = Home::at(self.project().join(".adjutant/run"));
        let until = Instant::now() + WITHIN;
        loop {
            let entry = home.entries().expect("they can be read").all.pop();
            let up = entry.filter(|it| it.workspace.status().is_ok_and(|it| it.status.is_up()));
            if let Some((entry, host)) =
                up.and_then(|it| HostFile::read(&it.workspace).ok().map(|host| (it, host)))
            {
                return (entry, host);
            }
            let log = || fs::read_to_string(self.folder.path().join("up.log")).unwrap_or_default();
            assert!(Instant::now() < until, "the agent is not up: {}", log());
            assert!(
                self.operator.try_wait().expect("it can be asked").is_none(),
                "the operator ended: {}",
                log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a command of the project with the credential in its environment, and hunts through what it says.
    #[track_caller]
    fn command(&self, hunts: &mut Hunts, args: &[&str]) -> String {
        let output: Output = command(&self.program, &self.project())
            .args(args)
            .output()
            .expect("it starts");
        let said = [output.stdout, output.stderr]
            .map(|it| String::from_utf8(it).expect("it is text"))
            .concat();
        assert!(output.status.success(), "{args:?}: {said}");
        hunts.look(&format!("what {args:?} says"), &said);
        said
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        let _ = command(&self.program, &self.project())
            .args(["agent", "rm", "--all"])
            .output();
        let _ = self.operator.kill();
        let _ = self.operator.wait();
    }
}

/// The command, with the credential in its environment.
fn command(program: &Path, project: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env(VARIABLE, KEY)
        .current_dir(project);
    // What was trusted is hunted through too.
    command.env("XDG_STATE_HOME", project.with_file_name("state"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn manifest(base_url: &str) -> String {
    format!(
        "name: hunted\nmodel: {{name: acme/large, retries: 0}}\n\
         providers: [{{name: acme, base_url: '{base_url}', key_variables: [{VARIABLE}]}}]\n\
         toolboxes: [{{name: files, root: .}}]\ntools: [spy]\n\
         process_tools:\n- name: spy\n  description: Looks around.\n  binary: ./spy.sh\n  max_output: 4MiB\n\
         \x20 sandbox: {{danger_without_any: true}}\n\
         limits: {{max_result: 4MiB}}\n"
    )
}

/// What the model asks for: everything that may lead to a secret.
fn calls(id: &str, host: &Path) -> Script {
    let mut script = Script::new().call("spy", json!({}));
    let home = ".adjutant/run";
    let paths = [
        home,
        &format!("{home}/{id}"),
        &format!("{home}/{id}/host.json"),
        "door",
        "../project/door",
        "..",
        "/proc/self/environ",
        &*host.to_string_lossy(),
    ];
    for path in paths {
        script = script.call("read_file", json!({"path": path}));
        script = script.call("list_files", json!({"path": path, "depth": 9}));
        script = script.call(
            "search_text",
            json!({"path": path, "pattern": "token|HUNTED"}),
        );
    }
    script = script.call("search_text", json!({"pattern": "token"}));
    script.call("list_files", json!({"path": ".adjutant", "depth": 9}))
}

/// A request as others write it, and all that comes back.
fn raw(host: &HostFile, route: &str, body: Option<&str>) -> String {
    let (method, body) = (
        if body.is_some() { "POST" } else { "GET" },
        body.unwrap_or_default(),
    );
    let mut socket = TcpStream::connect(host.address).expect("it listens");
    let head = format!(
        "{method} {route} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        host.address,
        host.token,
        body.len(),
    );
    socket.write_all(head.as_bytes()).expect("it is taken");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("it answers");
    String::from_utf8(answer).expect("it is text")
}

/// Prompts in every way, and hunts through what comes back; gives the stream of the first run.
async fn ask(field: &Field, host: &HostFile, hunts: &mut Hunts) -> String {
    let client = Client::new(host.address, host.token.clone()).expect("a client");
    let mut events = client
        .stream(PromptRequest::new(WITNESS))
        .await
        .expect("it begins");
    let mut stream = String::new();
    while let Some(event) = events.next().await {
        let event = event.expect("it goes on");
        stream += &format!(
            "{}\n{event:?}\n",
            serde_json::to_string(&event).expect("it is written")
        );
    }
    hunts.look("the stream of events", &stream);
    for status in ["401", "500"] {
        let refused = client
            .prompt(PromptRequest::new("Once more.").session(status))
            .await;
        let error = refused.expect_err("the provider refuses");
        hunts.look(
            "an error",
            format!(
                "{error}\n{error:?}\n{error:#?}\n{}",
                adjutant_tests::asked::chain(&error)
            ),
        );
    }
    field.model.push(Script::new().text("Fine."));
    let reply = client
        .prompt(PromptRequest::new(WITNESS).session("other"))
        .await
        .expect("it answers");
    hunts.look(
        "a reply",
        format!(
            "{reply:?}{}",
            serde_json::to_string(&reply).expect("it is written")
        ),
    );
    field.model.push(Script::new().text("{\"name\": \"Ada\"}"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let object = client
        .object(ObjectRequest::new("Who?", schema))
        .await
        .expect("an object");
    hunts.look("an object", object.to_string());
    let page = client
        .messages(MessagesRequest::new().limit(1_000))
        .await
        .expect("there is a session");
    hunts.look("messages", format!("{page:?}"));
    hunts.look(
        "sessions",
        format!(
            "{:?}",
            client
                .sessions(SessionsRequest::new())
                .await
                .expect("there are some")
        ),
    );
    hunts.look("what a client shows", format!("{client:?}{host:?}"));
    stream
}

/// Asks by hand for what there is.
fn ask_raw(field: &Field, host: &HostFile, hunts: &mut Hunts) {
    field.model.push(Script::new().text("Fine."));
    let body = json!({"prompt": WITNESS, "session": "raw"}).to_string();
    let routes = [
        ("/v1/prompt/stream?events=simple", Some(body.as_str())),
        ("/v1/status", None),
        ("/v1/messages?session=main", None),
        ("/v1/messages?session=401", None),
        ("/v1/sessions", None),
        ("/v1/openapi.json", None),
        ("/v1/nothing", None),
        ("/v1/prompt", Some("{\"prompt\": 1}")),
    ];
    for (route, body) in routes {
        let answer = raw(host, route, body);
        assert!(answer.starts_with("HTTP/1.1 "), "{route}: {answer}");
        hunts.look(&format!("the answer of {route}"), answer);
    }
}

/// Hunts through what a program that runs agents may print or write down.
async fn look_at_values(field: &Field, hunts: &mut Hunts) {
    let lookup = |name: &str| (name == VARIABLE).then(|| KEY.to_owned());
    let loaded =
        Manifest::load(field.project().join("adjutant.yaml"), lookup).expect("it is right");
    hunts.look("what was loaded", format!("{loaded:?}"));
    let resolved = loaded.resolve(Overrides::default()).expect("it is right");
    assert_eq!(resolved.needs, [VARIABLE]);
    let yaml = resolved.to_yaml().expect("it is written");
    let json = serde_json::to_string(&resolved).expect("it is written");
    hunts.look(
        "what was resolved",
        format!("{resolved:?}{resolved:#?}{yaml}{json}"),
    );
    let credentials = Credentials::from_lookup(&resolved, lookup);
    assert_eq!(credentials.get(VARIABLE), Some(KEY));
    hunts.look("credentials", format!("{credentials:?}{credentials:#?}"));
    let engine = Engine::builder(resolved).credentials(credentials);
    hunts.look("what makes an engine", format!("{engine:?}{engine:#?}"));
    let engine = engine.build().await.expect("it is right");
    hunts.look(
        "an engine",
        format!(
            "{engine:?}{engine:#?}{:?}{:?}",
            engine.model(),
            engine.lead("main")
        ),
    );
    let wrong = Credentials::none().with(VARIABLE, format!("{KEY}\n"));
    let wrong = Engine::builder(engine.resolved().as_ref().clone())
        .credentials(wrong)
        .build()
        .await;
    hunts.look("an engine of a wrong key", format!("{wrong:?}"));
}

#[test]
fn credential_is_used_and_stands_nowhere_when_it_is_hunted() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let mut field = Field::new();
    let (entry, host) = field.agent();
    let mut hunts = Hunts {
        key: Hunt::new([Mark::new("the credential", &KEY["sk-hunted-".len()..])]),
        token: Hunt::new([Mark::new("the token", &host.token)]),
    };
    hunts.files(field.folder.path());
    // Links that stay in the folder are followed when they are named.
    symlink(
        entry.workspace.file("host.json"),
        field.project().join("door"),
    )
    .expect("a link");
    if is_root() {
        lchown(field.project().join("door"), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    field.model.push(calls(
        &entry.id.to_string(),
        &entry.workspace.file("host.json"),
    ));
    field.model.push(Script::new().text("Nothing."));
    let stream = runtime.block_on(ask(&field, &host, &mut hunts));
    ask_raw(&field, &host, &mut hunts);
    runtime.block_on(look_at_values(&field, &mut hunts));
    check_the_spy(&stream);
    let commands: [&[&str]; 7] = [
        &["manifest", "check"],
        &["manifest", "show"],
        &["agent", "ps", "--json"],
        &["agent", "status", "hunted", "--json"],
        &["agent", "logs", "hunted"],
        &["agent", "provenance", "hunted", "--verify", "--json"],
        &["agent", "stop", "hunted"],
    ];
    for args in commands {
        field.command(&mut hunts, args);
    }
    field.command(
        &mut hunts,
        &["agent", "export", "hunted", "../hunted.adjutant-agent"],
    );
    hunts.files(field.folder.path());
    hunts.check();

    let authorised: Vec<String> = field
        .server
        .requests()
        .iter()
        .filter_map(|it| it.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(
        authorised,
        vec![format!("Bearer {KEY}"); authorised.len().max(7)],
        "the credential was not used"
    );
    check_that_it_finds(&field, &entry, &stream);
}

/// The tools were called, and could see what they may.
#[track_caller]
fn check_the_spy(stream: &str) {
    for seen in [
        "my environment:",
        "ADJUTANT_AGENT=",
        "agent-host",
        "all environments:",
        "LANG=C.UTF-8",
        "host.json",
    ] {
        assert!(
            stream.contains(seen),
            "the tool did not see {seen}: {stream}"
        );
    }
    let closed = stream
        .matches("is not shown: agents are kept there")
        .count();
    assert!(closed >= 12, "only {closed} looks were refused: {stream}");
    assert!(stream.contains("leads out of the folder"), "{stream}");
}

/// What hunts nothing finds would prove nothing: the prompt is wherever it may be, and a mark that is planted is found.
#[track_caller]
fn check_that_it_finds(field: &Field, entry: &Entry, stream: &str) {
    let witness = || Hunt::new([Mark::new("the witness", WITNESS)]);
    let mut hunt = witness();
    hunt.files(field.folder.path(), &|_| false)
        .expect("all files can be read");
    assert!(
        field.folder.path().join("state/adjutant/trust").is_dir(),
        "nothing was trusted"
    );
    for place in ["hunted.adjutant-agent", "state/agent.db"] {
        let is_there = hunt
            .found
            .iter()
            .any(|found| found.contains(place) && found.contains("as it is"));
        assert!(
            is_there,
            "{place} does not hold the prompt: {:?}",
            hunt.found
        );
    }
    assert!(holds(stream.as_bytes(), WITNESS.as_bytes()), "{stream}");

    let plants: Vec<Vec<u8>> = Mark::new("it", KEY)
        .forms()
        .map(|(_, form)| form.to_vec())
        .collect();
    for (at, plant) in plants.iter().enumerate() {
        let file = entry.workspace.logs().join(format!("planted-{at}"));
        fs::write(&file, [&b"before "[..], plant, b" after"].concat()).expect("it can be written");
        let mut hunt = Hunt::new([Mark::new("it", KEY)]);
        hunt.files(field.folder.path(), &|_| false)
            .expect("all files can be read");
        let place = format!("{}: it ", file.display());
        assert!(
            !hunt.found.is_empty() && hunt.found.iter().all(|it| it.starts_with(&place)),
            "{:?}",
            hunt.found
        );
        fs::remove_file(file).expect("it can be deleted");
    }
    let mut waits = Command::new("sh");
    waits
        .args(["-c", "echo; read line", "sh", KEY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut waits = waits.spawn().expect("it starts");
    // Its command line is whole once it says something.
    waits
        .stdout
        .as_mut()
        .expect("it is piped")
        .read_exact(&mut [0])
        .expect("it says something");
    let mut hunt = Hunt::new([Mark::new("it", KEY)]);
    hunt.commands();
    drop(waits.stdin.take());
    waits.wait().expect("it ends");
    assert!(
        hunt.found
            .iter()
            .any(|it| it.starts_with("the command line of ")),
        "{:?}",
        hunt.found
    );
}
