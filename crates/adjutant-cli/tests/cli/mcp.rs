//! Servers of the Model Context Protocol: files that mean harm or are wrong, servers that are added, trusted, tried and used.

mod login;
mod talked;

use std::{fs, os::unix::fs::symlink, process::Command};

use adjutant::llm::Script;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Seen, Vendor, adjutant, says, seen, serve, usage};

/// A user with a home, and a directory to work on.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().expect("a temporary directory"),
        };
        place.write("home/.keep", "");
        place.write("work/notes.txt", "Herons stand.\n");
        place
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    /// The home of a server, which is apart for each directory.
    fn home_of(&self, server: &str) -> std::path::PathBuf {
        let homes = fs::read_dir(self.path("home/.local/share/adjutant/mcp"));
        let mut homes = homes.into_iter().flatten().flatten();
        let home = homes.next().map(|home| home.path().join(server));
        home.unwrap_or_default()
    }

    fn file(&self) -> String {
        fs::read_to_string(self.path("work/.mcp.json")).expect("it is there")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = adjutant(args);
        command
            .current_dir(self.path("work"))
            .env("HOME", self.path("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn see(&self, args: &[&str]) -> Seen {
        let mut seen = seen(self.command(args));
        let root = self
            .folder
            .path()
            .canonicalize()
            .expect("it is there")
            .display()
            .to_string();
        (seen.stdout, seen.stderr) = (
            seen.stdout.replace(&root, "PLACE"),
            seen.stderr.replace(&root, "PLACE"),
        );
        seen
    }
}

/// A file of one server with these fields.
fn one(fields: Value) -> String {
    json!({ "mcpServers": { "a": fields } }).to_string()
}

#[test]
fn file_that_is_wrong_or_hostile_is_told_and_starts_nothing() {
    let many: serde_json::Map<String, Value> = (0..65)
        .map(|n| (n.to_string(), json!({ "command": "x" })))
        .collect();
    let touches = json!({ "command": "touch", "args": ["ran"] });
    let table = [
        (String::new(), "it is no JSON"),
        ("{} {}".to_owned(), "it is no JSON"),
        ("[".repeat(100_000), "recursion limit exceeded"),
        ("[]".to_owned(), "it holds no object"),
        ("{}".to_owned(), "it names no servers"),
        (
            json!({ "mcpServers": [] }).to_string(),
            "`mcpServers` is no object",
        ),
        (
            json!({ "mcpServers": many }).to_string(),
            "it names more than 64 servers",
        ),
        (
            format!(
                "{{\"mcpServers\": {{}}, \"x\": \"{}\"}}",
                "x".repeat(1 << 20)
            ),
            "1048576 bytes",
        ),
        (one(json!(3)), "a: it is no object; it is not used"),
        (
            one(json!({})),
            "a: a server has either a `command` or a `url`",
        ),
        (
            one(json!({ "command": "x", "url": "https://x.example" })),
            "either a `command` or a `url`",
        ),
        (
            one(json!({ "type": "sse", "url": "https://x.example/sse" })),
            "`sse` of older revisions is not spoken here",
        ),
        (
            one(json!({ "type": "websocket", "url": "https://x.example" })),
            "there is no type \"websocket\"",
        ),
        (
            one(json!({ "url": "file:///etc/passwd" })),
            "this is no address of a server",
        ),
        (
            one(json!({ "url": "https://ada:pass@x.example" })),
            "its address holds a user or a password",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}"#.to_owned(),
            "it says `mcpServers` twice",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "command": "y"}}}"#.to_owned(),
            "it says `command` twice",
        ),
        (
            json!({ "servers": { "a\u{200b}b": { "command": "x" } } }).to_string(),
            "all of which show",
        ),
        (one(json!({ "command": "x", "args": [1] })), "invalid type"),
        (
            one(json!({ "command": "x", "args": ["${A"] })),
            "a variable does not end",
        ),
        (
            one(json!({ "command": "x", "env": { "T": "${input:token}" } })),
            "it asks for an input, as only VS Code does",
        ),
        (
            one(json!({ "command": "x", "comand": "y" })),
            "`comand` is not heeded; hint: the nearest is `command`",
        ),
        (
            one(json!({ "command": "x", "timeout": 5000 })),
            "`timeout` is not heeded",
        ),
        (
            one(json!({ "command": "x", "disabled": true })),
            "a: it is disabled",
        ),
        (
            json!({ "servers": { "a\u{1b}[31m": { "command": "x" } } }).to_string(),
            "a name is one line",
        ),
        (
            one(touches.clone()),
            "nobody trusts its servers: 1 not used",
        ),
        (
            json!({ "servers": { "a": touches } }).to_string(),
            "nobody trusts its servers: 1 not used",
        ),
    ];
    let place = Place::new();
    for (text, expect) in table {
        place.write("work/.mcp.json", &text);
        let seen = place.see(&["mcp", "list"]);
        let start = text.get(..80).unwrap_or(&text);
        assert!(
            seen.code == Some(0) && seen.stderr.contains(expect),
            "{start}: {seen:#?}"
        );
        let is_plain = !seen.stderr.contains(['\u{1b}', '\u{200b}'])
            && !seen.stderr.contains("there is no server");
        assert!(
            is_plain && !place.path("work/ran").exists(),
            "{start}: {seen:#?}"
        );
    }
    let twice = r#"{"mcpServers": {}, "mcpServers": {}}"#;
    place.write("work/.mcp.json", twice);
    let added = place.see(&["mcp", "add", "a", "--", "touch", "ran"]);
    assert!(added.code == Some(2) && place.file() == twice, "{added:#?}");
    fs::remove_file(place.path("work/.mcp.json")).expect("it is there");
    fs::create_dir(place.path("work/.mcp.json")).expect("a directory");
    for args in [
        &["mcp", "list"][..],
        &["mcp", "add", "a", "--", "touch", "ran"],
    ] {
        assert!(
            place
                .see(args)
                .stderr
                .contains("it is a directory, and no file of servers"),
            "{args:?}"
        );
    }
    fs::remove_dir(place.path("work/.mcp.json")).expect("it is there");
    place.write("elsewhere.json", &one(json!({ "command": "x" })));
    symlink(place.path("elsewhere.json"), place.path("work/.mcp.json")).expect("a link");
    assert!(
        place
            .see(&["mcp", "list"])
            .stderr
            .contains("it is no plain file, and a link is none")
    );
    fs::remove_file(place.path("work/.mcp.json")).expect("it is there");
    place.write("work/.mcp.json", &one(json!({ "command": "x" })));
    // Only root can give a file away.
    if std::os::unix::fs::chown(place.path("work/.mcp.json"), Some(12_345), None).is_ok() {
        assert!(
            place
                .see(&["mcp", "list"])
                .stderr
                .contains("it belongs to another user, and is not believed")
        );
    }
}

#[test]
fn server_is_added_beside_others_trusted_by_content_and_removed() {
    let place = Place::new();
    let before = "{\n    \"mcpServers\": {\n        \"other\": {\"command\": \"no-such-tool\", \"x\": 1}\n    },\n    \"z\": [1,2]\n}\n";
    place.write("work/.mcp.json", before);
    let add = [
        "mcp",
        "add",
        "docs",
        "--url",
        "https://mcp.example.org/mcp",
        "--header",
        "Authorization=Bearer ${DOCS_TOKEN}",
    ];
    let seen = place.see(&add);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "added docs to ./.mcp.json\n"),
        "{seen:#?}"
    );
    let docs = "\n        \"docs\": {\n            \"type\": \"http\",\n            \"url\": \"https://mcp.example.org/mcp\",\n            \
                \"headers\": {\n                \"Authorization\": \"Bearer ${DOCS_TOKEN}\"\n            }\n        }";
    let other = "\"other\": {\"command\": \"no-such-tool\", \"x\": 1}";
    assert_eq!(
        place.file(),
        before.replace(other, &format!("{other},{docs}"))
    );
    let again = place.see(&add);
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert!(
        again
            .stderr
            .contains("there is a server docs already\nhint: `adjutant mcp remove docs` first"),
        "{again:#?}"
    );
    // What stood there was not trusted, and adding to it does not change that.
    let listed = place.see(&["mcp", "list"]);
    let rows: Vec<Vec<&str>> = listed
        .stdout
        .lines()
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    assert_eq!(
        rows,
        [
            ["other", "project", "untrusted"],
            ["docs", "project", "untrusted"]
        ],
        "{listed:#?}"
    );
    let trust = place.see(&["trust", ".mcp.json", "--yes"]);
    assert_eq!(trust.code, Some(0), "{trust:#?}");
    for line in [
        "the file .mcp.json wants:",
        "program: \"no-such-tool\", as the server other in \"PLACE/work\", with the network",
        "address: https://mcp.example.org/mcp, as the server docs, with the headers {\"Authorization\":\"Bearer ${DOCS_TOKEN}\"}",
    ] {
        assert!(trust.stderr.contains(line), "{line}: {trust:#?}");
    }
    let listed = place.see(&["mcp", "list", "--json"]);
    assert!(
        listed.stderr.contains("the variable DOCS_TOKEN is not set"),
        "{listed:#?}"
    );
    assert!(
        listed
            .stderr
            .contains("no folder of PATH has a program of this name: no-such-tool"),
        "{listed:#?}"
    );
    assert_eq!(
        place.see(&["mcp", "remove", "docs"]).stdout,
        "removed docs from ./.mcp.json\n"
    );
    assert_eq!(place.file(), before);
    let gone = place.see(&["mcp", "remove", "docs"]);
    assert!(
        gone.code == Some(2) && gone.stderr.contains("there is no server docs"),
        "{gone:#?}"
    );
    let unknown = place.see(&["mcp", "test", "othr"]);
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("hint: the nearest are other"),
        "{unknown:#?}"
    );
    // What came of the removal is trusted still; what somebody else writes is not.
    assert!(!place.see(&["mcp", "list"]).stdout.contains("untrusted"));
    place.write(
        "work/.mcp.json",
        &before.replace("\"x\": 1", "\"args\": [\"-rf\"]"),
    );
    assert!(place.see(&["mcp", "list"]).stdout.contains("untrusted"));
    let mine = place.see(&["mcp", "add", "mine", "--user", "--", "no-such-tool"]);
    assert!(
        mine.code == Some(0)
            && mine
                .stderr
                .contains("no folder of PATH has a program of this name"),
        "{mine:#?}"
    );
    let keyed = place.see(&[
        "mcp",
        "add",
        "keyed",
        "--url",
        "https://x.example/mcp?team=a&api_key=hush",
    ]);
    assert!(
        keyed.code == Some(0)
            && keyed
                .stderr
                .contains("warning: a credential stands in the file"),
        "{keyed:#?}"
    );
    assert!(place.path("home/.config/adjutant/mcp.json").is_file());
}

#[test]
fn program_that_dies_at_once_is_told_at_once_with_its_last_words() {
    let place = Place::new();
    let script = "echo count >> $HOME/starts; for i in $(seq 100); do echo noise $i; done >&2; echo no key was given >&2; exit 3";
    let added = place.see(&["mcp", "add", "a", "--write", ".", "--", "sh", "-c", script]);
    assert_eq!(added.code, Some(0), "{added:#?}");
    let tried = place.see(&["mcp", "test", "a"]);
    assert!(
        tried.code == Some(1)
            && tried
                .stderr
                .contains("no key was given\nerror: MCP server \"a\": "),
        "{tried:#?}"
    );
    let starts = fs::read_to_string(place.home_of("a").join("starts")).expect("it was started");
    assert_eq!(starts.lines().count(), 2, "{tried:#?}");
}

/// The manifest that is served.
const SERVED: &str = "name: helper\ndescription: Knows the birds of this folder.\nmodel: offline/planner\ntoolboxes: [{name: files, root: .}]\nrules: {ask: [read(a.txt)], deny: [read(b.txt)]}\n";

#[test]
fn agent_that_is_served_is_a_tool_of_another_and_waits_for_a_word() {
    let place = Place::new();
    place.write("work/adjutant.yaml", SERVED);
    let program = env!("CARGO_BIN_EXE_adjutant");
    let added = place.see(&[
        "mcp",
        "add",
        "crew",
        "--no-network",
        "--",
        program,
        "mcp",
        "serve",
        "adjutant.yaml",
    ]);
    assert_eq!(added.code, Some(0), "{added:#?}");
    // Without bubblewrap nothing could keep what it must not change.
    let told = [
        "changes its directory, has no network",
        "reads its directory, has no network\nnothing here can keep",
    ];
    assert!(
        told.iter()
            .any(|it| added.stderr.contains(&format!("in its sandbox it {it}"))),
        "{added:#?}"
    );
    let tried = place.see(&["mcp", "test", "crew"]);
    assert_eq!(tried.code, Some(0), "{tried:#?}");
    for line in [
        "server    helper ",
        "revision  2026-07-28",
        "tools     4",
        "  crew_helper",
        "  crew_read_file (only reads, may be repeated)",
        ": Knows the birds of this folder.",
    ] {
        assert!(tried.stdout.contains(line), "{line}: {tried:#?}");
    }
    let listed = place.see(&["mcp", "list", "--json"]).events();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["tools"]),
        (&json!("up"), &json!(4)),
        "{listed:#?}"
    );
    let call = Script::new()
        .call("crew_helper", json!({"prompt": "What is in this folder?"}))
        .usage(usage());
    let server = serve([call, says("Herons.")]);
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command
            .envs(Vendor::Anthropic.variables(&server))
            .env("ADJUTANT_MODEL", Vendor::Anthropic.model());
        seen(command)
    };
    let waits = run(&["run", "Ask the helper.", "--session", "s", "--retries", "0"]);
    assert_eq!(waits.code, Some(5), "{waits:#?}");
    assert!(waits.stderr.contains("crew_helper"), "{waits:#?}");
    let done = run(&["resume", "s", "--approve", "--retries", "0"]);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "Herons.\n"),
        "{done:#?}"
    );
    let last =
        String::from_utf8_lossy(&server.requests().last().expect("it was asked").body).into_owned();
    assert!(
        last.contains("notes.txt"),
        "the answer of the agent that was served: {last}"
    );
    // Equally named servers of other folders have other homes.
    let homes = fs::read_dir(place.path("home/.local/share/adjutant/mcp"))
        .expect("homes")
        .flatten();
    assert_eq!(
        homes.filter(|it| it.path().join("crew").is_dir()).count(),
        1
    );
    // Its tools are under its rules: what those ask, the client is asked, and what they deny is done for nobody.
    let calls = |tool: &str, args: Value| Script::new().call(tool, args).usage(usage());
    for (path, is_asked, expect) in [
        ("notes.txt", false, "Herons stand."),
        ("a.txt", true, "Hi"),
        ("b.txt", false, "is denied"),
    ] {
        place.write("work/a.txt", "Hi\n");
        let server = serve([
            calls("crew_read_file", json!({ "path": path })),
            says("Read."),
        ]);
        let run = |args: &[&str]| {
            let mut command = place.command(args);
            command
                .envs(Vendor::Anthropic.variables(&server))
                .env("ADJUTANT_MODEL", Vendor::Anthropic.model());
            seen(command)
        };
        let waits = run(&["run", "Read.", "--session", path, "--retries", "0"]);
        assert_eq!(waits.code, Some(5), "{path}: {waits:#?}");
        let mut seen = run(&["resume", path, "--approve", "--retries", "0"]);
        if is_asked {
            assert!(
                seen.code == Some(5) && seen.stderr.contains("rule `ask read(a.txt)`"),
                "{path}: {seen:#?}"
            );
            seen = run(&[
                "resume",
                path,
                "--answer",
                "main/c1_0_0/ask-0-0={}",
                "--retries",
                "0",
            ]);
        }
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "Read.\n"),
            "{path}: {seen:#?}"
        );
        let last = String::from_utf8_lossy(&server.requests().last().expect("it was asked").body)
            .into_owned();
        assert!(last.contains(expect), "{path}: {last}");
    }
    let untrusted = place
        .file()
        .replace("\"read\": [],", "")
        .replace("adjutant.yaml", "./adjutant.yaml");
    place.write("work/.mcp.json", &untrusted);
    let server = serve([says("Nothing.")]);
    let mut command = place.command(&[
        "run",
        "Hi",
        "--retries",
        "0",
        "-m",
        Vendor::Anthropic.model(),
    ]);
    command.envs(Vendor::Anthropic.variables(&server));
    let seen = seen(command);
    assert!(
        seen.stderr
            .contains("mcp: ./.mcp.json: warning: nobody trusts its servers: 1 not used; hint: "),
        "{seen:#?}"
    );
    let first = String::from_utf8_lossy(&server.requests()[0].body).into_owned();
    assert!(!first.contains("crew_"), "{first}");
}

#[test]
fn script_of_a_trusted_server_that_an_agent_changed_is_asked_about_again() {
    let place = Place::new();
    let script = |text: &str| format!("echo {text} > \"$HOME/ran\"\n");
    let ran = || fs::read_to_string(place.home_of("a").join("ran")).unwrap_or_default();
    place.write("work/tools/server.sh", &script("first"));
    let file = one(json!({ "command": "sh", "args": ["tools/server.sh"] }));
    place.write("work/.mcp.json", &file);
    let untrusted = "nobody trusts its servers: 1 not used";
    let seen = place.see(&["mcp", "list"]);
    assert!(
        seen.stderr.contains(untrusted) && ran().is_empty(),
        "{seen:#?}"
    );

    let seen = place.see(&["trust", ".mcp.json", "--yes"]);
    assert!(
        seen.code == Some(0) && seen.stderr.contains("the present content of 1 file below "),
        "{seen:#?}"
    );
    let seen = place.see(&["mcp", "list"]);
    assert!(!seen.stderr.contains(untrusted), "{seen:#?}");
    assert_eq!(ran(), "first\n");

    // The agent edits the script; mode `edits` asks no one.
    let edit = json!({ "path": "tools/server.sh", "old_text": "first", "new_text": "second" });
    let server = serve([
        Script::new()
            .call("read_file", json!({ "path": "tools/server.sh" }))
            .usage(usage()),
        Script::new().call("edit_file", edit).usage(usage()),
        says("Done."),
        says("Hi."),
        says("Hi."),
    ]);
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command
            .envs(Vendor::Anthropic.variables(&server))
            .env("ADJUTANT_MODEL", Vendor::Anthropic.model());
        seen_of(command)
    };
    let seen = run(&["run", "Edit it.", "--mode", "edits", "--retries", "0"]);
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    let text = fs::read_to_string(place.path("work/tools/server.sh")).expect("it is there");
    assert_eq!(text, script("second"));

    // The next start of any command does not start it.
    fs::remove_file(place.home_of("a").join("ran")).expect("it is removed");
    for args in [
        &["mcp", "list"][..],
        &["run", "Hi.", "--mode", "edits", "--retries", "0"],
        &["run", "Hi.", "--mode", "all", "--retries", "0"],
    ] {
        let seen = run(args);
        assert!(seen.stderr.contains(untrusted), "{args:?}: {seen:#?}");
        assert_eq!(ran(), "", "{args:?}");
    }
    let seen = place.see(&["trust", ".mcp.json", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    let seen = place.see(&["mcp", "list"]);
    assert!(!seen.stderr.contains(untrusted), "{seen:#?}");
    assert_eq!(ran(), "second\n");
}

fn seen_of(command: Command) -> Seen {
    seen(command)
}
