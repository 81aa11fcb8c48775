//! The sandbox settings of the user and of a directory, and the description of the environment for the model.

use std::{
    fs,
    io::Read,
    net::TcpListener,
    path::{Path, PathBuf},
};

use adjutant::{llm::Script, toolkit::Sandbox};
use adjutant_testing::Loopback;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Seen, Vendor, adjutant, says, seen, serve, usage};

/// A user with a home, a directory to work in, and files outside of both.
struct Place {
    folder: TempDir,
}

impl Place {
    /// `None` if no sandbox works on this machine.
    fn new() -> Option<Self> {
        Sandbox::bwrap().refuses().is_none().then_some(())?;
        let place = Self {
            folder: tempfile::tempdir().expect("a directory"),
        };
        place.write("work/notes.txt", "Herons stand.\n");
        place.write("data/text", "from outside\n");
        place.write("out/old", "old\n");
        Some(place)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .expect("a path")
            .join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    /// Runs a command line in a session; returns the result that the model received, and what a person saw.
    fn run(&self, line: &str, args: &[&str]) -> (String, Seen) {
        let line = line.replace("{place}", self.path("").to_str().expect("text"));
        let script = Script::new()
            .call("run_command", json!({ "command": line }))
            .usage(usage());
        let server = serve([script, says("Done.")]);
        let seen = self.ask(&server, &[&["run", "Go", "--mode", "all"], args].concat());
        assert_eq!(seen.code, Some(0), "{seen:#?}");
        let body = server.requests()[1].json();
        let messages = body["messages"].as_array().expect("messages");
        let is_result = |part: &&Value| part["type"] == "tool_result";
        let mut parts = messages
            .iter()
            .flat_map(|message| message["content"].as_array().into_iter().flatten());
        let result = parts.rfind(is_result).expect("a result");
        (texts(&result["content"]), seen)
    }

    fn ask(&self, server: &Loopback, args: &[&str]) -> Seen {
        let mut command = adjutant(args);
        command
            .current_dir(self.path("work"))
            .envs(Vendor::Anthropic.variables(server))
            .env("ADJUTANT_MODEL", Vendor::Anthropic.model())
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TEST_VALUE", "handed on");
        seen(command)
    }
}

/// The texts of a content.
fn texts(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(|part| texts(&part["text"])).collect(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

/// The permissions of the settings: a file to read, a directory to write, a variable.
const LINE: &str = "cat {place}data/text; echo new >{place}out/new; echo value $TEST_VALUE";

#[test]
fn settings_and_options_open_the_sandbox_for_a_command() {
    let Some(place) = Place::new() else {
        return;
    };
    let (closed, _) = place.run(LINE, &[]);
    assert!(
        !closed.contains("from outside") && !closed.contains("handed on"),
        "{closed}"
    );
    assert!(!place.path("out/new").exists());
    let (data, out) = (place.path("data"), place.path("out"));
    let [data, out] = [&data, &out].map(|path| path.to_str().expect("text"));
    let options = [
        "--allow-read",
        data,
        "--allow-write",
        out,
        "--env",
        "TEST_VALUE",
    ];
    let open = "from outside\nvalue handed on\n[exit code 0]";
    assert_eq!(place.run(LINE, &options).0, open);
    assert!(fs::remove_file(place.path("out/new")).is_ok());
    let text = format!("sandbox:\n  read: {data}\n  write: [{out}]\n  env: TEST_VALUE\n");
    place.write("home/.config/adjutant/settings.yaml", &text);
    assert_eq!(place.run(LINE, &[]).0, open);
    assert!(fs::remove_file(place.path("out/new")).is_ok());
}

#[test]
fn settings_of_a_directory_only_restrict_until_it_is_trusted() {
    let Some(place) = Place::new() else {
        return;
    };
    place.write(
        "work/.adjutant/settings.yaml",
        "sandbox: {read: ../../data, write: ../../out, env: TEST_VALUE, network: all}\n",
    );
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        listener
            .incoming()
            .flatten()
            .for_each(|mut stream| drop(stream.read(&mut [0; 8])))
    });
    let reach =
        format!("{LINE}; bash -c 'echo >/dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo reached");
    let (closed, seen) = place.run(&reach, &[]);
    assert!(
        !["from outside", "handed on", "reached"]
            .iter()
            .any(|text| closed.contains(text)),
        "{closed}"
    );
    assert!(
        seen.stderr.contains(".adjutant/settings.yaml: warning: ")
            && seen.stderr.contains("--trust"),
        "{}",
        seen.stderr
    );
    let (open, _) = place.run(&reach, &["--trust"]);
    assert_eq!(
        open,
        "from outside\nvalue handed on\nreached\n[exit code 0]"
    );
    assert!(
        place
            .run(&reach, &["--network", "all"])
            .0
            .contains("reached")
    );
    // The network of the user, taken away by the directory.
    place.write(
        "home/.config/adjutant/settings.yaml",
        "sandbox: {network: all}\n",
    );
    place.write("work/.adjutant/settings.yaml", "sandbox: {network: none}\n");
    assert!(!place.run(&reach, &[]).0.contains("reached"));
    fs::remove_file(place.path("work/.adjutant/settings.yaml")).expect("a file");
    assert!(place.run(&reach, &[]).0.contains("reached"));
}

#[test]
fn refusal_names_the_option_to_the_model_and_to_the_person() {
    let Some(place) = Place::new() else {
        return;
    };
    place.write("home/.netrc", "machine a password b\n");
    // (line, option)
    let table = [
        ("cat {place}data/text", "--allow-read {place}data/text"),
        ("echo x >{place}out/new", "--allow-write {place}out"),
        ("cat {place}home/.netrc", "with --allow-read"),
        (
            "python3 -c 'import socket; socket.getaddrinfo(\"a.example\", 80)'",
            "--network HOST",
        ),
    ];
    for (line, option) in table {
        if line.contains("python3") && !Path::new("/usr/bin/python3").exists() {
            continue;
        }
        let option = option.replace("{place}", place.path("").to_str().expect("text"));
        let (model, person) = place.run(line, &[]);
        assert!(
            model.contains(&option) && model.contains("hint: the user can"),
            "{line}: {model}"
        );
        assert!(person.stderr.contains(&option), "{line}: {}", person.stderr);
    }
}

#[test]
fn environment_is_in_the_system_prompt_and_stays_the_same() {
    let Some(place) = Place::new() else {
        return;
    };
    place.write("other/notes.txt", "");
    let server = serve([says("One."), says("Two."), says("Three.")]);
    for args in [
        &["run", "Go", "--session", "s"][..],
        &["run", "More", "--session", "s"],
        &["run", "More", "--session", "s", "--root", "../other"],
    ] {
        let seen = place.ask(&server, args);
        assert_eq!(seen.code, Some(0), "{seen:#?}");
    }
    let bodies: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| request.json())
        .collect();
    let system = texts(&bodies[0]["system"]);
    let section = system.split_once("<environment>\n").expect("a section").1;
    let lines: Vec<&str> = section.lines().collect();
    assert_eq!(
        lines[0],
        format!("Directory: {}", place.path("work").display())
    );
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a file");
    assert_eq!(
        lines[1],
        format!(
            "System: Linux {} ({})",
            release.trim(),
            std::env::consts::ARCH
        )
    );
    assert!(lines[2] == "Shell of commands: bash" || lines[2] == "Shell of commands: sh");
    assert!(lines[3].starts_with("Date (UTC): 20"), "{}", lines[3]);
    assert_eq!((lines[4], lines.len()), ("</environment>", 5));
    assert_eq!(bodies[0]["system"], bodies[1]["system"]);
    assert_eq!(bodies[0]["messages"][0], bodies[1]["messages"][0]);
    // Changes of the directory or the date are appended.
    assert_eq!(bodies[0]["system"], bodies[2]["system"]);
    let messages = |body: &Value| {
        body["messages"]
            .to_string()
            .matches("<environment>")
            .count()
    };
    assert_eq!([0, 1, 2].map(|at| messages(&bodies[at])), [0, 0, 1]);
    let last = bodies[2]["messages"]
        .as_array()
        .and_then(|all| all.last())
        .expect("a message");
    let other = format!("Directory: {}", place.path("other").display());
    assert!(last.to_string().contains(&other), "{last}");
}
