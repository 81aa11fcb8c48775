//! The document of the format, held against its schema: no field is missing, and none is made up.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use adjutant_runtime::manifest;
use serde_json::Value;

/// The headings of tables, and the definitions of the schema that they are about.
const TABLES: [(&str, &str); 35] = [
    ("The whole", ""),
    ("An agent", "AgentSpec"),
    ("`model`", "ModelSpec"),
    ("`options`", "OptionsSpec"),
    ("`instructions`", "Instructions"),
    ("`context`", "NamedContext"),
    ("`toolboxes`", "ToolboxSpec"),
    ("`effects`", "EffectParams"),
    ("`access`", "Access"),
    ("`access.rules`", "ApprovalRule"),
    ("`rules`", "RulesSpec"),
    ("`limits`", "LimitsSpec"),
    ("`budget`", "BudgetSpec"),
    ("`delegation`", "DelegationSpec"),
    ("`team`", "TeamSpec"),
    ("`reflections`", "ReflectionSpec"),
    ("`process_tools`", "ProcessTool"),
    ("`process_tools.sandbox`", "SandboxSpec"),
    ("`mcp`", "McpSpec"),
    ("`mcp.servers`", "ServerSpec"),
    ("`mcp.servers.auth`", "AuthSpec"),
    ("Choices: `revision`", "ProtocolRevision"),
    ("`peers`", "PeerSpec"),
    ("`data`", "DataSpec"),
    ("`sessions`", "SessionSpec"),
    ("`sessions.store`", "StoreSpec"),
    ("`memory`", "MemorySpec"),
    ("`board`", "BoardSpec"),
    ("`notes`", "NotesSpec"),
    ("Choices: `access.default`, `then`", "Approval"),
    ("Choices: `mode`", "AccessMode"),
    ("Choices: `at_limit`", "LimitEnd"),
    ("Choices: `on`", "DelegationPlace"),
    ("Choices: `on_restart`", "OnRestart"),
    ("Choices: `thinking`", "Effort"),
];

/// The first column of every table, by the heading that it stands under.
fn tables(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (mut tables, mut heading): (BTreeMap<String, BTreeSet<String>>, String) =
        (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line
            .trim_start_matches('#')
            .strip_prefix(' ')
            .filter(|_| line.starts_with('#'))
        {
            title.clone_into(&mut heading);
        } else if let Some(cell) = line.strip_prefix("| `") {
            let cell = cell.split('|').next().unwrap_or_default();
            let words = cell
                .split('`')
                .step_by(2)
                .filter(|word| !word.trim().is_empty() && *word != ", ");
            tables
                .entry(heading.clone())
                .or_default()
                .extend(words.map(str::to_owned));
        }
    }
    tables
}

/// The fields, or the choices, of a definition.
fn words(schema: &Value, name: &str) -> BTreeSet<String> {
    let of = if name.is_empty() {
        schema
    } else {
        &schema["$defs"][name]
    };
    let fields = |of: &Value| {
        of["properties"]
            .as_object()
            .map(|map| map.keys().cloned().collect::<Vec<_>>())
    };
    let any = of["anyOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(fields)
        .flatten();
    let choices = of["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| Some(it["const"].as_str()?.to_owned()));
    fields(of)
        .unwrap_or_default()
        .into_iter()
        .chain(any)
        .chain(choices)
        .collect()
}

#[test]
fn every_field_is_documented_and_nothing_else_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manifest.md");
    let tables = tables(&fs::read_to_string(path).expect("the document is there"));
    let schema = manifest::schema();
    let own = words(&schema, "AgentSpec");
    for (heading, name) in TABLES {
        let mut expect = words(&schema, name);
        assert!(
            !expect.is_empty(),
            "{name} is no definition: {}",
            schema["$defs"]
        );
        if name.is_empty() {
            // Those of an agent have a table of their own.
            expect.retain(|field| {
                !own.contains(field) || ["name", "description", "budget"].contains(&field.as_str())
            });
        }
        assert_eq!(tables.get(heading), Some(&expect), "{heading}");
    }
    let tabled: BTreeSet<&str> = TABLES.iter().map(|(_, name)| *name).collect();
    let amounts = [
        "Span",
        "Bytes",
        "Compaction",
        "ContextSpec",
        "ModelChoice",
        "ToolboxChoice",
        "StoreKind",
        "Durability",
        "TimeoutsSpec",
    ];
    let all = schema["$defs"]
        .as_object()
        .expect("it has some")
        .keys()
        .map(String::as_str);
    let left: Vec<&str> = all
        .filter(|name| !tabled.contains(name) && !amounts.contains(name))
        .collect();
    assert_eq!(left, [""; 0]);
}
