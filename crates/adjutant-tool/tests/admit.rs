//! Admission: what is repaired, coerced and refused, as whole values.

use adjutant_tool::{
    Admitted, Bound, CallContext, ErasedTool, ToolError, ToolSpec,
    llm::{CallResult, Violation},
    tool_fn,
};
use serde_json::{Value, json};

fn bound(schema: Value) -> Bound {
    Bound::new(tool_fn(
        ToolSpec::new("t", "A test.", schema),
        |_, _| async { Ok(CallResult::ok("")) },
    ))
}

fn with(property: Value) -> Bound {
    bound(json!({"type": "object", "properties": {"x": property}, "required": ["x"]}))
}

fn admit(tool: &Bound, raw: &str) -> Value {
    tool.admit(raw).expect("the arguments fit").value
}

fn refuse(tool: &Bound, raw: &str) -> String {
    tool.admit(raw)
        .expect_err("the arguments do not fit")
        .message
}

/// Sends `{"x": sent}` to a tool whose `x` has this schema; `Null` for a refusal.
#[track_caller]
fn check(property: Value, sent: Value, expect: Value) {
    let got = match with(property).admit(json!({ "x": sent }).to_string()) {
        Ok(admitted) => admitted.value["x"].clone(),
        Err(_) => json!("refused"),
    };
    assert_eq!(got, expect);
}

#[test]
fn admit_keeps_the_text_when_it_fits() {
    let raw = "{ \"x\" : 1,\"y\":1.50 }";
    let expect = Admitted {
        value: json!({"x": 1, "y": 1.5}),
        text: raw.into(),
        changed: false,
    };
    assert_eq!(with(json!({"type": "integer"})).admit(raw), Ok(expect));
}

#[test]
fn admit_takes_nothing_for_no_arguments_when_the_text_is_blank() {
    for raw in ["", " \n", "null"] {
        let expect = Admitted {
            value: json!({}),
            text: "{}".into(),
            changed: true,
        };
        assert_eq!(
            bound(json!({"type": "object"})).admit(raw),
            Ok(expect),
            "{raw:?}"
        );
    }
}

#[test]
fn admit_repairs_when_nothing_can_be_lost() {
    let tool = with(json!({"type": "string"}));
    let cases = [
        ("{\"x\": \"a\nb\tc\u{1}\"}", "a\nb\tc\u{1}"),
        (r#"{"x": "C:\dir\users \u12"}"#, "C:\\dir\\users \\u12"),
        (r#"{"x": "it\'s"}"#, "it's"),
        ("{\"x\": \"end\\\n\"}", "end\\\n"),
        ("```json\n{\"x\": \"fenced\"}\n```", "fenced"),
        ("```{\"x\": \"fenced\"}```", "fenced"),
        (r#"{"x": "a,}", }"#, "a,}"),
        (r#"{"x": "ok", "list": [1, 2 , ], }"#, "ok"),
        (r#""{\"x\": \"twice\"}""#, "twice"),
    ];
    for (raw, expect) in cases {
        let admitted = tool.admit(raw).expect("the damage is harmless");
        assert_eq!(
            (&admitted.value["x"], admitted.changed),
            (&json!(expect), true),
            "{raw}"
        );
        assert_eq!(
            serde_json::from_str::<Value>(&admitted.text).expect("JSON"),
            admitted.value
        );
    }
}

#[test]
fn admit_refuses_when_the_text_is_cut_off() {
    let tool = bound(json!({}));
    for raw in [
        r#"{"x": "a"#,
        r#"{"x": 1"#,
        r#"{"x": [1,"#,
        "{\"x\": \"raw\n",
        "{",
        "```json\n{\"x\": 1",
        r#"{"x": "\"#,
    ] {
        let refusal = tool.admit(raw).expect_err("cut text is never completed");
        assert!(
            refusal.message.contains("(root): the JSON is cut off"),
            "{}",
            refusal.message
        );
        assert_eq!(refusal.violations, []);
    }
}

#[test]
fn admit_refuses_when_a_key_stands_twice() {
    let inner = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool =
        bound(json!({"properties": {"list": {"type": "array", "items": inner}, "x": inner}}));
    let cases = [
        (r#"{"path": "a.txt", "path": "b.txt"}"#, "/path"),
        (r#"{"path": "a.txt", "path": "a.txt"}"#, "/path"),
        (r#"{"path": 1, "\u0070ath": 2}"#, "/path"),
        (
            r#"{"list": [{}, {"path": "a", "deep": {"a/b": 1, "a/b": 2}}]}"#,
            "/list/1/deep/a~1b",
        ),
        (r#"{"path": "a", "path": "b", }"#, "/path"),
        ("```json\n{\"path\": \"a\", \"path\": \"b\"}\n```", "/path"),
        (r#""{\"path\": 1, \"path\": 2}""#, "/path"),
    ];
    for (raw, path) in cases {
        let refusal = tool.admit(raw).expect_err("nobody knows what is meant");
        let paths: Vec<_> = refusal
            .violations
            .iter()
            .map(|it| it.path.as_str())
            .collect();
        assert_eq!(paths, [path], "{raw}");
        assert!(
            refusal
                .message
                .contains(&format!("  - {path}: the key appears twice")),
            "{}",
            refusal.message
        );
    }
    // What would have to be read out of a text is not read, so it is of a wrong type.
    for raw in [
        r#"{"x": "{\"path\": \"a\", \"path\": \"b\"}"}"#,
        r#"{"list": "[{\"a\": 1, \"a\": 2}]"}"#,
    ] {
        tool.admit(raw).expect_err("nobody knows what is meant");
    }
}

#[test]
fn admit_refuses_when_the_text_is_no_json() {
    let message = "invalid arguments for tool \"t\":\n  - (root): not JSON: expected value at line 1 column 7\n\
                   received: {\"x\": oops}";
    assert_eq!(refuse(&bound(json!({})), "{\"x\": oops}"), message);
    let half = refuse(&bound(json!({})), r#"{"x": "\ud800"}"#);
    assert!(half.contains("hex escape"), "{half}");
    assert!(refuse(&bound(json!({})), r#"{"x": 1} {"x": 2}"#).contains("trailing characters"));
}

#[test]
fn admit_refuses_when_a_limit_is_passed() {
    let tool = bound(json!({}));
    let deep = format!("{{\"x\": {}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(refuse(&tool, &deep).contains("nested deeper than 127 levels"));
    let big = refuse(
        &tool,
        &format!("{{\"x\": \"{}\"}}", "a".repeat(4 * 1024 * 1024)),
    );
    assert!(
        big.contains("4194313 bytes are too many: at most 4194304 are taken") && big.len() < 3_000
    );
}

#[test]
fn admit_refuses_when_there_is_no_object() {
    let violation = |message: &str| {
        vec![Violation {
            path: String::new(),
            message: message.to_owned(),
        }]
    };
    let refusal = bound(json!({}))
        .admit("[1]")
        .expect_err("a list is no object");
    assert_eq!(refusal.violations, violation("want object, but got array"));
    let refusal = bound(json!({"type": "object"}))
        .admit("\"a\"")
        .expect_err("a text is no object");
    assert_eq!(refusal.violations, violation("want object, but got string"));
    assert_eq!(admit(&bound(json!({"type": "array"})), "[1]"), json!([1]));
    assert_eq!(
        admit(&bound(json!({"type": ["null", "object"]})), "null"),
        json!(null)
    );
}

#[test]
fn admit_coerces_to_numbers_when_nothing_is_lost() {
    let (integer, number) = (json!({"type": "integer"}), json!({"type": "number"}));
    check(integer.clone(), json!(" 42 "), json!(42));
    check(
        integer.clone(),
        json!("-9223372036854775808"),
        json!(i64::MIN),
    );
    check(
        integer.clone(),
        json!("9007199254740993"),
        json!(9_007_199_254_740_993_i64),
    );
    check(
        integer.clone(),
        json!("9007199254740993.0"),
        json!(9_007_199_254_740_993_i64),
    );
    check(
        integer.clone(),
        json!("18446744073709551615"),
        json!(u64::MAX),
    );
    check(
        integer.clone(),
        json!("18446744073709551616"),
        json!("refused"),
    );
    check(integer.clone(), json!("1e3"), json!(1000));
    check(integer.clone(), json!(5.0), json!(5));
    check(integer.clone(), json!(true), json!(1));
    check(integer.clone(), json!(false), json!(0));
    check(number.clone(), json!("1.5"), json!(1.5));
    check(number.clone(), json!("7"), json!(7));
    check(number.clone(), json!(2.0), json!(2.0));
    check(number.clone(), json!(true), json!(1));
    for wrong in [
        json!("1.5"),
        json!("five"),
        json!(""),
        json!(" "),
        json!(null),
        json!([1]),
        json!(1.5),
        json!("0x10"),
    ] {
        check(integer.clone(), wrong, json!("refused"));
    }
    for wrong in [
        json!("inf"),
        json!("NaN"),
        json!(""),
        json!("1e999"),
        json!(null),
        json!({}),
    ] {
        check(number.clone(), wrong, json!("refused"));
    }
}

#[test]
fn admit_coerces_to_booleans_texts_and_nulls_when_the_table_says_so() {
    let (boolean, string, null) = (
        json!({"type": "boolean"}),
        json!({"type": "string"}),
        json!({"type": "null"}),
    );
    for (sent, expect) in [
        (json!("true"), true),
        (json!("false"), false),
        (json!(1), true),
        (json!(0), false),
    ] {
        check(boolean.clone(), sent, json!(expect));
    }
    for wrong in [json!("yes"), json!(""), json!(2), json!(null), json!([])] {
        check(boolean.clone(), wrong, json!("refused"));
    }
    check(
        string.clone(),
        json!(9_007_199_254_740_993_u64),
        json!("9007199254740993"),
    );
    check(string.clone(), json!(1.5), json!("1.5"));
    check(string.clone(), json!(true), json!("true"));
    for wrong in [json!(null), json!([]), json!({})] {
        check(string.clone(), wrong, json!("refused"));
    }
    for blank in [json!(""), json!(0), json!(false)] {
        check(null.clone(), blank.clone(), json!(null));
        check(json!({"type": ["null", "array"]}), blank, json!("refused"));
    }
    check(null, json!("null"), json!("refused"));
}

#[test]
fn admit_coerces_to_the_first_type_when_several_are_allowed() {
    let types = json!({"type": ["boolean", "integer"]});
    check(types.clone(), json!("7"), json!(7));
    check(types.clone(), json!("true"), json!(true));
    check(types, json!(1), json!(1));
    check(
        json!({"type": ["integer", "string"]}),
        json!("7"),
        json!("7"),
    );
}

#[test]
fn admit_follows_the_first_branch_that_can_fit() {
    for keyword in ["anyOf", "oneOf"] {
        let branches = |list: Value| json!({ keyword: list });
        check(
            branches(json!([{"type": "integer", "minimum": 10}, {"type": "boolean"}])),
            json!("1"),
            json!("refused"),
        );
        check(
            branches(json!([{"type": "integer", "minimum": 10}, {"type": "boolean"}])),
            json!("12"),
            json!(12),
        );
        check(
            branches(json!([{"type": "integer", "minimum": 10}, {"type": "boolean"}])),
            json!(1),
            json!(true),
        );
        check(
            branches(json!([{"type": "integer"}, {"type": "string"}])),
            json!("12"),
            json!("12"),
        );
        let nested =
            json!([{"type": "null"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]);
        check(branches(nested.clone()), json!({"n": "3"}), json!({"n": 3}));
        check(branches(nested), json!({"n": 3.0}), json!({"n": 3}));
    }
    check(
        json!({"allOf": [{"type": "integer"}, {"minimum": 3}]}),
        json!("3"),
        json!(3),
    );
}

#[test]
fn admit_follows_the_schema_when_values_are_nested() {
    let tool = bound(json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "prefixItems": [{"type": "boolean"}], "items": {"$ref": "#/$defs/a~1b"}},
            "tuple": {"type": "array", "items": {"type": "integer"}},
        },
        "additionalProperties": {"type": "integer"},
        "$defs": {"a/b": {"type": "object", "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}}
    }));
    let raw =
        json!({"list": ["true", {"n": "1"}, {"n": null}], "tuple": "[1, \"2\"]", "other": "3"})
            .to_string();
    assert_eq!(
        admit(&tool, &raw),
        json!({"list": [true, {"n": 1}, {"n": null}], "tuple": [1, 2], "other": 3})
    );
}

#[test]
fn admit_drops_null_when_the_property_need_not_be_there() {
    let tool = bound(json!({
        "type": "object", "required": ["must"], "additionalProperties": false,
        "properties": {
            "must": {"type": "integer"}, "may": {"$ref": "#/definitions/text"}, "choice": {"enum": ["a"]},
            "null": {"type": ["integer", "null"]}, "either": {"oneOf": [{"type": "integer"}, {"const": "x"}]}
        },
        "definitions": {"text": {"type": "string"}}
    }));
    let raw = r#"{"must": 1, "may": null, "choice": null, "null": null, "either": null}"#;
    assert_eq!(admit(&tool, raw), json!({"must": 1, "null": null}));
    assert!(refuse(&tool, r#"{"must": null}"#).contains("  - /must: "));
}

#[test]
fn admit_ends_when_a_schema_goes_in_circles() {
    let tool = bound(json!({
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}},
        "allOf": [{"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/loop"}],
        "$defs": {"loop": {"properties": {"child": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}
    }));
    let mut value = json!({"n": "1"});
    for _ in 0..4 {
        value = json!({"child": value, "n": "1"});
    }
    let n = |value: &Value| value.pointer("/child/child/child/child/n").cloned();
    assert_eq!(n(&admit(&tool, &value.to_string())), Some(json!(1)));
    let endless =
        bound(json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}));
    // The validator notices the circle; what matters is that it ends.
    let _ = endless.admit(r#"{"x": "1"}"#);
}

#[test]
fn admit_ends_when_branches_stand_in_branches() {
    let branch = |own: &str| {
        let properties = json!({own: {"type": "integer"}, "child": {"$ref": "#/$defs/node"}});
        json!({"type": "object", "properties": properties, "required": [own]})
    };
    let tool = with(json!({"$ref": "#/$defs/node"}));
    assert!(
        tool.admit(r#"{"x": {}}"#).is_err(),
        "the reference points at nothing"
    );
    let node = json!({"anyOf": [branch("a"), branch("b")]});
    let tool =
        bound(json!({"properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}));
    let nested = |depth: usize, leaf: Value| {
        (0..depth).fold(leaf, |child, _| json!({"b": "1", "child": child}))
    };
    let raw = json!({"x": nested(3, json!({"b": "2"}))}).to_string();
    assert_eq!(
        admit(&tool, &raw).pointer("/x/child/child/child/b"),
        Some(&json!(2))
    );
    let raw = json!({"x": nested(9, json!({"b": "2"}))}).to_string();
    assert!(refuse(&tool, &raw).contains("want integer, but got string"));
}

#[test]
fn admit_names_every_path_when_several_fail() {
    let tool = bound(json!({
        "type": "object", "required": ["x"], "properties": {"y": {"type": "array", "items": {"type": "integer"}}}
    }));
    let message = "invalid arguments for tool \"t\":\n  - (root): missing properties 'x'\n  - /y/0: want integer, but got \
                   string\nreceived: {\"y\":[\"a\"]}";
    let refusal = tool
        .admit(r#"{"y":["a"]}"#)
        .expect_err("two places are wrong");
    assert_eq!(refusal.message, message);
    let paths: Vec<_> = refusal
        .violations
        .iter()
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(paths, ["", "/y/0"]);
}

#[test]
fn admit_bounds_what_it_says_when_much_is_wrong() {
    let tool = with(json!({"type": "array", "items": {"type": "integer"}}));
    let raw = json!({"x": vec!["é"; 3_000]}).to_string();
    let refusal = tool.admit(raw).expect_err("every item is wrong");
    assert_eq!(refusal.violations.len(), 3_000);
    assert!(refusal.message.contains("  - /x/19: ") && !refusal.message.contains("  - /x/20: "));
    assert!(
        refusal.message.contains("  - and 2980 more\nreceived: {"),
        "{}",
        refusal.message
    );
    assert!(refusal.message.ends_with("… (15007 bytes in all)") && refusal.message.len() < 5_000);
}

#[test]
fn admit_refuses_when_the_schema_is_broken() {
    let refusal = bound(json!({"type": 7}))
        .admit("{}")
        .expect_err("7 is no type");
    assert!(
        refusal
            .message
            .starts_with("tool \"t\" cannot be called, its schema is broken: not a JSON schema")
    );
    assert_eq!(refusal.violations, []);
}

struct Renames;

#[async_trait::async_trait]
impl ErasedTool for Renames {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"new": {"type": "integer"}}, "required": ["new"]});
        ToolSpec::new("renames", "Renames.", schema)
    }

    fn rewrite(&self, mut args: Value) -> Value {
        if let Some(old) = args.as_object_mut().and_then(|map| map.shift_remove("old")) {
            args["new"] = old;
        }
        args
    }

    async fn call(&self, args: Value, _: CallContext) -> Result<CallResult, ToolError> {
        Ok(CallResult::ok(args.to_string()))
    }
}

#[test]
fn admit_rewrites_before_it_coerces() {
    let tool = Bound::new(Renames);
    let admitted = tool
        .admit(r#"{"old": "1"}"#)
        .expect("the rewrite makes it fit");
    assert_eq!(
        admitted,
        Admitted {
            value: json!({"new": 1}),
            text: r#"{"new":1}"#.into(),
            changed: true
        }
    );
    let raw = r#"{ "new": 1 }"#;
    let expect = Admitted {
        value: json!({"new": 1}),
        text: raw.into(),
        changed: false,
    };
    assert_eq!(tool.admit(raw), Ok(expect));
}
