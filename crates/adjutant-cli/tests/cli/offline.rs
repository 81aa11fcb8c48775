//! Without any language model: the planner really looks.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{adjutant, seen};

/// A cargo workspace of two crates.
fn workspace() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    };
    write("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
    for (name, about) in [
        ("heron", "Stands in shallow water."),
        ("kestrel", "Hovers over fields."),
    ] {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\ndescription = \"{about}\"\n"
        );
        write(&format!("crates/{name}/Cargo.toml"), &manifest);
        write(&format!("crates/{name}/src/lib.rs"), "//! A bird.\n");
    }
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

#[test]
fn run_names_the_crates_when_the_model_is_offline() {
    let dir = workspace();
    let args = [
        "run",
        "What is this directory?",
        "--root",
        text(dir.path()),
        "--model",
        "offline/planner",
    ];
    let seen = seen(adjutant(&args));
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    for name in ["heron", "kestrel"] {
        assert!(seen.stdout.contains(name), "{seen:#?}");
    }
    assert!(seen.stdout.ends_with('\n'));
    let lines: Vec<&str> = seen.stderr.lines().collect();
    assert!(lines[0].starts_with("offline: "), "{lines:#?}");
    assert!(lines[1].starts_with("→ list_files {"), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.starts_with("✓ list_files ")),
        "{lines:#?}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("✓ read_file ")),
        "{lines:#?}"
    );
    let last = lines.last().expect("there is a summary");
    assert!(
        last.starts_with("turns ") && last.ends_with("cost $0.0000"),
        "{last}"
    );
}

#[test]
fn scratch_copy_is_changed_and_run_as_the_readme_does() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"))
        .expect("it is there");
    let line = readme
        .lines()
        .find(|line| line.contains("examples/scratch"))
        .expect("the first command");
    let prompt = line.split('\'').nth(1).expect("a prompt");
    let dir = tempfile::tempdir().expect("a temporary directory");
    for name in ["README.md", "greet.sh"] {
        let from = format!(
            "{}/../../examples/scratch/{name}",
            env!("CARGO_MANIFEST_DIR")
        );
        fs::copy(from, dir.path().join(name)).expect("it is copied");
    }
    let (_, options) = line.split_once(" -- ").expect("its options");
    let options = options.split('\'').next().unwrap_or_default();
    let args: Vec<&str> = options
        .split_whitespace()
        .map(|word| match word {
            "/tmp/scratch" => text(dir.path()),
            word => word,
        })
        .chain([prompt])
        .collect();
    let seen = seen(adjutant(&args));
    if seen.stderr.contains("no command runs without a sandbox") {
        return eprintln!("SKIPPED: {}", seen.stderr);
    }
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    for part in [
        "`Greeter` is a directory",
        "-echo \"Good mornin\"\n+echo \"Good morning\"",
        "Good morning\n[exit code 0]",
    ] {
        assert!(seen.stdout.contains(part), "{part}: {seen:#?}");
    }
}

#[test]
fn json_has_real_results_when_the_model_is_offline() {
    let dir = workspace();
    let mut command = adjutant(&["run", "What is this directory?", "--json"]);
    command
        .env("ADJUTANT_MODEL", "offline/planner")
        .current_dir(dir.path());
    let seen = seen(command);
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    let events = seen.events();
    let finished =
        |event: &&Value| event["event"] == "tool_finished" && event["name"] == "list_files";
    let listed = events
        .iter()
        .find(finished)
        .expect("the directory was listed");
    let listing = listed["result"]["content"][0]["text"]
        .as_str()
        .expect("the result is text");
    assert!(listing.contains("crates/kestrel/Cargo.toml"), "{listing}");
    assert_eq!(
        (&events[0]["event"], &events[events.len() - 1]["event"]),
        (&"run_started".into(), &"run_finished".into())
    );
    let lines: Vec<&str> = seen.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert_eq!(lines[0], "model: offline/planner (ADJUTANT_MODEL names it)");
    assert!(
        lines[1].starts_with("offline: ") && lines[2].starts_with("turns "),
        "{lines:#?}"
    );
}

#[test]
fn stderr_is_empty_when_the_run_is_quiet() {
    let dir = workspace();
    let args = [
        "run",
        "What is this directory?",
        "--root",
        text(dir.path()),
        "-qm",
        "offline/planner",
    ];
    let seen = seen(adjutant(&args));
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    assert!(seen.stdout.contains("heron"), "{}", seen.stdout);
}
