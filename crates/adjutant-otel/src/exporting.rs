//! The handle of a running export, which sends the remaining data when it ends.

use std::{fmt, sync::mpsc, thread, time::Duration};

use opentelemetry_sdk::{metrics::SdkMeterProvider, trace::SdkTracerProvider};

use crate::{Error, ErrorKind};

/// A running export. Dropping it sends the remaining data within the time limit, and ends it.
#[must_use = "dropping it ends the export"]
pub struct Exporting {
    providers: Option<Providers>,
    limit: Duration,
}

#[derive(Clone)]
pub(crate) struct Providers {
    pub(crate) spans: SdkTracerProvider,
    pub(crate) metrics: SdkMeterProvider,
}

impl Exporting {
    pub(crate) fn new(providers: Providers, limit: Duration) -> Self {
        Self {
            providers: Some(providers),
            limit,
        }
    }

    /// Sends the data collected so far. Blocks the thread until it is sent, or the time limit is over.
    ///
    /// # Errors
    /// `Export` if not everything was taken within the limit.
    pub fn flush(&self) -> Result<(), Error> {
        self.providers.clone().map_or(Ok(()), |providers| {
            within(self.limit, move || providers.flush())
        })
    }

    /// Sends the remaining data and ends the export. Blocks the thread until it is sent, or the time limit is over.
    ///
    /// # Errors
    /// `Export` if not everything was taken within the limit.
    pub fn shutdown(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        let limit = self.limit;
        self.providers.take().map_or(Ok(()), |providers| {
            within(limit, move || providers.shutdown(limit))
        })
    }
}

impl Providers {
    fn flush(&self) -> Result<(), Error> {
        let (spans, metrics) = (self.spans.force_flush(), self.metrics.force_flush());
        spans.and(metrics).map_err(export_error)
    }

    fn shutdown(&self, limit: Duration) -> Result<(), Error> {
        let (spans, metrics) = (
            self.spans.shutdown_with_timeout(limit),
            self.metrics.shutdown_with_timeout(limit),
        );
        spans.and(metrics).map_err(export_error)
    }
}

/// Runs on a separate thread, which is abandoned when the time limit is over: not every step below has a limit.
fn within(
    limit: Duration,
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let started = thread::Builder::new()
        .name("adjutant-otel-flush".into())
        .spawn(move || {
            // There is no receiver after the time limit.
            let _ = sender.send(work());
        });
    started.map_err(|error| {
        Error::new(
            ErrorKind::Export,
            "could not start a thread that sends telemetry",
        )
        .with_source(error)
    })?;
    receiver.recv_timeout(limit).unwrap_or_else(|error| {
        let message = format!("telemetry was not sent within {limit:?}");
        Err(Error::new(ErrorKind::Export, message).with_source(error))
    })
}

fn export_error(error: opentelemetry_sdk::error::OTelSdkError) -> Error {
    Error::new(ErrorKind::Export, "telemetry was not sent").with_source(error)
}

impl Drop for Exporting {
    fn drop(&mut self) {
        // Failing telemetry must not disturb the end of a program; `shutdown` returns the error.
        let _ = self.end();
    }
}

impl fmt::Debug for Exporting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporting")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
