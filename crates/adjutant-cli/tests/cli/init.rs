//! `adjutant init`: a manifest that runs at once, and takes no other one's place.

use std::fs;

use crate::command::{Seen, adjutant, seen};

fn run(folder: &std::path::Path, args: &[&str]) -> Seen {
    let mut command = adjutant(args);
    command.current_dir(folder);
    seen(command)
}

const NEXT: &str = "next: `adjutant up` runs it, `adjutant manifest check` checks it\n";

#[test]
fn init_writes_a_manifest_that_is_right() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    run(folder.path(), &["init"]).check(0, "adjutant.yaml\n", NEXT);
    run(folder.path(), &["manifest", "check"]).check(0, "", "errors: 0, warnings: 0\n");
    run(folder.path(), &["init", "sub/agent"]).check(0, "sub/agent/adjutant.yaml\n", NEXT);
    run(
        folder.path(),
        &["manifest", "check", "sub/agent/adjutant.yaml"],
    )
    .check(0, "", "errors: 0, warnings: 0\n");
}

#[test]
fn init_calls_the_agent_as_the_readme_does() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    run(folder.path(), &["init"]);
    let seen = run(folder.path(), &["manifest", "show"]);
    let name = seen
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("name: "))
        .expect("it has one")
        .to_owned();
    let command = format!("adjutant agent prompt {name} \"");
    for text in [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/lifecycle.md"),
    ] {
        assert!(text.contains(&command), "{command}");
    }
}

#[test]
fn init_keeps_what_is_there_unless_it_is_forced() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("adjutant.yaml");
    fs::write(&file, "mine").expect("it can be written");
    let refused = "error: there is a manifest already: adjutant.yaml\nhint: --force replaces it\n";
    run(folder.path(), &["init"]).check(2, "", refused);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
    run(folder.path(), &["init", "--force"]).check(0, "adjutant.yaml\n", NEXT);
    assert!(
        fs::read_to_string(&file)
            .expect("it is there")
            .starts_with("# An agent.")
    );
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it is there").collect();
    assert_eq!(left.len(), 1);
}

#[cfg(unix)]
#[test]
fn init_follows_no_link() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink("elsewhere", folder.path().join("adjutant.yaml")).expect("a link");
    assert_eq!(run(folder.path(), &["init"]).code, Some(2));
    assert_eq!(run(folder.path(), &["init", "--force"]).code, Some(0));
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn init_is_refused_when_the_folder_is_a_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("taken"), "").expect("it can be written");
    let seen = run(folder.path(), &["init", "taken"]);
    assert_eq!(seen.code, Some(2), "{seen:#?}");
    assert!(
        seen.stderr
            .starts_with("error: cannot write the manifest: taken/adjutant.yaml\ncaused by: "),
        "{seen:#?}"
    );
}
