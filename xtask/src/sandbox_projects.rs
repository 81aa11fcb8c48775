//! `sandbox-projects`: real projects are built and tested outside and inside the sandbox, with the same results in about the same
//! time.
//!
//! Sources and dependencies come from crates.io, npm, PyPI and Debian at run time. Inside, the `adjutant` command runs with a
//! scripted model and without options, as for a user.

mod fetch;
mod model;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use crate::{Failure, cargo, npm};
use fetch::Kind;
use model::ScriptedModel;

const BUILD: &str = "build --package adjutant-cli --bin adjutant --locked";
/// The largest ratio of the times inside and outside.
const LIMIT: f64 = 1.3;
/// The maximum number of measurements of a project.
const ROUNDS: usize = 3;
/// The variables of this process that builds see, inside and outside.
const HANDED: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "PYENV_ROOT",
];
/// The files in the directory of a project that hold the output and the exit code of its script.
const OUTPUT: &str = ".output";
const EXIT_CODE: &str = ".exit-code";
/// The number of last lines to print if the results differ.
const SHOWN: usize = 10;
/// The words that mark a line with a number of tests, or with a built package.
const COUNTS: [&str; 12] = [
    "Ran ",
    "building package",
    "test result:",
    "passed",
    "passing",
    "failing",
    "ℹ pass",
    "ℹ fail",
    "# pass",
    "# fail",
    "# PASS:",
    "# FAIL:",
];
const USAGE: &str = "usage: sandbox-projects [--sandbox bwrap|landlock] [NAME...]";

/// A project, and the script that builds and tests it.
struct Project {
    name: &'static str,
    kind: Kind,
    script: &'static str,
}

const PROJECTS: &[Project] = &[
    Project::new("semver", Kind::Crate("1.0.27"), "cargo test --offline"),
    // Sockets of the loopback network, Unix sockets and signals.
    Project::new("polling", Kind::Crate("3.11.0"), "cargo test --offline"),
    Project::new("globset", Kind::Crate("0.4.18"), "cargo test --offline"),
    Project::new(
        "find-my-way",
        Kind::Npm(
            "9.10.2",
            &["borp@0.21", "chalk@5", "proxyquire@2", "rfdc@1"],
        ),
        "npx borp",
    ),
    // Servers on the loopback network, with TLS too.
    Project::new(
        "fastify",
        Kind::Npm("5.12.8", &["node-forge@1", "split2@4", "undici@7"]),
        "node --test test/listen.*.test.js test/close*.test.js test/upgrade.test.js test/https/https.test.js",
    ),
    Project::new(
        "click",
        Kind::Python("8.3.1", &["pytest==9.0.1"]),
        "PYTHONPATH=src .venv/bin/python -m pytest -q tests",
    ),
    // Pools of processes.
    Project::new(
        "pebble",
        Kind::Python("5.1.3", &["pytest==9.0.1"]),
        "PYTHONPATH=. .venv/bin/python -m pytest -q test/test_process_pool_fork.py",
    ),
    // A module in C; servers, Unix sockets and child processes.
    Project::new(
        "tornado",
        Kind::Python("6.5.2", &["setuptools==80.9.0"]),
        ".venv/bin/python setup.py -q build_ext --inplace && .venv/bin/python -m tornado.test.runtests \
         tornado.test.httpserver_test tornado.test.netutil_test tornado.test.process_test",
    ),
    Project::new("hello", Kind::Debian, PACKAGE),
    Project::new("bc", Kind::Debian, PACKAGE),
    Project::new("ed", Kind::Debian, PACKAGE),
    Project::new("patch", Kind::Debian, PACKAGE),
];
const PACKAGE: &str = "cd source && dpkg-buildpackage -us -uc -b";

/// The result of one run of a script.
#[derive(Debug, PartialEq)]
struct Outcome {
    exit_code: String,
    /// The lines with numbers of tests, without times.
    counts: Vec<String>,
}

/// Runs the projects with these names, or all.
pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let (options, names) = match words {
        ["--sandbox", kind, names @ ..] => (vec![format!("--sandbox={kind}")], names),
        names => (Vec::new(), names),
    };
    let is_known = |name: &&str| PROJECTS.iter().any(|project| project.name == *name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        return Err(Failure::Usage(format!("no project {unknown}; {USAGE}")));
    }
    let program = match std::env::var_os("ADJUTANT") {
        Some(program) => program.into(),
        None => cargo::built(BUILD, "adjutant")?,
    };
    let sandbox = Sandboxed { program, options };
    let chosen = PROJECTS
        .iter()
        .filter(|project| names.is_empty() || names.contains(&project.name));
    let mut failed = Vec::new();
    println!(
        "{:<12} {:<7} {:>9} {:>9} {:>6}  result",
        "project", "kind", "outside", "inside", "ratio"
    );
    for project in chosen {
        let (name, kind) = (project.name, project.kind.name());
        match project.fetch() {
            Err(why) => println!("{name:<12} {kind:<7} {:>26}  skipped: {why}", ""),
            Ok(source) => {
                if !project.compare(&source, &sandbox)? {
                    failed.push(name);
                }
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(step(format!(
            "other results or times in the sandbox: {}",
            failed.join(", ")
        ))),
    }
}

/// The command whose sandbox is tested.
struct Sandboxed {
    program: PathBuf,
    options: Vec<String>,
}

impl Project {
    const fn new(name: &'static str, kind: Kind, script: &'static str) -> Self {
        Self { name, kind, script }
    }

    /// The directory in which its source is prepared, built and tested.
    fn work(&self) -> PathBuf {
        npm::folder("sandbox-projects").join(self.name).join("work")
    }

    /// Returns a copy of the prepared source, which is created once.
    fn fetch(&self) -> Result<PathBuf, String> {
        let (work, source) = (self.work(), self.work().with_file_name("source"));
        if !source.is_dir() {
            // A virtual environment contains its own path, so it is created where it is used.
            remove(&work)?;
            self.kind.fetch(self.name, &work)?;
            fs::rename(&work, &source).map_err(|error| error.to_string())?;
        }
        Ok(source)
    }

    /// Prints a row, and returns whether results and times agree.
    fn compare(&self, source: &Path, sandbox: &Sandboxed) -> Result<bool, Failure> {
        let (mut best_outside, mut best_inside) = (f64::MAX, f64::MAX);
        let mut result = String::new();
        // Other programs disturb a measurement: the best times count.
        for _ in 0..ROUNDS {
            let (outside, seconds) = self.measure(source, |work| {
                let mut shell = Command::new("sh");
                shell.args(["-c", &self.script()]).current_dir(work);
                shell
            })?;
            best_outside = best_outside.min(seconds);
            let model =
                ScriptedModel::start(&self.script()).map_err(|error| step(error.to_string()))?;
            let (inside, seconds) = self.measure(source, |work| {
                let mut adjutant = Command::new(&sandbox.program);
                adjutant
                    .args(["run", "--quiet", "--mode", "all"])
                    .args(&sandbox.options)
                    .arg("build and test it")
                    .current_dir(work)
                    .envs(model.environment());
                adjutant
            })?;
            best_inside = best_inside.min(seconds);
            let tests = inside.counts.len();
            result = match inside == outside {
                true => format!(
                    "same: exit code {}, {tests} lines compared",
                    inside.exit_code
                ),
                false => format!("different: outside {outside:?}, inside {inside:?}"),
            };
            if inside != outside || best_inside <= LIMIT * best_outside {
                break;
            }
        }
        let ratio = best_inside / best_outside;
        println!(
            "{:<12} {:<7} {best_outside:>7.1} s {best_inside:>7.1} s {ratio:>6.2}  {result}",
            self.name,
            self.kind.name()
        );
        let is_same = result.starts_with("same");
        if !is_same {
            let output = fs::read(self.work().join(OUTPUT)).unwrap_or_default();
            let output = String::from_utf8_lossy(&output);
            let skipped = output.lines().count().saturating_sub(SHOWN);
            for line in output.lines().skip(skipped) {
                println!("    {line}");
            }
        }
        Ok(is_same && ratio <= LIMIT)
    }

    /// The script, with its output and its exit code in files.
    fn script(&self) -> String {
        format!("( {} ) >{OUTPUT} 2>&1; echo $? >{EXIT_CODE}", self.script)
    }

    /// Runs a command in a fresh copy of the source, and returns what the script showed and the seconds that it took.
    fn measure(
        &self,
        source: &Path,
        command: impl FnOnce(&Path) -> Command,
    ) -> Result<(Outcome, f64), Failure> {
        let work = self.work();
        remove(&work).map_err(step)?;
        run_quietly(Command::new("cp").arg("-a").args([source, &work])).map_err(step)?;
        let mut command = command(&work);
        let own: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let handed = HANDED
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .env_clear()
            .envs(handed)
            .envs(own)
            .stdin(Stdio::null());
        let start = Instant::now();
        let output = command.output().map_err(|error| step(error.to_string()))?;
        let seconds = start.elapsed().as_secs_f64();
        let Ok(exit_code) = fs::read_to_string(work.join(EXIT_CODE)) else {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(step(format!(
                "{}: the script was not run: {why}",
                self.name
            )));
        };
        let text = fs::read(work.join(OUTPUT)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let is_count = |line: &&str| COUNTS.iter().any(|word| line.contains(word));
        let mut counts: Vec<String> = text.lines().filter(is_count).map(without_time).collect();
        // Parallel steps finish in any order.
        counts.sort();
        let outcome = Outcome {
            exit_code: exit_code.trim().to_owned(),
            counts,
        };
        Ok((outcome, seconds))
    }
}

/// A line about tests without the time that they took.
fn without_time(line: &str) -> String {
    let end = [" in ", "; finished", " ("]
        .iter()
        .filter_map(|word| line.find(word))
        .min();
    line[..end.unwrap_or(line.len())]
        .trim_matches(['=', ' '])
        .to_owned()
}

fn remove(directory: &Path) -> Result<(), String> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Runs a command, and returns its output or the last line of its errors.
fn run_quietly(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Err(format!(
        "{name}: {}: {}",
        output.status,
        last.unwrap_or_default()
    ))
}

fn step(message: String) -> Failure {
    Failure::Step(message)
}
