//! What is said to a process that works in a session.

use adjutant::llm::Gate;

use super::{Desk, lists};
use crate::command::{end, says, serve};

#[test]
fn message_reaches_the_model_when_another_process_says_it() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([lists().wait_at(0, &gate), says("In French, then.")]);
        let child = desk.start(&server);
        desk.see(&["sessions", "tell", "s", "Answer in French!"]).check(
            0,
            "",
            "whoever works in the session hears it\n",
        );
        desk.await_in("s", "Answer in French!");
        gate.open();
        end(child).check(0, "Looking.\nIn French, then.\n", "");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(body.contains("Answer in French!"), "{body}");
        let shown = desk.out(&["sessions", "show", "s"]);
        assert!(shown.contains(" steering  user: Answer in French!"), "{shown}");
    }
}

#[test]
fn run_ends_when_another_process_stops_it() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([says("Never").wait_at(0, &gate)]);
        let child = desk.start(&server);
        desk.see(&["sessions", "stop", "s"]).check(0, "", "whoever works in the session hears it\n");
        end(child).check(130, "", "");
        gate.open();
    }
}

#[test]
fn message_waits_when_nobody_works_in_the_session() {
    for desk in Desk::each() {
        let server = serve([says("One."), says("Two.")]);
        desk.ask(&server, &["run", "1?", "--session", "s", "-q"]).check(0, "One.\n", "");
        let told = "nobody works in the session; its next run hears it\n";
        desk.see(&["sessions", "tell", "s", "Be brief!"]).check(0, "", told);
        desk.ask(&server, &["run", "2?", "--session", "s", "-q"]).check(0, "Two.\n", "");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(body.contains("Be brief!"), "{body}");
    }
}

#[test]
fn run_begins_on_what_was_posted_when_the_session_is_resumed() {
    for desk in Desk::each() {
        let server = serve([says("One."), says("Two."), says("Three.")]);
        desk.ask(&server, &["run", "1?", "--session", "s", "-q"]).check(0, "One.\n", "");
        let post: &[&[&str]] = &[&["sessions", "tell", "s", "And 2?"], &["fleet", "post", "s", "And 3?"]];
        for (at, (post, said)) in post.iter().zip(["Two.\n", "Three.\n"]).enumerate() {
            let posted = desk.see(post);
            // Files of JSON lines have no workers.
            if posted.code != Some(0) {
                assert!(at == 1 && !desk.store.ends_with(".db"), "{posted:#?}");
                continue;
            }
            desk.ask(&server, &["resume", "s", "-q"]).check(0, said, "");
            let body = String::from_utf8_lossy(&server.requests()[at + 1].body).into_owned();
            assert!(body.contains(post[3]), "{body}");
        }
        let closed = "error: no run of the session is open, and nothing was posted to it: s\nhint: adjutant run --session s PROMPT\n";
        desk.ask(&server, &["resume", "s", "-q"]).check(2, "", closed);
    }
}

#[test]
fn session_is_followed_when_it_is_at_work() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([says("Here I am.").wait_at(0, &gate)]);
        let child = desk.start(&server);
        let following = desk.command(&["sessions", "show", "s", "--follow"]).spawn().expect("the command starts");
        gate.open();
        end(child).check(0, "Here I am.\n", "");
        let shown = end(following);
        assert_eq!(shown.code, Some(0), "{shown:#?}");
        let kinds: Vec<&str> = shown.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(kinds, ["prompt", "reply", "end"], "{shown:#?}");
    }
}
