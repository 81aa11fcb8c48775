//! Agents without an operator: the command acts itself.

use serde_json::Value;

use super::Project;

fn rows(project: &Project) -> Vec<Vec<String>> {
    let text = project.done(&["agent", "ps"]);
    let row = |line: &str| {
        line.split("  ")
            .filter(|it| !it.is_empty())
            .map(|it| it.trim().to_owned())
            .collect()
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn agent_lives_from_its_creation_to_its_removal_when_no_operator_works() {
    let project = Project::new();
    let id = project.done(&["agent", "create"]);
    assert_eq!(id.trim().len(), 36, "{id}");
    assert_eq!(
        rows(&project)[0][..5],
        ["ada", "created", "offline/planner", "-", "0"]
    );
    assert_eq!(project.done(&["agent", "start", "ada"]), "ada: ready\n");
    let row = rows(&project).remove(0);
    assert_eq!(row[..3], ["ada", "ready", "offline/planner"]);
    assert!(row[3].starts_with("127.0.0.1:"), "{row:?}");
    // One that runs is started already.
    assert_eq!(project.done(&["agent", "start", "ada"]), "ada: ready\n");
    assert_eq!(
        project.done(&["agent", "restart", id.trim()]),
        "ada: ready\n"
    );
    assert_eq!(project.done(&["agent", "status", "ada"]), "ready\n");
    assert!(
        project
            .done(&["agent", "logs", "ada", "-n", "1"])
            .contains("host_ready")
    );
    assert_eq!(project.done(&["agent", "stop", &id[..8]]), "ada: stopped\n");
    assert_eq!(project.done(&["agent", "stop", "--all"]), "ada: stopped\n");
    assert_eq!(
        rows(&project)[0][..5],
        ["ada", "stopped", "offline/planner", "-", "0"]
    );
    assert_eq!(project.done(&["agent", "rm", "ada"]), "ada: removed\n");
    assert_eq!(rows(&project), Vec::<Vec<String>>::new());
    let left = std::fs::read_dir(project.path().join(".adjutant/run")).expect("it is there");
    let folders: Vec<_> = left
        .flatten()
        .filter(|it| it.path().is_dir())
        .map(|it| it.path())
        .collect();
    assert!(folders.is_empty(), "{folders:?}");
}

#[test]
fn name_that_was_planted_neither_steers_the_terminal_nor_names_a_file() {
    let project = Project::new();
    let id = project.done(&["agent", "create"]);
    let file = project
        .path()
        .join(".adjutant/run")
        .join(id.trim())
        .join("agent.json");
    let text = std::fs::read_to_string(&file).expect("it is there");
    let mut written: Value = serde_json::from_str(&text).expect("it is JSON");
    written["resolved"]["manifest"]["name"] = "../x\u{1b}]0;y\u{7}\n\u{202e}z".into();
    std::fs::write(&file, written.to_string()).expect("it is written");
    let exported = project.done(&["agent", "export", id.trim()]);
    assert!(
        exported.contains(&format!(" into {}.adjutant-agent: ", id.trim())),
        "{exported}"
    );
    for command in ["stop", "start", "restart", "stop", "rm"] {
        let seen = project.run(&["agent", command, "--all"]);
        let told = seen.stdout + &seen.stderr;
        assert!(
            told.contains("../x") && !told.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{command}: {told:?}"
        );
    }
}

#[test]
fn json_tells_the_same_when_it_is_wished() {
    let project = Project::new();
    let created: Value =
        serde_json::from_str(&project.done(&["agent", "create", "--json"])).expect("it is JSON");
    let listed: Value =
        serde_json::from_str(&project.done(&["agent", "ps", "--json"])).expect("it is JSON");
    assert_eq!(
        (&listed["id"], &listed["agent"]),
        (&created["id"], &created["agent"])
    );
    assert_eq!(
        (&listed["status"], &listed["goal"]),
        (&"created".into(), &"stopped".into())
    );
    let stopped: Value = serde_json::from_str(&project.done(&["agent", "stop", "ada", "--json"]))
        .expect("it is JSON");
    assert_eq!(
        (&stopped["id"], &stopped["status"]),
        (&created["id"], &"created".into())
    );
}

#[test]
fn changes_are_part_of_what_is_created() {
    let project = Project::of("name: ada\nmodel: openai/gpt-5\n");
    let args = [
        "--name",
        "grace",
        "--model",
        "offline/planner",
        "--label",
        "team=a",
        "--set",
        "budget.tokens=9",
    ];
    project.done(&[&["agent", "create"], &args[..]].concat());
    let listed: Value =
        serde_json::from_str(&project.done(&["agent", "ps", "--json"])).expect("it is JSON");
    assert_eq!(
        (&listed["agent"], &listed["model"]),
        (&"grace".into(), &"offline/planner".into())
    );
    assert_eq!(listed["labels"]["team"], "a");
}

#[test]
fn errors_name_a_cure_when_there_is_one() {
    let project = Project::new();
    let none = "error: there is no agent ada in DIR/.adjutant/run";
    project.refused(
        &["agent", "start", "ada"],
        2,
        &[
            none,
            "hint: `adjutant agent create` makes one of a manifest",
        ],
    );
    project.done(&["agent", "create"]);
    let near = [
        "error: there is no agent adda in DIR/.adjutant/run",
        "hint: the nearest are ada",
    ];
    project.refused(&["agent", "stop", "adda"], 2, &near);
    let far = [
        "error: there is no agent zebra in DIR/.adjutant/run",
        "hint: the agents are ada",
    ];
    project.refused(&["agent", "status", "zebra"], 2, &far);
    let rests = [
        "error: the agent ada does not run: it is created",
        "hint: `adjutant agent start ada` starts it",
    ];
    project.refused(&["agent", "prompt", "ada", "Hi"], 2, &rests);
    let missing = [
        "error: there is no manifest here: none.yaml",
        "hint: `adjutant init` writes one that runs at once",
    ];
    project.refused(&["agent", "create", "none.yaml"], 2, &missing);
    let twice = project.run(&["agent", "create"]);
    assert_eq!(twice.code, Some(2));
    assert!(
        twice.stderr.contains("hint: --name gives it another name"),
        "{}",
        twice.stderr
    );
}

#[test]
fn missing_key_is_named_when_an_agent_is_started() {
    let project = Project::of("name: ada\nmodel: anthropic/claude-sonnet-5\n");
    project.done(&["agent", "create"]);
    let seen = project.run(&["agent", "start", "ada"]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(seen.stderr.contains("ANTHROPIC_API_KEY"), "{}", seen.stderr);
    assert!(seen.stderr.contains("hint: "), "{}", seen.stderr);
}

#[test]
fn other_agents_are_started_when_one_cannot_be() {
    let project = Project::new();
    project.done(&["agent", "create"]);
    project.done(&[
        "agent",
        "create",
        "--name",
        "broken",
        "--model",
        "anthropic/claude-sonnet-5",
    ]);
    let seen = project.run(&["agent", "start", "broken", "ada"]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(2), "ada: ready\n"),
        "{}",
        seen.stderr
    );
}

#[test]
fn agent_is_stopped_and_removed_when_that_cannot_be_written_down() {
    let project = Project::new();
    project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    let lock = project.path().join(".adjutant/run/desired.lock");
    std::fs::remove_file(&lock).expect("it is there");
    std::fs::create_dir(&lock).expect("it can be made");
    assert_eq!(project.run(&["agent", "start", "ada"]).code, Some(1));
    let stopped = project.run(&["agent", "stop", "ada"]);
    assert_eq!(
        (stopped.code, &*stopped.stdout),
        (Some(0), "ada: stopped\n"),
        "{stopped:#?}"
    );
    assert!(
        stopped
            .stderr
            .contains(": it is done now, and not remembered\n"),
        "{stopped:#?}"
    );
    assert_eq!(project.done(&["agent", "rm", "ada"]), "ada: removed\n");
}

#[test]
fn agent_that_ended_as_it_should_has_not_crashed_when_nobody_followed_it() {
    let project = Project::new();
    let id = project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    let file = project
        .path()
        .join(".adjutant/run")
        .join(id.trim())
        .join("host.json");
    let host: Value =
        serde_json::from_slice(&std::fs::read(file).expect("it is there")).expect("it is JSON");
    let kill = std::process::Command::new("kill")
        .arg(host["pid"].to_string())
        .status()
        .expect("kill can be called");
    assert!(kill.success());
    let mut told = project.done(&["agent", "status", "ada"]);
    while told == "ready\n" {
        told = project.done(&["agent", "status", "ada"]);
    }
    assert_eq!(told, "stopped\n");
}
