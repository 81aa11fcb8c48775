//! A line that rules let through has the same words in the shells that run it.

use std::{collections::BTreeSet, fs, io::Write, path::Path, process::Command};

use super::Line;

/// The shells that a command line may run in.
const SHELLS: [(&str, &[&str]); 2] = [
    ("bash", &["--noprofile", "--norc", "-c"]),
    ("dash", &["-c"]),
];
/// Ends the words of a command in the log.
const END: &str = "<END>";

/// Returns the words of the commands that a shell runs for a line. Each program is a function that writes its words down.
fn words(
    shell: &Path,
    options: &[&str],
    line: &str,
    programs: &BTreeSet<&str>,
) -> Option<Vec<Vec<String>>> {
    let place = tempfile::tempdir().expect("a directory");
    for folder in ["out", "src", "a", "dir"] {
        fs::create_dir(place.path().join(folder)).expect("a directory");
    }
    fs::write(place.path().join("in"), "text").expect("a file");
    let log = place.path().join("log");
    let functions: String = programs
        .iter()
        .map(|name| {
            format!(
                "{name}() {{ printf '%s\\0' {name} \"$@\" '{END}' >>'{}'; }}\n",
                log.display()
            )
        })
        .collect();
    let mut command = Command::new(shell);
    command.args(options).arg(functions + line);
    command
        .env_clear()
        .env("PATH", "/nonexistent")
        .current_dir(place.path());
    command.stdin(std::process::Stdio::null()).output().ok()?;
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for word in text.split_terminator('\0') {
        match word {
            END => all.push(Vec::new()),
            word => all.last_mut()?.push(word.to_owned()),
        }
    }
    all.pop();
    Some(all)
}

#[test]
fn lines_that_rules_let_through_have_the_same_words_in_the_shells() {
    let lines = include_str!("../../../tests/rules/lines.txt").lines();
    let allowed = lines.filter_map(|row| row.strip_prefix("allow "));
    let (mut wrong, mut ran) = (Vec::new(), 0);
    for line in allowed {
        let line = line
            .replace("<NL>", "\n")
            .replace("<EMPTY>", "")
            .replace("<SPACE>", " ");
        let read = Line::read(&line);
        assert_eq!(read.unclear, None, "{line}");
        let mut expect: Vec<Vec<String>> = read
            .commands
            .into_iter()
            .map(|command| command.words)
            .collect();
        let programs: BTreeSet<String> = expect
            .iter()
            .filter_map(|words| words.first().cloned())
            .collect();
        let programs: BTreeSet<&str> = programs.iter().map(String::as_str).collect();
        expect.sort();
        for (shell, options) in SHELLS {
            let folders = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(shell));
            let Some(path) = folders.iter().find(|path| path.is_file()) else {
                // A closed output is no failure of the test.
                let _ = writeln!(std::io::stdout(), "SKIPPED: {shell} is not installed");
                continue;
            };
            let mut found = words(path, options, &line, &programs).expect("it starts");
            found.sort();
            // What follows `||` does not run, because every command succeeds. Without `|&` in its grammar a shell runs nothing.
            let is_same = match line.contains("||") {
                _ if line.contains("|&") && shell == "dash" => found.is_empty(),
                true => !found.is_empty() && found.iter().all(|words| expect.contains(words)),
                false => found == expect,
            };
            if !is_same {
                wrong.push(format!(
                    "{shell}: {line}\n  read: {expect:?}\n  ran:  {found:?}"
                ));
            }
            ran += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 50, "{ran}");
}
