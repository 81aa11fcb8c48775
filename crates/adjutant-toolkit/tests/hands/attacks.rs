//! Attacks on the sandbox, from tables: every row is tried without a sandbox first, and its effect is checked on the host.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use adjutant_tool::{CallAdmission, CallContext, Composite, ToolSpec, Toolbox};
use adjutant_toolkit::{AccessMode, Decision, Edits, Files, Rules, Sandbox, Shell};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{said, tell};

/// The documentation that names the attacks that are not held.
const SECURITY: &str = include_str!("../../../../docs/security.md");
/// The number of attacks that run at the same time.
const WORKERS: usize = 4;
/// The least number of real attacks of each class.
const LEAST: usize = 20;

/// A row of a table of attacks.
pub(super) struct Row<'a> {
    name: &'a str,
    /// One command line after the other.
    scripts: Vec<&'a str>,
    /// The sandbox that does not hold it, or `all`.
    is_not_held_by: Option<&'a str>,
}

/// Reads a table: `NAME :: SCRIPT`, and then perhaps ` :: not held by SANDBOX: SENTENCE`, a sentence of the documentation.
pub(super) fn rows(table: &str) -> Vec<Row<'_>> {
    let lines = table
        .lines()
        .filter(|row| !row.starts_with('#') && !row.is_empty());
    lines
        .map(|line| {
            let mut fields = line.split(" :: ");
            let name = fields.next().unwrap_or_default();
            let script = fields.next().unwrap_or_default();
            let not_held = fields.next().map(|field| {
                let field = field.strip_prefix("not held by ").expect(line);
                let (sandbox, sentence) = field.split_once(": ").expect(line);
                assert!(
                    is_documented(sentence),
                    "docs/security.md lacks: {sentence}"
                );
                sandbox
            });
            Row {
                name,
                scripts: script.split(" <NEXT> ").collect(),
                is_not_held_by: not_held,
            }
        })
        .collect()
}

/// True if the documentation contains a sentence.
fn is_documented(sentence: &str) -> bool {
    let text = SECURITY.split_whitespace().collect::<Vec<_>>().join(" ");
    text.contains(sentence)
}

/// Returns the sandboxes of this machine.
fn sandboxes() -> Vec<(&'static str, Sandbox)> {
    let all = [
        ("landlock", Sandbox::landlock()),
        ("bwrap", Sandbox::bwrap()),
    ];
    let works = |(name, sandbox): &(&str, Sandbox)| {
        let why = sandbox.refuses();
        if let Some(why) = why {
            tell(format_args!("SKIPPED: {name}: {why}"));
        }
        why.is_none()
    };
    all.into_iter().filter(works).collect()
}

/// Runs every row without a sandbox and in both, and returns the rows that came through and the number of attacks that are real.
pub(super) fn run_all(
    rows: &[Row<'_>],
    attack: impl Fn(&Row<'_>, Sandbox) -> Option<String> + Sync,
) -> (Vec<String>, usize) {
    let sandboxes = sandboxes();
    let (next, real) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let through = Mutex::new(Vec::new());
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            if attack(row, Sandbox::danger_without_any()).is_none() {
                tell(format_args!(
                    "SKIPPED: {}: it does nothing without a sandbox",
                    row.name
                ));
                continue;
            }
            real.fetch_add(1, Ordering::Relaxed);
            for (name, sandbox) in &sandboxes {
                let is_known = row
                    .is_not_held_by
                    .is_some_and(|by| by == *name || by == "all");
                match attack(row, sandbox.clone()) {
                    Some(effect) if is_known => {
                        tell(format_args!("not held: {name}: {}: {effect}", row.name));
                    }
                    Some(effect) => {
                        let row = format!("{name}: {}: {effect}", row.name);
                        tell(format_args!("ESCAPED: {row}"));
                        through.lock().expect("no panic").push(row);
                    }
                    None => {}
                }
            }
        }
    };
    thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(work))));
    (through.into_inner().expect("no panic"), real.into_inner())
}

/// Counts the attacks in the tables of each class: git and protected names, the sandbox, system calls, approvals, trust, rules, processes,
/// secrets, and the network of this program.
#[test]
fn every_class_has_enough_attacks() {
    let count = |table: &str| {
        table
            .lines()
            .filter(|row| !row.starts_with("# ") && !row.is_empty())
            .count()
    };
    let of = |groups: &[&str]| {
        super::rows::ROWS
            .iter()
            .filter(|(group, ..)| groups.contains(group))
            .count()
    };
    let classes = [
        count(include_str!("../attacks/1-protected.txt")) + super::protected::ROWS.len(),
        of(&["files", "races", "network", "sockets", "signals", "proc"]),
        count(include_str!("../attacks/3-calls.txt")) + of(&["privileges"]),
        count(include_str!("../attacks/4-approvals.txt")),
        count(include_str!(
            "../../../adjutant-runtime/tests/attacks/5-trust.txt"
        )),
        count(include_str!("../attacks/6-rules.txt")),
        count(include_str!("../attacks/7-processes.txt")),
        count(include_str!("../attacks/8-secrets.txt")),
        count(include_str!("../attacks/9-fetch.txt")),
    ];
    tell(format_args!("{classes:?}"));
    assert!(classes.iter().all(|count| *count >= LEAST), "{classes:?}");
    assert!(classes.iter().sum::<usize>() >= 250, "{classes:?}");
    assert!(count(include_str!("../rules/lines.txt")) >= 250);
}

/// A repository with a nested one, a submodule, a working tree and a bare repository, and files that other programs obey.
const TEMPLATE: &str = r#"set -e
make() { git init -q --template= "$1"; mkdir "$1/.git/info" "$1/.git/hooks"; git -C "$1" config user.name A; git -C "$1" config user.email a@example.org; git -C "$1" config gc.auto 0
    for text in one two; do echo $text > "$1/a"; git -C "$1" add a; git -C "$1" commit -q -m $text; done; git -C "$1" gc -q; }
make module; make root; rmdir root/.git/hooks; cd root; make sub/nested; make sub/named
git -c protocol.file.allow=always submodule --quiet add ../module lib; git commit -q -m lib
git worktree add -q tree; echo 'gitdir: ../.git/worktrees/tree' > tree/.git; echo ../../../tree/.git > .git/worktrees/tree/gitdir
git clone -q --template= --bare . store
mkdir -p empty doc .vscode .github sub/named/tools/hooks
echo good > doc/notes.md; ln -s doc/notes.md GEMINI.md; echo good > AGENTS.md; echo '{}' > .vscode/settings.json; echo x > .github/notes
echo ';' > sub/named/shared.inc; printf '#!/bin/sh\n' > sub/named/tools/check; chmod +x sub/named/tools/check
git -C sub/named config include.path ../shared.inc; git -C sub/named config core.fsmonitor ./tools/check
git -C sub/named config core.hooksPath tools/hooks
"#;
/// The commands of a person afterwards, in every repository with settings that are not compared.
const ACTIVITY: &str = r#"for entry in $(find . -name .git -o -name HEAD -not -path '*/.git/*' | sed 's,/[^/]*$,,' | sort -u); do
    case $entry in .|./sub/nested|./lib|./tree|./store) continue;; esac; (
    cd "$entry" || exit; git status; git diff HEAD~1 HEAD; git update-ref refs/x HEAD
    git -c user.name=A -c user.email=a@b commit -q --allow-empty -m x
) </dev/null >/dev/null 2>&1; done"#;
/// Directories of the template in which a person works.
const FOLDERS: [&str; 11] = [
    "",
    "sub",
    "sub/nested",
    "sub/named",
    "lib",
    "tree",
    "empty",
    "doc",
    ".github",
    "sub/named/tools",
    "store",
];
/// Files that other programs obey, in small letters.
const OBEYED: [&str; 31] = [
    "mise.toml",
    "lefthook.yml",
    ".zed",
    "opencode.json",
    ".envrc",
    ".mcp.json",
    ".adjutant",
    ".cargo/config.toml",
    ".claude",
    ".codex",
    ".cursor",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".husky",
    ".pre-commit-config.yaml",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".npmrc",
    ".yarnrc.yml",
    ".mise.toml",
    ".tool-versions",
    ".gitattributes",
    "sitecustomize.py",
    "agents.md",
    "claude.md",
    "gemini.md",
    "skill.md",
    "workflows",
    "shared.inc",
    "check",
];
/// The directories of git in the template, and the names in them that decide which programs git runs.
const REPOSITORIES: [&str; 8] = [
    ".git",
    "sub/nested/.git",
    "sub/named/.git",
    ".git/modules/lib",
    ".git/worktrees/tree",
    "store",
    "lib/.git",
    "tree/.git",
];
const NAMES: [&str; 9] = [
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "hooks",
    "info/attributes",
    "objects/info/alternates",
    "modules",
    "worktrees",
];

struct Repositories {
    place: TempDir,
}

impl Repositories {
    fn new(template: &Path) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let from = template.join(".");
        let copied = Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(place.path())
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        let scene = Self { place };
        let out = scene.out();
        fs::create_dir(&out).expect("a directory");
        fs::write(out.join("secret"), "s3cret\n").expect("a file");
        let evil = scene.root().join("evil");
        fs::write(&evil, format!("#!/bin/sh\n: > {}/ran\n", out.display())).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&evil, mode).expect("a mode");
        let settings = format!(
            "[core]\n\tfsmonitor = {0}\n[diff]\n\texternal = {0}\n",
            evil.display()
        );
        fs::write(scene.root().join("settings.inc"), settings).expect("a file");
        scene
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    fn out(&self) -> PathBuf {
        self.place.path().join("out")
    }

    /// Returns the effect of an attack, if it has one.
    fn attack(&self, row: &Row<'_>, sandbox: Sandbox) -> Option<String> {
        let root = self.root();
        let before = self.state();
        let tools = Shell::new(&root, sandbox).expect("a shell").toolbox();
        for script in &row.scripts {
            let text = |path: PathBuf| path.to_string_lossy().into_owned();
            let script = script.replace("{evil}", &text(root.join("evil")));
            let script = script
                .replace("{conf}", "settings.inc")
                .replace("{out}", &text(self.out()));
            let shown = said(
                &tools,
                "run_command",
                json!({ "command": script, "timeout_secs": 20 }),
            );
            assert!(
                shown.contains("[exit code ") || shown.contains("[ended by "),
                "{}: {shown}",
                row.name
            );
        }
        let after = self.state();
        // A file that was moved out of the way is no effect, and a repository that was moved away is not missed.
        let is_git = |path: &str| {
            path.contains(".git/") || path.contains("/store/") || path.contains("sub/named/")
        };
        let changed: Vec<&String> = after
            .iter()
            .filter(|(path, after)| match before.get(*path) {
                None => true,
                Some(before) if is_git(path) => !has_lines(before, after),
                Some(before) => before != *after,
            })
            .map(|(path, _)| path)
            .collect();
        if !changed.is_empty() {
            return Some(format!("changed: {changed:?}"));
        }
        // The attack itself may have run the program outside of every sandbox.
        let mark = self.out().join("ran");
        let _ = fs::remove_file(&mark);
        let mut person = Command::new("sh");
        person
            .args(["-c", ACTIVITY])
            .current_dir(&root)
            .stdin(Stdio::null());
        person
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        person.status().expect("a shell");
        mark.exists().then(|| "git runs the program".to_owned())
    }

    /// Returns the content of all protected files, by their paths in small letters.
    fn state(&self) -> BTreeMap<String, Vec<u8>> {
        let root = self.root();
        let mut state = BTreeMap::new();
        for folder in FOLDERS {
            let folder = root.join(folder);
            let found = fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name());
            let found = found.map(|name| name.to_string_lossy().into_owned());
            let is_obeyed = |name: &String| OBEYED.contains(&&*name.to_lowercase());
            let known = OBEYED.iter().map(|name| (*name).to_owned());
            for name in found.filter(is_obeyed).chain(known) {
                record(&folder.join(name), &mut state, 0);
            }
            // The file `.git` of a submodule and of a working tree.
            let entry = folder.join(".git");
            if entry.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                record(&entry, &mut state, 0);
            }
        }
        for repository in REPOSITORIES {
            for name in NAMES {
                record(&root.join(repository).join(name), &mut state, 0);
            }
        }
        record(&self.out(), &mut state, 0);
        state.retain(|path, _| !path.contains(".blocked") && !path.ends_with("/out/ran"));
        state
    }
}

/// True if each line was there before.
fn has_lines(before: &[u8], after: &[u8]) -> bool {
    let lines = |text: &[u8]| -> BTreeSet<String> {
        let text = String::from_utf8_lossy(text).into_owned();
        text.lines()
            .map(|line| line.replace('"', "").trim().to_owned())
            .collect()
    };
    lines(after).is_subset(&lines(before))
}

/// Adds the content of a file, or of all files below a directory without git's state.
fn record(path: &Path, state: &mut BTreeMap<String, Vec<u8>>, depth: usize) {
    let is_state = |name: &str| {
        [
            "objects",
            "refs",
            "logs",
            "index",
            "description",
            "exclude",
            "packed-refs",
        ]
        .contains(&name)
            || name.ends_with("HEAD")
            || name.ends_with("MSG")
    };
    if depth > 9 {
        return;
    }
    let Ok(found) = fs::metadata(path) else {
        return;
    };
    if found.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_state(&name) && !name.ends_with(".sample") {
                record(&entry.path(), state, depth + 1);
            }
        }
    } else {
        let bytes = fs::read(path).unwrap_or_default();
        state.insert(path.to_string_lossy().to_lowercase(), bytes);
    }
}

/// A part of the names of attacks that depend on the rights of the user.
const RIGHTS: &str = "that cannot be";

#[test]
fn attack_changes_no_protected_file() {
    super::who::by_everyone(
        &[
            "--exact",
            "attacks::attack_changes_no_protected_file",
            "--nocapture",
        ],
        |who| {
            if who == "root without capabilities" {
                return;
            }
            let template = tempfile::tempdir().expect("a directory");
            let mut make = Command::new("sh");
            make.args(["-c", TEMPLATE]).current_dir(template.path());
            make.env("HOME", "/nonexistent")
                .env("GIT_CONFIG_NOSYSTEM", "1");
            assert!(make.status().expect("a shell").success());
            let mut rows = rows(include_str!("../attacks/1-protected.txt"));
            rows.retain(|row| (who == "nobody") == row.name.contains(RIGHTS) || who == "this user");
            let attack =
                |row: &Row<'_>, sandbox| Repositories::new(template.path()).attack(row, sandbox);
            let (through, real) = run_all(&rows, attack);
            tell(format_args!(
                "{who}: {real} of {} attacks are real",
                rows.len()
            ));
            assert_eq!(through, Vec::<String>::new());
            assert!(real >= LEAST || who == "nobody", "{real}");
        },
    );
}

#[test]
fn calls_of_the_system_have_no_effect_outside() {
    let first = std::process::id().wrapping_mul(1_000);
    let next = AtomicUsize::new(0);
    let attack = |row: &Row<'_>, sandbox| {
        let number = u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or_default();
        let scene = super::escapes::Scene::new(first.wrapping_add(number));
        scene
            .attack(sandbox, row.scripts[0])
            .then(|| "it had its effect".to_owned())
    };
    let rows = rows(include_str!("../attacks/3-calls.txt"));
    let (through, real) = run_all(&rows, attack);
    tell(format_args!("{real} of {} attacks are real", rows.len()));
    assert_eq!(through, Vec::<String>::new());
    assert!(real >= LEAST, "{real}");
}

/// Runs a script by bash alone. Returns true if a process stays.
fn stays_without_a_tool(scene: &super::escapes::Scene, script: &str) -> bool {
    let mut bash = Command::new("bash");
    bash.args(["-c", &scene.script(script)])
        .current_dir(scene.place.path().join("root"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A script may kill its shell.
    let _ = bash.status();
    scene.leaves_a_trace()
}

#[test]
fn no_process_stays_when_its_call_has_ended() {
    let first = std::process::id().wrapping_mul(1_000).wrapping_add(500);
    let next = AtomicUsize::new(0);
    let attack = |row: &Row<'_>, sandbox: Sandbox| {
        let number = u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or_default();
        let scene = super::escapes::Scene::new(first.wrapping_add(number));
        let is_through = match sandbox.holds() {
            true => scene.attack(sandbox, row.scripts[0]),
            // Even without a sandbox the tool ends the processes of a call.
            false => stays_without_a_tool(&scene, row.scripts[0]),
        };
        is_through.then(|| "it stays".to_owned())
    };
    let rows = rows(include_str!("../attacks/7-processes.txt"));
    let (through, real) = run_all(&rows, attack);
    tell(format_args!("{real} of {} attacks are real", rows.len()));
    assert_eq!(through, Vec::<String>::new());
    assert!(real >= LEAST, "{real}");
}

/// Writes the files that the rules are about.
fn plant(root: &Path) {
    for (name, text) in [
        ("victim", "x\n"),
        ("a", "one\ntwo\n"),
        ("secrets/key", "s3cret\n"),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
}

/// Runs a line by bash, without any sandbox. Returns the rule that it breaks.
fn find_broken_rule(line: &str) -> Option<&'static str> {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path();
    plant(root);
    let list = || {
        let mut list = Vec::new();
        for entry in fs::read_dir(root.join("secrets"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let mode = entry
                .metadata()
                .map(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()));
            list.push((entry.file_name(), mode.ok(), fs::read(entry.path()).ok()));
        }
        list
    };
    let before = list();
    let output = Command::new("timeout")
        .args(["10", "bash", "--noprofile", "--norc", "-c", line])
        .current_dir(root)
        .env("HOME", root)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let shown =
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).contains("s3cret");
    if !root.join("victim").exists() {
        Some("deny shell(rm *)")
    } else if shown {
        Some("deny read(secrets/**)")
    } else {
        (list() != before).then_some("deny edit(secrets/**)")
    }
}

#[test]
fn lines_that_break_a_rule_are_never_allowed() {
    let table: Vec<&str> = include_str!("../attacks/6-rules.txt")
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.is_empty())
        .collect();
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().canonicalize().expect("a path");
    plant(&root);
    let rules = |rule: &str| {
        let rules = Rules::new(&root)
            .with(&format!("allow shell(*)\n{rule}"), "x")
            .expect("rules");
        rules.mode(AccessMode::All).in_sandbox(true)
    };
    let spec = ToolSpec::new(
        "run_command",
        "Runs a command.",
        json!({ "type": "object" }),
    );
    let (next, real) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let through = Mutex::new(Vec::new());
    let work = || {
        while let Some(row) = table.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (line, known) = row
                .split_once(" :: not held: ")
                .map_or((*row, None), |(line, why)| (line, Some(why)));
            let line = line.replace("<NL>", "\n");
            let Some(rule) = find_broken_rule(&line) else {
                tell(format_args!("SKIPPED: {line}: it does nothing"));
                continue;
            };
            real.fetch_add(1, Ordering::Relaxed);
            let ruling = rules(rule).decide(&spec, &json!({ "command": line }));
            match (ruling.decision, known) {
                (Decision::Allow, Some(sentence)) => {
                    assert!(
                        is_documented(sentence),
                        "docs/security.md lacks: {sentence}"
                    );
                    tell(format_args!("not held: {line}"));
                }
                (Decision::Allow, None) => through
                    .lock()
                    .expect("no panic")
                    .push(format!("{rule}: {line}")),
                (_, _) => {}
            }
        }
    };
    thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(work))));
    let (through, real) = (through.into_inner().expect("no panic"), real.into_inner());
    tell(format_args!("{real} of {} lines are real", table.len()));
    for line in [
        "ls",
        "cat a",
        "echo x > b",
        "cp a b",
        "git status",
        "grep x a",
    ] {
        let all = "deny shell(rm *)\ndeny edit(secrets/**)\ndeny read(secrets/**)";
        let ruling = rules(all).decide(&spec, &json!({ "command": line }));
        assert_eq!(ruling.decision, Decision::Allow, "{line}: {}", ruling.why);
    }
    assert!(through.is_empty(), "{}", through.join("\n"));
    assert!(real >= 250, "{real}");
}

/// A directory with a program that leaves a mark, and files.
const DESK: &str = r#"mkdir sub other; ln -s sub link
for d in . sub other; do printf '#!/bin/sh\necho "$PWD $0 $*" >> '"$PWD"'/mark\n' > $d/run; chmod +x $d/run; done
for f in b d e; do echo x > $f; done; echo 'open("mark","w")' > tool.py
printf 'test:\n\t@:\nevil:\n\t./run\n' > Makefile; printf 'test:\n\t./run\n' > evil.mk; cp evil.mk sub/Makefile
git init -q; for f in b d; do git add $f; git -c user.name=A -c user.email=a@b commit -qm x; done"#;

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let mut make = Command::new("sh");
        make.args(["-c", DESK]).current_dir(place.path());
        assert!(make.status().expect("a shell").success());
        Self(place)
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().expect("a path")
    }

    /// Makes a call without an answer of a person. Returns true if it changed a file.
    fn call(&self, rules: Option<&Rules>, (tool, args): (&str, &Value)) -> bool {
        let files = Files::new(self.root()).expect("a directory");
        let shell = Shell::new(self.root(), Sandbox::danger_without_any()).expect("a shell");
        // A file that exists is changed only after it was read.
        for path in ["path", "from"]
            .iter()
            .filter_map(|name| args[*name].as_str())
        {
            said(&files.toolbox(), "read_file", json!({ "path": path }));
        }
        let tools = Composite::new("tools")
            .toolbox(Edits::new(&files).toolbox())
            .toolbox(shell.toolbox());
        let before = self.state();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let who = CallContext::detached().who;
            let set = match rules {
                Some(rules) => rules.over(tools).resolve(&who).await,
                None => tools.resolve(&who).await,
            };
            let set = set.expect("a set");
            let tool = set.get(tool).expect("the tool");
            if rules.is_none() || tool.approval(args).is_none() {
                let cx = CallContext::detached().put(Arc::new(CallAdmission { asked: None }));
                // A refused call is no effect.
                let _ = tool.call(args.clone(), cx).await;
            }
        });
        let late = Instant::now() + Duration::from_millis(300);
        while args["background"] == json!(true) && self.state() == before && Instant::now() < late {
            thread::sleep(Duration::from_millis(10));
        }
        self.state() != before
    }

    fn state(&self) -> BTreeMap<String, Vec<u8>> {
        let mut state = BTreeMap::new();
        for entry in fs::read_dir(self.root()).into_iter().flatten().flatten() {
            if entry.file_name() != ".git" {
                record(&entry.path(), &mut state, 0);
            }
        }
        state
    }
}

#[test]
fn approval_for_good_covers_nothing_that_was_not_shown() {
    let table: Vec<Vec<&str>> = include_str!("../attacks/4-approvals.txt")
        .lines()
        .filter(|row| !row.starts_with('#') && !row.is_empty())
        .map(|row| row.split(" :: ").collect())
        .collect();
    let call = |text: &str| -> (String, Value) {
        let mut args: Value = serde_json::from_str(text).expect(text);
        let tool = args.as_object_mut().and_then(|args| args.remove("tool"));
        (
            tool.as_ref()
                .and_then(Value::as_str)
                .unwrap_or("run_command")
                .to_owned(),
            args,
        )
    };
    let (next, real) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let through = Mutex::new(Vec::new());
    let work = || {
        while let Some(row) = table.get(next.fetch_add(1, Ordering::Relaxed)) {
            let [name, shown, attack, more @ ..] = &row[..] else {
                panic!("{row:?}")
            };
            let (tool, args) = call(attack);
            let prepare = |desk: &Desk| {
                for line in more {
                    let done = Command::new("sh")
                        .args(["-c", line])
                        .current_dir(desk.root())
                        .status();
                    assert!(done.expect("a shell").success());
                }
            };
            let desk = Desk::new();
            let (shown_tool, shown_args) = call(shown.strip_prefix("prefix ").unwrap_or(shown));
            if !tool.starts_with("run") {
                desk.call(None, (&shown_tool, &shown_args));
            }
            prepare(&desk);
            if !desk.call(None, (&tool, &args)) {
                tell(format_args!("SKIPPED: {name}: it changes nothing"));
                continue;
            }
            real.fetch_add(1, Ordering::Relaxed);
            let desk = Desk::new();
            let rules = Rules::new(desk.root()).in_sandbox(true);
            let spec = ToolSpec::new(&*shown_tool, "Does it.", json!({ "type": "object" }));
            let added = match shown.starts_with("prefix ") {
                true => {
                    let rule = rules.prefix(&spec, &shown_args);
                    rules.add(rule.clone()).expect("there is room");
                    usize::from(rule.is_some())
                }
                false => rules
                    .always(&spec, &shown_args)
                    .expect("there is room")
                    .len(),
            };
            // The approval is one.
            let is_allowed = rules.decide(&spec, &shown_args).decision == Decision::Allow;
            assert_eq!(is_allowed, added > 0, "{name}");
            if added == 0 {
                tell(format_args!("no approval for good: {name}"));
            }
            if !tool.starts_with("run") {
                desk.call(None, (&shown_tool, &shown_args));
            }
            prepare(&desk);
            if desk.call(Some(&rules), (&tool, &args)) {
                through
                    .lock()
                    .expect("no panic")
                    .push(format!("{name}: {attack}"));
            }
        }
    };
    thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(work))));
    let (through, real) = (through.into_inner().expect("no panic"), real.into_inner());
    tell(format_args!("{real} of {} attacks are real", table.len()));
    assert!(through.is_empty(), "{}", through.join("\n"));
    assert!(real >= LEAST, "{real}");
}
