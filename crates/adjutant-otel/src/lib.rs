//! Exports the spans and metrics of Adjutant over OTLP/HTTP, to any collector of OpenTelemetry.

#![doc = include_str!("../README.md")]

mod error;
mod exporting;
mod lists;
mod otel;

pub use error::{Error, ErrorKind};
pub use exporting::Exporting;
pub use otel::Otel;
