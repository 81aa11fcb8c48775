//! What ends a run before its answer does: Ctrl-C, a deadline, a limit.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command},
};

use adjutant::llm::{Gate, Script, ScriptedModel};
use adjutant_testing::{Fault, Loopback};
use serde_json::json;

use crate::command::{Seen, VENDORS, Vendor, end, run, says, seen, serve, usage};

fn press_ctrl_c(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill can be called").success());
}

/// Waits until the command has written this text and nothing before it.
#[track_caller]
fn read(from: &mut impl Read, text: &str) {
    let mut bytes = vec![0; text.len()];
    from.read_exact(&mut bytes).expect("the command writes");
    assert_eq!(String::from_utf8_lossy(&bytes), text);
}

/// The rest of both outputs, and the code.
fn rest(mut child: Child, mut stdout: impl Read) -> Seen {
    let mut text = String::new();
    stdout
        .read_to_string(&mut text)
        .expect("the output is UTF-8");
    let Seen { code, stderr, .. } = end({
        child.stdout = None;
        child
    });
    Seen {
        code,
        stdout: text,
        stderr,
    }
}

#[test]
fn run_keeps_what_was_said_when_ctrl_c_is_pressed() {
    for vendor in VENDORS {
        let gate = Gate::default();
        let server = serve([says("So far so good, so far")
            .delta_chars(6)
            .wait_at(2, &gate)]);
        let mut child = run(vendor, &server, &["Hi"])
            .spawn()
            .expect("the command starts");
        let mut stdout = child.stdout.take().expect("it is piped");
        read(&mut stdout, "So far so go");
        press_ctrl_c(&child);
        let seen = rest(child, stdout);
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(130), "\n"),
            "{seen:#?}"
        );
        let lines: Vec<&str> = seen.stderr.lines().collect();
        assert_eq!(
            lines[..2],
            ["cancelling; Ctrl-C again ends at once", "cancelled"],
            "{lines:#?}"
        );
        // The model counts at the end, or the input at the beginning.
        let input = if vendor == Vendor::Anthropic {
            "at least 5"
        } else {
            "unknown"
        };
        let took = format!("turns 1, calls 0, tokens {input} in / about 3 out, cost unknown");
        assert_eq!(lines[2..], [took], "{lines:#?}");
        gate.open();
    }
}

#[test]
fn json_ends_with_the_result_when_ctrl_c_is_pressed() {
    let stall = Fault::StallAt(700);
    let model = ScriptedModel::new([says(&"So far so good. ".repeat(100))]);
    let server = Loopback::setup(model)
        .fault(0, stall)
        .start_blocking()
        .expect("a port");
    let mut child = run(Vendor::Anthropic, &server, &["Hi", "--json", "-q"])
        .spawn()
        .expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let is_text = |line: &String| line.contains("\"event\":\"text_delta\"");
    assert!(lines.any(|line| is_text(&line.expect("the output is UTF-8"))));
    press_ctrl_c(&child);
    let last = lines
        .last()
        .expect("there is a last line")
        .expect("the output is UTF-8");
    let last: serde_json::Value = serde_json::from_str(&last).expect("it is JSON");
    let said = last["result"]["reply"]["blocks"][0]["text"]
        .as_str()
        .expect("what was said is kept");
    assert!(said.starts_with("So far"), "{said}");
    assert_eq!(
        last["result"]["outcome"],
        json!({"outcome": "cancelled", "by": "user"})
    );
    end(child).check(130, "", "");
}

#[test]
fn command_ends_at_once_when_ctrl_c_is_pressed_twice() {
    // One delta that is larger than a pipe holds: the run cannot end, because nobody reads what it says.
    let server = serve([says(&"x".repeat(400_000)).delta_chars(400_000)]);
    let mut child = run(Vendor::OpenAi, &server, &["Hi"])
        .spawn()
        .expect("the command starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    read(&mut stdout, "x");
    press_ctrl_c(&child);
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.ends_with("at once\n") {
        line.clear();
        assert_ne!(
            stderr
                .read_line(&mut line)
                .expect("the command says something"),
            0
        );
    }
    assert_eq!(line, "cancelling; Ctrl-C again ends at once\n");
    press_ctrl_c(&child);
    let status = child.wait().expect("the command ends");
    assert_eq!(status.code(), Some(130));
    let mut left = String::new();
    stderr.read_to_string(&mut left).expect("it is UTF-8");
    assert_eq!(left, "");
    drop(stdout);
}

#[test]
fn run_ends_with_its_own_code_when_the_deadline_comes() {
    let gate = Gate::default();
    let server = serve([says("Too late").wait_at(0, &gate)]);
    let seen = seen(run(
        Vendor::Anthropic,
        &server,
        &["Hi", "--timeout", "0.05", "--quiet"],
    ));
    seen.check(
        124,
        "",
        "error: the run did not end within 50ms\nhint: --timeout sets the time\n",
    );
    gate.open();
}

#[test]
fn run_ends_with_its_own_code_when_the_turns_are_used_up() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().to_str().expect("temporary paths are UTF-8");
    for vendor in VENDORS {
        let server = serve([Script::new()
            .text("Looking.")
            .call("list_files", json!({}))
            .usage(usage())]);
        let args = ["Hi", "--max-turns", "1", "--root", root];
        let seen = seen(run(vendor, &server, &args)).normal(&server);
        let cost = if vendor == Vendor::Anthropic {
            "$0.0025"
        } else {
            "$0.0017"
        };
        let stderr = format!(
            "→ list_files {{}}\n✓ list_files N ms\nerror: the run stopped at its limit: max turns (1)\n\
             hint: --max-turns sets how many requests a run may make\n\
             turns 1, calls 1, tokens 1,000 in / 50 out, cost {cost}\n"
        );
        seen.check(3, "Looking.\n", &stderr);
        assert_eq!(server.request_count(), 1);
    }
}
