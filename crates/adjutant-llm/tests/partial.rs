//! An answer is shown while it comes: the value only grows, and what is no JSON is not shown.

use std::sync::Arc;

use adjutant_llm::{BlockKind, CallId, Format, PartialAnswer, Shape, ToolName};
use proptest::prelude::*;
use serde_json::{Value, json};

fn partial(schema: Value) -> PartialAnswer {
    let shape = Shape::<Value>::from_format(Format::new("answer", schema)).expect("a schema");
    let mut partial = shape.partial();
    partial.begin();
    partial
}

/// The values that are shown while these pieces of a text come.
fn shown(schema: Value, pieces: &[&str]) -> Vec<Value> {
    let mut partial = partial(schema);
    partial.open(0, &BlockKind::Text);
    pieces
        .iter()
        .filter_map(|piece| partial.grow(0, piece).cloned())
        .collect()
}

#[test]
fn value_is_what_is_whole_when_a_text_comes_in_pieces() {
    let object = || json!({"type": "object"});
    let cases = [
        (
            vec!["{\"a\": 1", "2, \"b\": tr", "ue}"],
            vec![json!({}), json!({"a": 12}), json!({"a": 12, "b": true})],
        ),
        (
            vec!["{\"a\": \"x\\", "n\\u00e", "4\\ud83d", "\\ude00\"}"],
            vec![
                json!({"a": "x"}),
                json!({"a": "x\n"}),
                json!({"a": "x\nä"}),
                json!({"a": "x\nä😀"}),
            ],
        ),
        (
            vec!["```json\n", "{\"a\": [1, {\"b\": nul", "l}]}\n```"],
            vec![json!({"a": [1, {}]}), json!({"a": [1, {"b": null}]})],
        ),
        (vec!["It is {\"a\": 1}, I think."], vec![]),
        (
            vec!["{\"a\": 1, \"a\": ", "2, \"b\": 3}"],
            vec![json!({"a": 1})],
        ),
        (
            vec!["{\"a\": \"x\" oh", " \"b\": 1}"],
            vec![json!({"a": "x"})],
        ),
        (vec!["{\"a\": 1}", " {\"b\": 2}"], vec![json!({"a": 1})]),
    ];
    for (pieces, expect) in cases {
        assert_eq!(shown(object(), &pieces), expect, "{pieces:?}");
    }
    // What was wrapped for the model is shown without the wrapping.
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(
        shown(list.clone(), &["{\"value\"", ": [1, ", "2]}"]),
        [json!([1]), json!([1, 2])]
    );
    assert_eq!(shown(list, &["[1, ", "2]"]), [json!([1]), json!([1, 2])]);
}

#[test]
fn block_is_read_when_it_may_hold_the_answer() {
    let mut partial = partial(json!({"type": "object"}));
    let call = |name: &str| BlockKind::Call {
        id: CallId {
            turn: 1,
            attempt: 0,
            block: 1,
        },
        name: ToolName(Arc::from(name)),
    };
    partial.open(0, &BlockKind::Text);
    assert_eq!(partial.grow(0, "Let me look."), None);
    partial.open(1, &call("other"));
    assert_eq!(partial.grow(1, "{\"x\": 1}"), None);
    partial.open(2, &call("answer"));
    assert_eq!(partial.grow(2, "{\"a\": 1}"), Some(&json!({"a": 1})));
    // What was shown does not shrink, until the reply is void.
    partial.open(3, &BlockKind::Text);
    assert_eq!(partial.grow(3, "{}"), None);
    partial.begin();
    partial.open(0, &BlockKind::Text);
    assert_eq!(partial.grow(0, "{"), Some(&json!({})));
}

#[test]
fn depth_is_bounded_when_a_text_opens_for_ever() {
    let mut partial = partial(json!({"type": "object"}));
    partial.open(0, &BlockKind::Text);
    let shown = partial
        .grow(0, &format!("{{\"a\": {}", "[".repeat(100_000)))
        .expect("a beginning");
    assert!(shown.to_string().len() < 200, "{shown}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>()
            .prop_filter("JSON has no others", |it| it.is_finite())
            .prop_map(|it| json!(it)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let object = prop::collection::btree_map(".{0,4}", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|it| json!(it))
        ]
    })
}

/// True if a later value holds all of an earlier one.
fn grew(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::String(one), Value::String(two)) => two.starts_with(one.as_str()),
        (Value::Array(one), Value::Array(two)) => {
            one.len() <= two.len() && one.iter().zip(two).all(|(one, two)| grew(one, two))
        }
        (Value::Object(one), Value::Object(two)) => one
            .iter()
            .all(|(key, one)| two.get(key).is_some_and(|two| grew(one, two))),
        (one, two) => one == two,
    }
}

proptest! {
    #[test]
    fn value_only_grows_and_ends_whole_whatever_it_is(value in value(), escaped: bool, size in 1_usize..9) {
        let whole = json!({"a": value});
        let mut text = serde_json::to_string_pretty(&whole).expect("JSON");
        if escaped {
            let escape = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
            text = text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escape(c) }).collect();
        }
        let chars: Vec<char> = text.chars().collect();
        let pieces: Vec<String> = chars.chunks(size).map(|piece| piece.iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let shown = shown(json!({"type": "object"}), &pieces);
        prop_assert!(shown.windows(2).all(|pair| grew(&pair[0], &pair[1])), "{shown:?}");
        prop_assert_eq!(shown.last(), Some(&whole));
    }

    #[test]
    fn any_text_is_read_without_a_panic(pieces in prop::collection::vec("[\\[\\]{}\",:\\\\ua0-9e \n`ä😀]{0,12}", 0..8)) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let shown = shown(json!({"type": "object"}), &pieces);
        prop_assert!(shown.windows(2).all(|pair| grew(&pair[0], &pair[1])), "{shown:?}");
    }
}
