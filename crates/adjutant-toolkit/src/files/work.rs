//! Shared by the three tools: file work on blocking threads, and the spec of a typed argument struct.

use adjutant_tool::{CallContext, Cancel, Replay, ToolError, ToolErrorKind, ToolHints, ToolSpec};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// The hints of a read-only, local tool.
pub(crate) const LOOKS: ToolHints = ToolHints {
    reads_only: Some(true),
    destructive: Some(false),
    idempotent: Some(true),
    open_world: Some(false),
};
/// The hints of a local tool with changes.
pub(crate) const CHANGES: ToolHints = ToolHints {
    reads_only: Some(false),
    destructive: Some(true),
    idempotent: None,
    open_world: Some(false),
};

/// The spec of a pure, read-only tool; its description is the doc comment of `Args`.
pub(crate) fn spec<Args: JsonSchema>(name: &str) -> ToolSpec {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<Args>()
        .to_value();
    let mut description = String::new();
    if let Value::Object(fields) = &mut schema {
        fields.remove("title");
        if let Some(Value::String(text)) = fields.remove("description") {
            description = text;
        }
    }
    ToolSpec {
        replay: Replay::Pure,
        hints: LOOKS,
        ..ToolSpec::new(name, description, schema)
    }
}

/// Runs `work` on a blocking thread.
///
/// Cancel: the work observes the call's stop request, and also stops when the future is dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &CallContext,
    work: impl FnOnce(&Cancel) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let guard = StopOnDrop(cx.cancel.child());
    let stop = guard.0.clone();
    let done = tokio::task::spawn_blocking(move || work(&stop)).await;
    done.unwrap_or_else(|error| {
        Err(ToolError::failed("the file work broke down").with_source(error))
    })
}

/// Fails after a stop request.
pub(crate) fn go_on(stop: &Cancel) -> Result<(), ToolError> {
    if stop.is_cancelled() {
        return Err(ToolError::new(
            ToolErrorKind::Cancelled,
            "stopped before it was finished",
        ));
    }
    Ok(())
}

struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
