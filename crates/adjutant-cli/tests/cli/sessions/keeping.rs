//! A conversation goes on in another process; who may work in it.

use adjutant::llm::Gate;
use serde_json::Value;

use super::{Desk, START};
use crate::command::{Seen, end, says, seen, serve};

/// How many messages a request showed.
fn messages(request: &Value) -> usize {
    request["messages"].as_array().map_or(0, Vec::len)
}

#[test]
fn run_goes_on_when_its_session_has_a_name() {
    for desk in Desk::each() {
        let server = serve([says("Hello, Ada."), says("You are Ada."), says("Who?")]);
        let first = desk.ask(&server, &["run", "I am Ada.", "--session", "a/first one"]);
        assert_eq!(
            (first.code, first.stdout.as_str()),
            (Some(0), "Hello, Ada.\n"),
            "{first:#?}"
        );
        assert!(
            first.stderr.contains("\nsession: a/first one (new)\n"),
            "{first:#?}"
        );
        let second = desk.ask(
            &server,
            &["run", "Who am I?", "--session", "a/first one", "-q"],
        );
        second.check(0, "You are Ada.\n", "");
        desk.ask(&server, &["run", "Who am I?", "--session", "another", "-q"])
            .check(0, "Who?\n", "");
        let shown: Vec<usize> = server
            .requests()
            .iter()
            .map(|request| messages(&request.json()))
            .collect();
        assert_eq!(shown, [1, 3, 1]);
    }
}

#[test]
fn store_is_made_where_something_is_kept_and_by_nobody_who_looks() {
    for desk in Desk::each() {
        let looks: [&[&str]; 12] = [
            &["sessions", "list"],
            &["sessions", "show", "s"],
            &["sessions", "export", "s", "-"],
            &["sessions", "fork", "s", "t"],
            &["sessions", "verify", "--all"],
            &["sessions", "sweep"],
            &["undo"],
            &["resume", "s"],
            &["replay", "s"],
            &["memory", "list", "--owner", "ada"],
            &["board", "list"],
            &["agents", "list", "--session", "s"],
        ];
        for args in looks {
            let seen = desk.see(args);
            let told = seen
                .stderr
                .starts_with("error: there is no store of sessions here: ");
            let hint = "hint: --store or ADJUTANT_STORE names the place; `adjutant run --session NAME` makes one there\n";
            assert!(
                seen.code == Some(2) && told && seen.stderr.ends_with(hint),
                "{args:?} {seen:#?}"
            );
        }
        // Nothing is beside the directory.
        assert_eq!(
            std::fs::read_dir(desk.path("."))
                .expect("it is there")
                .count(),
            1
        );
        let server = serve([says("One."), says("Two.")]);
        for (run, is_told) in [("run", true), ("run", false)] {
            let seen = desk.ask(&server, &[run, "Hi", "--session", "s"]);
            let told = seen
                .stderr
                .contains("notice: a new store of sessions was made: ");
            assert_eq!((seen.code, told), (Some(0), is_told), "{seen:#?}");
        }
        assert_eq!(desk.out(&["sessions", "list"]).lines().count(), 2);
    }
    let desk = Desk::new("store.db");
    for wrong in ["sqlite:typo.db", "postgre://ada:secret@host/db"] {
        for args in [
            &["sessions", "list", "--store", wrong][..],
            &[
                "run",
                "Hi",
                "--session",
                "s",
                "-m",
                "offline/planner",
                "--store",
                wrong,
            ],
        ] {
            let seen = desk.see(args);
            let (scheme, _) = wrong.split_once(':').expect("it has a scheme");
            let told =
                format!("error: no store is named by a text that begins with {scheme}:\nhint: ");
            let place = seen
                .stderr
                .split_once("error: ")
                .map(|(_, text)| format!("error: {text}"))
                .unwrap_or_default();
            assert!(
                seen.code == Some(2) && place.starts_with(&told) && !place.contains("secret"),
                "{seen:#?}"
            );
        }
    }
    assert_eq!(
        std::fs::read_dir(desk.path("work"))
            .expect("it is there")
            .count(),
        1
    );
    // Where no place is named there is simply nothing yet.
    let mut unnamed = desk.command(&["sessions", "list"]);
    unnamed
        .env_remove("ADJUTANT_STORE")
        .env("HOME", desk.path("home"));
    seen(unnamed).check(0, "", "there is no such session\n");
    assert!(!std::path::Path::new(&desk.path("home")).exists());
}

#[test]
fn run_goes_on_when_its_session_is_on_a_server() {
    let Some(desk) = Desk::on_server("run_goes_on_when_its_session_is_on_a_server") else {
        return;
    };
    let server = serve([says("Hello, Ada."), says("You are Ada.")]);
    desk.ask(&server, &["run", "I am Ada.", "--session", "s", "-q"])
        .check(0, "Hello, Ada.\n", "");
    desk.ask(&server, &["run", "Who am I?", "--continue", "-q"])
        .check(0, "You are Ada.\n", "");
    assert_eq!(messages(&server.requests()[1].json()), 3);
    assert_eq!(desk.out(&["memory", "list", "--owner", "ada"]), "");
    desk.see(&["sessions", "delete", "s", "--yes"])
        .check(0, "deleted s\n", "");
}

#[test]
fn run_goes_on_when_the_directory_has_a_session() {
    for desk in Desk::each() {
        let server = serve([says("One."), says("Two."), says("Three.")]);
        for (prompt, reply) in [("1?", "One.\n"), ("2?", "Two.\n")] {
            desk.ask(&server, &["run", prompt, "--continue", "-q"])
                .check(0, reply, "");
        }
        let elsewhere = desk.path(".");
        desk.ask(
            &server,
            &["run", "3?", "--continue", "-q", "--root", &elsewhere],
        )
        .check(0, "Three.\n", "");
        let shown: Vec<usize> = server
            .requests()
            .iter()
            .map(|request| messages(&request.json()))
            .collect();
        assert_eq!(shown, [1, 3, 1]);
        let list = desk.out(&["sessions", "list"]);
        assert_eq!(list.lines().count(), 3, "{list}");
        assert!(
            list.lines()
                .last()
                .is_some_and(|line| line.starts_with("work-20")),
            "{list}"
        );
    }
}

#[test]
fn options_of_sessions_are_refused_when_nothing_is_kept() {
    for option in [
        &["--ask", "list_files"][..],
        &["--take-over"],
        &["--durability", "async"],
    ] {
        let args = [
            &["run", "Hi", "-m", "offline/planner", "--ephemeral"],
            option,
        ]
        .concat();
        let error = format!("error: {} needs a session that is kept\n", option[0]);
        Desk::new("store.db").see(&args).check(
            2,
            "",
            &(error + "hint: leave --ephemeral and --replay out\n"),
        );
    }
    let seen = Desk::new("store.db").see(&[
        "run",
        "Hi",
        "-m",
        "offline/planner",
        "--session",
        "s",
        "--ask",
        "rm",
    ]);
    assert!(
        seen.stderr
            .starts_with("error: no tool has this name: rm\nhint: the tools are list_files, "),
        "{seen:#?}"
    );
}

#[test]
fn second_process_is_refused_when_one_works_in_the_session() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([
            says("So far so good").delta_chars(4).wait_at(1, &gate),
            says("Mine."),
        ]);
        let child = desk.start(&server);
        let start = format!(
            "error: another process works in the session: s\n\
             caused by: log \"s\" belongs to another owner (process {}",
            child.id()
        );
        let refused = |seen: Seen| {
            let end =
                " s\nhint: `adjutant sessions stop s` requests its end; runs may --take-over\n";
            assert_eq!(
                (seen.code, seen.stdout.as_str()),
                (Some(2), ""),
                "{seen:#?}"
            );
            assert!(
                seen.stderr.starts_with(&start) && seen.stderr.ends_with(end),
                "{seen:#?}"
            );
        };
        refused(desk.ask(&server, &START));
        refused(desk.ask(&server, &["resume", "s", "-q"]));
        refused(desk.see(&["resume", "s", "-q", "-m", "offline/planner"]));
        refused(desk.see(&["sessions", "delete", "s", "--yes"]));
        refused(desk.see(&["sessions", "rename", "s", "t"]));
        assert!(desk.out(&["sessions", "list"]).contains("at work"));
        gate.open();
        end(child).check(0, "So far so good\n", "");
        desk.ask(&server, &START).check(0, "Mine.\n", "");
    }
}

#[test]
fn session_is_taken_when_that_is_said() {
    for desk in Desk::each() {
        let gate = Gate::default();
        let server = serve([says("Never heard").wait_at(0, &gate), says("Mine.")]);
        let child = desk.start(&server);
        let taking = [&START[..], &["--take-over"]].concat();
        desk.ask(&server, &taking).check(0, "Mine.\n", "");
        gate.open();
        let fenced = end(child);
        assert_eq!(fenced.code, Some(1), "{fenced:#?}");
        assert!(fenced.stderr.contains("taken over"), "{fenced:#?}");
        assert!(!desk.out(&["sessions", "show", "s"]).contains("Never heard"));
    }
}

#[test]
fn store_is_refused_when_it_cannot_be_opened() {
    let desk = Desk::new("store.db");
    let place = desk.path("work/notes.txt/store.db");
    let seen = desk.see(&["sessions", "list", "--store", &place]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(2), ""),
        "{seen:#?}"
    );
    let start = format!("error: cannot open the store of sessions: {place}\ncaused by: ");
    assert!(seen.stderr.starts_with(&start), "{seen:#?}");
    assert!(
        seen.stderr
            .ends_with("\nhint: --store or ADJUTANT_STORE names the place\n"),
        "{seen:#?}"
    );
    let mut nowhere = crate::command::adjutant(&["sessions", "list"]);
    nowhere.env_remove("ADJUTANT_STORE");
    let error = "error: there is no place to keep sessions: neither XDG_DATA_HOME nor HOME is set\n\
                 hint: --store or ADJUTANT_STORE names a place\n";
    crate::command::seen(nowhere).check(2, "", error);
}

#[test]
fn store_of_the_user_is_made_when_none_is_named() {
    let desk = Desk::new("store.db");
    let mut command =
        crate::command::adjutant(&["run", "Hi", "-m", "offline/planner", "--session", "s", "-q"]);
    command
        .env("HOME", desk.path("home"))
        .current_dir(desk.path("work"));
    assert_eq!(seen(command).code, Some(0));
    let folder = desk.path("home/.local/share/adjutant");
    assert!(std::path::Path::new(&folder).join("adjutant.db").is_file());
    #[cfg(unix)]
    {
        let mode = std::fs::metadata(&folder).expect("it was made");
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
            0o700
        );
    }
}

#[test]
fn store_is_made_in_the_folder_at_hand_when_it_is_named_without_another() {
    for store in ["fresh.db", "fresh/"] {
        let desk = Desk::new(store);
        desk.out(&[
            "run",
            "What is here?",
            "-m",
            "offline/planner",
            "--session",
            "trip",
            "-q",
            "--store",
            store,
        ]);
        let listed = desk.out(&["sessions", "list", "--store", store]);
        assert!(listed.contains("trip"), "{store}: {listed}");
        assert!(
            std::path::Path::new(&desk.path("work"))
                .join(store)
                .exists(),
            "{store}"
        );
    }
}

/// The sessions of a desk.
fn listed(desk: &Desk) -> Vec<Value> {
    let list = desk.out(&["sessions", "list", "--json"]);
    let lines = list.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect()
}

#[test]
fn run_keeps_a_session_with_a_title_unless_it_is_ephemeral() {
    for desk in Desk::each() {
        let server = serve([says("One."), says("Two."), says("Three.")]);
        let first = desk.ask(&server, &["run", "Count the herons.\nAll of them.", "-q"]);
        first.check(0, "One.\n", "");
        let sessions = listed(&desk);
        assert_eq!(sessions.len(), 1);
        assert_eq!(sessions[0]["title"], "Count the herons.");
        desk.ask(&server, &["run", "--ephemeral", "Forget it.", "-q"])
            .check(0, "Two.\n", "");
        desk.ask(&server, &["run", "--continue", "And now?", "-q"])
            .check(0, "Three.\n", "");
        assert_eq!(listed(&desk).len(), 1);
        let shown: Vec<usize> = server
            .requests()
            .iter()
            .map(|request| messages(&request.json()))
            .collect();
        assert_eq!(shown, [1, 1, 3]);
    }
}

#[test]
fn run_without_a_session_uses_the_store_that_is_named() {
    let desk = Desk::new("store.db");
    let other = desk.path("other.db");
    let server = serve([says("One.")]);
    desk.ask(&server, &["run", "Hi there", "--store", &other, "-q"])
        .check(0, "One.\n", "");
    let list = desk.out(&["sessions", "list", "--store", &other]);
    assert!(list.contains("Hi there"), "{list}");
}

#[test]
fn sessions_are_found_after_their_directory_was_renamed() {
    let desk = Desk::new("store.db");
    let server = serve([says("One."), says("Two."), says("Three."), says("Four.")]);
    let rename = |from: &str, to: &str| {
        std::fs::rename(desk.path(from), desk.path(to)).expect("it is renamed");
    };
    let go_on = |directory: &str| {
        let mut command = desk.asking(&server, &["run", "--continue", "And?"]);
        command.current_dir(desk.path(directory));
        let seen = seen(command);
        assert_eq!(seen.code, Some(0), "{seen:#?}");
        let last = server.requests().last().map(|request| request.json());
        (messages(&last.unwrap_or_default()), seen.stderr)
    };
    // Without a commit, the session is only named.
    desk.ask(&server, &["run", "Hi", "--session", "trip", "-q"]);
    rename("work", "there");
    let (count, told) = go_on("there");
    assert!(
        count == 1 && told.contains("`--session trip` continues it"),
        "{told}"
    );
    // With one, it is continued.
    std::fs::create_dir_all(desk.path("work/.git")).expect("a directory");
    let commit = "0123456789012345678901234567890123456789\n";
    std::fs::write(desk.path("work/.git/HEAD"), commit).expect("a file");
    desk.ask(&server, &["run", "Hi", "--session", "tour", "-q"]);
    rename("work", "here");
    let (count, told) = go_on("here");
    // A message about the new directory follows.
    assert!(count == 4 && told.contains("session: tour\n"), "{told}");
}

#[test]
fn notes_of_a_subdirectory_follow_the_first_result_from_there() {
    let desk = Desk::new("store.db");
    let write = |path: &str, text: &str| {
        let path = std::path::PathBuf::from(desk.path(path));
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    write("home/.codex/AGENTS.md", "Of the user.");
    write("work/AGENTS.md", "Of the root.");
    write("work/sub/CLAUDE.md", "Of the subdirectory.");
    write("work/sub/f.txt", "x");
    let read = || says("So.").call("read_file", serde_json::json!({ "path": "sub/f.txt" }));
    let server = serve([read(), read(), says("Done.")]);
    let mut command = desk.asking(&server, &["run", "Read it.", "-q"]);
    command.env("HOME", desk.path("home"));
    seen(command).check(0, "So.\nSo.\nDone.\n", "");
    let bodies: Vec<Value> = server.requests().iter().map(|it| it.json()).collect();
    let count = |body: &Value, text: &str| body.to_string().matches(text).count();
    for (at, expect) in [(0, 0), (1, 1), (2, 1)] {
        assert_eq!(count(&bodies[at], "Of the subdirectory."), expect, "{at}");
        assert_eq!(count(&bodies[at]["system"], "Of the user."), 1);
        assert_eq!(count(&bodies[at]["messages"][0], "Of the root."), 1);
    }
}
