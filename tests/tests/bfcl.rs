//! A few functions and answers of the Berkeley Function-Calling Leaderboard (Apache-2.0) over every wire. `cargo xtask bfcl`
//! sends all of them.

use adjutant_tests::{WIRES, bfcl::FunctionCase};
use serde_json::Value;

const CASES: &str = include_str!("bfcl/cases.jsonl");

#[tokio::test]
async fn answers_survive_every_wire_byte_for_byte() {
    let mut wrong = Vec::new();
    for line in CASES.lines() {
        let case: FunctionCase = serde_json::from_str(line).expect("a case is JSON");
        for wire in WIRES {
            if let Err(why) = case.travel(wire).await {
                wrong.push(format!("{wire}: {}: {why}", case.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[tokio::test]
async fn formats_are_typed_where_they_are_strict() {
    for line in CASES.lines() {
        let case: FunctionCase = serde_json::from_str(line).expect("a case is JSON");
        for (wire, tool) in WIRES
            .into_iter()
            .flat_map(|wire| case.tools.iter().map(move |tool| (wire, tool)))
        {
            let sent = case.format(wire, tool).await.expect("the request is taken");
            let body = sent[0].json();
            let format = [
                &body["text"]["format"],
                &body["response_format"]["json_schema"],
            ];
            for format in format.into_iter().filter(|it| it["strict"] == true) {
                assert!(is_typed(&format["schema"]), "{wire}: {format}");
            }
        }
    }
}

/// True if every schema below properties and items names a type or its values.
fn is_typed(schema: &Value) -> bool {
    let has = |name: &str| schema.get(name).is_some();
    let properties = schema["properties"].as_object().into_iter().flatten();
    ["type", "enum", "anyOf", "$ref"].into_iter().any(has)
        && properties.map(|(_, it)| it).all(is_typed)
        && schema.get("items").is_none_or(is_typed)
}
