//! Sessions are listed, renamed, labelled, deleted and swept.

use adjutant::llm::{Gate, Script};
use serde_json::{Value, json};

use super::{Desk, lists};
use crate::command::{says, serve, usage};

/// Makes sessions of one run each.
fn make(desk: &Desk, names: &[&str]) {
    let server = serve(names.iter().map(|_| says("Yes.")));
    for name in names {
        desk.ask(&server, &["run", "Hi", "--session", name, "-q"])
            .check(0, "Yes.\n", "");
    }
}

#[test]
fn list_goes_on_when_there_are_more_than_one_page() {
    for desk in Desk::each() {
        make(&desk, &["one", "two of them", "three"]);
        let (mut names, mut after) = (Vec::new(), None::<String>);
        for page in 0..3 {
            let mut args = vec!["sessions", "list", "--limit", "1", "--json"];
            args.extend(after.iter().flat_map(|mark| ["--after", mark]));
            let seen = desk.see(&args);
            let [event] = &seen.events()[..] else {
                panic!("one session a page: {seen:#?}")
            };
            names.push(event["name"].as_str().expect("a name").to_owned());
            let more = seen
                .stderr
                .strip_prefix("more: adjutant sessions list --limit 1 --json --after ");
            assert_eq!(more.is_some(), page < 2, "{seen:#?}");
            after = more.map(|mark| mark.trim().to_owned());
        }
        names.sort();
        assert_eq!(names, ["one", "three", "two of them"]);
        let wrong = desk.see(&["sessions", "list", "--after", "soon"]);
        assert_eq!(
            (wrong.code, wrong.stdout.as_str()),
            (Some(2), ""),
            "{wrong:#?}"
        );
    }
}

#[test]
fn list_says_what_waits_and_what_was_left_in_the_middle_when_runs_are_open() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let asks = Script::new()
            .call("ask_user", json!({"question": "Which colour?"}))
            .usage(usage());
        // What waits was asked long before the newest record.
        let read = |script: Script, _| script.call("read_file", json!({"path": "notes.txt"}));
        let many = (0..40)
            .fold(Script::new().call("list_files", json!({})), read)
            .usage(usage());
        let server = serve([
            asks,
            many,
            says("Yes."),
            lists(),
            says("Never said").wait_at(0, &gate),
            says("No").wait_at(0, &gate),
        ]);
        for (name, code) in [("question", 5), ("call", 5), ("ended", 0)] {
            let run = ["run", "Hi", "--session", name, "--ask", "list_files", "-q"];
            assert_eq!(desk.ask(&server, &run).code, Some(code));
        }
        // A turn that is over is behind it.
        let run = ["run", "Hi", "--session", "left", "-q"];
        let mut lost = desk
            .asking(&server, &run)
            .spawn()
            .expect("the command starts");
        desk.await_in("left", "notes.txt");
        while server.request_count() < 5 {
            std::thread::yield_now();
        }
        lost.kill().and_then(|()| lost.wait()).expect("it runs");
        let mut at_work = desk
            .asking(&server, &["run", "Hi", "--session", "busy", "-q"])
            .spawn()
            .expect("it starts");
        while server.request_count() < 6 {
            std::thread::yield_now();
        }
        let list = desk.out(&["sessions", "list"]);
        for (name, told) in [
            (
                "question",
                "waits for an answer to \"Which colour?\", \"Hi\", ask:list_files, dir:",
            ),
            (
                "call",
                "waits for a word on list_files, \"Hi\", ask:list_files, dir:",
            ),
            ("ended", "\"Hi\", ask:list_files, dir:"),
            ("left", "left in the middle of a run, \"Hi\", dir:"),
            ("busy", "at work, \"Hi\", dir:"),
        ] {
            let line = list
                .lines()
                .find(|line| line.starts_with(&format!("{name} ")))
                .expect("it is listed");
            // Behind the numbers of records.
            assert!(
                line[34..]
                    .trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit())
                    .starts_with(told),
                "{list}"
            );
        }
        let known: Vec<Value> = desk.see(&["sessions", "list", "--json"]).events();
        let of = |name: &str| {
            known
                .iter()
                .find(|it| it["name"] == name)
                .expect("it is listed")
        };
        let runs =
            ["question", "call", "ended", "left", "busy"].map(|name| of(name)["run"].as_str());
        assert_eq!(
            runs,
            [
                Some("waits"),
                Some("waits"),
                Some("none"),
                Some("open"),
                Some("open")
            ]
        );
        let waits = json!([{"pause": "main/c1_0_0", "agent": "adjutant", "kind": "approval", "tool": "list_files", "prompt": "may list_files run?"}]);
        assert_eq!(
            (&of("call")["waits"], &of("busy")["owned"]),
            (&waits, &true.into())
        );
        at_work
            .kill()
            .and_then(|()| at_work.wait())
            .expect("it runs");
        gate.open();
    }
}

#[test]
fn list_holds_only_what_is_asked_for_when_it_has_labels() {
    for desk in Desk::each() {
        make(&desk, &["one", "two"]);
        let labels = desk.out(&["sessions", "label", "one", "+kept", "+old"]);
        assert!(
            labels.starts_with("dir:") && labels.ends_with("\nkept\nold\n"),
            "{labels}"
        );
        assert!(
            desk.out(&["sessions", "label", "one", "-old"])
                .ends_with("\nkept\n")
        );
        let list = desk.out(&["sessions", "list", "--label", "kept"]);
        assert!(
            list.lines().count() == 2 && list.contains("\none  "),
            "{list}"
        );
        assert_eq!(
            desk.out(&["sessions", "list", "--agent", "someone else"]),
            ""
        );
        assert_eq!(
            desk.out(&["sessions", "list", "--agent", "adjutant"])
                .lines()
                .count(),
            3
        );
    }
}

#[test]
fn list_says_so_when_it_is_empty() {
    let desk = Desk::new("store.db");
    make(&desk, &["s"]);
    let own = format!("-dir:{}", desk.work());
    let table: [(&[&str], &str); 8] = [
        (
            &["sessions", "list", "--label", "none"],
            "there is no such session\n",
        ),
        (
            &["sessions", "list", "--label", "none", "--json"],
            "there is no such session\n",
        ),
        (
            &["sessions", "show", "s", "--from", "999"],
            "there is nothing to show\n",
        ),
        (
            &["sessions", "label", "s", &own],
            "the session has no label\n",
        ),
        (
            &["memory", "list", "--owner", "ada"],
            "nothing is known of ada\n",
        ),
        (&["board", "list"], "there is no such task\n"),
        (
            &["agents", "list"],
            "there is no agent in .adjutant/agents\n",
        ),
        (
            &["agent", "ps"],
            "there is no agent here; `adjutant agent create` makes one\n",
        ),
    ];
    for (args, told) in table {
        let seen = desk.see(args);
        assert_eq!(
            (seen.code, seen.stdout.as_str(), seen.stderr.as_str()),
            (Some(0), "", told),
            "{args:?}"
        );
    }
}

#[test]
fn show_goes_on_when_there_are_more_than_one_page() {
    for desk in Desk::each() {
        make(&desk, &["s"]);
        let first = desk.see(&["sessions", "show", "s", "--limit", "1"]);
        assert_eq!(first.code, Some(0), "{first:#?}");
        assert!(
            first.stdout.ends_with(" prompt    user: Hi\n") && first.stdout.lines().count() == 1,
            "{first:#?}"
        );
        let command = first
            .stderr
            .strip_prefix("more: adjutant ")
            .expect("there is more")
            .trim()
            .to_owned();
        let next = desk.out(&command.split(' ').collect::<Vec<_>>());
        assert!(next.contains(" reply     adjutant: Yes."), "{next}");
        let json = desk.see(&["sessions", "show", "s", "--json"]).events();
        assert_eq!(
            (&json[0]["kind"], &json[0]["text"]),
            (&"prompt".into(), &"Hi".into())
        );
    }
}

#[test]
fn session_is_gone_when_it_was_deleted() {
    for desk in Desk::each() {
        make(&desk, &["one", "two", "three"]);
        let asks =
            "error: sessions are deleted only when someone says yes\nhint: --yes confirms it\n";
        desk.see(&["sessions", "delete", "one"]).check(2, "", asks);
        let missing = "error: no session has this name: tow\nhint: the nearest are two\n";
        desk.see(&["sessions", "delete", "one", "tow", "--yes"])
            .check(2, "", missing);
        desk.see(&["sessions", "delete", "one", "three", "one", "--yes"])
            .check(0, "deleted one\ndeleted three\n", "");
        assert_eq!(desk.out(&["sessions", "list"]).lines().count(), 2);
        desk.see(&["sessions", "sweep"])
            .check(0, "", "removed 0 texts, 0 bytes\n");
    }
}

#[test]
fn session_has_another_name_when_it_was_renamed() {
    for desk in Desk::each() {
        make(&desk, &["one", "two"]);
        desk.out(&["sessions", "rename", "one", "é/1"]);
        assert!(desk.out(&["sessions", "show", "é/1"]).contains("user: Hi"));
        let taken = desk.see(&["sessions", "rename", "é/1", "two"]);
        assert_eq!(
            (taken.code, taken.stdout.as_str()),
            (Some(2), ""),
            "{taken:#?}"
        );
    }
}

#[test]
fn nearest_names_are_told_when_there_is_no_such_session() {
    for desk in Desk::each() {
        make(&desk, &["heron", "kestrel"]);
        let near = "error: no session has this name: herron\nhint: the nearest are heron\n";
        for command in [
            &["sessions", "show", "herron"][..],
            &["resume", "herron"],
            &["replay", "herron"],
        ] {
            desk.see(command).check(2, "", near);
        }
        let far =
            "error: no session has this name: swallow\nhint: `adjutant sessions list` shows them\n";
        desk.see(&["sessions", "verify", "swallow"])
            .check(2, "", far);
    }
}

#[test]
fn files_are_put_back_when_a_session_is_undone() {
    for desk in Desk::each() {
        let write = |text: &str| json!({"path": "new/poem.txt", "content": text});
        let read = || {
            Script::new()
                .call("read_file", json!({"path": "new/poem.txt"}))
                .usage(usage())
        };
        let call = |args| Script::new().call("write_file", args).usage(usage());
        let server = serve([
            call(write("one\n")),
            says("Done."),
            read(),
            call(write("two\n")),
            says("Done."),
        ]);
        for prompt in ["Write!", "Again!"] {
            desk.ask(
                &server,
                &["run", prompt, "--session", "s", "--mode", "edits", "-q"],
            )
            .check(0, "Done.\n", "");
        }
        let poem = desk.path("work/new/poem.txt");
        assert_eq!(
            std::fs::read_to_string(&poem).expect("it is there"),
            "two\n"
        );
        desk.see(&["undo", "s"]).check(0, "new/poem.txt\n", "");
        assert_eq!(
            std::fs::read_to_string(&poem).expect("it is there"),
            "one\n"
        );
        std::fs::write(&poem, "mine\n").expect("it can be written");
        let refused = desk.see(&["undo", "s", "--to", "0"]);
        assert!(
            refused.code == Some(1)
                && refused
                    .stderr
                    .contains("it was changed by another program since"),
            "{refused:#?}"
        );
        std::fs::write(&poem, "one\n").expect("it can be written");
        desk.see(&["undo", "--to", "0"])
            .check(0, "new/poem.txt\n", "");
        assert!(!std::path::Path::new(&desk.path("work/new")).exists());
        desk.see(&["undo", "--to", "0"])
            .check(0, "", "nothing is to be put back\n");
    }
}

#[test]
fn undo_says_what_it_does_not_cover_when_commands_ran() {
    for desk in Desk::each() {
        let call = |tool: &str, args| Script::new().call(tool, args).usage(usage());
        let server = serve([
            call("run_command", json!({"command": "echo made > made.txt"})),
            says("Done."),
            call(
                "write_file",
                json!({"path": "poem.txt", "content": "one\n"}),
            ),
            call("run_command", json!({"command": "echo more >> made.txt"})),
            says("Done."),
        ]);
        for prompt in ["Make!", "Write!"] {
            desk.ask(
                &server,
                &["run", prompt, "--session", "s", "--mode", "all", "-q"],
            )
            .check(0, "Done.\n", "");
        }
        desk.see(&["undo", "s"]).check(
            0,
            "poem.txt\n",
            "not put back: what commands changed; 1 ran since then\n",
        );
        let all =
            "nothing is to be put back\nnot put back: what commands changed; 2 ran since then\n";
        desk.see(&["undo", "s", "--to", "0"]).check(0, "", all);
        let made = std::fs::read_to_string(desk.path("work/made.txt")).expect("it is there");
        assert_eq!(made, "made\nmore\n");
    }
}
