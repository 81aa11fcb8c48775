//! Objects that fit a schema.

use adjutant_llm::Script;
use adjutant_runtime::{
    ErrorKind,
    prompt::{ObjectRequest, SessionsRequest},
};
use serde_json::{Value, json};

use crate::stage::{self, Over, kind, stage};

stage::both!(
    object_fits_its_schema_and_leaves_no_session,
    object_without_a_usable_schema_is_refused_unasked,
    object_that_never_fits_is_an_error,
    object_is_repaired_before_it_fails,
    object_of_a_session_is_what_the_agent_comes_to_with_its_tools,
);

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

async fn object_fits_its_schema_and_leaves_no_session(over: Over) {
    let stage = stage(over, [Script::new().text(r#"{"name": "Ada"}"#)]).await;
    let request = ObjectRequest::new("Who?", person())
        .name("person")
        .description("Somebody.");
    let object = stage.prompter.object(request).await.expect("an object");
    assert_eq!(object, json!({"name": "Ada"}));
    let requests = stage.model.requests();
    let [asked] = &requests[..] else {
        unreachable!("asked once")
    };
    assert_eq!(
        asked
            .tools
            .iter()
            .filter(|tool| ["add", "delete"].contains(&tool.name.as_str()))
            .count(),
        0
    );
    let page = stage
        .prompter
        .sessions(SessionsRequest::new())
        .await
        .expect("a page");
    assert_eq!(page.sessions, []);
}

async fn object_without_a_usable_schema_is_refused_unasked(over: Over) {
    let stage = stage(over, []).await;
    let schemas = [
        Value::Null,
        json!("object"),
        json!([]),
        json!({}),
        json!({"properties": {}}),
        json!({"type": 5}),
        json!({"type": "no such type"}),
        json!({"type": "object", "$ref": "http://127.0.0.1:1/schema.json"}),
        json!({"type": "object", "pattern": "("}),
    ];
    for schema in schemas {
        let asked = stage
            .prompter
            .object(ObjectRequest::new("Who?", schema.clone()))
            .await;
        assert_eq!(kind(asked), ErrorKind::Invalid, "{schema}");
    }
    let named = ObjectRequest::new("Who?", person()).name("not a name!");
    assert_eq!(kind(stage.prompter.object(named).await), ErrorKind::Invalid);
    assert_eq!(stage.model.requests().len(), 0);
}

async fn object_that_never_fits_is_an_error(over: Over) {
    let wrong = || Script::new().text(r#"{"name": 5}"#);
    let stage = stage(over, [wrong(), wrong(), wrong()]).await;
    assert_eq!(
        kind(
            stage
                .prompter
                .object(ObjectRequest::new("Who?", person()))
                .await
        ),
        ErrorKind::Agent
    );
    stage.model.assert_done();
}

async fn object_is_repaired_before_it_fails(over: Over) {
    let scripts = [
        Script::new().text("Ada."),
        Script::new().text(r#"{"name": "Ada"}"#),
    ];
    let stage = stage(over, scripts).await;
    let object = stage
        .prompter
        .object(ObjectRequest::new("Who?", person()))
        .await;
    assert_eq!(object.expect("an object"), json!({"name": "Ada"}));
}

async fn object_of_a_session_is_what_the_agent_comes_to_with_its_tools(over: Over) {
    let scripts = [
        Script::new().text("Hello."),
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Ada."),
        Script::new().text(r#"{"name": "Ada"}"#),
        Script::new().call("delete", json!({"what": "it"})),
        Script::new().text("Bye."),
    ];
    let stage = stage(over, scripts).await;
    stage.prompt("talk", "Hello?").await.expect("an answer");
    let asked = |text: &str| ObjectRequest::new(text, person()).session("talk");
    let object = stage.prompter.object(asked("Who?")).await;
    assert_eq!(object.expect("an object"), json!({"name": "Ada"}));
    let requests = stage.model.requests();
    assert_eq!(
        (
            requests.len(),
            requests[1].tools.len(),
            requests[1].entries.len()
        ),
        (4, 4, 3)
    );
    // A run that waits has no object, and the session is in nobody's way.
    assert_eq!(
        kind(stage.prompter.object(asked("Delete it.")).await),
        ErrorKind::Agent
    );
    assert_eq!(
        kind(stage.prompter.object(asked("Who?")).await),
        ErrorKind::Conflict
    );
    let prompt = stage
        .prompt("other", "Bye?")
        .await
        .expect("another session goes on");
    assert_eq!(prompt.text, "Bye.");
}
