//! Exports spans and metrics to a collector, if the standard variables of OpenTelemetry name one.

use std::env;

use adjutant::otel::Otel;

use crate::{plain, screen::tell};

/// The variable that names the collector; without it nothing is exported.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The variable that disables telemetry.
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// The variable that names the service.
const SERVICE: &str = "OTEL_SERVICE_NAME";

/// Runs some work, and exports its telemetry, if the environment is configured for it.
///
/// A failed export is reported and has no other effect.
pub(crate) fn exported<T>(work: impl FnOnce() -> T) -> T {
    let value = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
    let is_off = value(DISABLED).is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let Some(endpoint) = value(ENDPOINT).filter(|_| !is_off) else {
        return work();
    };
    let warn = |error: adjutant::otel::Error| {
        tell(&plain::line(&format!(
            "warning: nothing is exported: {error}"
        )))
    };
    let service = value(SERVICE).unwrap_or_else(|| "adjutant".to_owned());
    let exporting = Otel::new(endpoint, service).install().map_err(warn).ok();
    let done = work();
    if let Some(Err(error)) = exporting.map(adjutant::otel::Exporting::shutdown) {
        tell(&plain::line(&format!(
            "warning: not everything was exported: {error}"
        )));
    }
    done
}
