//! What a tool may return.

use adjutant_llm::{CallResult, Status};
use serde::Serialize;

use crate::ToolError;

/// Something that becomes the result of a call.
///
/// Text, numbers, booleans, `()`, [`CallResult`] and [`Json`] do; `#[tool]` takes any serialisable output.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a tool",
    note = "return text, a number, a `CallResult`, or wrap a serialisable value in `Json`"
)]
pub trait IntoOutput {
    /// The result of the call.
    ///
    /// # Errors
    /// `Failed` if the value cannot be shown.
    fn into_output(self) -> Result<CallResult, ToolError>;
}

/// A serialisable value, shown to the model as JSON; text is shown as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<CallResult, ToolError> {
        let value = serde_json::to_value(&self.0)
            .map_err(|error| ToolError::failed("the output of the tool is not JSON").with_source(error))?;
        Ok(match value {
            serde_json::Value::String(text) => CallResult::ok(text),
            serde_json::Value::Null => CallResult::ok("done"),
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

macro_rules! text_output {
    ($($type:ty),*) => { $(
        impl IntoOutput for $type {
            fn into_output(self) -> Result<CallResult, ToolError> {
                Ok(CallResult::ok(self.to_string()))
            }
        }
    )* };
}

text_output!(String, &str, std::sync::Arc<str>, bool, char, i8, i16, i32, i64, u8, u16, u32, u64, usize, f32, f64);
