//! Skills: listed, shown, checked, and used by runs, those of a project only when somebody trusts them.

use std::{fs, process::Command};

use adjutant::llm::Script;
use serde_json::json;
use tempfile::TempDir;

use crate::command::{Seen, Vendor, adjutant, says, seen, serve, usage};

/// A skill that can be loaded.
const HERON: &str =
    "---\nname: heron\ndescription: How herons stand.\nlicense: MIT\n---\nStand in water.\n";

/// A user with a home, and a directory to work on.
struct Place {
    folder: TempDir,
}

impl Place {
    /// A user's heron and a project's kestrel.
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().expect("a temporary directory"),
        };
        place.write("home/.config/adjutant/skills/heron/SKILL.md", HERON);
        place.write("home/.config/adjutant/skills/heron/legs.md", "Two legs.\n");
        place.write(
            "work/.adjutant/skills/kestrel/SKILL.md",
            "Hover over fields.\n",
        );
        place.write("work/notes.txt", "Birds.\n");
        place
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    fn command(&self, args: &[&str]) -> Command {
        self.here(adjutant(args))
    }

    fn here(&self, mut command: Command) -> Command {
        command
            .current_dir(self.folder.path().join("work"))
            .env("HOME", self.folder.path().join("home"));
        command
    }

    fn see(&self, args: &[&str]) -> Seen {
        let mut seen = seen(self.command(args));
        let root = self.folder.path().display().to_string();
        (seen.stdout, seen.stderr) = (
            seen.stdout.replace(&root, "PLACE"),
            seen.stderr.replace(&root, "PLACE"),
        );
        seen
    }
}

#[test]
fn list_tells_whose_skills_are_and_whether_they_are_used() {
    let place = Place::new();
    let untrusted = "\
heron    user     used       7+42 tokens  PLACE/home/.config/adjutant/skills/heron/SKILL.md
kestrel  project  untrusted     5 tokens  ./.adjutant/skills/kestrel/SKILL.md
";
    let told = "skills: ./.adjutant/skills: warning: nobody trusts the skills of this folder: 1 not used; hint: \
                read them, then say --trust-skills\n";
    place.see(&["skills", "list"]).check(0, untrusted, told);
    let seen = place.see(&["skills", "list", "--trust-skills", "--json"]);
    let events = seen.events();
    assert_eq!(
        (seen.code, events.len(), seen.stderr.as_str()),
        (Some(0), 2, ""),
        "{seen:#?}"
    );
    assert_eq!(events[1]["status"], "used");
    assert_eq!(
        (&events[0]["license"], &events[0]["tokens"]),
        (&json!("MIT"), &json!({"listing": 7, "body": 42}))
    );
}

#[test]
fn list_tells_what_is_wrong_and_goes_on() {
    let place = Place::new();
    place.write(
        "work/.adjutant/skills/broken/SKILL.md",
        "---\nname: [\n---\nx\n",
    );
    let seen = place.see(&["skills", "list", "--trust-skills"]);
    assert_eq!(
        (seen.code, seen.stdout.lines().count()),
        (Some(0), 2),
        "{seen:#?}"
    );
    let told =
        "skills: ./.adjutant/skills/broken/SKILL.md:2:7: error: the front matter is not YAML: ";
    assert!(seen.stderr.starts_with(told), "{}", seen.stderr);
}

#[test]
fn show_tells_everything_of_a_skill() {
    let place = Place::new();
    let expect = "\
name: heron
scope: user
status: used
tokens: 7+42
place: PLACE/home/.config/adjutant/skills/heron/SKILL.md
description: How herons stand.
license: MIT
file: legs.md (10 bytes)

Stand in water.
";
    place.see(&["skills", "show", "heron"]).check(0, expect, "");
    let events = place.see(&["skills", "show", "kestrel", "--json"]).events();
    assert_eq!(
        (&events[0]["status"], &events[0]["body"]),
        (&json!("untrusted"), &json!("Hover over fields."))
    );
    let error = "error: no skill has this name: kestrle\nhint: the nearest are kestrel\n";
    place
        .see(&["skills", "show", "kestrle"])
        .check(2, "", error);
    let mut bare = place.command(&["skills", "list"]);
    bare.env_remove("HOME").current_dir(place.folder.path());
    let none = "there is no skill in the directories of the project and the user\n";
    self::seen(bare).check(0, "", none);
}

#[test]
fn check_fails_when_a_skill_breaks_the_specification() {
    let place = Place::new();
    place.write("work/good/heron/SKILL.md", HERON);
    place
        .see(&["skills", "check", "good"])
        .check(0, "", "skills: 1, errors: 0, warnings: 0\n");
    place.write(
        "work/bad/Heron/SKILL.md",
        "---\nname: Heron\nmodel: big\n---\n",
    );
    let expect = "\
bad/Heron/SKILL.md:3:1: error: the specification knows no field `model`
bad/Heron/SKILL.md:2:7: error: not a name: `Heron` (it must be made of lowercase letters, digits and hyphens); the \
                  folder's counts: Heron
bad/Heron/SKILL.md: error: the folder's name is no name by the specification: it must be made of lowercase letters, \
                  digits and hyphens
bad/Heron/SKILL.md:1: error: there is no description
bad/Heron/SKILL.md: warning: the body is empty
";
    let told = "skills: 1, errors: 4, warnings: 1\n";
    place
        .see(&["skills", "check", "bad/Heron/SKILL.md"])
        .check(1, expect, told);
    let seen = place.see(&["skills", "check", "good", "bad", "--json"]);
    let events = seen.events();
    assert_eq!((seen.code, events.len()), (Some(1), 6));
    assert_eq!(events[5], json!({"skills": 2, "errors": 4, "warnings": 1}));
    assert_eq!(
        (&events[0]["finding"], &events[0]["line"]),
        (&json!("unknown_field"), &json!(3))
    );
    let none = "error: there is no folder of skills: nowhere\n";
    place
        .see(&["skills", "check", "nowhere"])
        .check(2, "", none);
}

/// A run of a model that loads a skill and reads a file of it; what it was sent first and last.
fn run(place: &Place, args: &[&str]) -> (Seen, String, String) {
    let load = Script::new()
        .call("load_skill", json!({"name": "heron"}))
        .usage(usage());
    let read = Script::new()
        .call(
            "read_skill_file",
            json!({"skill": "heron", "path": "legs.md"}),
        )
        .usage(usage());
    let server = serve([load, read, says("It stands.")]);
    let mut command = place.command(&[
        "run",
        "How?",
        "--model",
        Vendor::Anthropic.model(),
        "--retries",
        "0",
    ]);
    command
        .args(args)
        .envs(Vendor::Anthropic.variables(&server));
    let seen = seen(command);
    let requests = server.requests();
    let body = |at: usize| String::from_utf8_lossy(&requests[at].body).into_owned();
    (seen, body(0), body(requests.len() - 1))
}

#[test]
fn run_uses_the_skills_of_the_user_and_tells_of_others() {
    let place = Place::new();
    let (seen, first, last) = run(&place, &[]);
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "It stands.\n"),
        "{seen:#?}"
    );
    assert!(
        first.contains("- heron: How herons stand.") && !first.contains("Hover over fields."),
        "{first}"
    );
    assert!(
        seen.stderr
            .contains("nobody trusts the skills of this folder"),
        "{seen:#?}"
    );
    // What is wrong with one that is not used is told by those who are asked about skills.
    place.write(
        "work/.adjutant/skills/broken/SKILL.md",
        "---\nname: [\n---\nx\n",
    );
    let (broken, ..) = run(&place, &[]);
    let lines = |seen: &Seen| {
        seen.stderr
            .lines()
            .filter(|line| line.starts_with("skills: "))
            .count()
    };
    assert_eq!(
        (lines(&broken), lines(&place.see(&["skills", "list"]))),
        (2, 2),
        "{broken:#?}"
    );
    let (trusted, ..) = run(&place, &["--trust-skills"]);
    assert!(
        trusted.stderr.contains("the front matter is not YAML"),
        "{trusted:#?}"
    );
    assert!(
        last.contains("Stand in water.") && last.contains("Two legs."),
        "{last}"
    );
    let home = place.folder.path().display().to_string();
    let directory = format!("Directory: {home}");
    assert_eq!(
        last.matches(&home).count(),
        last.matches(&directory).count(),
        "the model is told no other absolute path: {last}"
    );
}

#[test]
fn run_uses_the_skills_of_a_project_when_they_are_trusted() {
    let place = Place::new();
    let (seen, first, _) = run(&place, &["--trust-skills", "-q"]);
    assert_eq!(
        (seen.code, seen.stderr.as_str()),
        (Some(0), ""),
        "{seen:#?}"
    );
    assert!(first.contains("Hover over fields."), "{first}");
}

#[test]
fn run_uses_the_skills_of_a_folder_that_is_named() {
    let place = Place::new();
    place.write(
        "more/heron/SKILL.md",
        "---\ndescription: Other herons.\n---\nSleep.\n",
    );
    place.write("more/heron/legs.md", "One leg.\n");
    let (seen, first, last) = run(&place, &["--skills", "../more", "-q"]);
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    assert!(
        first.contains("- heron: Other herons.") && last.contains("One leg."),
        "{last}"
    );
    let mut missing = place.command(&[
        "run",
        "How?",
        "--skills",
        "nowhere",
        "-m",
        "offline/planner",
    ]);
    missing.env_remove("HOME");
    self::seen(missing).check(2, "", "error: there is no folder of skills: nowhere\n");
}

#[test]
fn answer_is_asked_for_again_with_the_skills_when_it_does_not_fit() {
    let place = Place::new();
    place.write(
        "work/schema.json",
        r#"{"type": "object", "required": ["n"]}"#,
    );
    let server = serve([says("Two."), says(r#"{"n": 2}"#)]);
    let mut command = place.command(&[
        "run",
        "How?",
        "--model",
        Vendor::Anthropic.model(),
        "--trust-skills",
        "-q",
    ]);
    command
        .args(["--schema", "schema.json", "--retries", "0"])
        .envs(Vendor::Anthropic.variables(&server));
    seen(command).check(0, "{\"n\":2}\n", "");
    for request in server.requests() {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        assert!(
            body.contains("Hover over fields.") && body.contains("load_skill"),
            "{body}"
        );
    }
}

/// A skill that can be loaded, with this name.
fn about(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}: all of it.\n---\nBody.\n")
}

#[test]
fn skills_are_found_where_other_programs_keep_them() {
    let place = Place::new();
    fs::create_dir_all(place.folder.path().join("work/.git")).expect("it can be made");
    for (path, name) in [
        ("home/.agents/skills", "a1"),
        ("home/.claude/skills", "a2"),
        ("home/.codex/skills", "a3"),
        ("work/.agents/skills", "b1"),
        ("work/.claude/skills", "b2"),
        ("work/sub/.codex/skills", "b3"),
    ] {
        place.write(&format!("{path}/{name}/skill.md"), &about(name));
    }
    #[cfg(unix)]
    {
        let link = place.folder.path().join("work/.codex");
        std::os::unix::fs::symlink(".claude", link).expect("links can be made");
    }
    let mut list = place.command(&["skills", "list", "--trust", "--json"]);
    list.current_dir(place.folder.path().join("work/sub"));
    let seen = self::seen(list);
    let used: Vec<String> = seen
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"))
        .filter(|line| line["status"] == "used")
        .map(|line| line["skill"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        used,
        ["a1", "a2", "a3", "b1", "b2", "b3", "heron", "kestrel"],
        "{seen:#?}"
    );
    let (untrusted, first, _) = run(&place, &[]);
    assert!(first.contains("About a1") && !first.contains("About b1"));
    let sources = untrusted.stderr.lines().find(|line| line.contains(" of "));
    let home = place.folder.path().join("home").display().to_string();
    let sources = sources.unwrap_or_default().replace(&home, "HOME");
    assert_eq!(
        sources,
        "skills: 1 of HOME/.agents/skills, 1 of HOME/.claude/skills, 1 of HOME/.codex/skills, \
         1 of HOME/.config/adjutant/skills"
    );
}

#[test]
fn trust_covers_the_skills_of_a_directory_until_they_change() {
    let place = Place::new();
    place.write("work/.agents/skills/owl/SKILL.md", &about("owl"));
    let trusted = place.see(&["trust", ".", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:#?}");
    assert!(trusted.stderr.contains("skill: owl, in "), "{trusted:#?}");
    let (_, first, _) = run(&place, &[]);
    assert!(first.contains("About owl") && first.contains("Hover over fields."));
    place.write("work/.agents/skills/owl/more.md", "Another text.\n");
    let (seen, first, _) = run(&place, &[]);
    assert!(!first.contains("About owl") && first.contains("Hover over fields."));
    assert!(
        seen.stderr.contains("nobody trusts the skills"),
        "{seen:#?}"
    );
}

#[test]
fn plugins_bring_skills_and_servers() {
    let place = Place::new();
    let manifest = |name: &str| {
        format!(
            r#"{{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "{name}", "hooks": {{}}}}"#
        )
    };
    let servers = r#"{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers":
        {"tool": {"type": "stdio", "command": "./bin/tool", "args": ["${PLUGIN_ROOT}", "${PLUGIN_DATA}", "${HOME}"]},
         "old": {"type": "sse", "url": "https://a.example/sse"}}}"#;
    for (path, name) in [("home", "mine"), ("work", "theirs")] {
        let plugin = format!("{path}/.agents/plugins/{name}");
        place.write(&format!("{plugin}/plugin.json"), &manifest(name));
        place.write(&format!("{plugin}/mcp.json"), servers);
        place.write(&format!("{plugin}/bin/tool"), "#!/bin/sh\nexit 1\n");
        place.write(
            &format!("{plugin}/skills/{name}/SKILL.md"),
            &about(name)
                .replace("me: all", "me, all")
                .replace(": all", ", all"),
        );
    }
    place.write("work/.agents/plugins/broken/plugin.json", "{}");
    let (seen, first, _) = run(&place, &[]);
    assert!(
        first.contains("About mine") && !first.contains("About theirs"),
        "{first}"
    );
    for line in [
        "work/.agents/plugins/theirs/skills: warning: nobody trusts the skills",
        "work/.agents/plugins/theirs/mcp.json: warning: nobody trusts its servers: 1 not used",
        "home/.agents/plugins/mine: warning: the unknown field \"hooks\" is ignored",
        "the transport `sse` is not supported",
        "plugins/broken: missing field `$schema`; it is not used",
    ] {
        assert!(seen.stderr.contains(line), "{line}: {seen:#?}");
    }
    let data = place.folder.path().join("data");
    let mut list = place.command(&["mcp", "list", "--trust", "--json"]);
    list.env("XDG_DATA_HOME", &data);
    let list = self::seen(list);
    assert_eq!(list.stdout.lines().count(), 2, "{list:#?}");
    let data = data.join("adjutant/plugins");
    let count = fs::read_dir(data)
        .expect("the data directories exist")
        .count();
    assert_eq!(count, 2);
}
