//! A session is shown once more, and nobody is asked.

use super::{Desk, lists};
use crate::command::{says, serve};

#[test]
fn replay_shows_what_the_run_showed_when_nobody_can_be_asked() {
    for desk in Desk::each() {
        let server = serve([lists(), says("One file.\nThat is all."), says("Still one.")]);
        let first = desk.ask(&server, &["run", "What is here?", "--session", "s"]);
        let second = desk.ask(
            &server,
            &["run", "And now?", "--session", "s", "--retries", "0"],
        );
        let replayed = desk.see(&["replay", "s"]);
        assert_eq!(
            (replayed.code, &replayed.stdout),
            (Some(0), &(first.stdout + &second.stdout)),
            "{replayed:#?}"
        );
        let lines: Vec<&str> = replayed.stderr.lines().collect();
        assert_eq!(
            lines[..2],
            ["» What is here?", "→ list_files {}"],
            "{replayed:#?}"
        );
        assert_eq!(
            lines.last(),
            second.stderr.lines().last().as_ref(),
            "{replayed:#?}"
        );
        assert_eq!(server.request_count(), 3);
        desk.see(&["replay", "s", "--final", "-q"]).check(
            0,
            "One file.\nThat is all.\nStill one.\n",
            "",
        );
    }
}

#[test]
fn replay_stops_when_a_record_is_named() {
    for desk in Desk::each() {
        let server = serve([lists(), says("One file.")]);
        desk.ask(&server, &["run", "What is here?", "--session", "s", "-q"]);
        let events = desk.see(&["replay", "s", "--json"]).events();
        let at = |kind: &str| {
            events
                .iter()
                .find(|event| event["event"] == kind)
                .map(|event| event["seq"].to_string())
        };
        let until = at("tool_finished").expect("a tool ran");
        desk.see(&["replay", "s", "--until", &until, "-q"])
            .check(0, "Looking.\n", "");
        assert_eq!(
            events.last().map(|event| &event["event"]),
            Some(&"run_finished".into())
        );
    }
}

#[test]
fn replay_lists_what_differs_when_it_is_held_against_today() {
    for desk in Desk::each() {
        let server = serve([says("Hello.")]);
        desk.ask(&server, &["run", "Hi", "--session", "s", "-q"]);
        let same = desk.see(&["replay", "s", "--check"]);
        assert!(
            same.code == Some(0) && same.stdout.ends_with(", nothing differs\n"),
            "{same:#?}"
        );
        let model = desk.see(&[
            "replay",
            "s",
            "--check",
            "--model",
            "openai/gpt-5",
            "--thinking",
            "low",
        ]);
        assert_eq!(
            (model.code, model.stderr.as_str()),
            (Some(1), ""),
            "{model:#?}"
        );
        let line = "run 1 turn 1: model: was anthropic/claude-sonnet-5, is openai/gpt-5\n";
        assert!(model.stdout.starts_with(line), "{model:#?}");
        assert!(
            model
                .stdout
                .contains("options.thinking: was nothing, is \"low\"\n"),
            "{model:#?}"
        );
        assert_eq!(server.request_count(), 1);
    }
}
