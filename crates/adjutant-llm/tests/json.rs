//! JSON of strangers: what names no key twice is read as ever, what does is refused with the place.

use adjutant_llm::json::{self, Misread};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// JSON as it is written, in which a key may stand twice.
#[derive(Debug, Clone)]
enum Written {
    Scalar(Value),
    List(Vec<Written>),
    Object(Vec<(String, Written)>),
}

impl Written {
    fn text(&self) -> String {
        match self {
            Written::Scalar(value) => value.to_string(),
            Written::List(items) => format!(
                "[{}]",
                items.iter().map(Self::text).collect::<Vec<_>>().join(" ,")
            ),
            Written::Object(members) => {
                let member = |(key, it): &(String, Self)| {
                    format!("{}:\n{}", Value::from(key.as_str()), it.text())
                };
                format!(
                    "{{{}}}",
                    members.iter().map(member).collect::<Vec<_>>().join(", ")
                )
            }
        }
    }

    /// Where a key appears twice; of several places, where the reader comes first.
    fn twice(&self, at: &str) -> Option<String> {
        match self {
            Written::Scalar(_) => None,
            Written::List(items) => items
                .iter()
                .enumerate()
                .find_map(|(n, it)| it.twice(&format!("{at}/{n}"))),
            Written::Object(members) => members.iter().enumerate().find_map(|(n, (key, it))| {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                it.twice(&at).or_else(|| {
                    members[..n]
                        .iter()
                        .any(|(known, _)| known == key)
                        .then_some(at)
                })
            }),
        }
    }
}

fn written() -> impl Strategy<Value = Written> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::ANY.prop_map(|n| json!(n)),
        ".{0,4}".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec!["a", "b", "", "a/b", "~", "\"\n", "ä", "0"]);
    scalar
        .prop_map(Written::Scalar)
        .prop_recursive(4, 32, 6, move |inner| {
            let member = (key.clone().prop_map(str::to_owned), inner.clone());
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Written::List),
                prop::collection::vec(member, 0..5).prop_map(Written::Object)
            ]
        })
}

proptest! {
    #[test]
    fn key_that_stands_twice_is_refused_with_its_path_and_all_else_is_read_as_ever(written in written()) {
        let text = written.text();
        for read in [json::from_str(&text), json::from_slice(text.as_bytes())] {
            match (read, written.twice("")) {
                (Ok(read), None) => prop_assert_eq!(read, serde_json::from_str::<Value>(&text).expect("JSON")),
                (Err(Misread::Twice { path }), Some(expect)) => prop_assert_eq!(path, expect),
                other => prop_assert!(false, "{other:?}: {text}"),
            }
        }
    }

    #[test]
    fn text_that_is_no_json_fails_as_ever(text in r#"[{}\[\],:"\\ truefals0-9.e+-]{0,24}"#) {
        match (json::from_str(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(read), Ok(expect)) => prop_assert_eq!(read, expect),
            (Err(Misread::NotJson(error)), Err(expect)) => prop_assert_eq!(error.to_string(), expect.to_string()),
            (Err(Misread::Twice { .. }), _) => {}
            other => prop_assert!(false, "{other:?}: {text}"),
        }
    }
}

#[test]
fn depth_and_paths_are_bounded() {
    for deep in ["[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        let error = json::from_str(&deep).expect_err("it is too deep");
        assert!(
            error.to_string().starts_with("recursion limit exceeded"),
            "{error}"
        );
    }
    let long = Value::from("k".repeat(5_000));
    let error =
        json::from_str(&format!("{{{long}:1,{long}:2}}")).expect_err("the key appears twice");
    assert_eq!(
        error.to_string(),
        format!("a key appears twice in an object: /{}…", "k".repeat(399))
    );
    let odd = json!({"$serde_json::private::RawValue": "[1]"});
    assert_eq!(
        json::from_str(&odd.to_string()).expect("a text is a text"),
        Value::Object(Map::from_iter([(
            "$serde_json::private::RawValue".to_owned(),
            "[1]".into()
        )]))
    );
}
