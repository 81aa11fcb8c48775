//! What a search of 100,000 files takes, beside ripgrep on two threads.

use std::{fs, path::Path, process::Command, process::ExitCode, time::Instant};

use adjutant_benches::{Rows, median};
use adjutant_tool::{CallContext, Cancel, Detached, Identity};
use adjutant_toolkit::Files;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Builder;

const FOLDERS: usize = 500;
/// How many files stand in a folder.
const FILES: usize = 200;
/// How many files have one line that is found.
const FOUND: usize = 100;
const ROUNDS: usize = 7;
/// How many times longer than ripgrep it may take.
const LIMIT: f64 = 2.0;

fn main() -> ExitCode {
    let mut rows = Rows::default();
    let what = format!("a search of {} files over `rg -j2`", FOLDERS * FILES);
    if Command::new("rg").arg("--version").output().is_err() {
        rows.skipped(&what, "there is no rg");
        return rows.end();
    }
    let folder = TempDir::new().expect("a folder");
    make(folder.path());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let both = (search(folder.path()), ripgrep(folder.path()));
        // The first round warms the cache of the system.
        if round > 0 {
            ours.push(both.0);
            theirs.push(both.1);
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    rows.row(
        &what,
        &format!("{:.0} and {:.0} ms", ours * 1e3, theirs * 1e3),
        ours / theirs,
        LIMIT,
    );
    rows.end()
}

fn make(root: &Path) {
    let line = "    let value = compute(previous, &options).unwrap_or_default();\n";
    let text = line.repeat(16);
    for folder in 0..FOLDERS {
        let at = root.join(format!("part{:02}/folder{folder:03}", folder % 20));
        fs::create_dir_all(&at).expect("a folder");
        for file in 0..FILES {
            let number = folder * FILES + file;
            let end = if number.is_multiple_of(FOLDERS * FILES / FOUND) {
                "let needle = 1;\n"
            } else {
                ""
            };
            fs::write(
                at.join(format!("file{file:03}.rs")),
                format!("// {number}\n{text}{end}"),
            )
            .expect("a file");
        }
    }
}

/// Seconds of one search by the tool.
fn search(root: &Path) -> f64 {
    let tools = Files::new(root).expect("a folder").toolbox();
    let tool = tools
        .toolset()
        .get("search_text")
        .expect("the toolbox holds it")
        .clone();
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let who = Identity::root("bench".into(), "bench", "bench");
    let cx = CallContext::new(who.into(), Cancel::new(), std::sync::Arc::new(Detached));
    let args = json!({"pattern": r"need\w+ = \d", "max_results": 1000});
    let begun = Instant::now();
    let result = runtime.block_on(tool.call(args, cx)).expect("matches");
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(result.details["matches"], FOUND, "{}", result.text());
    assert_eq!(result.details["files_searched"], FOLDERS * FILES);
    took
}

/// Seconds of one search by ripgrep.
fn ripgrep(root: &Path) -> f64 {
    let mut command = Command::new("rg");
    command
        .args(["--no-config", "-j2", "-n", r"need\w+ = \d"])
        .arg(root);
    let begun = Instant::now();
    let output = command.output().expect("a program starts");
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(
        output.stdout.split(|byte| *byte == b'\n').count(),
        FOUND + 1
    );
    took
}
