//! Agents in files: listed, checked, given tasks by runs, those of a project only when somebody trusts them.

use std::{fs, path::Path, sync::Arc};

use adjutant::{
    llm::{Gate, Script},
    orchestration::board::{Board, NewTask, TaskId, TaskStatus},
    store::Sqlite,
};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use crate::{
    command::{Seen, end, says, serve, usage},
    sessions::Desk,
};

const SCOUT: &str = "---\ndescription: Looks into files.\ntoolboxes: [files]\nexpertise: [reading]\n---\nYou look.\n";
const CLERK: &str = "---\ndescription: Writes reports.\nprefix: C\nmax_turns: 5\n---\nYou write.\n";
const BOTH: [&str; 2] = ["--trust", "--retries=0"];

/// A desk whose directory has a scout and a clerk.
fn desk() -> Desk {
    let desk = Desk::new("store.db");
    write(&desk, "work/.adjutant/agents/scout.md", SCOUT);
    write(&desk, "work/.adjutant/agents/clerk.md", CLERK);
    desk
}

fn write(desk: &Desk, path: &str, text: &str) {
    let path = desk.path(path);
    fs::create_dir_all(Path::new(&path).parent().expect("it has a folder"))
        .expect("the folder can be made");
    fs::write(path, text).expect("the file can be written");
}

fn calls(tool: &str, args: Value) -> Script {
    Script::new().call(tool, args).usage(usage())
}

/// A reply that gives one task away.
fn gives(agent: &str, task: &str) -> Script {
    calls(
        "delegate",
        json!({"tasks": [{"agent": agent, "task": task, "context": "None."}]}),
    )
}

/// A reply that reports.
fn reports(summary: &str) -> Script {
    calls(
        "task_complete",
        json!({"status": "completed", "summary": summary}),
    )
}

/// What an agent that gives tasks to a scout and then to a clerk is answered by the model, with theirs.
fn scripts() -> [Script; 6] {
    let reads = calls("read_file", json!({"path": "notes.txt"}));
    let (scout, clerk) = (
        gives("scout", "Read the notes."),
        gives("clerk", "Write it up."),
    );
    [
        scout,
        reads,
        reports("Herons stand."),
        clerk,
        reports("Written."),
        says("All done."),
    ]
}

fn run(desk: &Desk, server: &Loopback, args: &[&str]) -> Seen {
    let args = ["run", "Ask them."]
        .iter()
        .chain(args)
        .copied()
        .collect::<Vec<_>>();
    desk.ask(server, &args).normal(server)
}

/// What the server was sent, by the number of the request.
fn sent(server: &Loopback) -> Vec<String> {
    server
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect()
}

#[test]
fn run_gives_tasks_to_agents_and_prints_the_tree() {
    let (desk, server) = (desk(), serve(scripts()));
    let seen = run(&desk, &server, &BOTH);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "All done.\n"),
        "{seen:#?}"
    );
    let tree = "\
adjutant: finished, 3 turns, 3150 tokens, 2 calls (Ask them.)
├─ scout-read-1: finished, 2 turns, 2100 tokens, 2 calls (Read the notes.)
└─ clerk-write-1: finished, 1 turn, 1050 tokens, 1 call (Write it up.)
turns 3, calls 2, tokens 6,000 in / 300 out, cost $0.0150
";
    assert!(seen.stderr.ends_with(tree), "{}", seen.stderr);
    for line in [
        "▸ scout-read-1: Read the notes.\n",
        "scout-read-1 → read_file {\"path\":\"notes.txt\"}\nscout-read-1 ✓ read_file N ms\n",
        "■ scout-read-1: finished\n",
        "C clerk-write-1 → task_complete ",
        "■ C clerk-write-1: finished\n",
    ] {
        assert!(
            seen.stderr.contains(line),
            "{line:?} is not in {}",
            seen.stderr
        );
    }
    let sent = sent(&server);
    assert!(
        sent[0].contains("- scout: Looks into files. [skills: reading]"),
        "{}",
        sent[0]
    );
    assert!(
        sent[1].contains("You look.") && sent[1].contains("read_file"),
        "{}",
        sent[1]
    );
    assert!(
        sent[2].contains("Herons stand."),
        "it reads the real file: {}",
        sent[2]
    );
    assert!(
        sent[4].contains("You write.") && !sent[4].contains("read_file"),
        "{}",
        sent[4]
    );
}

#[test]
fn stderr_is_empty_when_a_run_with_agents_is_quiet() {
    let (desk, server) = (desk(), serve(scripts()));
    run(&desk, &server, &["--trust", "-q"]).check(0, "All done.\n", "");
}

#[test]
fn tasks_of_one_call_are_done_by_agents_of_a_folder_that_is_named() {
    let desk = desk();
    write(&desk, "crew/scout.md", SCOUT);
    write(&desk, "crew/clerk.md", CLERK);
    let task = |agent: &str| json!({"agent": agent, "task": "Report.", "context": "None."});
    let both = calls("delegate", json!({"tasks": [task("scout"), task("clerk")]}));
    let server = serve([both, reports("Ready."), reports("Ready."), says("Both.")]);
    let seen = run(&desk, &server, &["--agents", "../crew"]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "Both.\n"),
        "{seen:#?}"
    );
    let ends = [
        "─ scout-report-1: finished, 1 turn, ",
        "─ clerk-report-1: finished, 1 turn, ",
    ];
    assert!(
        ends.iter().all(|end| seen.stderr.contains(end)),
        "{}",
        seen.stderr
    );
}

#[test]
fn agents_of_a_project_are_not_used_when_nobody_trusts_them() {
    let (desk, server) = (desk(), serve([says("Alone.")]));
    for args in [&["-q"][..], &["--trust-skills", "-q"]] {
        let server = serve([says("Alone.")]);
        run(&desk, &server, args).check(0, "Alone.\n", "");
        assert!(
            !sent(&server)[0].contains("delegate") && !sent(&server)[0].contains("scout"),
            "{:?}",
            sent(&server)
        );
    }
    let seen = run(&desk, &server, &[]);
    let told = "agents: ./.adjutant/agents: warning: nobody trusts the agents of this folder: 2 not used; hint: read \
                them, then say --trust\n";
    assert!(
        seen.code == Some(0) && seen.stderr.contains(told),
        "{seen:#?}"
    );
    let error = "error: nobody trusts the agent of this name: scout\n\
                 hint: read its file in .adjutant/agents, then add --trust\n";
    run(&desk, &server, &["--agent", "scout"]).check(2, "", error);
}

#[cfg(unix)]
#[test]
fn agents_of_a_project_are_not_used_when_a_link_leads_out_of_it() {
    let desk = desk();
    write(&desk, "elsewhere/spy.md", SCOUT);
    std::os::unix::fs::symlink(
        desk.path("elsewhere/spy.md"),
        desk.path("work/.adjutant/agents/spy.md"),
    )
    .expect("the link can be made");
    let seen = desk.see(&["agents", "list", "--trust"]);
    let told = "agents: ./.adjutant/agents: warning: it or a link in it leads out of the directory: not used\n";
    seen.check(0, "", told);
}

#[test]
fn agent_answers_itself_when_it_is_named() {
    let (desk, server) = (
        desk(),
        serve([gives("scout", "Look."), reports("Seen."), says("I write.")]),
    );
    let seen = run(&desk, &server, &["--trust", "--agent", "clerk"]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "I write.\n"),
        "{seen:#?}"
    );
    assert!(
        seen.stderr.contains("\nclerk: finished, 2 turns, "),
        "{}",
        seen.stderr
    );
    let first = &sent(&server)[0];
    assert!(
        first.contains("You write.") && !first.contains("read_file"),
        "it has its own tools: {first}"
    );
    assert!(
        first.contains("- scout: ") && !first.contains("- clerk: "),
        "the others can be given tasks: {first}"
    );
    let error = "error: no agent has this name: clerc\nhint: the nearest are clerk\n";
    run(&desk, &server, &["--trust", "--agent", "clerc"]).check(2, "", error);
}

#[test]
fn model_of_an_agent_is_asked_when_its_file_names_one() {
    let desk = desk();
    write(
        &desk,
        "work/.adjutant/agents/clerk.md",
        "---\ndescription: x\nmodel: openai/gpt-5\n---\nYou write.\n",
    );
    let (lead, clerk) = (
        serve([gives("clerk", "Write."), says("Done.")]),
        serve([reports("Written.")]),
    );
    let mut command = desk.asking(&lead, &["run", "Go.", "--trust", "-q"]);
    command.envs(crate::command::Vendor::OpenAi.variables(&clerk));
    crate::command::seen(command).check(0, "Done.\n", "");
    assert_eq!((lead.request_count(), clerk.request_count()), (2, 1));
    let seen = desk.ask(&lead, &["run", "Go.", "--trust", "-q"]);
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(2), ""));
    let told = "error: the agent clerk cannot be made\ncaused by: no key for openai/gpt-5: ";
    assert!(seen.stderr.starts_with(told), "{}", seen.stderr);
}

#[test]
fn nobody_is_given_tasks_when_the_depth_is_0() {
    let (desk, server) = (desk(), serve([says("Alone.")]));
    run(&desk, &server, &["--trust", "--depth", "0", "-q"]).check(0, "Alone.\n", "");
    assert!(
        !sent(&server)[0].contains("delegate"),
        "{:?}",
        sent(&server)
    );
}

#[test]
fn agents_have_agents_under_them_as_far_as_the_depth_allows() {
    for (depth, has_tool, tree) in [
        ("1", false, "\n└─ scout-look-1: finished, 2 turns, "),
        (
            "2",
            true,
            "\n└─ scout-look-1: finished, 2 turns, 2100 tokens, 2 calls (Look.)\n   └─ clerk-write-1: finished, ",
        ),
    ] {
        let desk = desk();
        let scout = SCOUT.replace("expertise", "delegation: {depth: 1}\nexpertise");
        write(&desk, "work/.adjutant/agents/scout.md", &scout);
        let below = if has_tool {
            vec![reports("Written.")]
        } else {
            Vec::new()
        };
        let scripts = [gives("scout", "Look."), gives("clerk", "Write it.")]
            .into_iter()
            .chain(below);
        let server = serve(scripts.chain([reports("Seen."), says("Done.")]));
        let seen = run(&desk, &server, &["--trust", "--depth", depth]);
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "Done.\n"),
            "{seen:#?}"
        );
        assert!(seen.stderr.contains(tree), "{}", seen.stderr);
        assert_eq!(
            sent(&server)[1].contains("\"name\":\"delegate\""),
            has_tool,
            "{}",
            sent(&server)[1]
        );
    }
}

#[test]
fn broken_agents_are_told_with_their_place_and_the_others_are_used() {
    let desk = desk();
    write(
        &desk,
        "work/.adjutant/agents/bent.md",
        "---\ndescription: x\ntoolbox: files\n---\n",
    );
    write(
        &desk,
        "work/.adjutant/agents/twin.md",
        "---\nname: Scout\ndescription: x\n---\n",
    );
    let server = serve([says("Alone.")]);
    let seen = run(&desk, &server, &["--trust"]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "Alone.\n"),
        "{seen:#?}"
    );
    let lines: Vec<&str> = seen
        .stderr
        .lines()
        .filter(|line| line.starts_with("agents: "))
        .collect();
    assert!(
        lines[0].starts_with("agents: ./.adjutant/agents/bent.md:3:1: "),
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        ["agents: ./.adjutant/agents/twin.md: there is another agent \"Scout\""]
    );
    assert!(
        sent(&server)[0].contains("- clerk: Writes reports."),
        "{:?}",
        sent(&server)
    );
}

#[test]
fn toolboxes_and_skills_are_refused_when_there_are_none() {
    let desk = desk();
    let server = serve([]);
    for (front, error) in [
        (
            "toolboxes: [fils]",
            "error: the agent clerk names a toolbox that there is not: fils\nhint: the nearest are files\n",
        ),
        (
            "toolboxes: [board]",
            "error: the agent clerk works on a board, and there is none\n\
             hint: --board names the board, --store where it is\n",
        ),
        (
            "skills: [maps]",
            "error: the agent clerk names a skill that is not used: maps\nhint: there are no skills\n",
        ),
    ] {
        write(
            &desk,
            "work/.adjutant/agents/clerk.md",
            &format!("---\ndescription: x\n{front}\n---\n"),
        );
        run(&desk, &server, &["--trust"]).check(2, "", error);
    }
    assert_eq!(server.request_count(), 0);
}

#[test]
fn agent_has_the_skills_that_its_file_names_and_no_others() {
    let desk = desk();
    write(
        &desk,
        "work/.adjutant/skills/maps/SKILL.md",
        "North is up.\n",
    );
    write(
        &desk,
        "work/.adjutant/skills/birds/SKILL.md",
        "Herons stand.\n",
    );
    write(
        &desk,
        "work/.adjutant/agents/clerk.md",
        "---\ndescription: x\nskills: [maps]\n---\nYou write.\n",
    );
    let server = serve([gives("clerk", "Write."), reports("Written."), says("Done.")]);
    run(&desk, &server, &["--trust", "-q"]).check(0, "Done.\n", "");
    let sent = sent(&server);
    assert!(
        sent[0].contains("North is up.") && sent[0].contains("Herons stand."),
        "{}",
        sent[0]
    );
    assert!(
        sent[1].contains("North is up.") && !sent[1].contains("Herons stand."),
        "{}",
        sent[1]
    );
}

#[test]
fn json_holds_the_events_of_all_agents() {
    let (desk, server) = (desk(), serve(scripts()));
    let seen = run(&desk, &server, &["--trust", "--json"]);
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    let events = seen.events();
    let of = |name: &str| -> Vec<&Value> {
        events
            .iter()
            .filter(|event| event["who"]["name"] == name)
            .collect()
    };
    let scout = of("scout-read-1");
    let who = &scout[0]["who"];
    assert_eq!(
        (&who["config_name"], &who["depth"], &who["path"]),
        (&json!("scout"), &json!(1), &json!("adjutant/scout-read-1"))
    );
    assert_eq!(
        (&who["task"], &who["parent"]),
        (
            &json!("Read the notes."),
            &of("adjutant")[0]["who"]["thread"]
        )
    );
    for name in ["adjutant", "scout-read-1", "clerk-write-1"] {
        let kinds: Vec<&str> = of(name)
            .iter()
            .filter_map(|event| event["event"].as_str())
            .collect();
        let ended = kinds.iter().filter(|kind| **kind == "run_finished").count();
        assert_eq!(
            (ended, kinds.last()),
            (1, Some(&"run_finished")),
            "{name}: {kinds:?}"
        );
        assert!(kinds.contains(&"tool_finished"), "{name}: {kinds:?}");
    }
    assert_eq!(
        events.last().expect("there are some")["who"]["name"],
        "adjutant"
    );
    assert!(
        seen.stderr.contains("\n└─ clerk-write-1: finished, "),
        "{}",
        seen.stderr
    );
}

/// Does something with the board `board` of a desk.
fn on_board<T>(desk: &Desk, act: impl AsyncFnOnce(Board) -> T) -> T {
    let kv = Sqlite::open(desk.path("store.db"))
        .expect("it opens")
        .kv("board");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(act(Board::new(Arc::new(kv))))
}

#[test]
fn task_of_the_board_is_claimed_and_completed_when_a_run_delegates_it() {
    let desk = desk();
    let id = on_board(&desk, async |board| {
        board
            .create(NewTask::new("Read the notes"))
            .await
            .expect("it can be created")
            .id
            .to_string()
    });
    let task =
        json!({"agent": "scout", "task": "Read the notes.", "context": "None.", "task_id": id});
    let delegate = calls("delegate", json!({"tasks": [task]}));
    let server = serve([
        calls("list_tasks", json!({})),
        delegate,
        reports("Herons stand."),
        says("It is done."),
    ]);
    let seen = run(&desk, &server, &["--trust", "--board"]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "It is done.\n"),
        "{seen:#?}"
    );
    assert!(
        sent(&server)[1].contains("Read the notes"),
        "the agent sees the board"
    );
    let task = on_board(&desk, async |board| {
        board
            .get(&TaskId::from(id.as_str()))
            .await
            .expect("it is there")
    });
    assert_eq!(
        (task.status, task.result.as_deref()),
        (TaskStatus::Completed, Some("Herons stand."))
    );
    let worker = task.assignee.expect("somebody did it");
    assert!(worker.starts_with("scout-read-"), "{worker}");
    assert!(
        desk.out(&["board", "list"])
            .contains(&format!("Read the notes ({worker})"))
    );
    let lines = "error: a store of JSON lines keeps sessions and no board\n\
                 hint: --store or ADJUTANT_STORE names an SQLite file or a PostgreSQL database\n";
    run(
        &desk,
        &server,
        &["--board=plan", "--store", &desk.path("lines/"), "-q"],
    )
    .check(2, "", lines);
}

#[test]
fn session_is_resumed_with_its_agents_when_one_of_them_waits() {
    let desk = desk();
    let [scout, reads, report, ..] = scripts();
    let server = serve([scout, reads, report, says("Done.")]);
    let args = ["--trust", "--session", "s", "--ask", "read_file", "-q"];
    let waits = run(&desk, &server, &args);
    assert_eq!(
        (waits.code, waits.stdout.as_str()),
        (Some(5), ""),
        "{waits:#?}"
    );
    assert_eq!(server.request_count(), 2);
    let seen = desk.ask(
        &server,
        &[
            "resume",
            "s",
            "--trust",
            "--approve",
            "--agents",
            ".adjutant/agents",
        ],
    );
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{seen:#?}"
    );
    assert!(
        sent(&server)[2].contains("Herons stand."),
        "{:?}",
        sent(&server)
    );
    let replayed = desk.see(&["replay", "s"]);
    assert_eq!(
        (replayed.code, replayed.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{replayed:#?}"
    );
    let same = desk.see(&["replay", "s", "--check", "--trust"]);
    assert_eq!(same.code, Some(0), "{same:#?}");
}

#[test]
fn edit_of_an_agent_that_is_approved_in_another_process_is_held_against_what_it_read() {
    for (meanwhile, expect, told) in [
        ("Herons stand.\n", "Herons fly.\n", "is changed"),
        ("Herons nest.\n", "Herons nest.\n", "was changed since"),
    ] {
        let desk = desk();
        write(
            &desk,
            "work/.adjutant/agents/scout.md",
            &SCOUT.replace("[files]", "[files, edits]"),
        );
        let [scout, reads, report, ..] = scripts();
        let edits = calls(
            "edit_file",
            json!({"path": "notes.txt", "old_text": "stand", "new_text": "fly"}),
        );
        let server = serve([scout, reads, edits, report, says("Done.")]);
        let waits = run(&desk, &server, &["--trust", "--session", "s", "-q"]);
        assert_eq!(
            (waits.code, waits.stdout.as_str()),
            (Some(5), ""),
            "{waits:#?}"
        );
        write(&desk, "work/notes.txt", meanwhile);
        let seen = desk.ask(
            &server,
            &[
                "resume",
                "s",
                "--trust",
                "--approve",
                "--agents",
                ".adjutant/agents",
            ],
        );
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "Done.\n"),
            "{seen:#?}"
        );
        assert_eq!(
            fs::read_to_string(desk.path("work/notes.txt")).expect("it is there"),
            expect
        );
        assert!(sent(&server)[3].contains(told), "{:?}", sent(&server));
    }
}

#[test]
fn list_shows_agents_and_whether_they_are_used() {
    let desk = desk();
    let table = "\
clerk  used  -  -      depth 0  Writes reports.
scout  used  -  files  depth 0  Looks into files.
";
    desk.see(&["agents", "list", "--trust"]).check(0, table, "");
    let seen = desk.see(&["agents", "list", "--json"]);
    let events = seen.events();
    assert_eq!((seen.code, events.len()), (Some(0), 2), "{seen:#?}");
    assert_eq!(
        (&events[1]["agent"], &events[1]["status"]),
        (&json!("scout"), &json!("untrusted"))
    );
    assert_eq!(
        (&events[1]["toolboxes"], &events[0]["max_turns"]),
        (&json!(["files"]), &json!(5))
    );
    write(
        &desk,
        "work/.adjutant/agents/spy.md",
        "---\ndescription: \"x\\u202e\\u009b31m\\x7f\"\n---\nHi.\n",
    );
    let json = desk.out(&["agents", "list", "--json"]);
    assert!(json.contains(r#""x\u202e\u009b31m\u007f""#), "{json}");
    let missing = desk.see(&["agents", "list", "--agents", "nowhere"]);
    let error = "error: the agents cannot be listed: nowhere\n";
    assert!(
        missing.code == Some(2) && missing.stderr.starts_with(error),
        "{missing:#?}"
    );
}

#[test]
fn check_fails_when_an_agent_cannot_be_used() {
    let desk = desk();
    desk.see(&["agents", "check", ".adjutant/agents"])
        .check(0, "", "agents: 2, errors: 0\n");
    write(&desk, "work/bad/blank.md", "---\nname: blank\n---\n");
    write(
        &desk,
        "work/bad/tools.md",
        "---\ndescription: x\ntoolboxes: [fils]\n---\n",
    );
    let expect = "\
bad/blank.md:1:1: `description` is missing: others choose the agent by it
the agent tools names a toolbox that there is not: fils; hint: the nearest are files
";
    desk.see(&["agents", "check", "bad"])
        .check(1, expect, "agents: 1, errors: 2\n");
    let seen = desk.see(&[
        "agents",
        "check",
        "bad/blank.md",
        ".adjutant/agents/scout.md",
        "--json",
    ]);
    let events = seen.events();
    assert_eq!(
        (seen.code, &events[1]),
        (Some(1), &json!({"agents": 1, "errors": 1}))
    );
    assert!(
        events[0]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("bad/blank.md:1:1: ")),
        "{events:?}"
    );
}

#[test]
fn agents_of_a_session_are_listed_and_spoken_to_while_they_work() {
    let gate = Gate::default();
    let reads = calls("read_file", json!({"path": "notes.txt"})).wait_at(0, &gate);
    let done = json!({"status": "completed", "summary": "Herons."});
    let reports = Script::new()
        .text("Almost there.")
        .call("task_complete", done)
        .usage(usage());
    // One message is placed at a time.
    let again = calls("read_file", json!({"path": "notes.txt"}));
    let (desk, server) = (
        desk(),
        serve([
            gives("scout", "Read the notes."),
            reads,
            again,
            reports,
            says("Done."),
        ]),
    );
    let args = [
        "run",
        "Ask them.",
        "--session",
        "s",
        "--trust",
        "--retries=0",
        "-q",
    ];
    let child = desk
        .asking(&server, &args)
        .spawn()
        .expect("the command starts");
    desk.await_in("s", "scout-read-1");
    let listed = desk.out(&["agents", "list", "--session", "s"]);
    let below: Vec<&str> = listed.lines().skip(1).collect();
    assert_eq!(
        below,
        ["working    main/c1_0_0/0  scout-read-1: Read the notes."],
        "{listed}"
    );
    desk.see(&["sessions", "tell", "s", "Hurry.", "--to", "nobody"])
        .check(
            2,
            "",
            "error: no agent of this name is at work: nobody\nhint: active threads: main/c1_0_0/0\n",
        );
    desk.see(&["sessions", "tell", "s", "Hurry.", "--to", "scout-read-1"])
        .check(0, "", "whoever works in the session hears it\n");
    desk.await_in("s", "Hurry.");
    let asks = [
        "sessions",
        "tell",
        "s",
        "How far are you?",
        "--to",
        "scout-read-1",
        "--wait",
    ];
    let asking = desk
        .asking(&server, &asks)
        .spawn()
        .expect("the command starts");
    desk.await_in("s", "How far are you?");
    gate.open();
    end(asking).check(
        0,
        "Almost there.\n",
        "whoever works in the session hears it\n",
    );
    end(child).check(0, "Done.\n", "");
    let late = desk.see(&["sessions", "tell", "s", "And now?", "--wait"]);
    assert_eq!((late.code, late.stdout.as_str()), (Some(2), ""), "{late:?}");
    assert!(
        sent(&server)[2].contains("Hurry."),
        "the scout hears it, {}",
        sent(&server)[2]
    );
    let listed = desk.out(&["agents", "list", "--session", "s", "--json"]);
    assert!(
        listed.contains(r#""agent":"scout-read-1""#) && listed.contains(r#""state":"finished""#),
        "{listed}"
    );
}
