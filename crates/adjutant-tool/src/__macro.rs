//! The parts that the code of `#[tool]` needs; no public interface.
//!
//! The macro sees names, not types. So method resolution selects the conversion of an output: a trait that is
//! implemented for more references of a marker is found first. `Outcome` separates a `Result` from other types, and
//! `Shown` separates types with [`IntoOutput`] from types with serde only.

use std::{
    error,
    fmt::Display,
    marker::PhantomData,
    sync::{Arc, OnceLock},
};

use adjutant_llm::CallResult;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{IntoOutput, Json, ToolError};

/// Runs a blocking body on a separate thread, so that it blocks no task. A panic in it is returned to the caller.
///
/// # Errors
/// `Failed` outside a tokio runtime, and if the runtime ends first.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return Err(ToolError::failed(
            "a blocking tool was called outside of a tokio runtime",
        ));
    };
    runtime
        .spawn_blocking(work)
        .await
        .map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => ToolError::failed("the thread of the tool was lost").with_source(error),
        })
}

/// The cell in which a tool keeps its schema, made once.
pub type SchemaCell = OnceLock<Arc<Value>>;

/// The schema of an argument struct: an object of draft 2020-12, everything inlined, without a title.
pub fn schema<T: JsonSchema>() -> Arc<Value> {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.meta_schema = None;
        it.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("title");
        // Some providers refuse an object schema without properties.
        root.entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    Arc::new(schema)
}

/// Checks, where the type is written, the bounds of a state.
pub const fn state<T: Clone + Send + Sync + 'static>() {}

/// The return value of a function: a `Result` or anything else.
#[derive(Debug)]
pub struct Outcome<T>(PhantomData<T>);

/// The part of it that the model receives.
#[derive(Debug)]
pub struct Shown<T>(PhantomData<T>);

impl<T> Outcome<T> {
    /// The marker of a value.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

impl<T> Shown<T> {
    /// The marker of a value.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

macro_rules! picks {
    ($($(#[$doc:meta])* $pick:ident::$method:ident for [$($generic:tt)*] $marker:ty => $how:ident;)*) => { $(
        $(#[$doc])*
        pub trait $pick {
            /// Returns the conversion for the value.
            fn $method(&self) -> $how {
                $how
            }
        }

        impl<$($generic)*> $pick for $marker {}
    )* };
}

picks! {
    /// A `Result` with a tool's own error.
    PickToolError::split for [T] &&&Outcome<Result<T, ToolError>> => KeepError;
    /// A `Result` with an error that has a source.
    PickError::split for [T, E: error::Error + Send + Sync + 'static] &&Outcome<Result<T, E>> => WrapError;
    /// A `Result` whose error implements `Display`.
    PickDisplay::split for [T, E: Display] &Outcome<Result<T, E>> => ShowError;
    /// Anything else.
    PickAny::split for [T] Outcome<T> => NoError;
    /// A type with its own conversion.
    PickOutput::pick for [T: IntoOutput] &&Shown<T> => AsOutput;
    /// Something that serde takes.
    PickJson::pick for [T: Serialize] &Shown<T> => AsJson;
    /// Any other type: the compiler explains the missing trait.
    PickUnknown::pick for [T] Shown<T> => AsOutput;
}

/// Keeps a tool's own error.
#[derive(Debug)]
pub struct KeepError;

impl KeepError {
    /// The value, or the error.
    pub fn apart<T>(self, outcome: Result<T, ToolError>) -> Result<T, ToolError> {
        outcome
    }
}

/// Makes an error the source of a tool's error.
#[derive(Debug)]
pub struct WrapError;

impl WrapError {
    /// The value, or the error.
    pub fn apart<T, E: error::Error + Send + Sync + 'static>(
        self,
        outcome: Result<T, E>,
    ) -> Result<T, ToolError> {
        outcome.map_err(|error| ToolError::failed(error.to_string()).with_source(error))
    }
}

/// Shows an error.
#[derive(Debug)]
pub struct ShowError;

impl ShowError {
    /// The value, or the error.
    pub fn apart<T, E: Display>(self, outcome: Result<T, E>) -> Result<T, ToolError> {
        outcome.map_err(|error| ToolError::failed(error.to_string()))
    }
}

/// Passes a value on.
#[derive(Debug)]
pub struct NoError;

impl NoError {
    /// The value.
    pub fn apart<T>(self, value: T) -> Result<T, ToolError> {
        Ok(value)
    }
}

/// Shows a value by its own form.
#[derive(Debug)]
pub struct AsOutput;

impl AsOutput {
    /// The result of the call.
    pub fn show<T: IntoOutput>(self, value: T) -> Result<CallResult, ToolError> {
        value.into_output()
    }
}

/// Shows a value as JSON.
#[derive(Debug)]
pub struct AsJson;

impl AsJson {
    /// The result of the call.
    pub fn show<T: Serialize>(self, value: T) -> Result<CallResult, ToolError> {
        Json(value).into_output()
    }
}
