//! Names that decide which programs git, shells and editors run later, outside: commands cannot leave them behind.
//!
//! The effect is checked on the host. A script is run by `sh` in a repository with one commit, a directory `sub`, and some protected
//! files. Each row names the paths that must have their old content, or not exist, when the command has ended.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use adjutant_toolkit::{Sandbox, Shell};
use serde_json::json;
use tempfile::TempDir;

use super::{git::git, said, tell};

/// Attack, script, and the names that it tries to leave behind.
pub(super) const ROWS: &[(&str, &str, &[&str])] = &[
    (
        "commondir",
        "echo ../evil > .git/commondir",
        &[".git/commondir"],
    ),
    ("gitdir", "echo ../evil > .git/gitdir", &[".git/gitdir"]),
    (
        "a link as commondir",
        "ln -s ../evil .git/commondir",
        &[".git/commondir"],
    ),
    (
        "settings",
        "git config core.fsmonitor ./evil",
        &[".git/config"],
    ),
    (
        "settings by hand",
        "printf '[core]\\nfsmonitor=./evil\\n' >> .git/config",
        &[".git/config"],
    ),
    (
        "settings by rename",
        "cp .git/config c; echo '[core]' >> c; mv -f c .git/config",
        &[".git/config"],
    ),
    (
        "settings of a working tree",
        "echo '[core]' > .git/config.worktree",
        &[".git/config.worktree"],
    ),
    (
        "a hook",
        "echo evil > .git/hooks/pre-commit",
        &[".git/hooks/pre-commit"],
    ),
    (
        "a hook by rename",
        "echo evil > h; chmod +x h; mv h .git/hooks/post-checkout",
        &[".git/hooks/post-checkout"],
    ),
    (
        "another directory of hooks",
        "mv .git/hooks .git/old; mkdir .git/hooks; echo evil > .git/hooks/pre-push",
        &[".git/hooks/pre-push"],
    ),
    (
        "attributes",
        "echo '* filter=evil' > .git/info/attributes",
        &[".git/info/attributes"],
    ),
    (
        "alternates",
        "echo /tmp > .git/objects/info/alternates",
        &[".git/objects/info/alternates"],
    ),
    (
        "a module",
        "mkdir -p .git/modules/m/hooks; echo evil > .git/modules/m/hooks/post-checkout",
        &[".git/modules/m/hooks/post-checkout"],
    ),
    (
        "a working tree",
        "mkdir -p .git/worktrees/w; echo ../../../evil > .git/worktrees/w/commondir",
        &[".git/worktrees/w/commondir"],
    ),
    (
        "another .git",
        "mv .git .old; mkdir .git; echo '[core]' > .git/config",
        &[".git/config"],
    ),
    (
        "nested settings",
        "git -C sub/nested config core.pager ./evil",
        &["sub/nested/.git/config"],
    ),
    (
        "a nested hook",
        "echo evil > sub/nested/.git/hooks/pre-commit",
        &["sub/nested/.git/hooks/pre-commit"],
    ),
    (
        "a nested commondir",
        "echo ../x > sub/nested/.git/commondir",
        &["sub/nested/.git/commondir"],
    ),
    (
        "a moved directory",
        "mv sub away; mkdir -p sub/nested; git init -q sub/nested; echo evil > sub/nested/.git/hooks/pre-commit",
        &["sub/nested/.git/hooks/pre-commit"],
    ),
    (
        "a hook of a new repository",
        "git init -q new; echo evil > new/.git/hooks/post-commit",
        &["new/.git/hooks/post-commit"],
    ),
    (
        "a template with hooks",
        "mkdir -p t/hooks; echo evil > t/hooks/post-checkout; git clone -q --template=t . new",
        &["new/.git/hooks/post-checkout"],
    ),
    (
        "a buried repository",
        "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/m' > docs/HEAD; printf '[core]\\nfsmonitor=./evil\\n' > docs/config",
        &[],
    ),
    (
        "a buried repository by commondir",
        "git init -q --bare b; mkdir docs; cp b/HEAD docs; echo ../b > docs/commondir; git -C b config core.pager evil",
        &["docs/commondir"],
    ),
    (
        "a file .git",
        "git init -q --bare b; mkdir docs; echo 'gitdir: ../b' > docs/.git",
        &["docs/.git"],
    ),
    (
        "a file .git over a directory",
        "echo 'gitdir: ../x' > sub/.git",
        &["sub/.git"],
    ),
    (
        "a link .git",
        "git init -q --bare b; ln -s ../b sub/.git",
        &["sub/.git"],
    ),
    (".envrc", "echo evil > .envrc", &[".envrc"]),
    (
        ".envrc by rename",
        "echo evil > e; mv e .envrc",
        &[".envrc"],
    ),
    (
        ".envrc as a link",
        "echo evil > e; ln -s e .envrc",
        &[".envrc"],
    ),
    (".envrc below", "echo evil > sub/.envrc", &["sub/.envrc"]),
    (
        ".envrc in a replaced directory",
        "rm -rf empty; mkdir empty2; echo evil > empty2/.envrc; mv empty2 empty",
        &["empty/.envrc"],
    ),
    (".mcp.json", "echo '{}' > .mcp.json", &[".mcp.json"]),
    (
        ".adjutant",
        "mkdir .adjutant; echo 'allow shell' > .adjutant/rules",
        &[".adjutant/rules"],
    ),
    (
        "settings of cargo",
        "mkdir -p .cargo; echo '[build]' > .cargo/config.toml",
        &[".cargo/config.toml"],
    ),
    (
        "settings of cargo as a link",
        "mkdir evil; echo '[build]' > evil/config.toml; ln -s evil .cargo",
        &[".cargo"],
    ),
    (
        ".claude",
        "mkdir -p .claude; echo '{}' > .claude/settings.json",
        &[".claude/settings.json"],
    ),
    (
        "tasks of an editor",
        "echo '{}' > .vscode/tasks.json",
        &[".vscode/tasks.json"],
    ),
    (
        "settings of an editor",
        "echo evil > .vscode/settings.json",
        &[".vscode/settings.json"],
    ),
    (
        "settings of an editor, moved",
        "mv .vscode v; mkdir .vscode; echo evil > .vscode/settings.json",
        &[".vscode/settings.json"],
    ),
    (
        "a workflow",
        "mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml",
        &[".github/workflows/ci.yml"],
    ),
    (
        "hooks of husky",
        "mkdir .husky; echo evil > .husky/pre-commit",
        &[".husky/pre-commit"],
    ),
    (".npmrc", "echo 'script-shell=evil' > .npmrc", &[".npmrc"]),
    ("instructions", "echo evil >> AGENTS.md", &["AGENTS.md"]),
    ("instructions, removed", "rm -f AGENTS.md", &["AGENTS.md"]),
    (
        "instructions by rename",
        "echo evil > a.md; mv -f a.md AGENTS.md",
        &["AGENTS.md"],
    ),
    ("new instructions", "echo evil > CLAUDE.md", &["CLAUDE.md"]),
    (
        "sitecustomize.py",
        "echo evil > sitecustomize.py",
        &["sitecustomize.py"],
    ),
    (
        "in the background",
        "setsid sh -c 'sleep 0.1; echo evil > .envrc' & sleep 0.3",
        &[".envrc"],
    ),
];

/// A repository with a nested one, and protected files.
fn scene() -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path();
    for folder in ["sub/nested", ".vscode", "empty"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    for at in [root, &root.join("sub/nested")] {
        git(at, &["init", "-q"]);
        git(at, &["config", "user.name", "A"]);
        git(at, &["config", "user.email", "a@example.org"]);
        fs::write(at.join("a"), "one\n").expect("a file");
        git(at, &["add", "a"]);
        git(at, &["commit", "-q", "-m", "The first"]);
    }
    fs::write(root.join("AGENTS.md"), "good\n").expect("a file");
    fs::write(root.join(".vscode/settings.json"), "{}\n").expect("a file");
    place
}

fn sandboxes() -> Vec<(&'static str, Sandbox)> {
    let all = [
        ("landlock", Sandbox::landlock()),
        ("bwrap", Sandbox::bwrap()),
    ];
    all.into_iter()
        .filter(|(name, sandbox)| {
            let why = sandbox.refuses();
            why.inspect(|why| tell(format_args!("SKIPPED: {name}: {why}")))
                .is_none()
        })
        .collect()
}

/// What a path holds; a directory and a broken link hold nothing, and are there.
fn content(path: &Path) -> Option<Vec<u8>> {
    path.symlink_metadata().ok()?;
    Some(fs::read(path).unwrap_or_default())
}

fn run(root: &Path, sandbox: Sandbox, args: serde_json::Value) -> String {
    let shell = Shell::new(root, sandbox).expect("a shell");
    said(&shell.toolbox(), "run_command", args)
}

#[test]
fn protected_names_are_as_they_were_when_a_command_has_ended() {
    let mut wrong = Vec::new();
    for (attack, script, names) in ROWS {
        // Without a sandbox it leaves something behind.
        let place = scene();
        let before: Vec<_> = names
            .iter()
            .map(|name| content(&place.path().join(name)))
            .collect();
        run(
            place.path(),
            Sandbox::danger_without_any(),
            json!({ "command": script }),
        );
        let after: Vec<_> = names
            .iter()
            .map(|name| content(&place.path().join(name)))
            .collect();
        assert!(
            names.is_empty() || before != after,
            "{attack} does nothing without a sandbox"
        );
        for (sandbox_name, sandbox) in sandboxes() {
            let place = scene();
            let before: Vec<_> = names
                .iter()
                .map(|name| content(&place.path().join(name)))
                .collect();
            let shown = run(place.path(), sandbox, json!({ "command": script }));
            let after: Vec<_> = names
                .iter()
                .map(|name| content(&place.path().join(name)))
                .collect();
            let settings = fs::read_to_string(place.path().join("docs/config")).unwrap_or_default();
            let is_named = shown.contains("hint: ")
                || shown.contains("renamed to a name")
                || shown.contains("busy");
            if before != after || settings.contains("evil") || !is_named {
                wrong.push(format!("{sandbox_name}: {attack}: {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn forbidden_names_of_git_are_not_seen_outside_while_a_command_runs() {
    let sandbox = Sandbox::bwrap();
    if let Some(why) = sandbox.refuses() {
        return tell(format_args!("SKIPPED: {why}"));
    }
    let place = scene();
    let names = [
        ".git/commondir",
        ".git/config.worktree",
        ".git/info/attributes",
        "sub/nested/.git/commondir",
    ]
    .map(|name| place.path().join(name));
    let (is_over, is_seen) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let is_there = |name: &PathBuf| name.symlink_metadata().is_ok();
                is_seen.fetch_or(names.iter().any(is_there), Ordering::Relaxed);
                thread::yield_now();
            }
        });
        let script = "for d in .git sub/nested/.git; do for n in commondir config.worktree info/attributes; do echo evil > $d/$n; done; done; \
                      sleep 0.3; for d in .git sub/nested/.git; do for n in commondir config.worktree info/attributes; do rm $d/$n; done; done";
        let shown = run(place.path(), sandbox, json!({ "command": script }));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(shown, "[no output]\n[exit code 0]");
    });
    assert!(!is_seen.load(Ordering::Relaxed));
}

#[test]
fn git_changes_its_own_state_and_a_new_repository_works() {
    const WORK: &str = "set -e; git switch -qc f; echo b > a; git commit -qam two; git switch -q master 2>/dev/null || git switch -q main; \
        echo c > c; git add c; git commit -qm three; git merge -q -m merged f; echo d > a; git stash -q; git stash pop -q; git checkout -q a; \
        git rebase -q HEAD~1; git tag v1; git pack-refs --all; git gc -q; git fsck --no-dangling; \
        git clone -q . clone; git init -q new; git -C new -c user.name=A -c user.email=a@b commit -q --allow-empty -m x; \
        echo n > sub/nested/n; git -C sub/nested add n; git -C sub/nested commit -qm nested";
    for (name, sandbox) in sandboxes() {
        let place = scene();
        let shown = run(place.path(), sandbox, json!({ "command": WORK }));
        assert_eq!(shown, "[no output]\n[exit code 0]", "{name}");
        for (at, expect) in [(".", 4), ("sub/nested", 2), ("clone", 4), ("new", 1)] {
            let at = place.path().join(at);
            let count = super::git::output(&at, &["rev-list", "--count", "HEAD"]);
            // The rebase drops the merge, or repeats it.
            assert!(
                (expect - 1..=expect).contains(&count.trim().parse().expect("a number")),
                "{name}: {}: {count}",
                at.display()
            );
            let changed =
                super::git::output(&at, &["status", "--porcelain", "--untracked-files=no"]);
            assert_eq!(changed, "", "{name}: {}", at.display());
        }
        // An operation that is not finished can be continued outside.
        git(place.path(), &["switch", "-qc", "other", "HEAD~1"]);
        fs::write(place.path().join("a"), "conflict\n").expect("a file");
        git(place.path(), &["commit", "-qam", "Conflict"]);
        let script = "git merge f || git rebase f || git status --short a";
        let shown = run(
            place.path(),
            sandboxes().remove(0).1,
            json!({ "command": script }),
        );
        assert!(shown.contains("CONFLICT"), "{name}: {shown}");
        assert!(
            place.path().join(".git/MERGE_HEAD").exists(),
            "{name}: {shown}"
        );
        git(place.path(), &["merge", "--abort"]);
    }
}

/// The copy of a repository's directory is used again while nothing changed there, and shows every change.
#[test]
fn view_of_a_repository_is_kept_between_commands_and_never_old() {
    let sandbox = Sandbox::bwrap();
    if let Some(why) = sandbox.refuses() {
        return tell(format_args!("SKIPPED: {why}"));
    }
    let place = scene();
    let tools = Shell::new(place.path(), sandbox)
        .expect("a shell")
        .toolbox();
    let run = |command: &str| said(&tools, "run_command", json!({ "command": command }));
    let inode = || run("stat -c %i .git/HEAD");
    let (first, again) = (inode(), inode());
    assert_eq!(first, again);
    git(place.path(), &["switch", "-qc", "outside"]);
    let shown = run("git branch --show-current");
    assert_eq!(shown, "outside\n[exit code 0]");
    fs::write(place.path().join(".git/info/exclude"), "ignored\n").expect("a file");
    assert_eq!(run("cat .git/info/exclude"), "ignored\n[exit code 0]");
    // A name that was not copied back is in no later view.
    let shown = run("echo evil > .git/commondir");
    assert!(shown.contains("not written"), "{shown}");
    assert_eq!(
        run("cat .git/commondir 2>/dev/null"),
        "[no output]\n[exit code 1]"
    );
}

#[test]
fn allowed_writes_are_kept_and_no_others() {
    for (name, sandbox) in sandboxes() {
        let place = scene();
        let script = "git config core.editor vi; echo ok > .envrc; echo ok > .git/hooks/pre-commit; echo no > .mcp.json; echo no > .git/commondir";
        let args = json!({ "command": script, "writes": [".git/config", ".envrc", ".git/hooks/pre-commit"] });
        let shown = run(place.path(), sandbox, args);
        let held = |path: &str| content(&place.path().join(path));
        assert_eq!(
            held(".envrc").as_deref(),
            Some(&b"ok\n"[..]),
            "{name}: {shown}"
        );
        assert_eq!(
            held(".git/hooks/pre-commit").as_deref(),
            Some(&b"ok\n"[..]),
            "{name}: {shown}"
        );
        assert_eq!(
            super::git::output(place.path(), &["config", "core.editor"]),
            "vi\n",
            "{name}: {shown}"
        );
        assert_eq!(
            (held(".mcp.json"), held(".git/commondir")),
            (None, None),
            "{name}: {shown}"
        );
        assert!(
            shown.contains("`.mcp.json`") && shown.contains("`.git/commondir`"),
            "{name}: {shown}"
        );
    }
    let (_, sandbox) = sandboxes().remove(0);
    let shown = run(
        scene().path(),
        sandbox,
        json!({ "command": "true", "writes": ["../x"] }),
    );
    assert_eq!(shown, "\"../x\" in `writes` is not a path from the root");
}

#[test]
fn command_in_the_background_is_reached_by_the_next_one() {
    let sandbox = Sandbox::bwrap();
    if let Some(why) = sandbox.refuses() {
        return tell(format_args!("SKIPPED: {why}"));
    }
    let place = scene();
    let tools = Shell::new(place.path(), sandbox)
        .expect("a shell")
        .toolbox();
    let server = "python3 -c \"import socket; s=socket.create_server(('127.0.0.1',3000)); open('up','w').close(); s.accept()[0].sendall(b'hello')\"";
    said(
        &tools,
        "run_command",
        json!({ "command": server, "background": true }),
    );
    let client = "while ! test -e up; do sleep 0.01; done; python3 -c \"import socket; print(socket.create_connection(('127.0.0.1',3000)).recv(9).decode())\"";
    let shown = said(
        &tools,
        "run_command",
        json!({ "command": client, "timeout_secs": 20 }),
    );
    assert_eq!(shown, "hello\n[exit code 0]");
}
