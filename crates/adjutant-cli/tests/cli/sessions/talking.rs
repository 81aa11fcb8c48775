//! What is said to a process that works in a session.

use adjutant::{agent::DueWork, llm::Gate};

use super::{Desk, lists};
use crate::command::{end, says, serve};

#[test]
fn message_reaches_the_model_when_another_process_says_it() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([lists().wait_at(0, &gate), says("In French, then.")]);
        let child = desk.start(&server);
        desk.see(&["sessions", "tell", "s", "Answer in French!"])
            .check(0, "", "whoever works in the session hears it\n");
        desk.await_in("s", "Answer in French!");
        gate.open();
        end(child).check(0, "Looking.\nIn French, then.\n", "");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(body.contains("Answer in French!"), "{body}");
        let shown = desk.out(&["sessions", "show", "s"]);
        assert!(
            shown.contains(" steering  user: Answer in French!"),
            "{shown}"
        );
    }
}

#[test]
fn run_ends_when_another_process_stops_it() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([says("Never").wait_at(0, &gate)]);
        let child = desk.start(&server);
        desk.see(&["sessions", "stop", "s"]).check(
            0,
            "",
            "whoever works in the session hears it\n",
        );
        end(child).check(130, "", "");
        gate.open();
    }
}

#[test]
fn message_waits_when_nobody_works_in_the_session() {
    for desk in Desk::each() {
        let server = serve([says("One."), says("Two.")]);
        desk.ask(&server, &["run", "1?", "--session", "s", "-q"])
            .check(0, "One.\n", "");
        let told = "nobody works in the session; its next run hears it\n";
        desk.see(&["sessions", "tell", "s", "Be brief!"])
            .check(0, "", told);
        desk.ask(&server, &["run", "2?", "--session", "s", "-q"])
            .check(0, "Two.\n", "");
        let body = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
        assert!(body.contains("Be brief!"), "{body}");
    }
}

#[test]
fn run_begins_on_what_was_posted_when_the_session_is_resumed() {
    for desk in Desk::each() {
        let server = serve([says("One."), says("Two."), says("Three.")]);
        desk.ask(&server, &["run", "1?", "--session", "s", "-q"])
            .check(0, "One.\n", "");
        let post: &[&[&str]] = &[
            &["sessions", "tell", "s", "And 2?"],
            &["fleet", "post", "s", "And 3?"],
        ];
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
        desk.ask(&server, &["resume", "s", "-q"])
            .check(2, "", closed);
    }
}

#[test]
fn post_tells_who_hears_it_and_refuses_a_name_that_no_session_has() {
    let desk = Desk::new("store.db");
    let hears = "a worker hears it: `adjutant sessions show s`\n";
    let is_aside = "the session is set aside, so no worker hears it yet: it was damaged; `adjutant fleet retry s` has it driven again\n";
    let post = |name: &str, text: &str| desk.see(&["fleet", "post", name, text]);
    post("s", "One.").check(0, "", hears);
    let journal = adjutant::store::Sqlite::open(desk.path("store.db"))
        .expect("it opens")
        .journal();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime
        .block_on(journal.set_aside(&"s".into(), "it was damaged"))
        .expect("it is there");
    drop(journal);
    post("s", "Two.").check(0, "", is_aside);
    desk.see(&["fleet", "retry", "s"])
        .check(0, "", "a worker drives it again\n");
    post("s", "Three.").check(0, "", hears);
    for (name, why) in [
        ("a\nb", "it has a control character"),
        (&*"a".repeat(300), "it has more than 128 characters"),
        ("", "it is empty"),
    ] {
        post(name, "Hi").check(
            2,
            "",
            &format!("error: a session cannot have this name: {why}\n"),
        );
    }
}

#[test]
fn session_is_followed_when_it_is_at_work() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([says("Here I am.").wait_at(0, &gate)]);
        let child = desk.start(&server);
        let following = desk
            .command(&["sessions", "show", "s", "--follow"])
            .spawn()
            .expect("the command starts");
        gate.open();
        end(child).check(0, "Here I am.\n", "");
        let shown = end(following);
        assert_eq!(shown.code, Some(0), "{shown:#?}");
        let kinds: Vec<&str> = shown
            .stdout
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(kinds, ["prompt", "reply", "end"], "{shown:#?}");
    }
}
