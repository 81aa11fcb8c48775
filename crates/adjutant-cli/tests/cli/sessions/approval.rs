//! A run waits for approval, its process ends, and another one goes on.

use adjutant::llm::Gate;

use super::{Desk, lists};
use crate::command::{says, serve};

/// What waits, and how it is told to go on.
const WAITS: &str = "waits: main/c1_0_1  list_files {}\n";

#[test]
fn run_is_done_when_its_call_is_approved_by_another_process() {
    for desk in Desk::each() {
        let server = serve([lists(), says("One file.")]);
        let paused = desk.ask(&server, &["run", "What is here?", "--session", "s", "--ask", "list_files"]);
        assert_eq!((paused.code, paused.stdout.as_str()), (Some(5), "Looking.\n"), "{paused:#?}");
        let tail = format!("{WAITS}hint: adjutant resume s --approve\nturns 1, calls 0, ");
        assert!(paused.stderr.contains(&tail), "{paused:#?}");

        let refused = desk.ask(&server, &["run", "And now?", "--session", "s", "-q"]);
        refused.check(2, "", "error: a run of the session waits for an answer: s\nhint: adjutant resume s\n");
        desk.ask(&server, &["resume", "s"]).check(5, "", &format!("{WAITS}hint: adjutant resume s --approve\n"));
        let explained = desk.out(&["resume", "s", "--explain"]);
        assert!(explained.contains("call c1_0_1 of list_files: has not begun"), "{explained}");
        assert!(explained.contains("main/c1_0_1 waits: "), "{explained}");
        assert_eq!(server.request_count(), 1);

        let resumed = desk.ask(&server, &["resume", "s", "--approve"]);
        assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "One file.\n"), "{resumed:#?}");
        assert!(resumed.stderr.starts_with("→ list_files {}\n✓ list_files "), "{resumed:#?}");
        assert!(server.requests()[1].body.windows(9).any(|it| it == b"notes.txt"));
        let closed = "error: no run of the session is open: s\nhint: adjutant run --session s PROMPT\n";
        desk.ask(&server, &["resume", "s", "--approve"]).check(2, "", closed);
    }
}

#[test]
fn model_is_told_why_when_its_call_is_denied() {
    for desk in Desk::each() {
        let server = serve([lists(), says("As you wish.")]);
        let paused = desk.ask(&server, &["run", "What is here?", "--continue", "--ask", "list_files", "-q"]);
        paused.check(5, "Looking.\n", "");
        let wrong = "error: nothing waits under this id: c9\n\
                     hint: what waits is main/c1_0_1; the name of a session stands first\n";
        desk.ask(&server, &["resume", "--approve", "c9"]).check(2, "", wrong);
        let denied = desk.ask(&server, &["resume", "--deny", "c1_0_1", "--why", "private matters", "-q"]);
        denied.check(0, "As you wish.\n", "");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(body.contains("private matters") && !body.contains("notes.txt"), "{body}");
    }
}

#[test]
fn calls_still_wait_when_the_session_is_resumed_or_forked() {
    for desk in Desk::each() {
        let server = serve([lists(), lists(), says("Done."), lists()]);
        desk.ask(&server, &["run", "Look!", "--session", "s", "--ask", "list_files", "-q"]).check(5, "Looking.\n", "");
        desk.ask(&server, &["resume", "s", "--approve", "-q"]).check(5, "Looking.\n", "");
        desk.out(&["sessions", "fork", "s", "fork"]);
        desk.ask(&server, &["resume", "fork", "--approve", "-q"]).check(0, "Done.\n", "");
        desk.ask(&server, &["resume", "s", "--approve", "-q"]).check(5, "Looking.\n", "");
    }
}

#[test]
fn resumed_run_ends_when_its_time_is_up() {
    for desk in Desk::each() {
        let gate = Gate::new();
        let server = serve([lists(), says("Too late").wait_at(0, &gate)]);
        desk.ask(&server, &["run", "Look!", "--session", "s", "--ask", "list_files", "-q"]).check(5, "Looking.\n", "");
        let late = "error: the run did not end within 50ms\nhint: --timeout sets the time\n";
        desk.ask(&server, &["resume", "s", "--approve", "--timeout", "0.05", "-q"]).check(124, "", late);
        gate.open();
    }
}

#[test]
fn waiting_run_ends_when_someone_stops_it() {
    for desk in Desk::each() {
        let server = serve([lists(), says("Again.")]);
        desk.ask(&server, &["run", "Look!", "--session", "s", "--ask", "list_files", "-q"]).check(5, "Looking.\n", "");
        let told = "nobody works in the session; `adjutant resume s` ends the run that is open, if one is\n";
        desk.see(&["sessions", "stop", "s"]).check(0, "", told);
        desk.ask(&server, &["resume", "s", "-q"]).check(130, "", "");
        desk.ask(&server, &["run", "Once more!", "--session", "s", "-q"]).check(0, "Again.\n", "");
    }
}
