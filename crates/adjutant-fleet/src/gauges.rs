//! The work of the journal as metrics. Without a listener nothing is counted.

use std::{convert::Infallible, time::Duration};

use adjutant_agent::DueWork;
use adjutant_tool::llm::telemetry::METRICS_TARGET;
use tokio::time::sleep;
use tracing::Level;

/// The time between two counts.
const COUNT: Duration = Duration::from_secs(15);

/// Counts at intervals while there is a listener; it never returns.
pub(crate) async fn tell(journal: &dyn DueWork) -> Infallible {
    loop {
        if tracing::event_enabled!(target: METRICS_TARGET, Level::DEBUG, gauge.adjutant.fleet.due) {
            match journal.backlog().await {
                Ok(told) => tracing::event!(
                    target: METRICS_TARGET,
                    Level::DEBUG,
                    { "gauge.adjutant.fleet.due" } = told.due,
                    { "gauge.adjutant.fleet.at_work" } = told.at_work,
                    { "gauge.adjutant.fleet.parked" } = told.parked,
                    { "gauge.adjutant.fleet.aside" } = told.aside,
                    { "gauge.adjutant.fleet.oldest_due" } = told.oldest.unwrap_or_default().as_secs_f64(),
                ),
                Err(error) => tracing::debug!(%error, "the sessions of workers cannot be counted"),
            }
        }
        sleep(COUNT).await;
    }
}
