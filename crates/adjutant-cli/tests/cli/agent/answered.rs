//! Agents that ask before they act: listed, answered from elsewhere, asked on a terminal.

use serde_json::Value;

use super::Project;
use crate::{command::adjutant, terminal::Terminal};

const ASKS: &str =
    "name: ada\nmodel: offline/planner\ntoolboxes: [files]\naccess: {default: ask}\n";

/// An agent that runs, and asks before each call.
fn asking() -> Project {
    let project = Project::of(ASKS);
    project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    project
}

/// What waits, as it is told to programs.
fn waiting(project: &Project) -> Vec<Value> {
    let text = project.done(&["agent", "pauses", "--json"]);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect()
}

#[test]
fn agent_that_asks_is_answered_from_elsewhere_when_it_was_told_how() {
    let project = asking();
    assert_eq!(project.done(&["agent", "pauses"]), "");
    let asked = project.run(&[
        "agent",
        "prompt",
        "ada",
        "What is in this folder?",
        "--session",
        "s",
    ]);
    assert_eq!(asked.code, Some(5), "{asked:#?}");
    let hint = asked
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("hint: adjutant "))
        .expect("a hint");
    let hint = hint.strip_suffix(", or deny").expect("both are named");
    let [waits] = &waiting(&project)[..] else {
        unreachable!("one thing waits")
    };
    let id = waits["id"].as_str().expect("an id");
    assert_eq!(
        (&waits["agent"], &waits["session"]),
        (&"ada".into(), &"s".into())
    );
    assert!(
        waits["since_ms"].as_u64() > Some(0) && waits["call"]["name"].is_string(),
        "{waits}"
    );
    let line = project.done(&["agent", "pauses", "ada"]);
    assert!(line.starts_with("ada  s  ") && line.contains(id), "{line}");

    // It outlives its process.
    project.done(&["agent", "stop", "ada"]);
    let stopped = project.run(&["agent", "pauses"]);
    let told = "ada: 1 sessions wait, and it does not run; `adjutant agent start ada` starts it\n";
    assert_eq!(
        (stopped.stdout.as_str(), stopped.stderr.as_str()),
        ("", told)
    );
    project.done(&["agent", "start", "ada"]);
    assert_eq!(waiting(&project)[0]["since_ms"], waits["since_ms"]);

    let args: Vec<&str> = hint.split(' ').collect();
    assert!(
        args.iter().any(|arg| arg.starts_with(&format!("{id}@"))),
        "{hint}"
    );
    let answered = project.run(&args);
    assert!(matches!(answered.code, Some(0 | 5)), "{answered:#?}");
    assert!(
        answered.stderr.contains(&format!("approves: {id}  ")),
        "{answered:#?}"
    );
    for _ in 0..9 {
        if waiting(&project).is_empty() {
            break;
        }
        project.run(&["agent", "deny", "ada", "--why", "not now"]);
    }
    let refused = project.run(&["agent", "approve", "ada"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.starts_with("error: nothing waits: ada\n"),
        "{}",
        refused.stderr
    );
}

#[test]
fn answer_is_refused_when_it_fits_nothing_that_waits() {
    let project = asking();
    project.run(&["agent", "prompt", "ada", "What is in this folder?"]);
    let [waits] = &waiting(&project)[..] else {
        unreachable!("one thing waits")
    };
    let id = waits["id"].as_str().expect("an id").to_owned();
    let cases: [(&[&str], &str); 7] = [
        (
            &["approve", "ada", "nothing"],
            "error: nothing waits under this id: nothing\n",
        ),
        (
            &["approve", "ada", &id, &id],
            &format!("error: {id} is named twice\n"),
        ),
        (
            &["approve", "ada", &format!("{id}@{}", "0".repeat(32))],
            "error: what waits is not what was shown: ",
        ),
        (
            &["approve", "ada", "--edit", "[]"],
            "error: the arguments of a call are a JSON object: []\n",
        ),
        (
            &["approve", "ada", "--edit", "{"],
            "error: the arguments of a call are a JSON object: {\ncaused by: ",
        ),
        (
            &["answer", "ada", "--text", "yes"],
            &format!("error: the answer does not fit: {id}\ncaused by: "),
        ),
        (&["approve", "bob"], "error: there is no agent bob in "),
    ];
    for (args, told) in cases {
        let seen = project.run(&[&["agent"], args].concat());
        assert_eq!(seen.code, Some(2), "{args:?}: {seen:#?}");
        assert!(seen.stderr.starts_with(told), "{args:?}: {}", seen.stderr);
    }
    let seen = project.run(&["agent", "approve", "ada", "--session", "none"]);
    assert_eq!(seen.code, Some(2), "{seen:#?}");
    assert_eq!(waiting(&project).len(), 1, "nothing was answered");
    project.done(&["agent", "stop", "ada"]);
    let seen = project.run(&["agent", "deny", "ada"]);
    assert!(
        seen.stderr
            .starts_with("error: the agent ada does not run: it is stopped\n"),
        "{}",
        seen.stderr
    );
}

#[test]
fn id_that_waits_in_several_sessions_is_answered_by_its_whole_name() {
    let project = asking();
    for session in ["a", "b"] {
        project.run(&[
            "agent",
            "prompt",
            "ada",
            "What is in this folder?",
            "--session",
            session,
        ]);
    }
    let [first, _] = &waiting(&project)[..] else {
        unreachable!("two things wait")
    };
    let [id, digest] = ["id", "digest"].map(|field| first[field].as_str().expect("a text"));
    for name in [id, &format!("@{digest}")] {
        let refused = project.run(&["agent", "deny", "ada", name]);
        let told = format!(
            "error: 2 things wait under this id: {name}\nhint: name the one that is meant: a/{id}, b/{id}\n"
        );
        assert_eq!((refused.code, refused.stderr), (Some(2), told));
    }
    let listed = project.done(&["agent", "pauses"]);
    let name = listed
        .lines()
        .filter(|line| line.starts_with("ada  b  "))
        .find_map(|line| line.split("  ").nth(3));
    let denied = project.run(&["agent", "deny", "ada", name.expect("it is listed")]);
    assert!(
        denied.stderr.starts_with(&format!("denies: {id}  ")),
        "{denied:#?}"
    );
    assert!(
        waiting(&project)
            .iter()
            .any(|it| it["session"] == "a" && it["id"] == id),
        "only one was answered"
    );
    let approved = project.run(&["agent", "approve", "ada", &format!("a/{id}@{:.6}", digest)]);
    assert!(
        approved.stderr.starts_with(&format!("approves: {id}  ")),
        "{approved:#?}"
    );
}

#[test]
fn rule_for_good_is_shown_with_the_status_and_holds_after_a_restart() {
    let project = Project::of("name: ada\nmodel: offline/planner\ntoolboxes: [files, edits]\n");
    let id = project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    let file = project
        .path()
        .join(".adjutant/run")
        .join(id.trim())
        .join("work/notes.md");
    let replace = |session: &str| {
        std::fs::write(&file, "One.").expect("it is written");
        project
            .run(&[
                "agent",
                "prompt",
                "ada",
                "Replace `One` by `Two` in notes.md.",
                "--session",
                session,
            ])
            .code
    };
    assert_eq!(replace("a"), Some(5));
    project.done(&["agent", "approve", "ada", "--always", "-q"]);
    let status = project.done(&["agent", "status", "ada"]);
    assert_eq!(status, "ready\nfor good: ada: allow write(/notes.md)\n");
    project.done(&["agent", "restart", "ada"]);
    assert_eq!(replace("b"), Some(0));
    let told: Value = serde_json::from_str(&project.done(&["agent", "status", "ada", "--json"]))
        .expect("it is JSON");
    assert_eq!(
        told["rules"],
        serde_json::json!([{"agent": "ada", "rule": "allow write(/notes.md)"}])
    );
    // A file that others may write is told, and the status all the same.
    let rules = project
        .path()
        .join(".adjutant/run")
        .join(id.trim())
        .join("rules/ada");
    std::fs::set_permissions(&rules, std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .expect("it is changed");
    let seen = project.run(&["agent", "status", "ada"]);
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), "ready\n"));
    assert!(
        seen.stderr.contains("is not believed: others may write it"),
        "{}",
        seen.stderr
    );
}

#[test]
fn prompt_asks_in_place_when_there_is_a_terminal() {
    let project = asking();
    let mut command = adjutant(&["agent", "prompt", "ada", "What is in this folder?"]);
    command
        .current_dir(project.path())
        .env("XDG_STATE_HOME", project.path().join(".state"));
    let mut terminal = Terminal::start(&command);
    terminal.wait("y(es), n(o) and why, e(dit), a(lways)");
    terminal.line("perhaps");
    terminal.line("e");
    terminal.wait("arguments in place of {");
    terminal.line("[]");
    terminal.wait("error: the arguments of a call are a JSON object");
    terminal.line("always");
    terminal.wait("with these arguments is not asked about again in this run");
    // Other tools may be asked about still.
    for _ in 0..5 {
        let is_over =
            |screen: &str| screen.contains("tokens") || screen.trim_end().ends_with("a(lways):");
        if waiting(&project).is_empty() || terminal.wait_until("an end", is_over).contains("tokens")
        {
            break;
        }
        terminal.line("n not now");
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(waiting(&project), Vec::<Value>::new());
}
