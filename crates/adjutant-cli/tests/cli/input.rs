//! Where the prompt comes from, and where the answer goes.

use std::{fs, io::Read};

use adjutant_testing::Loopback;
use serde_json::Value;

use crate::command::{VENDORS, Vendor, adjutant, end, run, says, seen, seen_with, serve};

/// The prompt that a server was sent.
fn prompt(server: &Loopback) -> Value {
    let body = server.requests()[0].json();
    let messages = body["messages"]
        .as_array()
        .or(body["input"].as_array())
        .cloned()
        .unwrap_or_default();
    let content = messages
        .last()
        .map(|message| message["content"].clone())
        .unwrap_or_default();
    if content.is_string() {
        content
    } else {
        content[0]["text"].clone()
    }
}

/// Checks which prompt is made of arguments and input.
#[track_caller]
fn check(args: &[&str], input: &str, expect: &str) {
    for vendor in VENDORS {
        let server = serve([says("Hello.")]);
        let seen = seen_with(run(vendor, &server, args), input);
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "Hello.\n"),
            "{seen:#?}"
        );
        assert_eq!(prompt(&server), expect, "{vendor:?}");
    }
}

#[test]
fn prompt_is_joined_when_it_has_several_parts() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("the file can be written");
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    };
    let (one, two) = (
        write("one", "first file\n"),
        write("two", "  second\nfile\n"),
    );
    check(&[], "from input\n", "from input");
    check(&["-"], "from input\n", "from input");
    check(&["given"], "", "given");
    check(&["given"], "a diff\n", "given\n\na diff");
    check(&["given", "--no-stdin"], "a diff\n", "given");
    check(
        &["given", "--file", &one, "-f", &two],
        "",
        "given\n\nfirst file\n\n  second\nfile",
    );
    check(
        &["-", "-f", &two],
        "from input\n",
        "from input\n\n  second\nfile",
    );
    check(&["--file", &one], "", "first file");
}

#[test]
fn prompt_is_refused_when_nothing_can_be_read() {
    let empty = "error: the prompt is empty\nhint: give the agent a prompt\n";
    let model = ["--model", "offline/planner"];
    seen(adjutant(&["run", model[0], model[1]])).check(2, "", empty);
    seen(adjutant(&["run", " \n", model[0], model[1]])).check(2, "", empty);
    seen_with(adjutant(&["run", "-", model[0], model[1]]), "\n").check(2, "", empty);
    let missing = "error: cannot open the file of the prompt: /nonexistent/prompt\n\
                   caused by: No such file or directory (os error 2)\n";
    seen(adjutant(&[
        "run",
        "-f",
        "/nonexistent/prompt",
        model[0],
        model[1],
    ]))
    .check(2, "", missing);
}

#[test]
fn run_ends_quietly_when_nobody_reads_its_output() {
    for args in [&["Hi"][..], &["Hi", "--json"]] {
        // One delta that is larger than a pipe holds: the command stands in the middle of writing it.
        let server = serve([says(&"x".repeat(400_000)).delta_chars(400_000)]);
        let mut child = run(Vendor::Anthropic, &server, args)
            .spawn()
            .expect("the command starts");
        let mut stdout = child.stdout.take().expect("it is piped");
        stdout.read_exact(&mut [0]).expect("something is written");
        drop(stdout);
        end(child).check(0, "", "");
    }
}

#[test]
fn models_end_quietly_when_nobody_reads_their_output() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = adjutant(&["models"]);
    command.stdout(writer);
    seen(command).check(0, "", "");
}

#[test]
fn silent_standard_input_is_reported_after_a_while() {
    let server = serve([says("Hello.")]);
    let mut command = run(Vendor::Anthropic, &server, &["given"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let stdin = child.stdin.take();
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("it is piped");
    let mut byte = [0];
    while !line.ends_with('\n') && stderr.read(&mut byte).is_ok_and(|count| count == 1) {
        line.push(char::from(byte[0]));
    }
    assert_eq!(
        line,
        "waiting for standard input to end; --no-stdin leaves it out\n"
    );
    drop(stdin);
    assert_eq!(end(child).code, Some(0));
    assert_eq!(prompt(&server), "given");
}

#[test]
fn run_without_a_model_fails_and_names_the_ways_to_one() {
    let none = seen(adjutant(&["run", "Hi"]));
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (Some(2), ""),
        "{none:#?}"
    );
    for part in [
        "error: no model",
        "ANTHROPIC_API_KEY",
        "--model offline/planner",
    ] {
        assert!(none.stderr.contains(part), "{part}: {none:#?}");
    }
    let offline = seen(adjutant(&["run", "Hi", "-m", "offline"]));
    let hint = "hint: offline/planner needs no key";
    assert!(
        offline.code == Some(2) && offline.stderr.contains(hint),
        "{offline:#?}"
    );
}
