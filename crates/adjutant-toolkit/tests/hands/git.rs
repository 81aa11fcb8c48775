//! git looks, changes nothing, and runs nothing that a repository names.

use std::{fs, path::Path, process::Command};

use adjutant_toolkit::{Git, Sandbox, Shell};
use serde_json::json;

use super::{said, tell};

pub(super) fn git(at: &Path, words: &[&str]) {
    output(at, words);
}

/// Runs git outside of any sandbox; returns what it prints.
pub(super) fn output(at: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args([
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "init.defaultBranch=main",
    ]);
    let output = command
        .args(words)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git");
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn git_shows_a_repository_and_runs_none_of_its_programs() {
    let sandbox = Sandbox::new();
    if let Some(why) = sandbox.refuses() {
        return tell(format_args!("SKIPPED: {why}"));
    }
    let place = tempfile::tempdir().expect("a folder");
    let at = place.path();
    let tools = Git::new(at, sandbox).expect("a folder").toolbox();
    assert_eq!(
        said(&tools, "git_status", json!({})),
        "this folder is in no git repository"
    );
    git(at, &["init", "-q"]);
    fs::write(at.join("a.txt"), "one\n").expect("a file");
    git(at, &["add", "."]);
    git(at, &["commit", "-q", "-m", "The first"]);
    fs::write(at.join("a.txt"), "two\n").expect("a file");
    fs::write(at.join("b.txt"), "new\n").expect("a file");
    let evil = at.join("evil.sh");
    fs::write(&evil, "#!/bin/sh\necho PWNED >&2\ntouch PWNED\ncat\n").expect("a file");
    fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    let evil = evil.to_str().expect("a plain name");
    fs::write(
        at.join(".gitattributes"),
        "*.txt diff=evil filter=o\u{200b}dd\n",
    )
    .expect("a file");
    for name in [
        "core.fsmonitor",
        "filter.o\u{200b}dd.clean",
        "filter.o\u{200b}dd.process",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.pager",
    ] {
        git(at, &["config", name, evil]);
    }
    let status = said(&tools, "git_status", json!({}));
    assert_eq!(
        status,
        "## main\n M a.txt\n?? .gitattributes\n?? b.txt\n?? evil.sh"
    );
    let diff = said(&tools, "git_diff", json!({ "path": "a.txt" }));
    assert!(diff.ends_with("@@ -1 +1 @@\n-one\n+two"), "{diff}");
    assert_eq!(
        said(&tools, "git_diff", json!({ "staged": true })),
        "[nothing]"
    );
    let log = said(&tools, "git_log", json!({ "count": 5 }));
    assert!(
        log.ends_with("A: The first") && !log.contains('\n'),
        "{log}"
    );
    assert_eq!(
        said(&tools, "git_log", json!({ "revision": "--output=x" })),
        "a revision does not begin with a dash"
    );
    assert!(said(&tools, "git_log", json!({ "revision": "nothing" })).contains("bad revision"));
    assert!(!at.join("PWNED").exists() && !at.join("x").exists());
}

/// git's tools and commands from a directory below the top, a linked worktree and a submodule, in every sandbox.
#[test]
fn git_works_from_every_kind_of_directory() {
    for sandbox in [Sandbox::landlock(), Sandbox::bwrap()] {
        if let Some(why) = sandbox.refuses() {
            tell(format_args!("SKIPPED: {why}"));
            continue;
        }
        let place = tempfile::tempdir().expect("a folder");
        let main = place.path().join("main");
        for at in [&main, &place.path().join("module")] {
            fs::create_dir_all(at.join("app")).expect("a folder");
            fs::write(at.join("app/a"), "one\n").expect("a file");
            git(at, &["init", "-q"]);
            git(at, &["add", "."]);
            git(at, &["commit", "-q", "-m", "The first"]);
        }
        git(&main, &["worktree", "add", "-q", "../linked"]);
        let allow = "protocol.file.allow=always";
        git(
            &main,
            &[
                "-c",
                allow,
                "submodule",
                "--quiet",
                "add",
                "../module",
                "sub",
            ],
        );
        for below in ["main", "main/app", "linked", "main/sub"] {
            let at = place.path().join(below);
            let tools = Git::new(&at, sandbox.clone()).expect("a folder").toolbox();
            let shell = Shell::new(&at, sandbox.clone()).expect("a shell").toolbox();
            fs::write(at.join("new"), below).expect("a file");
            let status = said(&tools, "git_status", json!({}));
            assert!(status.contains("?? new"), "{below}: {status}");
            let command = "git add new && git -c user.name=B -c user.email=b@example.org commit -qm 'Add new' && git status --short new";
            let shown = said(&shell, "run_command", json!({ "command": command }));
            assert_eq!(shown, "[no output]\n[exit code 0]", "{below}");
            let log = said(&tools, "git_log", json!({ "count": 1 }));
            assert!(log.ends_with("B: Add new"), "{below}: {log}");
            assert_eq!(
                said(&tools, "git_diff", json!({ "path": "new" })),
                "[nothing]",
                "{below}"
            );
            let wrong = said(&tools, "git_diff", json!({ "revision": "nothing" }));
            assert!(!wrong.contains('\n'), "{below}: {wrong}");
        }
    }
}
