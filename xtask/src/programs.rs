//! Runs the programs that hold tests, some at a time. `cargo test` runs one after the other: while the slowest test of one
//! ends, processors wait.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{fs::File, io, thread, time::Instant};

use serde_json::Value;

use crate::{Failure, cargo};

/// One program that cargo built.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    /// The cargo arguments that run it alone.
    words: String,
    path: PathBuf,
    /// The folder of its package: tests run in it.
    folder: PathBuf,
}

/// The programs that these words of cargo build, the largest last.
pub(crate) fn built(words: &str) -> Result<Vec<Program>, Failure> {
    let told = cargo::output(&format!("{words} --no-run --message-format json"))?;
    let mut programs = read(&told);
    programs.sort_by_key(|it| it.path.metadata().map_or(0, |file| file.len()));
    Ok(programs)
}

/// Runs them, the last one first: a large one is mostly a long one, and should not be left for the end. Fails if one
/// failed, after all have run.
///
/// The output of a program is printed as a whole when it has ended, including failures and skipped tests.
pub(crate) fn run(programs: Vec<Program>) -> Result<(), Failure> {
    println!(
        "==> {} programs of tests, {} at a time",
        programs.len(),
        at_a_time()
    );
    let (waiting, failed) = (Mutex::new(programs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_a_time() {
            scope.spawn(|| {
                while let Some(program) = next(&waiting) {
                    if !program.run() {
                        failed
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(program.words);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let again = |words: &String| format!("\n  cargo test {words}");
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Step(format!(
            "tests failed; to run them again:{}",
            failed.iter().map(again).collect::<String>()
        ))),
    }
}

/// One more than there are processors: many tests wait for processes, servers and disks.
fn at_a_time() -> usize {
    thread::available_parallelism().map_or(1, Into::into) + 1
}

fn next(waiting: &Mutex<Vec<Program>>) -> Option<Program> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// The test programs in cargo's build messages.
fn read(told: &str) -> Vec<Program> {
    told.lines()
        .filter_map(|line| Program::read(&serde_json::from_str(line).ok()?))
        .collect()
}

impl Program {
    fn read(told: &Value) -> Option<Self> {
        let path = told["executable"]
            .as_str()
            .filter(|_| told["profile"]["test"] == true)?;
        let folder = Path::new(told["manifest_path"].as_str()?).parent()?;
        let (name, kind) = (
            told["target"]["name"].as_str()?,
            told["target"]["kind"][0].as_str()?,
        );
        let target = if matches!(kind, "test" | "bin" | "example" | "bench") {
            format!("--{kind} {name}")
        } else {
            "--lib".to_owned()
        };
        // `path+file:///folder#name@version`, without a name where the folder has that name.
        let (place, id) = told["package_id"].as_str()?.split_once('#')?;
        let package = id
            .split_once('@')
            .map_or(place.rsplit('/').next()?, |(package, _)| package);
        Some(Self {
            words: format!("-p {package} {target}"),
            path: path.into(),
            folder: folder.to_owned(),
        })
    }

    /// Runs it like cargo, as far as tests can notice, prints its output, and returns whether it succeeded.
    fn run(&self) -> bool {
        let start = Instant::now();
        println!("     Running {}", self.words);
        // A file instead of a pipe: processes left by a test cannot keep it open. One for both streams keeps their
        // order.
        let log = self.path.with_extension("log");
        let status = File::create(&log).and_then(|file| self.command(file)?.status());
        let text = std::fs::read(&log).unwrap_or_default();
        let (text, seconds) = (
            String::from_utf8_lossy(&text),
            start.elapsed().as_secs_f64(),
        );
        let (good, end) = match status {
            Ok(status) => (status.success(), status.to_string()),
            Err(error) => (
                false,
                format!("cannot be run: {}: {error}", self.path.display()),
            ),
        };
        // One call: what two programs wrote stays apart.
        println!("==> {}: {end} after {seconds:.1} s\n{text}", self.words);
        good
    }

    fn command(&self, log: File) -> io::Result<Command> {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_that_hold_tests() {
        let told = |id: &str, kind: &str, name: &str, test: bool, program: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///w/{id}","manifest_path":"/w/a/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":{program}}}"#
            )
        };
        let lines = [
            told("a#0.1.0", "lib", "a", false, "null"),
            told("a#0.1.0", "lib", "a", true, "\"/t/a-1\""),
            told("a#0.1.0", "bin", "run", false, "\"/t/run\""),
            told("a#b@0.1.0", "test", "all", true, "\"/t/all-2\""),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let program = |words: &str, path: &str| Program {
            words: words.into(),
            path: path.into(),
            folder: "/w/a".into(),
        };
        let expect = [
            program("-p a --lib", "/t/a-1"),
            program("-p b --test all", "/t/all-2"),
        ];
        assert_eq!(read(&lines.join("\n")), expect);
    }
}
