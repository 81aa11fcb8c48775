//! What is stored reads back, tolerates new fields and refuses new variants.

use std::fmt::Debug;

use adjutant_tool::{
    Identity, Progress, Replay,
    llm::{CallId, Content},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T, shape: Value) {
    assert_eq!(
        serde_json::to_value(&value).expect("it can be stored"),
        shape
    );
    assert_eq!(
        serde_json::from_value::<T>(shape.clone()).expect("it reads back"),
        value
    );
    if let Value::Object(mut map) = shape {
        map.insert("field_of_a_later_version".into(), json!(1));
        assert_eq!(
            serde_json::from_value::<T>(Value::Object(map)).expect("a new field is tolerated"),
            value
        );
    }
}

#[test]
fn identity_reads_back_when_it_is_stored() {
    let root = Identity::root("thread".into(), "id", "scout");
    let plain = json!({
        "thread": "thread", "agent_id": "id", "name": "scout", "config_name": "scout", "path": "scout", "depth": 0,
        "prefix": ""
    });
    check(root.clone(), plain);
    let mut child = root.within(CallId {
        turn: 1,
        attempt: 2,
        block: 3,
    });
    child.parent = Some("parent".into());
    child.task = Some("look".into());
    child.depth = 1;
    child.prefix = "↳".into();
    let full = json!({
        "thread": "thread", "agent_id": "id", "name": "scout", "config_name": "scout", "path": "scout",
        "parent": "parent", "depth": 1, "task": "look", "call": "c1_2_3", "prefix": "↳"
    });
    check(child, full);
}

#[test]
fn replay_reads_back_when_it_is_stored() {
    check(Replay::Pure, json!("pure"));
    check(Replay::Idempotent, json!("idempotent"));
    check(Replay::Once, json!("once"));
    check(Replay::Resumable, json!("resumable"));
    let error = serde_json::from_value::<Replay>(json!("sometimes")).expect_err("no such class");
    assert_eq!(
        error.to_string(),
        "unknown variant `sometimes`, expected one of `pure`, `idempotent`, `once`, `resumable`"
    );
}

#[test]
fn progress_reads_back_when_it_is_stored() {
    check(Progress::default(), json!({"content": []}));
    check(
        Progress::text("half"),
        json!({"content": [{"type": "text", "text": "half"}]}),
    );
    let details = Progress {
        content: vec![Content::text("half")],
        details: json!({"done": 0.5}),
    };
    check(
        details,
        json!({"content": [{"type": "text", "text": "half"}], "details": {"done": 0.5}}),
    );
    let later = json!({"content": [{"type": "smell"}]});
    let error = serde_json::from_value::<Progress>(later).expect_err("no such content");
    assert!(
        error.to_string().starts_with("unknown variant `smell`"),
        "{error}"
    );
}
