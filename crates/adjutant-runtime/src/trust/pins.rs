//! The files that a program runs and that an agent can change: trust covers their content.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    manifest::ServerSpec,
    provenance::{digest_of, hex},
};

/// The maximum number and total size of pinned files of one server. A larger set needs a confirmation at each start.
const MAX_FILES: usize = 5_000;
const MAX_BYTES: u64 = 50 << 20;
/// Directories that are not pinned: commands cannot change the first two, and Python reads no caches there.
const SKIPPED: [&str; 3] = [".git", ".adjutant", "__pycache__"];
/// Interpreters: their first argument that is not an option is a script.
const INTERPRETERS: &str = "node nodejs deno bun tsx ts-node python python3 pypy pypy3 ruby perl php bash sh zsh dash java lua";
/// Programs that run commands defined in their working directory.
const PROJECT_RUNNERS: &str = "npm pnpm yarn make gmake cargo go just task uv poetry pdm hatch gradle gradlew mvn mvnw \
                               dotnet bundle rake mix swift tox nox docker-compose";
/// Programs that download a package and run it. They read these files of their working directory.
const PACKAGE_RUNNERS: &str = "npx bunx pnpx uvx pipx";
const PACKAGE_SETTINGS: [&str; 9] = [
    ".npmrc",
    "package.json",
    "package-lock.json",
    "bunfig.toml",
    ".yarnrc.yml",
    "pyproject.toml",
    "uv.toml",
    ".python-version",
    "node_modules/.bin",
];
/// Parts of names of variables that list directories of programs, modules or libraries.
const SEARCH_PATHS: [&str; 2] = ["PATH", "LIB"];
/// Extensions that interpreters add to a name.
const ENDINGS: [&str; 10] = [
    "", ".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".php", ".json", ".sh",
];
/// Extensions of code files.
const CODE: [&str; 14] = [
    "js", "mjs", "cjs", "ts", "mts", "cts", "py", "pyz", "rb", "sh", "pl", "php", "jar", "lua",
];
/// The directories of code that are searched upwards from a script.
const LIBRARIES: [&str; 2] = ["node_modules", "package.json"];

/// The files of a program that an agent can change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins {
    files: BTreeSet<PathBuf>,
    trees: BTreeSet<PathBuf>,
    /// The package whose version is not fixed.
    pub(crate) floating: Option<String>,
}

/// The content of pinned files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PinnedContent {
    /// A digest of all names and contents; unique each time if there are too many files.
    pub(crate) digest: String,
    pub(crate) files: usize,
    pub(crate) is_whole: bool,
}

impl Pins {
    /// Returns the files that a server runs if `work` is its working directory, which an agent can change.
    pub(crate) fn from_server(spec: &ServerSpec, work: &Path) -> Self {
        let mut pins = Self::default();
        let work = work.canonicalize().unwrap_or_else(|_| work.to_owned());
        let base = spec
            .cwd
            .as_ref()
            .map_or_else(|| work.clone(), |cwd| work.join(cwd));
        let words = |args: &[std::sync::Arc<str>]| {
            args.iter().map(|word| word.to_string()).collect::<Vec<_>>()
        };
        if let Some(program) = &spec.command {
            pins.add(program, &words(&spec.args), (&base, &work));
            for (name, value) in &spec.env {
                pins.add_named(value, (&base, &work));
                if SEARCH_PATHS.iter().any(|part| name.contains(part)) {
                    value
                        .split(':')
                        .for_each(|folder| pins.add_folder(folder, (&base, &work)));
                }
            }
        }
        if let Some((program, args)) = spec.auth.token_command.split_first() {
            pins.add(Path::new(&**program), args, (&base, &work));
        }
        pins
    }

    /// All files of these directories.
    pub(crate) fn from_trees(trees: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            trees: trees.into_iter().collect(),
            ..Self::default()
        }
    }

    /// True if no file is pinned.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.trees.is_empty()
    }

    /// Returns the directories that are pinned completely.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &Path> {
        self.trees.iter().map(PathBuf::as_path)
    }

    fn add(&mut self, program: &Path, args: &[String], (base, work): (&Path, &Path)) {
        let path = match program.components().count() {
            0 | 1 => find_program(program).unwrap_or_else(|| program.to_owned()),
            _ => base.join(program),
        };
        if is_below(&path, work) {
            self.add_code(&path, work);
        }
        for word in args {
            self.add_named(word, (base, work));
        }
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_one = |names: &str| names.split_whitespace().any(|known| known == name);
        let plain = args.iter().find(|word| !word.starts_with('-'));
        if is_one(INTERPRETERS) {
            // Directories of modules, as in `-I lib`, `-Ilib` and `--path=lib`, up to the script.
            let end = args
                .iter()
                .position(|word| word.contains('.'))
                .map_or(args.len(), |at| at + 1);
            for word in args.iter().take(end) {
                let behind = word.split_once('=').map_or("", |(_, value)| value);
                let joined = word.strip_prefix('-').and_then(|word| word.get(1..));
                for folder in [word, behind, joined.unwrap_or_default()] {
                    folder
                        .split(':')
                        .for_each(|folder| self.add_folder(folder, (base, work)));
                }
            }
        }
        let runs_module = args.iter().any(|word| {
            [
                "-m", "-c", "-e", "-p", "--eval", "--print", "--test", "task", "run",
            ]
            .contains(&word.as_str())
        });
        if is_one(PACKAGE_RUNNERS) {
            let package = match args
                .iter()
                .position(|word| matches!(word.as_str(), "--from" | "-p" | "--package"))
            {
                Some(at) => args.get(at + 1),
                None => plain.filter(|word| *word != "run").or(args.get(1)),
            };
            self.floating = package.filter(|package| !has_version(package)).cloned();
            for file in PACKAGE_SETTINGS {
                let file = base.join(file);
                match file.is_dir() {
                    true => drop(self.trees.insert(file)),
                    false => self.keep(&file, work),
                }
            }
            if let Some(package) = package {
                let folder = base.join("node_modules").join(package_name(package));
                if folder.is_dir() && is_below(&folder, work) {
                    self.trees.insert(folder);
                }
            }
        } else if is_one(PROJECT_RUNNERS) || (is_one(INTERPRETERS) && runs_module) {
            if is_below(base, work) {
                self.trees.insert(base.to_owned());
            }
        } else if is_one(INTERPRETERS)
            && let Some(script) = plain
        {
            for ending in ENDINGS {
                let script = base.join(format!("{script}{ending}"));
                if script.exists() && is_below(&script, work) {
                    self.add_code(&script, work);
                }
            }
        }
    }

    /// Pins the files that a word names: the word itself, or the text after `=` or in a list of paths.
    fn add_named(&mut self, word: &str, (base, work): (&Path, &Path)) {
        let behind = word.split_once('=').map(|(_, value)| value);
        let joined = word.strip_prefix('-').and_then(|word| word.get(1..));
        let listed = word.split([':', ',', ' ']);
        for name in [Some(word), behind, joined]
            .into_iter()
            .flatten()
            .chain(listed)
        {
            if name.is_empty() {
                continue;
            }
            let path = base.join(name);
            if path.is_file() && is_below(&path, work) {
                let is_code = path
                    .extension()
                    .is_some_and(|end| CODE.iter().any(|code| end.eq_ignore_ascii_case(code)));
                match is_code || is_executable(&path) {
                    true => self.add_code(&path, work),
                    false => self.keep(&path, work),
                }
            }
        }
    }

    /// Pins a directory of modules or programs.
    fn add_folder(&mut self, name: &str, (base, work): (&Path, &Path)) {
        let folder = base.join(name);
        if !name.is_empty() && folder.is_dir() && is_below(&folder, work) {
            self.trees.insert(folder);
        }
    }

    fn keep(&mut self, file: &Path, work: &Path) {
        if is_below(file, work) {
            self.files.insert(file.to_owned());
        }
    }

    /// Pins a script or a program with all files next to it, and the libraries above it.
    fn add_code(&mut self, path: &Path, work: &Path) {
        self.files.insert(path.to_owned());
        let mut folders = BTreeSet::new();
        for path in [Some(path.to_owned()), path.canonicalize().ok()]
            .into_iter()
            .flatten()
        {
            let folder = if path.is_dir() {
                Some(&*path)
            } else {
                path.parent()
            };
            folders.extend(folder.map(Path::to_owned));
        }
        for folder in folders {
            for above in folder
                .ancestors()
                .skip(1)
                .take_while(|above| is_below(above, work))
            {
                for library in LIBRARIES {
                    let library = above.join(library);
                    match library.is_dir() {
                        true => drop(self.trees.insert(library)),
                        false => self.keep(&library, work),
                    }
                }
            }
            if is_below(&folder, work) {
                self.trees.insert(folder);
            }
        }
    }

    /// Reads all pinned files. Blocks.
    pub(crate) fn read(&self) -> PinnedContent {
        let mut walk = Walk::default();
        self.files.iter().for_each(|file| walk.add(file));
        self.trees.iter().for_each(|tree| walk.add(tree));
        let is_whole = walk.is_whole();
        let text: Vec<String> = walk.lines.into_iter().collect();
        PinnedContent {
            files: text
                .iter()
                .filter(|line| !line.starts_with("none "))
                .count(),
            digest: match is_whole {
                true => hex(&Sha256::digest(text.join("\n"))),
                // A file that was not read can have any content, so it never matches a trusted content.
                false => Uuid::now_v7().to_string(),
            },
            is_whole,
        }
    }
}

/// A walk through files.
#[derive(Default)]
struct Walk {
    lines: BTreeSet<String>,
    seen: BTreeSet<PathBuf>,
    bytes: u64,
}

impl Walk {
    fn is_whole(&self) -> bool {
        self.lines.len() <= MAX_FILES && self.bytes <= MAX_BYTES
    }

    fn add(&mut self, path: &Path) {
        if !self.is_whole() {
            return;
        }
        let Ok(found) = fs::symlink_metadata(path) else {
            self.lines.insert(format!("none {path:?}"));
            return;
        };
        if found.is_symlink() {
            let target = fs::read_link(path).unwrap_or_default();
            self.lines.insert(format!("link {path:?} {target:?}"));
            if let Ok(real) = path.canonicalize() {
                self.add(&real);
            }
        } else if found.is_dir() {
            if !self.seen.insert(path.to_owned()) {
                return;
            }
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    self.add(&path.join(name));
                }
            }
        } else if found.is_file() {
            self.bytes += found.len();
            if self.is_whole() {
                let digest =
                    digest_of(path).map_or_else(|error| error.to_string(), |(digest, _)| digest);
                let mode = is_executable(path);
                self.lines.insert(format!("{digest} {mode} {path:?}"));
            }
        } else {
            self.lines.insert(format!("other {path:?}"));
        }
    }
}

/// True if a path or its target is in a directory.
fn is_below(path: &Path, work: &Path) -> bool {
    let real = path.canonicalize();
    path.starts_with(work) || real.is_ok_and(|real| real.starts_with(work))
}

fn find_program(program: &Path) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// True if a package has a version, as in `name@1.2.3` or `name==1.2.3`.
fn has_version(package: &str) -> bool {
    let version = package
        .get(1..)
        .and_then(|rest| rest.split_once("==").or_else(|| rest.split_once('@')));
    version.is_some_and(|(_, version)| {
        version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.')
    })
}

/// Returns the name of a package without its version.
fn package_name(package: &str) -> &str {
    let end = package
        .get(1..)
        .and_then(|rest| rest.find(['@', '=', '[']))
        .map_or(package.len(), |at| at + 1);
    &package[..end]
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns whether writing a file changes the pinned content of a server.
    fn differs(server: &Value, file: &str) -> bool {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("it is there");
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        for path in [
            "server.js",
            "lib/a.js",
            "tools/run.py",
            "tools/helper.py",
            "tools/data.txt",
            "pkg/__main__.py",
            "src/x.rs",
            "notes.md",
            "node_modules/dep/index.js",
            ".npmrc",
            "config.json",
            "bin/go.sh",
        ] {
            write(path, "first");
        }
        let text = server.to_string().replace("ROOT", &root.to_string_lossy());
        let spec: ServerSpec = serde_json::from_str(&text).expect("a server");
        let before = Pins::from_server(&spec, &root).read();
        write(file, "second, and longer");
        before != Pins::from_server(&spec, &root).read()
    }

    #[test]
    fn pins_change_with_every_file_that_a_server_runs() {
        let server = |command: &str, args: &[&str]| json!({ "command": command, "args": args });
        let node = server("node", &["server.js"]);
        let table = [
            (node.clone(), "server.js", true),
            (node.clone(), "lib/a.js", true),
            (node.clone(), "new.js", true),
            (node.clone(), "node_modules/dep/index.js", true),
            (server("node", &["ROOT/server.js"]), "lib/a.js", true),
            (server("node", &["./server"]), "server.js", true),
            (
                server("node", &["--require", "./lib/a.js", "x"]),
                "lib/a.js",
                true,
            ),
            (
                server("node", &["--import=./lib/a.js", "x"]),
                "lib/a.js",
                true,
            ),
            (server("node", &["."]), "server.js", true),
            (server("node", &["lib/a"]), "lib/a.js", true),
            (
                server("node", &["lib/a.js"]),
                "node_modules/dep/index.js",
                true,
            ),
            (server("node", &["lib/a.js"]), "package.json", true),
            (
                server("python3", &["tools/run.py"]),
                "tools/helper.py",
                true,
            ),
            (server("python3", &["tools/run.py"]), "tools/json.py", true),
            (server("python3", &["tools/run.py"]), "src/x.rs", false),
            (server("python3", &["-m", "pkg"]), "pkg/__main__.py", true),
            (server("python3", &["-m", "elsewhere"]), "json.py", true),
            (server("python3.12", &["-c", "import x"]), "x.py", true),
            (
                server("python3", &["tools/run.py"]),
                "tools/__pycache__/x.pyc",
                false,
            ),
            (server("./bin/go.sh", &[]), "bin/go.sh", true),
            (server("./bin/go.sh", &[]), "bin/other", true),
            (server("./bin/go.sh", &[]), "notes.md", false),
            (server("ROOT/bin/go.sh", &[]), "bin/go.sh", true),
            (server("npm", &["start"]), "package.json", true),
            (server("npm", &["run", "mcp"]), "src/x.rs", true),
            (server("uv", &["run", "x"]), "pyproject.toml", true),
            (server("make", &["serve"]), "Makefile", true),
            (server("cargo", &["run"]), "src/x.rs", true),
            (server("bash", &["-c", "./bin/go.sh"]), "bin/go.sh", true),
            (server("bash", &["bin/go.sh"]), "bin/go.sh", true),
            (server("npx", &["-y", "dep@1.2.3"]), ".npmrc", true),
            (
                server("npx", &["-y", "dep@1.2.3"]),
                "node_modules/dep/index.js",
                true,
            ),
            (
                server("npx", &["-y", "dep@1.2.3"]),
                "node_modules/.bin/dep",
                true,
            ),
            (server("npx", &["-y", "dep@1.2.3"]), "src/x.rs", false),
            (server("uvx", &["dep==1.2"]), "uv.toml", true),
            (server("cat", &["config.json"]), "config.json", true),
            (
                server("cat", &["--config=config.json"]),
                "config.json",
                true,
            ),
            (server("cat", &["config.json"]), "notes.md", false),
            (
                json!({ "command": "cat", "env": { "RULES": "config.json" } }),
                "config.json",
                true,
            ),
            (
                json!({ "command": "cat", "env": { "PYTHONPATH": "/x:tools/run.py" } }),
                "tools/run.py",
                true,
            ),
            (
                json!({ "command": "node", "args": ["run.py"], "cwd": "tools" }),
                "tools/helper.py",
                true,
            ),
            (
                json!({ "url": "https://a.example", "auth": { "token_command": ["./bin/go.sh"] } }),
                "bin/go.sh",
                true,
            ),
            (json!({ "url": "https://a.example" }), "server.js", false),
        ];
        for (spec, file, expect) in table {
            assert_eq!(
                differs(&spec, file),
                expect,
                "{spec} after a change of {file}"
            );
        }
    }

    /// Programs without effects, and the code of an attacker.
    const PLANT: &str = r#"mkdir -p lib tools pkg bin real conf node_modules/dep node_modules/.bin
        echo 'require("./lib/a"); require("dep")' > server.js; echo > lib/a.js; echo 'require("dep")' > lib/b.js
        echo 'try { require("other") } catch {}' > tools/n.js; echo '{"name":"dep","version":"1.0.0","bin":"index.js"}' > node_modules/dep/package.json
        printf '#!/usr/bin/env node\n' > node_modules/dep/index.js; chmod +x node_modules/dep/index.js; ln -s ../dep/index.js node_modules/.bin/dep
        echo 'import json, helper' > tools/run.py; echo > tools/helper.py; echo > pkg/__main__.py; echo > pkg/__init__.py
        echo 'eval { require Helper }' > tools/run.pl; echo 'true # 0123456789' > bin/same.sh
        printf '#!/bin/sh\n. "$(dirname "$0")/lib.sh"; date >/dev/null\n' > bin/go.sh; echo > bin/lib.sh; printf '#!/bin/sh\n' > real/link.sh
        ln -s ../real/link.sh bin/link.sh; echo '[ -f conf/x.sh ] && . ./conf/x.sh' > bin/far.sh; chmod +x bin/* real/*
        printf -- '-include late.mk\nserve:\n\t@:\n' > Makefile; echo '{"name":"x","version":"1.0.0","scripts":{"start":"true"}}' > package.json
        echo 'require("fs").writeFileSync(process.env.MARK, "")' > evil.js; echo 'import os; open(os.environ["MARK"], "w")' > evil.py
        printf '#!/bin/sh\n:>"$MARK"\n' > evil.sh; chmod +x evil.sh"#;

    fn sh(root: &Path, script: &str) {
        let mut sh = std::process::Command::new("sh");
        let done = sh.args(["-c", script]).current_dir(root).status();
        assert!(done.expect("a shell").success(), "{script}");
    }

    /// Starts a server. Returns true if planted code ran.
    fn runs_planted_code(spec: &ServerSpec, root: &Path, mark: &Path) -> bool {
        let mut words: Vec<String> = spec
            .auth
            .token_command
            .iter()
            .map(ToString::to_string)
            .collect();
        if let Some(program) = &spec.command {
            words = vec![program.to_string_lossy().into_owned()];
            words.extend(spec.args.iter().map(ToString::to_string));
        }
        let mut server = std::process::Command::new("timeout");
        server
            .arg("20")
            .args(words)
            .env("MARK", mark)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        server.envs(
            spec.env
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string())),
        );
        server.current_dir(
            spec.cwd
                .as_ref()
                .map_or_else(|| root.to_owned(), |cwd| root.join(cwd)),
        );
        let ended = server
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(ended.is_ok(), "timeout");
        mark.exists()
    }

    #[test]
    fn trusted_server_that_would_run_planted_code_is_asked_about_again() {
        let table = include_str!("../../tests/attacks/5-trust.txt");
        let documented = include_str!("../../../../docs/security.md").replace("\n  ", " ");
        let (mut real, mut through, mut skipped) = (0, Vec::new(), Vec::new());
        for row in table.lines().filter(|row| !row.starts_with('#')) {
            let fields: Vec<&str> = row.split(" :: ").collect();
            let [name, server, attack, known @ ..] = &fields[..] else {
                panic!("{row}");
            };
            let folder = tempfile::tempdir().expect("a directory");
            let root = folder
                .path()
                .canonicalize()
                .expect("it is there")
                .join("root");
            fs::create_dir(&root).expect("a directory");
            sh(&root, PLANT);
            let text = server.replace("ROOT", &root.to_string_lossy());
            let spec: ServerSpec = serde_json::from_str(&text).expect(row);
            let mark = folder.path().join("mark");
            let before = Pins::from_server(&spec, &root).read();
            sh(&root, attack);
            let is_asked = before != Pins::from_server(&spec, &root).read();
            if !runs_planted_code(&spec, &root, &mark) {
                skipped.push(*name);
                continue;
            }
            real += 1;
            let sentence = known
                .first()
                .and_then(|known| known.strip_prefix("not held: "));
            match (is_asked, sentence) {
                (true, _) => {}
                (false, Some(sentence)) => assert!(documented.contains(sentence), "{sentence}"),
                (false, None) => through.push(*name),
            }
        }
        assert_eq!(through, Vec::<&str>::new(), "not real: {skipped:?}");
        assert!(real >= 20, "{real}, not real: {skipped:?}");
    }

    #[test]
    fn too_many_files_are_never_the_same_content() {
        let folder = tempfile::tempdir().expect("a directory");
        for at in 0..=MAX_FILES {
            fs::write(folder.path().join(format!("{at}.js")), "").expect("a file");
        }
        let spec: ServerSpec =
            serde_json::from_value(json!({ "command": "node", "args": ["0.js"] }))
                .expect("a server");
        let pins = Pins::from_server(&spec, folder.path());
        let (one, other) = (pins.read(), pins.read());
        assert!(!one.is_whole && one.digest != other.digest);
    }

    #[test]
    fn version_of_a_package_floats_unless_it_is_fixed() {
        let table = [
            ("dep", true),
            ("dep@latest", true),
            ("dep@1.2.3", false),
            ("@scope/dep", true),
            ("@scope/dep@1.0.0", false),
            ("dep==1.2", false),
            ("dep@^1", true),
            ("dep>=1.0", true),
            ("dep@1", true),
        ];
        for (package, expect) in table {
            let spec = json!({ "command": "npx", "args": ["-y", package] });
            let spec: ServerSpec = serde_json::from_value(spec).expect("a server");
            let pins = Pins::from_server(&spec, Path::new("/nowhere"));
            assert_eq!(pins.floating.is_some(), expect, "{package}");
        }
    }
}
