//! What will run: manifests with overrides, written and read again.

use std::{collections::BTreeMap, sync::LazyLock};

use adjutant_runtime::{Overrides, Resolved, manifest::ModelChoice};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::folder::{FULL, Folder, SHORT};

fn set(entries: &[(&str, Value)]) -> Overrides {
    let mut overrides = Overrides::default();
    overrides.set = entries
        .iter()
        .map(|(path, value)| ((*path).to_owned(), value.clone()))
        .collect();
    overrides
}

#[test]
fn resolved_reads_back_equal_when_it_is_written() {
    let folder = Folder::new();
    for text in [FULL, SHORT] {
        let resolved = folder.read(text).expect("it is right").resolve(set(&[
            ("max_turns", json!(3)),
            ("limits.max_turns", Value::Null),
        ]));
        let resolved = resolved.unwrap_or_else(|problems| panic!("{problems}"));
        let yaml = resolved.to_yaml().expect("it can be written");
        assert_eq!(
            Resolved::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}")),
            resolved
        );
        let json = serde_json::to_string(&resolved).expect("it can be written");
        assert_eq!(
            serde_json::from_str::<Resolved>(&json).expect("it can be read"),
            resolved
        );
    }
}

#[test]
fn resolved_is_written_for_people() {
    let folder = Folder::new();
    let resolved = folder
        .read(SHORT)
        .expect("it is right")
        .resolve(Overrides::default())
        .expect("it is right");
    let yaml = folder.plain(&resolved.to_yaml().expect("it can be written"));
    insta::assert_snapshot!(yaml, @r#"
    manifest:
      adjutant: 1
      name: clerk
      description: Answers questions about files.
      entry_agent: clerk
      agents:
        - name: clerk
          description: Answers questions about files.
          model: offline/planner
          instructions: |
            Answer from the files alone.
            A price is in $, and birds is a name.
          toolboxes:
            - files
          max_turns: 7
    sources:
      - adjutant.yaml
    needs: []
    "#);
}

#[test]
fn overrides_change_what_they_name() {
    let folder = Folder::new();
    let loaded = folder.read(FULL).expect("it is right");
    let mut overrides = set(&[
        ("agents.writer.max_turns", json!(2)),
        ("process_tools.count.timeout", json!("9s")),
        ("budget.tokens", json!(99)),
        ("agents.lead.toolboxes.files.timeout", json!("3s")),
        ("delegation.handoffs", json!(5)),
    ]);
    overrides.name = Some("renamed".into());
    overrides.model = Some("offline/planner".into());
    overrides.labels = BTreeMap::from([("tier".to_owned(), "12".to_owned())]);
    overrides.environment = BTreeMap::from([("REGION".to_owned(), "south".to_owned())]);
    let resolved = loaded
        .resolve(overrides.clone())
        .unwrap_or_else(|problems| panic!("{problems}"));
    let it = &resolved.manifest;
    assert_eq!(
        (&*it.name, &*it.entry_agent, &*it.agents[0].name),
        ("renamed", "lead", "lead")
    );
    assert_eq!(
        it.agents[0].model,
        Some(ModelChoice::Name("offline/planner".into()))
    );
    assert_eq!(
        (
            it.labels["tier"].as_str(),
            it.labels["team"].as_str(),
            it.environment["REGION"].as_str()
        ),
        ("12", "birds", "south")
    );
    assert_eq!(
        (it.agents[1].max_turns, it.budget.tokens, it.budget.cost_usd),
        (Some(2), Some(99), Some(10.0))
    );
    assert_eq!(
        it.process_tools[0].timeout.map(|it| it.to_string()),
        Some("9s".to_owned())
    );
    assert_eq!(it.agents[0].delegation.handoffs, 5);
    let boxes = serde_json::to_value(&it.agents[0].toolboxes[0]).expect("it can be written");
    assert_eq!(boxes, json!({"name": "files", "timeout": "3s"}));
    assert_eq!(resolved.overrides, overrides);
    assert_eq!(
        resolved.needs,
        ["ACCOUNTS_TOKEN", "DOCS_TOKEN", "ISSUES_TOKEN", "LEVEL"]
    );
}

#[test]
fn name_of_the_only_agent_is_that_of_the_whole() {
    let folder = Folder::new();
    let mut overrides = Overrides::default();
    overrides.name = Some("second".into());
    let it = folder
        .read(SHORT)
        .expect("it is right")
        .resolve(overrides)
        .expect("it is right")
        .manifest;
    assert_eq!(
        (&*it.name, &*it.entry_agent, &*it.agents[0].name),
        ("second", "second", "second")
    );
}

#[test]
fn overrides_are_refused_when_the_manifest_would_be_wrong() {
    let folder = Folder::new();
    let loaded = folder.read(FULL).expect("it is right");
    let mut overrides = set(&[
        ("agents.writr.max_turns", json!(2)),
        ("max_turns", json!(0)),
        ("budjet.tokens", json!(1)),
        ("context.x", json!(1)),
        ("budget..x", json!(1)),
        ("budget.cost_usd", json!("much")),
        ("agents.writer.prefix", json!(5)),
    ]);
    overrides.environment = BTreeMap::from([("PATH".to_owned(), "/".to_owned())]);
    let error = loaded
        .resolve(overrides)
        .expect_err("it is wrong")
        .to_string();
    insta::assert_snapshot!(error, @r#"
    override agents.writer.prefix: expected a text, found 5; hint: put it in quotes: "5"
    override agents.writr.max_turns: `agents` has no "writr"; hint: the nearest is `writer`
    override budget..x: a path is words with dots between them, as `budget.tokens`
    override budget.cost_usd: expected a number, found "much"
    override budjet.tokens: there is no field "budjet"; hint: the nearest is `budget`
    override context.x: `context` has no "x"; hint: there is `docs/style.md`, `Terms`
    override environment.PATH: the variable PATH is set by the runtime
    override max_turns: `max_turns` and `limits.max_turns` are the same: one of them is enough
    override max_turns: `max_turns` is at least 1
    "#);
    let mut overrides = set(&[("max_turns", json!(0))]);
    overrides.environment = BTreeMap::from([("PATH".to_owned(), "/".to_owned())]);
    overrides.model = Some("offline/none".into());
    let error = loaded
        .resolve(overrides)
        .expect_err("it is wrong")
        .to_string();
    insta::assert_snapshot!(error, @r#"
    override environment.PATH: the variable PATH is set by the runtime
    override max_turns: `max_turns` and `limits.max_turns` are the same: one of them is enough
    override max_turns: `max_turns` is at least 1
    override model: no model is called "offline/none"
    "#);
}

#[test]
fn needs_name_the_variables_of_models_and_stores() {
    let folder = Folder::new();
    let needs = |text: &str| {
        folder
            .read(text)
            .expect("it is right")
            .resolve(Overrides::default())
            .expect("it is right")
            .needs
    };
    let full = needs(FULL);
    assert_eq!(
        full,
        [
            "ACCOUNTS_TOKEN",
            "ACME_KEY",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "DOCS_TOKEN",
            "ISSUES_TOKEN",
            "LEVEL"
        ]
    );
    let store = "name: a\nmodel: offline/planner\nsessions: {store: {kind: postgres, url_variable: BIRDS_URL}}\n";
    assert_eq!(needs(store), ["BIRDS_URL"]);
    let any = needs("name: a\nprefix: x\n");
    assert!(
        ["ADJUTANT_MODEL", "OPENAI_API_KEY", "OLLAMA_BASE_URL"]
            .iter()
            .all(|it| any.contains(&(*it).to_owned())),
        "{any:?}"
    );
    let own = "name: a\nmodel: openai/gpt-5\nproviders: [{name: openai, base_url: 'https://x.example/v1', key_variables: [MINE]}]\n";
    assert_eq!(needs(own), ["MINE"]);
}

/// Any JSON, with texts that YAML might take for something else.
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~\\n\\t#:'\"|>&*!%@`-]{0,12}",
        "(true|null|~|0x1f|1e3|-|- a|a: b|\\? x|\\.inf|1_000|=|<<)",
        "([a-z ]{0,6}\\n){1,4}[a-z]{0,3}",
    ];
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from)
    ];
    let leaf = prop_oneof![
        text.clone().prop_map(Value::String),
        number,
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null)
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What is resolved of hardly anything.
static PLAIN: LazyLock<Resolved> = LazyLock::new(|| {
    let loaded = Folder::new()
        .read("name: a\nprefix: x\n")
        .expect("it is right");
    loaded.resolve(Overrides::default()).expect("it is right")
});

proptest! {
    #[test]
    fn any_value_reads_back_equal_when_it_is_written(value in any_value()) {
        let mut resolved = PLAIN.clone();
        resolved.overrides.set.insert("description".to_owned(), value.clone());
        resolved.overrides.set.insert("options.extra".to_owned(), json!({ "it": value, "list": [value, [value]] }));
        let yaml = resolved.to_yaml().expect("it can be written");
        let read = Resolved::from_yaml(&yaml).map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
        prop_assert_eq!(read, resolved);
    }
}
