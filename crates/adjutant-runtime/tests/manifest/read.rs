//! Manifests that are right: what is read of them.

use std::time::Duration;

use adjutant_runtime::manifest::{ContextSpec, Instructions, ModelChoice, Span, ToolboxChoice};

use crate::folder::{FULL, Folder, SHORT};

#[test]
fn manifest_of_one_agent_is_read_in_short() {
    let folder = Folder::new();
    let loaded = folder.read(SHORT).expect("it is right");
    let manifest = &loaded.manifest;
    assert_eq!(
        (
            &*manifest.name,
            &*manifest.entry_agent,
            manifest.agents.len()
        ),
        ("clerk", "clerk", 1)
    );
    let agent = manifest.entry().expect("it has one");
    assert_eq!(
        (&*agent.name, &*agent.description),
        ("clerk", "Answers questions about files.")
    );
    let text = "Answer from the files alone.\nA price is in $, and birds is a name.\n";
    assert_eq!(agent.instructions, Some(Instructions::Text(text.into())));
    assert_eq!(
        (agent.max_turns, agent.model.clone()),
        (Some(7), Some(ModelChoice::Name("offline/planner".into())))
    );
    assert_eq!(agent.toolboxes, [ToolboxChoice::Name("files".into())]);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn everything_is_read_when_a_manifest_says_it() {
    let folder = Folder::new();
    let loaded = folder
        .read(FULL)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let manifest = &loaded.manifest;
    let names: Vec<&str> = manifest.agents.iter().map(|agent| &*agent.name).collect();
    assert_eq!(names, ["lead", "writer", "scout"]);
    let (lead, scout) = (&manifest.agents[0], &manifest.agents[2]);
    let real = |name: &str| folder.path(name).canonicalize().expect("it is there");
    assert_eq!(
        lead.instructions,
        Some(Instructions::File {
            file: real("prompts/lead.md")
        })
    );
    assert_eq!(lead.context[0], ContextSpec::File(real("docs/style.md")));
    assert_eq!(manifest.process_tools[0].binary, real("bin/count"));
    assert_eq!(manifest.skill_folders, [real("skills")]);
    assert_eq!(manifest.data[0].file, real("data/birds.csv"));
    assert_eq!(lead.limits.timeout, Some(Span(Duration::from_secs(3_600))));
    assert_eq!(
        lead.options.extra["nested"]["nothing"],
        serde_json::Value::Null
    );
    assert_eq!(manifest.labels["team"], "birds");
    assert_eq!(
        (&*scout.description, scout.max_turns),
        ("Looks around.", Some(9))
    );
    assert_eq!(
        scout.instructions,
        Some(Instructions::Text("You look.".into()))
    );
    let files = [real("adjutant.yaml"), real(".adjutant/agents/scout.md")];
    assert_eq!(loaded.sources, files);
    let warnings: Vec<String> = loaded
        .warnings
        .iter()
        .map(|it| folder.plain(&it.to_string()))
        .collect();
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn variable_is_what_is_asked_for_and_never_a_structure() {
    let folder = Folder::new();
    let text = "name: a\ninstructions: ${WORDS}\nmax_turns: ${TURNS}\nlabels: {turns: '${TURNS}', none: '${EMPTY:-x}'}\n\
                description: ${ODD}\nprefix: ${NONE:-}a\nlimits: {sequential: '${NONE:-maybe}'}\n";
    let error = folder.wrong(text);
    assert_eq!(
        error,
        "adjutant.yaml:7:22: expected true or false, found \"maybe\""
    );
    let loaded = folder
        .read(&text.replace("maybe", "true"))
        .expect("it is right");
    let agent = &loaded.manifest.agents[0];
    assert_eq!(
        agent.instructions,
        Some(Instructions::Text("a: [b, c]".into()))
    );
    assert_eq!((agent.max_turns, agent.limits.sequential), (Some(7), true));
    assert_eq!(&*loaded.manifest.description, "name: x\nagents: []");
    assert_eq!(
        loaded.manifest.labels.values().collect::<Vec<_>>(),
        ["x", "7"]
    );
}

#[test]
fn dollar_signs_stay_when_they_name_no_variable() {
    let folder = Folder::new();
    let loaded = folder
        .read("name: a\ninstructions: It costs $5, $$7 or $HOME and $${TEAM}.\n")
        .expect("it is right");
    let text = "It costs $5, $7 or $HOME and ${TEAM}.";
    assert_eq!(
        loaded.manifest.agents[0].instructions,
        Some(Instructions::Text(text.into()))
    );
}

#[test]
fn alias_repeats_a_value_when_it_is_named() {
    let folder = Folder::new();
    let text = "name: a\nentry_agent: b\nagents:\n  - {name: b, options: &warm {temperature: 1}}\n  \
                - {name: c, options: *warm}\n";
    let loaded = folder.read(text).expect("it is right");
    assert_eq!(
        loaded.manifest.agents[0].options,
        loaded.manifest.agents[1].options
    );
}

#[test]
fn warnings_are_told_when_something_has_no_use() {
    let folder = Folder::new();
    let text = "name: a\nentry_agent: b\nagents: [{name: b, access: {rules: [{tools: ['*'], then: ask}, {tools: [x], then: deny}]}}, \
                {name: c}]\nsessions: {store: {kind: memory}}\nboard: {name: x}\n\
                process_tools: [{name: t, description: Does., binary: bin/count}]\n";
    let loaded = folder.read(text).expect("it is right");
    let warnings: Vec<String> = loaded
        .warnings
        .iter()
        .map(|it| folder.plain(&it.to_string()))
        .collect();
    let expect = [
        "adjutant.yaml:3:64: this rule has no effect: one before it is about every tool",
        "adjutant.yaml:3:93: nobody can give \"c\" a task, and prompts do not go to it",
        "adjutant.yaml:5:1: `board` is lost when the process ends: the store is of kind `memory`",
        "adjutant.yaml:6:17: no agent has the tool \"t\"",
    ];
    assert_eq!(warnings, expect);
}

#[test]
fn missing_key_is_no_problem_of_a_manifest() {
    let folder = Folder::new();
    let loaded = folder
        .read("name: a\nmodel: anthropic/claude-sonnet-5\n")
        .expect("it is right");
    let resolved = loaded
        .resolve(adjutant_runtime::Overrides::default())
        .expect("it is right");
    assert_eq!(resolved.needs, ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]);
}
