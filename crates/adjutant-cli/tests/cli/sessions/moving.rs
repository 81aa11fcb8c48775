//! Sessions are forked, compared, carried in files, and checked.

use std::fs;

use adjutant::llm::Script;
use serde_json::json;

use super::{Desk, lists};
use crate::command::{Seen, Vendor, says, serve, usage};

/// A desk with a session `s` of one run.
fn asked(desk: &Desk) {
    let server = serve([lists(), says("One file: notes.txt.")]);
    let seen = desk.ask(&server, &["run", "What is here?", "--session", "s", "-q"]);
    seen.check(0, "Looking.\nOne file: notes.txt.\n", "");
}

#[test]
fn fork_parts_from_its_parent_when_both_go_on() {
    for desk in Desk::each() {
        asked(&desk);
        let out = desk.out(&["sessions", "fork", "s", "other"]);
        assert!(
            out.starts_with("forked s at ") && out.ends_with(" into other\n"),
            "{out}"
        );
        let same = desk.out(&["sessions", "diff", "s", "other"]);
        assert!(same.starts_with("both hold the same "), "{same}");
        let server = serve([says("A cat."), says("A dog.")]);
        for name in ["s", "other"] {
            desk.ask(&server, &["run", "An animal?", "--session", name, "-q"]);
        }
        let diff = desk.out(&["sessions", "diff", "s", "other"]);
        let field = "@ /record/replied/reply/blocks/0/text\n- \"A cat.\"\n+ \"A dog.\"\n";
        assert!(
            diff.contains(field) && diff.contains("\ns has ") && diff.contains("\nother has "),
            "{diff}"
        );
        let tree = desk.out(&["sessions", "tree", "other"]);
        let lines: Vec<&str> = tree.lines().collect();
        assert!(
            lines[0].starts_with("s  ") && lines[1].starts_with("  other  at "),
            "{tree}"
        );
        assert!(
            lines[1].ends_with("← this one") && lines.len() == 2,
            "{tree}"
        );
        desk.out(&["sessions", "fork", "s", "early", "--at", "2"]);
        assert!(
            desk.out(&["sessions", "show", "early"])
                .contains("user: What is here?")
        );
        let exists = desk.see(&["sessions", "fork", "s", "other"]);
        assert_eq!(
            (exists.code, exists.stdout.as_str()),
            (Some(2), ""),
            "{exists:#?}"
        );
    }
}

#[test]
fn fork_has_the_files_as_they_were_and_undoes_its_own_when_it_is_given_a_directory() {
    let write = |text: &str| {
        Script::new()
            .call("write_file", json!({"path": "poem.txt", "content": text}))
            .usage(usage())
    };
    let read = || {
        Script::new()
            .call("read_file", json!({"path": "poem.txt"}))
            .usage(usage())
    };
    let command = || {
        Script::new()
            .call("run_command", json!({"command": "echo x > made.txt"}))
            .usage(usage())
    };
    for desk in Desk::each() {
        let scripts = [
            write("one\n"),
            says("Done."),
            read(),
            write("two\n"),
            command(),
            says("Done."),
        ];
        let server = serve(
            scripts
                .into_iter()
                .chain([read(), write("three\n"), says("Done.")]),
        );
        for (prompt, code) in [("Write!", 0), ("Again!", 0)] {
            let seen = desk.ask(
                &server,
                &["run", prompt, "--session", "s", "--mode", "all", "-q"],
            );
            assert_eq!(seen.code, Some(code), "{seen:#?}");
        }
        let text = |path: &str| fs::read_to_string(desk.path(path)).unwrap_or_default();
        let events = desk.see(&["sessions", "show", "s", "--json"]).events();
        let at = events
            .iter()
            .find(|it| it["kind"] == "reply")
            .expect("it has said so")["seq"]
            .to_string();
        let folder = desk.path("copy");
        let forked = desk.see(&[
            "sessions", "fork", "s", "early", "--at", &at, "--files", &folder,
        ]);
        assert_eq!(
            (forked.code, forked.stdout),
            (Some(0), format!("forked s at {at} into early\n")),
            "{}",
            forked.stderr
        );
        let told = format!(
            "copied 3 files, 20 bytes; `adjutant -c --root {folder}` goes on there\n\
             as it is now: what commands changed; 1 ran since then\n"
        );
        assert_eq!(forked.stderr, told);
        assert_eq!(
            (text("copy/poem.txt"), text("copy/notes.txt")),
            ("one\n".into(), text("work/notes.txt"))
        );
        // It goes on there, and its own files are put back.
        let here = [
            "run",
            "Once more!",
            "--continue",
            "--root",
            &folder,
            "--mode",
            "all",
            "-q",
        ];
        desk.ask(&server, &here).check(0, "Done.\n", "");
        assert_eq!(text("copy/poem.txt"), "three\n");
        desk.see(&["undo", "early"]).check(0, "poem.txt\n", "");
        assert_eq!(text("copy/poem.txt"), "one\n");
        desk.see(&["undo", "early", "--to", "0"])
            .check(0, "poem.txt\n", "");
        assert!(!std::path::Path::new(&desk.path("copy/poem.txt")).exists());
        assert_eq!(
            (text("work/poem.txt"), text("work/made.txt")),
            ("two\n".into(), "x\n".into())
        );
        // Where there cannot be a copy there is no session either.
        let refused = desk.see(&["sessions", "fork", "s", "t", "--files", &folder]);
        let told = format!(
            "error: the folder for the copy is not empty: {folder}\nhint: a new or empty directory takes the files\n"
        );
        refused.check(2, "", &told);
        assert_eq!(desk.out(&["sessions", "list"]).lines().count(), 3);
    }
}

#[test]
fn session_is_the_same_when_it_was_carried_in_a_file() {
    let [from, to] = Desk::each();
    asked(&from);
    let file = from.path("s.jsonl");
    let exported = from.see(&["sessions", "export", "s", &file]);
    assert!(
        exported.code == Some(0) && exported.stderr.starts_with("exported s: "),
        "{exported:#?}"
    );
    let again = from.see(&["sessions", "export", "s", &file]);
    assert!(
        again.code == Some(2) && again.stderr.contains("cannot create the file"),
        "{again:#?}"
    );
    assert_eq!(
        fs::read_to_string(&file).expect("it is text"),
        from.out(&["sessions", "export", "s", "-"])
    );

    let imported = to.out(&["sessions", "import", &file]);
    assert!(imported.starts_with("imported s: "), "{imported}");
    assert_eq!(
        to.out(&["sessions", "show", "s"]),
        from.out(&["sessions", "show", "s"])
    );
    assert_eq!(
        to.out(&["sessions", "verify", "s"]),
        from.out(&["sessions", "verify", "s"])
    );
    let taken = to.see(&["sessions", "import", &file]);
    assert!(
        taken.code == Some(2) && taken.stderr.ends_with("hint: --as gives it another name\n"),
        "{taken:#?}"
    );
    to.out(&["sessions", "import", &file, "--as", "t"]);

    let text = fs::read_to_string(&file)
        .expect("it is text")
        .replace("What is here?", "What is hero?");
    fs::write(&file, text).expect("the file can be written");
    let damaged = to.see(&["sessions", "import", &file, "--as", "u"]);
    assert!(
        damaged.code == Some(1) && damaged.stderr.ends_with("hint: nothing was imported\n"),
        "{damaged:#?}"
    );
    assert!(!to.out(&["sessions", "list"]).contains("\nu "));
}

#[test]
fn imported_session_works_where_the_person_says_and_asks_the_model_that_is_named() {
    let [from, to] = Desk::each();
    let server = serve([lists(), says("Done.")]);
    from.ask(
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
    let (file, work, elsewhere) = (from.path("s.jsonl"), from.work(), to.work());
    from.out(&["sessions", "label", "s", &format!("+dir:{elsewhere}")]);
    let two = "error: the session has more than one directory: s\nhint: `adjutant sessions label s` shows them; ";
    for args in [
        &["resume", "s"][..],
        &["resume", "--root", &elsewhere],
        &["run", "Hi", "--continue"],
    ] {
        let seen = from.ask(&server, args);
        assert!(
            seen.code == Some(2) && seen.stderr.contains(two),
            "{args:?} {seen:#?}"
        );
    }
    from.out(&["sessions", "export", "s", &file]);
    let told = to.see(&["sessions", "import", &file]).stderr;
    for folder in [&work, &elsewhere] {
        assert!(
            told.contains(&format!(
                "notice: this label is not taken over: dir:{folder}\n"
            )),
            "{told}"
        );
    }
    assert_eq!(to.out(&["sessions", "label", "s"]), "ask:list_files\n");
    to.ask(&server, &["resume"]).check(
        2,
        "",
        "error: this directory has no session\nhint: `adjutant sessions list`\n",
    );
    let model = Vendor::Anthropic.model();
    let refused = format!(
        "error: the session has no directory, so the directory and the model must be named: s\n\
         hint: adjutant resume s --root DIR --model {model}\n"
    );
    for said in [
        &[][..],
        &["--root", &elsewhere],
        &["--model", model],
        &["--explain"],
    ] {
        to.ask(&server, &[&["resume", "s"], said].concat())
            .check(2, "", &refused);
    }
    assert_eq!(server.request_count(), 1);
    let named = [
        "resume",
        "s",
        "--approve",
        "-q",
        "--root",
        &elsewhere,
        "--model",
        model,
    ];
    let shown = format!("approves: main/c1_0_1  in {elsewhere}  list_files {{}}\n");
    to.ask(&server, &named).check(0, "Done.\n", &shown);
}

#[test]
fn damage_is_found_when_a_byte_was_changed() {
    let desk = Desk::new("store/");
    asked(&desk);
    desk.out(&["sessions", "fork", "s", "sound"]);
    let records = desk.path("store/logs/s/records.jsonl");
    let text = fs::read_to_string(&records).expect("records are text");
    assert!(text.contains("notes.txt."), "{text}");
    fs::write(&records, text.replace("notes.txt.", "notes.tXt.")).expect("the file can be written");
    let damaged = desk.see(&["sessions", "verify", "s"]);
    assert_eq!(
        (damaged.code, damaged.stdout.as_str()),
        (Some(1), ""),
        "{damaged:#?}"
    );
    assert!(
        damaged
            .stderr
            .starts_with("error: the session is damaged: s\ncaused by: "),
        "{damaged:#?}"
    );
    let all = desk.see(&["sessions", "verify", "--all"]);
    assert_eq!(all.code, Some(1), "{all:#?}");
    assert!(
        all.stdout.starts_with("sound: sound, ") && all.stdout.lines().count() == 1,
        "{all:#?}"
    );
}

#[cfg(unix)]
#[test]
fn what_is_written_is_its_owners_alone_and_a_store_that_is_not_is_told() {
    use std::{os::unix::fs::PermissionsExt, process::Command};
    for desk in Desk::each() {
        let open = |args: &[&str], server: Option<&adjutant_testing::Loopback>| {
            let command =
                server.map_or_else(|| desk.command(args), |server| desk.asking(server, args));
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg("umask 000; exec \"$0\" \"$@\"")
                .arg(command.get_program())
                .args(command.get_args());
            shell
                .env_clear()
                .current_dir(command.get_current_dir().expect("it has one"));
            shell.envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            let seen = Seen::from(shell.output().expect("it starts"));
            assert_eq!(seen.code, Some(0), "{seen:#?}");
            seen
        };
        let server = serve([says("Hello.")]);
        let (tape, file) = (desk.path("tape.jsonl"), desk.path("s.jsonl"));
        let args = ["run", "Hi", "--session", "s", "-q", "--record", &tape];
        assert_eq!(open(&args, Some(&server)).stderr, "");
        open(&["sessions", "export", "s", &file], None);
        let store = [desk.path("store.db"), desk.path("store")]
            .into_iter()
            .find(|it| fs::exists(it).unwrap_or_default());
        let store = store.expect("there is a store");
        for path in [&tape, &file, &store] {
            let mode = fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o077, 0, "{path}");
        }
        fs::set_permissions(&store, PermissionsExt::from_mode(0o755)).expect("it is set");
        let told = desk.see(&["sessions", "list"]);
        let warning = "warning: others on this machine may enter the store of sessions: ";
        assert!(
            told.code == Some(0) && told.stderr.starts_with(warning),
            "{told:#?}"
        );
        assert!(
            told.stderr.lines().count() == 1 && told.stderr.contains("; hint: chmod -R go= '/"),
            "{told:#?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn store_on_a_read_only_medium_is_shown_and_not_written() {
    for desk in Desk::each() {
        asked(&desk);
        let folder = desk.path("");
        let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
        let see = |args: &[&str]| {
            let command = desk.command(args);
            let mut shell = std::process::Command::new("unshare");
            shell
                .args(["-m", "sh", "-c", mount, &folder])
                .arg(command.get_program())
                .args(command.get_args());
            shell.current_dir(command.get_current_dir().expect("it has one"));
            shell.envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            shell.output().map(Seen::from)
        };
        if !see(&["--version"]).is_ok_and(|seen| seen.code == Some(0)) {
            println!("skipped: no folder can be made read-only here");
            return;
        }
        let reading: [&[&str]; 6] = [
            &["sessions", "list"],
            &["sessions", "show", "s"],
            &["sessions", "verify", "s"],
            &["sessions", "export", "s", "-"],
            &["sessions", "diff", "s", "s"],
            &["replay", "s"],
        ];
        for args in reading {
            let seen = see(args).expect("it starts");
            assert!(
                seen.code == Some(0) && !seen.stdout.is_empty(),
                "{args:?} {seen:#?}"
            );
        }
        for args in [
            &["sessions", "delete", "s", "--yes"][..],
            &["sessions", "label", "s", "+x"],
        ] {
            let seen = see(args).expect("it starts");
            let cure = "hint: copy it to a place that can be written\n";
            assert!(
                seen.code == Some(2) && seen.stderr.ends_with(cure),
                "{args:?} {seen:#?}"
            );
        }
    }
}
