//! What a sandboxed call costs over starting the same program by hand.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use adjutant_benches::{Rows, median};
use adjutant_tool::{CallContext, Tools};
use adjutant_toolkit::{Sandbox, Shell};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// The maximum cost of a call over a plain start, and of the first call of a session, in milliseconds.
const OVER: [(&str, f64, f64); 2] = [("landlock", 3.0, 30.0), ("bwrap", 15.0, 30.0)];
/// A directory, and the number of its directories of 20 files each.
const PLACES: [(&str, usize); 3] = [
    ("a small directory", 2),
    ("a repository", 60),
    ("20,000 files", 1_000),
];
const CALLS: usize = 101;
const SESSIONS: usize = 21;

fn main() -> ExitCode {
    let mut rows = Rows::default();
    let base = tempfile::tempdir().expect("a folder");
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    for (place, folders) in PLACES {
        let root = base.path().join(place);
        fill(&root, folders);
        if place == "a repository" {
            git(&root, &["init", "-q"]);
            git(&root, &["add", "."]);
            git(&root, &["commit", "-q", "-m", "one"]);
        }
        for ((name, limit, first_limit), sandbox) in OVER
            .into_iter()
            .zip([Sandbox::landlock(), Sandbox::bwrap()])
        {
            if let Some(why) = sandbox.refuses() {
                rows.skipped(&format!("a call in {name}"), why);
                continue;
            }
            let shell = || {
                let shell = Shell::new(&root, sandbox.clone()).expect("a shell");
                shell.toolbox()
            };
            let sessions = (0..SESSIONS).map(|_| {
                let tools = shell();
                ms(|| call(&runtime, &tools))
            });
            let first = median(sessions.collect::<Vec<_>>());
            let tools = shell();
            call(&runtime, &tools);
            // In turns, so that both see the same machine.
            let pairs: Vec<_> = (0..CALLS)
                .map(|_| (ms(plain), ms(|| call(&runtime, &tools))))
                .collect();
            let by_hand = median(pairs.iter().map(|pair| pair.0));
            let later = median(pairs.iter().map(|pair| pair.1));
            // Landlock alone compares every directory, and nothing else takes time there.
            let is_walk = name == "landlock" && place == "20,000 files";
            let limit = if is_walk { f64::INFINITY } else { limit };
            for (which, took, limit) in [("a", later, limit), ("a first", first, first_limit)] {
                rows.row(
                    &format!("{which} call in {name} over a plain start, {place}, ms"),
                    &format!("{took:.2} ms, by hand {by_hand:.2} ms"),
                    took - by_hand,
                    limit,
                );
            }
        }
    }
    rows.end()
}

fn call(runtime: &Runtime, tools: &Tools) {
    let tool = tools.toolset().get("run_command").expect("a tool").clone();
    let args = json!({ "argv": ["/bin/true"] });
    let called = runtime.block_on(tool.call(args, CallContext::detached()));
    called.expect("it runs");
}

fn plain() {
    let mut command = Command::new("/bin/true");
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.output().expect("it runs");
}

fn fill(root: &Path, folders: usize) {
    for number in 0..folders {
        let folder = root.join(format!("part{}/folder{number}", number / 20));
        fs::create_dir_all(&folder).expect("a folder");
        for file in 0..20 {
            fs::write(folder.join(format!("file{file}.rs")), "").expect("a file");
        }
    }
}

fn git(root: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(root);
    assert!(command.status().expect("git runs").success());
}

fn ms(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1_000.0
}
