//! Combinators: what they change, what they leave as it is, and that a set stays the same list while nothing changes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use adjutant_tool::{
    Ask, Bound, CallContext, Composite, Identity, ToolError, ToolErrorKind, ToolSpec, Toolbox,
    Tools, Toolset,
    llm::{CallResult, ToolName, Warning, WarningKind},
    tool_fn, toolbox_fn,
};
use serde_json::json;

/// Tools that answer with their own names.
fn tools(name: &str, names: &[&'static str]) -> Tools {
    names.iter().fold(Tools::new(name), |tools, name| {
        tools.tool(named(ToolSpec::new(*name, "A test.", json!({}))))
    })
}

fn named(spec: ToolSpec) -> impl adjutant_tool::ErasedTool + 'static {
    let says = spec.name().to_string();
    tool_fn(spec, move |_, _| {
        let says = says.clone();
        async move { Ok(CallResult::ok(says)) }
    })
}

fn who(name: &str) -> Identity {
    Identity::root("t".into(), "id", name)
}

async fn resolve(toolbox: &impl Toolbox) -> Toolset {
    toolbox
        .resolve(&who("agent"))
        .await
        .expect("the toolbox resolves")
}

fn names(set: &Toolset) -> Vec<&str> {
    set.iter().map(|tool| tool.spec().name().as_str()).collect()
}

fn is_same(one: &Toolset, other: &Toolset) -> bool {
    Arc::ptr_eq(one.decls(), other.decls())
}

async fn says(set: &Toolset, name: &str) -> String {
    let tool = set.get(name).expect("the tool is in the set");
    tool.call(json!({}), CallContext::detached())
        .await
        .expect("it answers")
        .text()
}

/// The inner toolbox stays what it was, its name is kept, and resolving again gives the same list and schemas.
#[track_caller]
fn check_stable(first: &Toolset, second: &Toolset, inner: &Tools, before: &Toolset) {
    assert!(is_same(first, second), "the set is not made again");
    assert!(
        is_same(before, inner.toolset()),
        "the inner toolbox is as it was"
    );
    for (tool, own) in first.iter().zip(inner.toolset().iter()) {
        assert!(std::ptr::eq(
            tool.schema().expect("a schema"),
            own.schema().expect("a schema")
        ));
    }
}

#[tokio::test]
async fn prefix_names_tools_anew_when_it_is_resolved() {
    let inner = tools("box", &["a", "b"]);
    let before = inner.toolset().clone();
    let prefix = inner.clone().prefix("gh_");
    let set = resolve(&prefix).await;
    assert_eq!((names(&set), prefix.name()), (vec!["gh_a", "gh_b"], "box"));
    assert_eq!(set.decls()[0].name, "gh_a".into());
    assert_eq!(says(&set, "gh_a").await, "a");
    check_stable(&set, &resolve(&prefix).await, &inner, &before);
}

#[tokio::test]
async fn rename_swaps_names_when_both_are_given() {
    let inner = tools("box", &["a", "b", "c"]);
    let before = inner.toolset().clone();
    let rename = inner
        .clone()
        .rename([("a", "b"), ("b", "a"), ("gone", "here")]);
    let set = resolve(&rename).await;
    assert_eq!(
        (names(&set), says(&set, "b").await, says(&set, "a").await),
        (vec!["b", "a", "c"], "a".into(), "b".into())
    );
    let message = "toolbox \"box\" has no tool gone that could be called here";
    assert_eq!(
        set.warnings(),
        [Warning {
            kind: WarningKind::Degraded,
            message: message.into()
        }]
    );
    check_stable(&set, &resolve(&rename).await, &inner, &before);
}

#[tokio::test]
async fn rename_warns_when_a_new_name_is_taken() {
    let set = resolve(&tools("box", &["a", "b"]).rename([("b", "a")])).await;
    assert_eq!(
        (names(&set), says(&set, "a").await),
        (vec!["a"], "a".into())
    );
    let message = "a second tool is called a; only the first one is offered";
    assert_eq!(
        set.warnings(),
        [Warning {
            kind: WarningKind::ToolShadowed,
            message: message.into()
        }]
    );
}

#[tokio::test]
async fn filter_gives_each_agent_its_own_when_it_is_shared() {
    let inner = tools("box", &["read", "write"]);
    let filter = inner
        .clone()
        .filter(|who, spec| &*who.name == "editor" || spec.name().as_str() != "write");
    let (reader, editor) = (who("reader"), who("editor"));
    let mut sets = Vec::new();
    for who in [&reader, &editor, &reader, &editor] {
        sets.push(filter.resolve(who).await.expect("the toolbox resolves"));
    }
    assert_eq!(
        (names(&sets[0]), names(&sets[1])),
        (vec!["read"], vec!["read", "write"])
    );
    assert!(
        is_same(&sets[0], &sets[2]),
        "what one agent gets does not depend on the others"
    );
    assert!(
        is_same(&sets[1], inner.toolset()),
        "a filter that keeps all changes nothing"
    );
    assert!(is_same(&sets[1], &sets[3]));
}

#[tokio::test]
async fn filter_follows_when_its_word_changes() {
    let open = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&open);
    let filter = tools("box", &["a", "b"])
        .filter(move |_, spec| spec.name().as_str() == "a" || now.load(Ordering::Relaxed));
    let closed = resolve(&filter).await;
    open.store(true, Ordering::Relaxed);
    let opened = resolve(&filter).await;
    open.store(false, Ordering::Relaxed);
    assert_eq!(
        (names(&closed), names(&opened)),
        (vec!["a"], vec!["a", "b"])
    );
    assert!(is_same(&closed, &resolve(&filter).await));
}

#[tokio::test]
async fn composite_keeps_order_when_names_collide() {
    let (one, two) = (tools("one", &["a", "b"]), tools("two", &["b", "c"]));
    let composite = Composite::new("all")
        .toolbox(one)
        .toolbox(Arc::new(two) as Arc<dyn Toolbox>);
    let set = resolve(&composite).await;
    assert_eq!(
        (names(&set), composite.name()),
        (vec!["a", "b", "c"], "all")
    );
    assert_eq!(set.warnings().len(), 1);
    assert!(is_same(&set, &resolve(&composite).await));
    assert_eq!(
        format!("{composite:?}"),
        r#"Composite { name: "all", toolboxes: ["one", "two"] }"#
    );
}

#[tokio::test]
async fn composite_names_the_toolbox_when_one_fails() {
    let broken = toolbox_fn("broken", |_| async {
        Err(ToolError::new(ToolErrorKind::TimedOut, "no answer"))
    });
    let composite = Composite::new("all")
        .toolbox(tools("fine", &["a"]))
        .toolbox(broken);
    let error = composite
        .resolve(&who("agent"))
        .await
        .expect_err("one of them fails");
    let source = std::error::Error::source(&error)
        .expect("it has a cause")
        .to_string();
    assert_eq!(
        (error.kind, &*error.message),
        (
            ToolErrorKind::TimedOut,
            "toolbox \"broken\" could not be opened"
        )
    );
    assert_eq!(source, "no answer");
}

#[tokio::test]
async fn toolbox_fn_is_told_who_asks_when_it_is_resolved() {
    let own = toolbox_fn("own", |who: Identity| async move {
        let spec = ToolSpec::new(&*who.name, "A test.", json!({}));
        Ok(Toolset::new([Bound::new(named(spec))]))
    });
    assert_eq!(
        (names(&resolve(&own).await), own.name()),
        (vec!["agent"], "own")
    );
}

#[tokio::test]
async fn combinators_follow_when_the_inner_set_changes() {
    let sets = [
        tools("x", &["a"]).toolset().clone(),
        tools("x", &["b"]).toolset().clone(),
    ];
    let first = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&first);
    let source = toolbox_fn("source", move |_| {
        let set = sets[usize::from(!now.load(Ordering::Relaxed))].clone();
        async move { Ok(set) }
    });
    let chain = Composite::new("all").toolbox(source.time_out(Duration::from_secs(1)).prefix("p_"));
    let before = resolve(&chain).await;
    first.store(false, Ordering::Relaxed);
    let after = resolve(&chain).await;
    assert_eq!((names(&before), names(&after)), (vec!["p_a"], vec!["p_b"]));
}

#[tokio::test]
async fn confirm_asks_for_every_call_when_nothing_else_is_said() {
    let inner = tools("box", &["a"]);
    let before = inner.toolset().clone();
    let confirm = inner.clone().confirm();
    let set = resolve(&confirm).await;
    let ask = set.get("a").expect("the tool").approval(&json!({}));
    assert_eq!(ask, Some(Ask::approval("Run \"a\" with these arguments?")));
    assert_eq!(
        inner
            .toolset()
            .get("a")
            .expect("the tool")
            .approval(&json!({})),
        None
    );
    check_stable(&set, &resolve(&confirm).await, &inner, &before);
}

#[tokio::test]
async fn confirm_sees_inner_names_when_it_is_renamed_outside() {
    let confirm = tools("box", &["delete", "read"]).confirm_when(|spec, args| {
        (spec.name().as_str() == "delete" && args["all"] == true).then(|| Ask::approval("all?"))
    });
    let set = resolve(&confirm.prefix("fs_")).await;
    let asks = |name: &str, all: bool| {
        set.get(name)
            .expect("the tool")
            .approval(&json!({"all": all}))
    };
    assert_eq!(asks("fs_delete", true), Some(Ask::approval("all?")));
    assert_eq!(
        (asks("fs_delete", false), asks("fs_read", true)),
        (None, None)
    );
}

#[tokio::test]
async fn limits_only_tighten_when_a_tool_has_its_own() {
    let small = ToolSpec {
        max_output: Some(10),
        timeout: Some(Duration::from_secs(1)),
        ..ToolSpec::new("small", "A test.", json!({}))
    };
    let large = ToolSpec {
        max_output: Some(1_000),
        timeout: Some(Duration::from_secs(60)),
        ..ToolSpec::new("large", "A test.", json!({}))
    };
    let plain = ToolSpec::new("plain", "A test.", json!({}));
    let inner = [small, large, plain]
        .into_iter()
        .fold(Tools::new("box"), |tools, spec| tools.tool(named(spec)));
    let before = inner.toolset().clone();
    let limited = inner
        .clone()
        .limit_output(100)
        .time_out(Duration::from_secs(5));
    let set = resolve(&limited).await;
    let limits: Vec<_> = set
        .iter()
        .map(|it| (it.spec().max_output, it.spec().timeout))
        .collect();
    let secs = |secs| Some(Duration::from_secs(secs));
    assert_eq!(
        limits,
        [
            (Some(10), secs(1)),
            (Some(100), secs(5)),
            (Some(100), secs(5))
        ]
    );
    check_stable(&set, &resolve(&limited).await, &inner, &before);
}

#[test]
fn hiding_keeps_the_set_when_nothing_is_hidden() {
    let set = tools("box", &["a", "a", "b"]).toolset().clone();
    let hidden = set.hiding(&[ToolName::from("a"), ToolName::from("z")]);
    assert_eq!(
        (names(&hidden), hidden.warnings()),
        (vec!["b"], set.warnings())
    );
    assert_eq!(hidden.get("a").map(|tool| tool.spec().name()), None);
    assert!(is_same(&set, &set.hiding(&[ToolName::from("z")])));
    assert!(is_same(&set, &set.hiding(&[])));
}

#[test]
fn with_keeps_the_set_when_nothing_is_added() {
    let (one, two) = (tools("one", &["a"]), tools("two", &["b"]));
    assert_eq!(names(&one.toolset().with(two.toolset())), ["a", "b"]);
    assert!(is_same(
        one.toolset(),
        &one.toolset().with(&Toolset::default())
    ));
}
