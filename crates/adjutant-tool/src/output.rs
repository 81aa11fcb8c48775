//! The values that a tool may return.

use adjutant_llm::{CallResult, Content, Status};
use serde::Serialize;
use serde_json::Value;

use crate::ToolError;

/// Something that becomes the result of a call.
///
/// Text, numbers, booleans, `()`, JSON values, [`Content`], options of these (`none`), [`CallResult`] and [`Json`]
/// implement it; `#[tool]` accepts any serializable output, and a `Result` with any error that implements `Display`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a tool",
    note = "return text, a number, a `CallResult`, or wrap a serialisable value in `Json`",
    note = "a function under `#[tool]` may return anything that implements `serde::Serialize`, or a `Result` of it \
            whose error implements `Display`"
)]
pub trait IntoOutput {
    /// The result of the call.
    ///
    /// # Errors
    /// `Failed` if the value cannot be converted.
    fn into_output(self) -> Result<CallResult, ToolError>;
}

/// A serializable value, sent to the model as JSON; text is sent unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<CallResult, ToolError> {
        let value = serde_json::to_value(&self.0).map_err(|error| {
            ToolError::failed("the output of the tool is not JSON").with_source(error)
        })?;
        Ok(match value {
            Value::String(text) => CallResult::ok(text),
            Value::Null => CallResult::ok("done"),
            other => CallResult::ok(other.to_string()),
        })
    }
}

impl IntoOutput for CallResult {
    fn into_output(self) -> Result<CallResult, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<CallResult, ToolError> {
        Ok(CallResult::new(Status::Ok, "done"))
    }
}

impl IntoOutput for Value {
    fn into_output(self) -> Result<CallResult, ToolError> {
        Json(self).into_output()
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<CallResult, ToolError> {
        vec![self].into_output()
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<CallResult, ToolError> {
        Ok(CallResult {
            content: self,
            ..CallResult::ok("")
        })
    }
}

impl<T: IntoOutput> IntoOutput for Option<T> {
    fn into_output(self) -> Result<CallResult, ToolError> {
        match self {
            Some(output) => output.into_output(),
            None => Ok(CallResult::ok("none")),
        }
    }
}

macro_rules! text_output {
    ($($type:ty),*) => { $(
        impl IntoOutput for $type {
            fn into_output(self) -> Result<CallResult, ToolError> {
                Ok(CallResult::ok(self.to_string()))
            }
        }
    )* };
}

impl IntoOutput for String {
    fn into_output(self) -> Result<CallResult, ToolError> {
        Ok(CallResult::ok(self))
    }
}

text_output!(
    &str,
    std::sync::Arc<str>,
    bool,
    char,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64
);
