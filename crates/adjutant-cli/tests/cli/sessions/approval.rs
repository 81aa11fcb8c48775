//! A run waits for approval, its process ends, and another one goes on.

use std::fs;

use adjutant::llm::{Gate, Script};
use serde_json::{Value, json};

use super::{Desk, lists};
use crate::command::{says, serve};

/// What waits, without what is said before.
fn waiting(desk: &Desk) -> String {
    format!("main/c1_0_1  in {}  list_files {{}}\n", desk.work())
}

/// How what waits is approved, as it was hinted at.
#[track_caller]
fn hinted(told: &str) -> Vec<&str> {
    let hint = told
        .lines()
        .find_map(|line| line.strip_prefix("hint: adjutant "))
        .expect("a hint");
    hint.split(' ').collect()
}

#[test]
fn run_is_done_when_its_call_is_approved_by_another_process() {
    for desk in Desk::each() {
        let server = serve([lists(), says("One file.")]);
        let paused = desk.ask(
            &server,
            &[
                "run",
                "What is here?",
                "--session",
                "s",
                "--ask",
                "list_files",
            ],
        );
        assert_eq!(
            (paused.code, paused.stdout.as_str()),
            (Some(5), "Looking.\n"),
            "{paused:#?}"
        );
        let tail = format!(
            "waits: {}hint: adjutant resume s --approve main/c1_0_1@",
            waiting(&desk)
        );
        assert!(paused.stderr.contains(&tail), "{paused:#?}");

        let refused = desk.ask(&server, &["run", "And now?", "--session", "s", "-q"]);
        refused.check(
            2,
            "",
            "error: a run of the session waits for an answer: s\nhint: adjutant resume s\n",
        );
        let waits = desk.ask(&server, &["resume", "s"]);
        assert!(
            waits.code == Some(5) && waits.stderr.starts_with(&tail),
            "{waits:#?}"
        );
        let explained = desk.out(&["resume", "s", "--explain"]);
        assert!(
            explained.contains("call c1_0_1 of list_files: has not begun"),
            "{explained}"
        );
        assert!(explained.contains("main/c1_0_1 waits: "), "{explained}");
        assert_eq!(server.request_count(), 1);

        let resumed = desk.ask(&server, &["resume", "s", "--approve"]);
        assert_eq!(
            (resumed.code, resumed.stdout.as_str()),
            (Some(0), "One file.\n"),
            "{resumed:#?}"
        );
        assert!(
            resumed.stderr.starts_with(&format!(
                "approves: {}→ list_files {{}}\n✓ list_files ",
                waiting(&desk)
            )),
            "{resumed:#?}"
        );
        assert!(
            server.requests()[1]
                .body
                .windows(9)
                .any(|it| it == b"notes.txt")
        );
        let closed = "error: no run of the session is open, and nothing was posted to it: s\nhint: adjutant run --session s PROMPT\n";
        desk.ask(&server, &["resume", "s", "--approve"])
            .check(2, "", closed);
    }
}

#[test]
fn call_is_shown_whole_and_approved_as_it_was_shown() {
    let blanks = " ".repeat(400);
    let call = |path: &str| {
        let hidden = json!({"pattern": format!("x{blanks}y"), "glob": "\u{9b}2J\u{202e}\u{200b}\u{7f}", "path": path});
        Script::new().text("Looking.").call("search_text", hidden)
    };
    let shown = format!(
        r#"{{"pattern":"x{blanks}y","glob":"\u{{9b}}2J\u{{202e}}\u{{200b}}\u{{7f}}","path":"b.txt"}}"#
    );
    for desk in Desk::each() {
        let server = serve([call("b.txt"), call("other.txt"), says("Done.")]);
        for session in ["s", "other"] {
            let args = [
                "run",
                "Look!",
                "--session",
                session,
                "--ask",
                "search_text",
                "-q",
            ];
            desk.ask(&server, &args).check(5, "Looking.\n", "");
        }
        let waits = desk.ask(&server, &["resume", "s"]);
        assert!(
            waits.stderr.starts_with(&format!(
                "waits: main/c1_0_1  in {}  search_text {shown}\n",
                desk.work()
            )),
            "{waits:#?}"
        );
        for args in [
            &["resume", "s", "--explain"][..],
            &["sessions", "show", "s"],
        ] {
            assert!(desk.out(args).contains(r#"","path":"b.txt"}"#), "{args:?}");
        }
        let hint = hinted(&waits.stderr);
        let [.., named] = hint[..] else {
            unreachable!("{hint:?}")
        };
        let changed = "error: what waits is not what was shown: main/c1_0_1\n\
                       hint: `adjutant resume` without answers shows it\n";
        desk.ask(&server, &["resume", "other", "--approve", named])
            .check(2, "", changed);
        let json = desk.ask(&server, &[&hint[..], &["--json"]].concat());
        assert_eq!(
            (
                json.code,
                json.stdout.contains(['\u{9b}', '\u{202e}', '\u{7f}'])
            ),
            (Some(0), false),
            "{json:#?}"
        );
        assert!(json.stdout.contains(r"\u009b2J\u202e"), "{json:#?}");
    }
}

#[test]
fn model_is_told_why_when_its_call_is_denied() {
    for desk in Desk::each() {
        let server = serve([lists(), says("As you wish.")]);
        let paused = desk.ask(
            &server,
            &[
                "run",
                "What is here?",
                "--continue",
                "--ask",
                "list_files",
                "-q",
            ],
        );
        paused.check(5, "Looking.\n", "");
        let wrong = "error: nothing waits under this id: c9\n\
                     hint: what waits is main/c1_0_1; the name of a session stands first\n";
        desk.ask(&server, &["resume", "--approve", "c9"])
            .check(2, "", wrong);
        let denied = desk.ask(
            &server,
            &[
                "resume",
                "--deny",
                "c1_0_1",
                "--why",
                "private matters",
                "-q",
            ],
        );
        denied.check(0, "As you wish.\n", "");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(
            body.contains("private matters") && !body.contains("notes.txt"),
            "{body}"
        );
    }
}

#[test]
fn first_answer_that_is_posted_is_heard_and_another_one_refused() {
    for desk in Desk::each() {
        let server = serve([lists(), says("One file.")]);
        desk.ask(
            &server,
            &[
                "run",
                "Look!",
                "--session",
                "s",
                "--ask",
                "list_files",
                "-q",
            ],
        )
        .check(5, "Looking.\n", "");
        for (given, code, told) in [
            (&["--approve"][..], 0, "a worker hears it"),
            (&["--deny", "--why", "no"], 2, "was answered otherwise"),
            (&["--approve"], 0, "a worker hears it"),
        ] {
            let answered = desk.see(&[&["fleet", "answer", "s"], given].concat());
            assert!(
                answered.code == Some(code) && answered.stderr.contains(told),
                "{answered:#?}"
            );
        }
        desk.ask(&server, &["resume", "s", "-q"])
            .check(0, "One file.\n", "");
    }
}

#[test]
fn calls_still_wait_when_the_session_is_resumed_or_forked() {
    for desk in Desk::each() {
        let server = serve([lists(), lists(), says("Done."), lists()]);
        desk.ask(
            &server,
            &[
                "run",
                "Look!",
                "--session",
                "s",
                "--ask",
                "list_files",
                "-q",
            ],
        )
        .check(5, "Looking.\n", "");
        desk.ask(&server, &["resume", "s", "--approve", "-q"])
            .check(5, "Looking.\n", &format!("approves: {}", waiting(&desk)));
        desk.out(&["sessions", "fork", "s", "fork"]);
        let again = format!("approves: {}", waiting(&desk).replace("c1_", "c2_"));
        desk.ask(&server, &["resume", "fork", "--approve", "-q"])
            .check(0, "Done.\n", &again);
        desk.ask(&server, &["resume", "s", "--approve", "-q"])
            .check(5, "Looking.\n", &again);
    }
}

#[test]
fn resumed_run_ends_when_its_time_is_up() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([lists(), says("Too late").wait_at(0, &gate)]);
        desk.ask(
            &server,
            &[
                "run",
                "Look!",
                "--session",
                "s",
                "--ask",
                "list_files",
                "-q",
            ],
        )
        .check(5, "Looking.\n", "");
        let late = "error: the run did not end within 50ms\nhint: --timeout sets the time\n";
        let late = &format!("approves: {}{late}", waiting(&desk));
        desk.ask(
            &server,
            &["resume", "s", "--approve", "--timeout", "0.05", "-q"],
        )
        .check(124, "", late);
        gate.open();
    }
}

#[test]
fn waiting_run_ends_when_someone_stops_it() {
    for desk in Desk::each() {
        let server = serve([lists(), says("Again.")]);
        desk.ask(
            &server,
            &[
                "run",
                "Look!",
                "--session",
                "s",
                "--ask",
                "list_files",
                "-q",
            ],
        )
        .check(5, "Looking.\n", "");
        let told = "nobody works in the session; `adjutant resume s` ends the run that is open, if one is\n";
        desk.see(&["sessions", "stop", "s"]).check(0, "", told);
        desk.ask(&server, &["resume", "s", "-q"]).check(130, "", "");
        desk.ask(&server, &["run", "Once more!", "--session", "s", "-q"])
            .check(0, "Again.\n", "");
    }
}

#[test]
fn edit_is_done_by_another_process_if_its_file_is_as_it_was_read() {
    let read = || ("read_file", json!({"path": "notes.txt"}));
    let edit = || {
        (
            "edit_file",
            json!({"path": "notes.txt", "old_text": "stand", "new_text": "fly"}),
        )
    };
    let write = || {
        (
            "write_file",
            json!({"path": "notes.txt", "content": "Herons nest.\n"}),
        )
    };
    let delete = || ("delete_file", json!({"path": "notes.txt"}));
    let (old, flies, nests, changed) = (
        "Herons stand.\n",
        "Herons fly.\n",
        "Herons nest.\n",
        "Herons stand. They wait.\n",
    );
    let (again, first) = (
        "was changed since it was read; read it again",
        "is there and was not read; read it first",
    );
    // (the calls of each turn until one waits, what others write meanwhile, what is there then, what the model is told)
    let table = [
        (
            "an earlier turn",
            vec![vec![read()], vec![edit()]],
            None,
            flies,
            "is changed",
        ),
        (
            "the same turn",
            vec![vec![read(), edit()]],
            None,
            flies,
            "is changed",
        ),
        (
            "written anew",
            vec![vec![read()], vec![write()], vec![write()]],
            None,
            nests,
            "nothing is to be changed",
        ),
        (
            "changed",
            vec![vec![read()], vec![edit()]],
            Some(changed),
            changed,
            again,
        ),
        (
            "changed, to be deleted",
            vec![vec![read()], vec![delete()]],
            Some(changed),
            changed,
            again,
        ),
        (
            "put back",
            vec![vec![read()], vec![write()], vec![write()]],
            Some(old),
            old,
            again,
        ),
        ("never read", vec![vec![edit()]], None, old, first),
        (
            "never read, to be deleted",
            vec![vec![delete()]],
            None,
            old,
            first,
        ),
    ];
    for desk in Desk::each() {
        let file = desk.path("work/notes.txt");
        for (case, asked, meanwhile, expect, told) in &table {
            fs::write(&file, old).expect("the file can be written");
            let turn = |calls: &Vec<(&str, Value)>| {
                calls
                    .iter()
                    .fold(says("So."), |it, (tool, args)| it.call(*tool, args.clone()))
            };
            let server = serve(asked.iter().map(turn).chain([says("Done.")]));
            let mut seen = desk.ask(&server, &["run", "Edit!", "--session", case, "-q"]);
            while server.request_count() < asked.len() {
                seen = desk.ask(&server, &["resume", case, "--approve", "-q"]);
            }
            if *told == first {
                // No one is asked about a call that cannot succeed.
                assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), "So.\nDone.\n"));
            } else {
                assert_eq!(seen.code, Some(5), "{case}: {seen:#?}");
            }
            if let Some(text) = meanwhile {
                fs::write(&file, text).expect("the file can be written");
            }
            if *told != first {
                let done = desk.ask(&server, &["resume", case, "--approve", "-q"]);
                assert_eq!(
                    (done.code, done.stdout.as_str()),
                    (Some(0), "Done.\n"),
                    "{case}: {done:#?}"
                );
            }
            assert_eq!(
                fs::read_to_string(&file).expect("it is there"),
                *expect,
                "{case}"
            );
            let body = String::from_utf8_lossy(&server.requests()[asked.len()].body).into_owned();
            assert!(body.contains(told), "{case}: {body}");
        }
    }
}
