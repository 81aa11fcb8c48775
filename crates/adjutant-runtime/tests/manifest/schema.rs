//! The published schema: it takes every manifest that is right, and no field that there is not.

use std::{fs, path::Path, sync::Arc};

use adjutant_llm::Schema;
use adjutant_runtime::manifest;
use serde_json::Value;

use crate::folder::{FULL, SHORT};

fn compiled() -> Schema {
    Schema::compile(Arc::new(manifest::schema())).expect("it is a schema")
}

fn value(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("it is YAML")
}

#[track_caller]
fn check(yaml: &str) {
    assert_eq!(compiled().validate(&value(yaml)), Ok(()), "{yaml}");
}

#[test]
fn schema_takes_every_example() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manifest.md");
    let text = fs::read_to_string(documents).expect("the document is there");
    let examples: Vec<&str> = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|part| part.split("```").next())
        .collect();
    assert!(examples.len() >= 3, "{}", examples.len());
    for example in examples.iter().chain(&[FULL, SHORT, manifest::EXAMPLE]) {
        check(example);
    }
}

#[test]
fn schema_takes_what_takes_fields_away_and_what_is_a_variable() {
    check(
        "extends: base.yaml\nmodel: null\ntoolboxes: null\nlimits: {max_turns: '${TURNS}', unattended: '${X}', timeout: '${T}'}\n",
    );
}

#[test]
fn schema_refuses_what_no_manifest_can_say() {
    let schema = compiled();
    for yaml in [
        "nam: a\n",
        "name: 3\n",
        "limits: {max_turns: x}\n",
        "limits: {timeout: 3}\n",
        "agents: [{nme: x}]\n",
        "options: {thinking: hihg}\n",
        "agents: [{name: x}]\ninstructions: x\n",
        "sessions: {store: {kind: sqlit}}\n",
        "toolboxes: [{name: files, onyl: []}]\n",
    ] {
        assert!(schema.validate(&value(yaml)).is_err(), "{yaml}");
    }
}
