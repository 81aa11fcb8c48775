//! What holds for the admission of any text.

use std::sync::LazyLock;

use adjutant_tool::{Bound, ToolSpec, llm::CallResult, tool_fn};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

static BOUND: LazyLock<Bound> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "integer": {"type": "integer"}, "number": {"type": "number"}, "boolean": {"type": "boolean"},
            "string": {"type": "string"}, "null": {"type": "null"}, "either": {"type": ["integer", "boolean"]},
            "list": {"type": "array", "items": {"type": "integer"}},
            "branch": {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"integer": {"$ref": "#/$defs/n"}}}]},
            "child": {"$ref": "#"}
        },
        "$defs": {"n": {"type": "integer"}}
    });
    Bound::new(tool_fn(
        ToolSpec::new("t", "A test.", schema),
        |_, _| async { Ok(CallResult::ok("")) },
    ))
});

fn scalar() -> impl Strategy<Value = Value> {
    let texts = prop::sample::select(vec![
        "",
        " ",
        "1",
        "true",
        "false",
        "1.5",
        "9007199254740993",
        "[1, \"2\"]",
        "null",
    ]);
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1_000_i32..1_000).prop_map(|n| json!(f64::from(n) / 4.0)),
        prop::num::f64::ANY.prop_map(|n| json!(n)),
        prop::num::f64::NORMAL.prop_map(|n| Value::from(n.to_string())),
        texts.prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ]
}

/// Objects whose properties are those of the schema, well typed or not.
fn arguments() -> impl Strategy<Value = Value> {
    let keys = [
        "integer", "number", "boolean", "string", "null", "either", "list", "branch", "child",
        "unknown",
    ];
    let object = move |value: BoxedStrategy<Value>| {
        prop::collection::vec((prop::sample::select(keys.to_vec()), value), 0..5).prop_map(
            |pairs| {
                Value::Object(
                    pairs
                        .into_iter()
                        .map(|(k, v)| (k.to_owned(), v))
                        .collect::<Map<_, _>>(),
                )
            },
        )
    };
    let nested = scalar().prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner)
        ]
    });
    object(nested.boxed())
}

fn holds_what_is_promised(raw: &str) {
    let tool = &*BOUND;
    let Ok(admitted) = tool.admit(raw) else {
        return;
    };
    let schema = tool.schema().expect("a schema");
    assert_eq!(schema.validate(&admitted.value), Ok(()));
    assert_eq!(
        serde_json::from_str::<Value>(&admitted.text).expect("JSON"),
        admitted.value
    );
    assert!(admitted.changed || *admitted.text == *raw);
    let again = tool.admit(&*admitted.text).expect("what was admitted fits");
    assert_eq!(
        (again.changed, &again.value, &again.text),
        (false, &admitted.value, &admitted.text)
    );
}

proptest! {
    #[test]
    fn admit_keeps_its_promises_when_the_text_is_arbitrary(raw in any::<String>()) {
        holds_what_is_promised(&raw);
    }

    #[test]
    fn admit_keeps_its_promises_when_the_text_looks_like_json(
        raw in r#"[`{}\[\],:"\\ u0-9a-f.+\n\t\x01-]{0,40}"#
    ) {
        holds_what_is_promised(&raw);
        holds_what_is_promised(&format!("{{\"string\": \"{raw}\"}}"));
    }

    #[test]
    fn admit_keeps_its_promises_when_types_are_mixed(args in arguments()) {
        holds_what_is_promised(&args.to_string());
        holds_what_is_promised(&Value::from(args.to_string()).to_string());
    }

    #[test]
    fn admit_refuses_when_an_object_is_cut_anywhere(args in arguments(), cut in any::<prop::sample::Index>()) {
        let whole = args.to_string();
        let mut end = 1 + cut.index(whole.len() - 1);
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        prop_assume!(end > 0 && end < whole.len());
        let refusal = BOUND.admit(&whole[..end]).expect_err("cut text is never completed");
        prop_assert!(refusal.message.contains("the JSON is cut off"), "{}", refusal.message);
    }

    #[test]
    fn admit_keeps_fractions_exact_when_they_come_as_text(n in prop::num::f64::NORMAL) {
        let admitted = BOUND.admit(json!({"number": format!("{n:e}")}).to_string()).expect("a number");
        prop_assert_eq!(admitted.value["number"].as_f64(), Some(n));
        let back: Value = serde_json::from_str(&admitted.text).expect("JSON");
        prop_assert_eq!(back, admitted.value);
    }

    #[test]
    fn admit_keeps_integers_exact_when_they_have_64_bits(signed in any::<i64>(), unsigned in any::<u64>()) {
        for exact in [json!(signed), json!(unsigned)] {
            for raw in [format!(r#"{{"integer": {exact}}}"#), format!(r#"{{"integer": "{exact}"}}"#)] {
                let admitted = BOUND.admit(&*raw).expect("an integer");
                prop_assert_eq!(&admitted.value["integer"], &exact);
                prop_assert!(admitted.text.contains(&exact.to_string()));
            }
        }
    }
}
