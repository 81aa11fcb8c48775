//! What `#[tool]` accepts, and what it makes of it.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_tool::{
    Approval, Bound, CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolHints,
    llm::CallResult, schemars, serde, tool,
};
use serde_json::{Value, json};

/// Calls a tool as a run does: admission, then the call.
async fn call(tool: impl ErasedTool + 'static, raw: &str) -> Result<CallResult, ToolError> {
    let bound = Bound::new(tool);
    let admitted = bound.admit(raw).expect("the arguments fit");
    bound.call(admitted.value, CallContext::detached()).await
}

async fn text(tool: impl ErasedTool + 'static, raw: &str) -> String {
    call(tool, raw).await.expect("the tool succeeds").text()
}

/// Adds two whole numbers.
///
/// Exactly.
#[tool]
fn add(
    /// The first
    /// number.
    a: i64,
    b: i64,
) -> i64 {
    a + b
}

#[tokio::test]
async fn tool_says_what_its_function_says() {
    let spec = ErasedTool::spec(&add);
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"description": "The first\nnumber.", "type": "integer", "format": "int64"},
            "b": {"type": "integer", "format": "int64"}
        },
        "required": ["a", "b"]
    });
    assert_eq!(*spec.decl.schema, schema);
    assert_eq!(
        (spec.name().as_str(), &*spec.decl.description),
        ("add", "Adds two whole numbers.\n\nExactly.")
    );
    assert_eq!(
        (
            spec.title.clone(),
            spec.replay,
            spec.sequential,
            spec.timeout
        ),
        (None, Replay::Once, false, None)
    );
    assert_eq!(
        (spec.approval, spec.max_output, spec.external),
        (Approval::Never, None, false)
    );
    assert_eq!(
        (spec.hints, spec.output_schema.clone()),
        (ToolHints::default(), None)
    );
    assert!(Arc::ptr_eq(
        &spec.decl.schema,
        &ErasedTool::spec(&add).decl.schema
    ));
    assert_eq!(
        text(add, r#"{"a": 9007199254740993, "b": "1"}"#).await,
        "9007199254740994"
    );
    assert_eq!((add::run(1, 2), format!("{add:?}").as_str()), (3, "add"));
}

fn old_names(mut args: Value) -> Value {
    if let Some(query) = args.as_object_mut().and_then(|map| map.shift_remove("q")) {
        args["query"] = query;
    }
    args
}

/// Searches.
#[tool(
    name = "web-search",
    title = "Search the web",
    replay = "pure",
    sequential,
    approval,
    timeout_secs = 30,
    max_output = 4_000,
    rewrite = old_names,
    deny_unknown_fields,
    reads_only,
    destructive = false,
    open_world = true
)]
async fn search(query: String, limit: Option<u32>, #[serde(default)] tags: Vec<String>) -> String {
    format!("{query} {limit:?} {tags:?}")
}

#[tokio::test]
async fn tool_takes_every_option() {
    let spec = ErasedTool::spec(&search);
    assert_eq!(
        (spec.name().as_str(), spec.title.as_deref()),
        ("web-search", Some("Search the web"))
    );
    assert_eq!(
        (spec.replay, spec.sequential, spec.timeout),
        (Replay::Pure, true, Some(Duration::from_secs(30)))
    );
    assert_eq!(
        (spec.approval, spec.max_output, spec.external),
        (Approval::Always, Some(4_000), false)
    );
    let hints = ToolHints {
        reads_only: Some(true),
        destructive: Some(false),
        idempotent: None,
        open_world: Some(true),
    };
    assert_eq!((spec.hints, spec.output_schema), (hints, None));
    assert_eq!(
        (
            &spec.decl.schema["required"],
            &spec.decl.schema["additionalProperties"]
        ),
        (&json!(["query"]), &json!(false))
    );
    assert_eq!(
        text(search, r#"{"q": "x", "limit": null}"#).await,
        "x None []"
    );
    assert_eq!(
        text(search, r#"{"query": "x", "limit": 3, "tags": ["a"]}"#).await,
        r#"x Some(3) ["a"]"#
    );
    assert!(
        Bound::new(search)
            .admit(r#"{"query": "x", "more": 1}"#)
            .is_err()
    );
}

/// Pings.
#[tool]
fn ping() {}

/// Has every replay class but the default.
#[tool(replay = "idempotent")]
fn again() {}

/// Is entered again.
#[tool(replay = "resumable")]
fn resumed() {}

#[tokio::test]
async fn tool_shows_an_object_when_nothing_is_asked() {
    assert_eq!(
        *ErasedTool::spec(&ping).decl.schema,
        json!({"type": "object", "properties": {}})
    );
    assert_eq!(text(ping, "").await, "done");
    assert_eq!(
        (
            ErasedTool::spec(&again).replay,
            ErasedTool::spec(&resumed).replay
        ),
        (Replay::Idempotent, Replay::Resumable)
    );
}

#[derive(Default)]
pub(crate) struct Db(Mutex<Vec<String>>);

/// Notes a line.
#[tool]
pub(crate) async fn note(
    cx: CallContext,
    /// The line.
    mut line: String,
    #[state] db: Arc<Db>,
    count: Option<u8>,
    #[state] mark: String,
) -> usize {
    line.push_str(&mark.repeat(count.unwrap_or(1).into()));
    line.push_str(&cx.who.name);
    let mut lines = db.0.lock().expect("nobody panicked");
    lines.push(line);
    lines.len()
}

#[tokio::test]
async fn tool_takes_state_and_context_when_mixed_with_arguments() {
    let db = Arc::new(Db::default());
    let tool = note(Arc::clone(&db), "!".to_owned());
    let schema = ErasedTool::spec(&tool).decl.schema;
    let keys: Vec<_> = schema["properties"]
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        (keys, &schema["required"]),
        (vec!["line", "count"], &json!(["line"]))
    );
    assert_eq!(
        text(tool.clone(), r#"{"line": "a", "count": 2}"#).await,
        "1"
    );
    assert_eq!(text(tool, r#"{"line": "b"}"#).await, "2");
    assert_eq!(
        *db.0.lock().expect("nobody panicked"),
        ["a!!detached", "b!detached"]
    );
    let direct = note::run(
        CallContext::detached(),
        "c".into(),
        Arc::clone(&db),
        None,
        "?".into(),
    )
    .await;
    assert_eq!(direct, 3);
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(crate = "adjutant_tool::serde", rename_all = "snake_case")]
#[schemars(crate = "adjutant_tool::schemars")]
enum Unit {
    Metre,
    /// Old.
    Foot,
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(crate = "adjutant_tool::serde")]
#[schemars(crate = "adjutant_tool::schemars")]
struct Length {
    value: f64,
    unit: Unit,
}

/// Doubles a length.
#[tool]
fn double(length: Length, r#type: Option<Length>) -> Length {
    Length {
        value: length.value * 2.0 + r#type.map_or(0.0, |it| it.value),
        unit: length.unit,
    }
}

#[tokio::test]
async fn tool_takes_and_shows_types_of_the_user() {
    let length = text(
        double,
        r#"{"length": {"value": "1.25", "unit": "foot"}, "type": {"value": 1, "unit": "metre"}}"#,
    );
    assert_eq!(length.await, r#"{"value":3.5,"unit":"foot"}"#);
    let schema = ErasedTool::spec(&double).decl.schema;
    assert!(
        schema.get("$defs").is_none()
            && schema.get("$schema").is_none()
            && schema.get("title").is_none()
    );
    assert_eq!(
        schema["properties"]["length"]["required"],
        json!(["value", "unit"])
    );
}

type Aliased = Result<Vec<u8>, Shown>;

#[derive(Debug)]
struct Shown;

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("only shown")
    }
}

/// Fails with a tool's own error.
#[tool]
fn denied() -> Result<Length, ToolError> {
    Err(ToolError::new(ToolErrorKind::Denied, "no"))
}

/// Fails with an error.
#[tool]
async fn broken() -> std::io::Result<()> {
    Err(std::io::Error::other("disk"))
}

/// Fails with something that can be shown.
#[tool]
fn shown(fail: bool) -> Aliased {
    if fail { Err(Shown) } else { Ok(vec![1, 2]) }
}

/// Fails with a text.
#[tool]
fn worded() -> Result<CallResult, String> {
    Err("words".into())
}

#[tokio::test]
async fn tool_fails_as_its_function_fails() {
    let error = call(denied, "").await.expect_err("it is denied");
    assert_eq!((error.kind, &*error.message), (ToolErrorKind::Denied, "no"));
    let error = call(broken, "").await.expect_err("the disk fails");
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(
        (error.kind, &*error.message, source),
        (ToolErrorKind::Failed, "disk", Some("disk".to_owned()))
    );
    let error = call(shown, r#"{"fail": true}"#)
        .await
        .expect_err("it fails");
    assert_eq!(
        (error.kind, &*error.message),
        (ToolErrorKind::Failed, "only shown")
    );
    assert_eq!(text(shown, r#"{"fail": false}"#).await, "[1,2]");
    assert_eq!(
        call(worded, "").await.expect_err("it fails").to_string(),
        "words"
    );
}

/// Answers with details.
#[tool]
fn detailed() -> CallResult {
    CallResult {
        details: json!({"n": 1}),
        ..CallResult::ok("text")
    }
}

/// Finds nothing.
#[tool]
fn nothing() -> Option<&'static str> {
    None
}

/// Counts with serde only.
#[tool]
fn pair() -> Result<(u8, Option<Length>), ToolError> {
    Ok((1, None))
}

#[tokio::test]
async fn tool_shows_every_kind_of_output() {
    assert_eq!(
        call(detailed, "").await.expect("it answers"),
        CallResult {
            details: json!({"n": 1}),
            ..CallResult::ok("text")
        }
    );
    assert_eq!(text(nothing, "").await, "none");
    assert_eq!(text(pair, "").await, "[1,null]");
}

mod nested {
    use super::tool;

    /// Is seen by the module above.
    #[tool]
    #[cfg(test)]
    pub(super) fn inner() -> u8 {
        7
    }

    /// Is not built.
    #[tool]
    #[cfg(not(test))]
    pub(super) fn inner() -> Missing {
        Missing
    }
}

#[tokio::test]
async fn tool_keeps_visibility_and_conditions() {
    assert_eq!(
        (text(nested::inner, "").await.as_str(), nested::inner::run()),
        ("7", 7)
    );
}
