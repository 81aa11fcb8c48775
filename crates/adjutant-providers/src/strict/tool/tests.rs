//! Tests of tool schemas: what vendors refuse at the root is gone, what they take stays.

use super::*;

#[track_caller]
fn check(schema: Value, expect: Value) {
    assert_eq!(*for_tool(&schema), expect);
}

#[test]
fn for_tool_keeps_a_schema_when_it_is_one_object() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
    ] {
        assert!(matches!(for_tool(&schema), Cow::Borrowed(it) if *it == schema));
    }
}

#[test]
fn for_tool_merges_all_of_when_it_is_at_the_root() {
    let a = json!({"type": "object", "properties": {"a": {"type": "string"}, "c": {"minimum": 1}}, "required": ["a"]});
    check(
        json!({"description": "D", "allOf": [a, {"$ref": "#/$defs/b"}], "$defs": {
            "b": {"properties": {"b": true, "c": {"maximum": 2}}, "required": ["a", "b"], "additionalProperties": false}
        }}),
        json!({
            "type": "object", "description": "D",
            "properties": {"a": {"type": "string"}, "b": true, "c": {"allOf": [{"minimum": 1}, {"maximum": 2}]}},
            "required": ["a", "b"], "additionalProperties": false,
            "$defs": {"b": {
                "properties": {"b": true, "c": {"maximum": 2}}, "required": ["a", "b"], "additionalProperties": false
            }},
        }),
    );
}

#[test]
fn for_tool_requires_what_all_alternatives_require_when_they_are_at_the_root() {
    let one = |kind: &str, own: &str| {
        json!({
            "type": "object", "title": kind, "additionalProperties": false, "required": ["kind", own],
            "properties": {"kind": {"const": kind}, own: {"type": "string"}},
        })
    };
    let parts = json!([one("x", "a"), one("y", "b"), {"type": "null"}]);
    for name in ["oneOf", "anyOf"] {
        check(
            json!({name: parts}),
            json!({
                "type": "object", "additionalProperties": false, "required": ["kind"],
                "properties": {
                    "kind": {"anyOf": [{"const": "x"}, {"const": "y"}]}, "a": {"type": "string"},
                    "b": {"type": "string"},
                },
                "description": format!("The arguments must also fit: {{\"{name}\":{parts}}}"),
            }),
        );
    }
}

#[test]
fn for_tool_keeps_the_members_when_alternatives_only_require() {
    check(
        json!({
            "type": "object", "description": "D", "properties": {"a": true, "b": true}, "additionalProperties": false,
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}
        }),
        json!({
            "type": "object", "properties": {"a": true, "b": true}, "additionalProperties": false, "required": [],
            "description": "D\n\nThe arguments must also fit: \
                {\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"not\":{\"required\":[\"c\"]}}"
        }),
    );
}

#[test]
fn for_tool_says_that_it_is_an_object_when_the_schema_does_not() {
    check(json!({}), json!({"type": "object", "properties": {}}));
    check(json!(true), json!({"type": "object", "properties": {}}));
    check(
        json!({"type": ["object", "null"]}),
        json!({"type": "object", "properties": {}}),
    );
    check(
        json!({"properties": {"a": true}}),
        json!({"type": "object", "properties": {"a": true}}),
    );
}

#[test]
fn for_tool_is_an_open_object_when_the_schema_is_none() {
    let mut tangle = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    tangle["description"] = json!("D");
    for schema in [
        json!(null),
        json!({"type": "string"}),
        json!({"anyOf": [{"type": "string"}]}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": "https://a.example/x"}),
        json!({"anyOf": [{"properties": {"a": {"$ref": "#/anyOf/1"}}}, {"type": "object"}]}),
    ] {
        check(
            schema.clone(),
            json!({
                "type": "object", "properties": {}, "additionalProperties": true,
                "description": format!("The arguments must fit this JSON schema: {schema}"),
            }),
        );
    }
    let got = for_tool(&tangle)["description"].clone();
    assert_eq!(
        got,
        json!(format!(
            "D\n\nThe arguments must fit this JSON schema: {tangle}"
        ))
    );
}
