//! The work of the journal as metrics, for whoever collects them; without a listener nobody counts.

use std::{convert::Infallible, time::Duration};

use adjutant_agent::DueWork;
use adjutant_tool::llm::telemetry::METRICS_TARGET;
use tokio::time::sleep;
use tracing::Level;

/// The time between two counts.
const COUNT: Duration = Duration::from_secs(15);

/// Counts time and again, while anybody listens; it never ends.
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
