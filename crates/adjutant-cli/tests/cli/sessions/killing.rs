//! A process is killed in the middle of a reply.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::Child,
};

use adjutant::llm::{Gate, Script};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use super::Desk;
use crate::command::{says, serve};

/// Starts a run whose reply stands still after `So far so go`, and kills it when that is saved.
fn kill(desk: &Desk, server: &Loopback) {
    let mut child: Child = desk
        .asking(server, &["run", "Hi", "--session", "s", "-q"])
        .spawn()
        .expect("the command starts");
    let mut shown = [0; 12];
    child
        .stdout
        .as_mut()
        .expect("it is piped")
        .read_exact(&mut shown)
        .expect("the command writes");
    assert_eq!(&shown, b"So far so go");
    desk.await_in("s", "So far so go");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

fn server(gate: &Gate) -> Loopback {
    serve([
        says("So far so good, so far")
            .delta_chars(6)
            .wait_at(2, gate),
        says("All is well."),
    ])
}

#[test]
fn run_is_finished_when_it_is_resumed_after_a_kill() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = server(&gate);
        kill(&desk, &server);
        let explained = desk.out(&["resume", "s", "--explain"]);
        assert!(
            explained.contains("the model is asked, attempt 1; its earlier output is void"),
            "{explained}"
        );
        desk.ask(&server, &["resume", "s", "-q"])
            .check(0, "All is well.\n", "");
        let shown = desk.out(&["sessions", "show", "s"]);
        assert!(
            shown.contains(" void      adjutant: So far so go"),
            "{shown}"
        );
        assert!(
            shown.contains(" reply     adjutant: All is well."),
            "{shown}"
        );
        desk.out(&["sessions", "verify", "s"]);
        gate.open();
    }
}

#[test]
fn file_that_was_read_before_a_kill_is_edited_after_it_and_in_a_fork() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let read = Script::new().call("read_file", json!({"path": "notes.txt"}));
        let edit = || {
            Script::new().call(
                "edit_file",
                json!({"path": "notes.txt", "old_text": "stand", "new_text": "fly"}),
            )
        };
        let stands = says("So far so good, so far")
            .delta_chars(6)
            .wait_at(2, &gate);
        let server = serve([read, stands, edit(), says("Done."), edit(), says("Done.")]);
        kill(&desk, &server);
        desk.out(&["sessions", "fork", "s", "fork"]);
        for session in ["s", "fork"] {
            fs::write(desk.path("work/notes.txt"), "Herons stand.\n")
                .expect("the file can be written");
            desk.ask(&server, &["resume", session, "--mode", "edits", "-q"])
                .check(0, "Done.\n", "");
            assert_eq!(
                fs::read_to_string(desk.path("work/notes.txt")).expect("it is there"),
                "Herons fly.\n",
                "{session}"
            );
        }
        gate.open();
    }
}

#[test]
fn run_is_taken_over_when_the_server_cannot_tell_that_its_process_is_dead() {
    let Some(desk) =
        Desk::on_server("run_is_taken_over_when_the_server_cannot_tell_that_its_process_is_dead")
    else {
        return;
    };
    let gate = Gate::default();
    let server = server(&gate);
    kill(&desk, &server);
    let owned = desk.ask(&server, &["run", "And now?", "--session", "s", "-q"]);
    assert_eq!(
        (owned.code, owned.stdout.as_str()),
        (Some(2), ""),
        "{owned:#?}"
    );
    assert!(
        owned
            .stderr
            .starts_with("error: another process works in the session: s\n"),
        "{owned:#?}"
    );
    desk.ask(&server, &["resume", "s", "--take-over", "-q"])
        .check(0, "All is well.\n", "");
    desk.out(&["sessions", "verify", "--all"]);
    gate.open();
}

#[test]
fn what_was_shown_is_kept_when_a_new_prompt_follows_a_kill() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = server(&gate);
        kill(&desk, &server);
        let seen = desk.ask(&server, &["run", "And now?", "--session", "s"]);
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "All is well.\n"),
            "{seen:#?}"
        );
        let notice =
            "\nnotice: the last run of the session was left in its middle, and is closed\n";
        assert!(seen.stderr.contains(notice), "{seen:#?}");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(body.contains("So far so go"), "{body}");
        gate.open();
    }
}

#[test]
fn json_lines_are_in_the_log_when_the_process_is_killed() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([says("Too late").wait_at(0, &gate)]);
        // Nothing else saves anything before the end.
        let args = [
            "run",
            "Hi",
            "--session",
            "s",
            "--durability",
            "on-exit",
            "--json",
            "-q",
        ];
        let mut child: Child = desk
            .asking(&server, &args)
            .spawn()
            .expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let events = lines.map(|line| {
            serde_json::from_str::<Value>(&line.expect("it is text")).expect("it is JSON")
        });
        let last = events
            .into_iter()
            .find(|event| event["event"] == "turn_started")
            .expect("a turn starts");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let listed: Value =
            serde_json::from_str(&desk.out(&["sessions", "list", "--json"])).expect("one session");
        assert!(
            last["seq"].as_u64() > Some(0) && last["seq"].as_u64() <= listed["records"].as_u64(),
            "{last} {listed}"
        );
        gate.open();
    }
}
