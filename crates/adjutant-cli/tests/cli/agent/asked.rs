//! Running agents that are asked something.

use super::Project;

#[test]
fn answer_goes_to_standard_output_when_an_agent_is_prompted() {
    let project = Project::new();
    project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    let seen = project.run(&["agent", "prompt", "ada", "Who are you?", "-q"]);
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    assert!(seen.stdout.starts_with("I am offline"), "{}", seen.stdout);
    let events = project
        .run(&[
            "agent",
            "prompt",
            "ada",
            "Again?",
            "--json",
            "--session",
            "other",
        ])
        .events();
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(
        (kinds.first(), kinds.last()),
        (Some(&"run_started"), Some(&"run_finished"))
    );
    assert!(kinds.contains(&"text_delta"), "{kinds:?}");
}

#[test]
fn prompt_is_refused_when_there_is_none() {
    let project = Project::new();
    let empty = [
        "error: the prompt is empty",
        "hint: give the agent a prompt",
    ];
    project.refused(&["agent", "prompt", "ada", " "], 2, &empty);
}

#[test]
fn object_is_refused_when_its_schema_is_no_file_or_no_json() {
    let project = Project::new();
    let seen = project.run(&["agent", "object", "ada", "Hi", "--schema", "none.json"]);
    assert_eq!(seen.code, Some(2));
    assert!(
        seen.stderr
            .starts_with("error: cannot read the schema: none.json\n"),
        "{}",
        seen.stderr
    );
    let seen = project.run(&["agent", "object", "ada", "Hi", "--schema", "adjutant.yaml"]);
    assert!(
        seen.stderr
            .starts_with("error: cannot use the schema: adjutant.yaml\n"),
        "{}",
        seen.stderr
    );
}
