//! The `#[tool]` attribute of Adjutant; use it through `adjutant` or `adjutant-tool`.

#![cfg_attr(not(doctest), doc = include_str!("../README.md"))]

mod argument;
mod description;
mod expand;
mod function;
mod nearest;
mod options;

use proc_macro::TokenStream;

/// Makes a tool out of a function, plain or async.
///
/// The doc comment of the function is the tool's description for the model; doc comments on the arguments describe
/// them. The function becomes a value with the same name that implements `Tool`; it can still be called as
/// `name::run(…)`. As with every unit struct, no variable in that module can have the tool's name.
///
/// | argument | is |
/// |---|---|
/// | `x: T` | asked of the model; `T` implements `Deserialize` and `JsonSchema` |
/// | `x: Option<T>` | the same, but the model may leave it out |
/// | `#[state] x: T` | given by the application: the tool is made as `name(x)`, in the order of the arguments; `T` is `Clone + Send + Sync + 'static` |
/// | `x: CallContext` | the context of the call |
///
/// `#[serde(…)]` and `#[schemars(…)]` on an argument work as on a field. All arguments are owned.
///
/// The function can return any type that implements `IntoOutput` or `serde::Serialize` (sent as JSON), or a `Result`
/// of it with any error that implements `Display`; a `ToolError` keeps its kind.
///
/// | option | means |
/// |---|---|
/// | `name = "…"` | what the model calls it, instead of the function's name |
/// | `title = "…"` | what people are shown |
/// | `replay = "pure"` | what may happen to a call after a crash: `pure`, `idempotent`, `once` (the default), `resumable` |
/// | `sequential` | a call waits for all earlier calls of the reply, and later ones wait for it |
/// | `approval` | every call needs someone's word before it runs |
/// | `blocking` | the body, no async function, runs on a thread of its own; for what computes long or waits without `await` |
/// | `timeout_secs = 30` | how long one call may take, in seconds |
/// | `max_output = 16_000` | how many bytes of text of a result the model is shown |
/// | `rewrite = path` | `fn(Value) -> Value` that changes raw arguments before they are validated |
/// | `deny_unknown_fields` | arguments that the tool does not have are refused |
/// | `reads_only`, `destructive`, `idempotent`, `open_world` | what people and rules are told of a call, see `ToolHints`; each also as `… = false` |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), item.into(), "::adjutant_tool").into()
}

/// The same attribute, for users of the facade.
#[proc_macro_attribute]
pub fn tool_facade(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), item.into(), "::adjutant::__tool").into()
}
