//! Toolboxes and sets: order, names and warnings.

use adjutant_tool::{
    Bound, CallContext, Identity, IntoOutput, ToolSpec, Toolbox, Tools, Toolset,
    llm::{CallResult, Content, Warning, WarningKind},
    tool_fn,
};
use serde_json::{Value, json};

fn tools(name: &str, list: &[(&str, &'static str)]) -> Tools {
    list.iter().fold(Tools::new(name), |tools, (name, says)| {
        let says = *says;
        let spec = ToolSpec::new(*name, says, json!({"type": "object"}));
        tools.tool(tool_fn(spec, move |_, _| async move {
            Ok(CallResult::ok(says))
        }))
    })
}

fn shown(set: &Toolset) -> Vec<(String, String)> {
    set.decls()
        .iter()
        .map(|it| (it.name.to_string(), it.description.to_string()))
        .collect()
}

fn shadowed(name: &str) -> Warning {
    let message = format!("a second tool is called {name}; only the first one is offered");
    Warning {
        kind: WarningKind::ToolShadowed,
        message: message.into(),
    }
}

#[tokio::test]
async fn tools_warn_of_every_shadow_when_more_are_added() {
    let tools = tools(
        "box",
        &[
            ("a", "first"),
            ("a", "second"),
            ("b", "b"),
            ("a", "third"),
            ("c", "c"),
        ],
    );
    let set = tools
        .resolve(&Identity::root("t".into(), "id", "agent"))
        .await
        .expect("tools always resolve");
    let expect = [("a", "first"), ("b", "b"), ("c", "c")]
        .map(|(name, says)| (name.to_owned(), says.to_owned()));
    assert_eq!(shown(&set), expect);
    assert_eq!(set.warnings(), [shadowed("a"), shadowed("a")]);
    let result = set
        .get("a")
        .expect("a is there")
        .call(json!({}), CallContext::detached())
        .await;
    assert_eq!(result.expect("it answers").text(), "first");
}

#[test]
fn merge_keeps_warnings_when_sets_have_them() {
    let one = tools("one", &[("a", "one"), ("a", "other")]);
    let two = tools("two", &[("b", "two"), ("a", "two")]);
    let set = Toolset::merge([one.toolset(), two.toolset()]);
    let expect =
        [("a", "one"), ("b", "two")].map(|(name, says)| (name.to_owned(), says.to_owned()));
    assert_eq!(shown(&set), expect);
    assert_eq!(set.warnings(), [shadowed("a"), shadowed("a")]);
}

#[test]
fn tools_make_their_set_once_when_nothing_is_added() {
    let tools = tools("box", &[("a", "a")]);
    let decls = tools.toolset().decls().clone();
    assert!(std::sync::Arc::ptr_eq(&decls, tools.toolset().decls()));
    assert!(std::sync::Arc::ptr_eq(
        &decls,
        tools.clone().toolset().decls()
    ));
}

#[test]
fn schema_compiles_once_when_it_is_asked_for_twice() {
    let spec = ToolSpec::new("t", "A test.", json!({"type": "object"}));
    let bound = Bound::new(tool_fn(spec, |_, _| async { Ok(CallResult::ok("")) }));
    let (first, second) = (
        bound.schema().expect("a schema"),
        bound.schema().expect("a schema"),
    );
    assert!(std::ptr::eq(first, second));
}

#[test]
fn outputs_show_what_they_hold() {
    fn text(output: impl IntoOutput) -> String {
        output
            .into_output()
            .expect("the output can be shown")
            .text()
    }
    let shown = [
        text("a"),
        text(7_u8),
        text(()),
        text(None::<String>),
        text(Some(true)),
        text(json!({"a": [1]})),
        text(json!("plain")),
        text(Value::Null),
        text(Content::text("content")),
        text(vec![Content::text("one"), Content::text("two")]),
        text(Vec::<Content>::new()),
    ];
    let expect = [
        "a",
        "7",
        "done",
        "none",
        "true",
        "{\"a\":[1]}",
        "plain",
        "done",
        "content",
        "one\ntwo",
        "",
    ];
    assert_eq!(shown, expect);
}
