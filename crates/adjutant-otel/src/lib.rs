//! Exports the spans and metrics of Adjutant over OTLP/HTTP, to any collector of OpenTelemetry.
//!
//! A model in [`Traced`](adjutant_llm::telemetry::Traced) makes a span of each call; [`Otel`] sends the spans on, from
//! a thread of its own. Nothing that goes wrong there reaches the program.
//!
//! ```
//! use adjutant_llm::{complete, telemetry::Traced, Request, Script, ScriptedModel};
//! use adjutant_otel::Otel;
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let exporting = Otel::new("http://127.0.0.1:4318", "greeter").flush_limit(std::time::Duration::ZERO).install()?;
//! let model = Traced::new(ScriptedModel::new([Script::new().text("Good morning.")]));
//! let reply = complete(&model, Request::new().user("Hello!")).await?;
//! assert_eq!(reply.text(), "Good morning.");
//! drop(exporting); // sends what is left
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).expect("the scripted model answers");
//! ```

mod error;
mod exporting;
mod lists;
mod otel;

pub use error::{Error, ErrorKind};
pub use exporting::Exporting;
pub use otel::Otel;
