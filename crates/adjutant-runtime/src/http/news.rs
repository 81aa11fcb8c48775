//! The status of an agent over time: the current one, then each change, always including the last one.

use std::{convert::Infallible, sync::Arc};

use axum::response::sse::Event;
use futures_core::Stream;
use futures_util::stream;
use tokio::sync::watch;

use super::{
    report::AgentReport,
    routes::{Phase, Site},
    sse::{self, END},
};

/// The state of one watcher's stream.
struct Watching {
    site: Arc<Site>,
    runs: watch::Receiver<usize>,
    phase: watch::Receiver<Phase>,
    told: Option<AgentReport>,
    is_over: bool,
}

/// Reports the status of the agent, now and at each change, until it has stopped.
///
/// A slow reader can miss intermediate changes, never the last one.
pub(super) fn follow(site: Arc<Site>) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let (runs, phase) = (site.prompter.runs(), site.phase.subscribe());
    let watching = Watching {
        site,
        runs,
        phase,
        told: None,
        is_over: false,
    };
    stream::unfold(watching, |mut watching| async move {
        if watching.is_over {
            return None;
        }
        match watching.next().await {
            Some(report) => Some((Ok(sse::frame("status", &report)), watching)),
            None => {
                watching.is_over = true;
                Some((Ok(Event::default().event(END).data("{}")), watching))
            }
        }
    })
}

impl Watching {
    /// Returns the next change; `None` after the end of the agent was reported.
    async fn next(&mut self) -> Option<AgentReport> {
        loop {
            let phase = *self.phase.borrow_and_update();
            self.runs.mark_unchanged();
            let report = self.site.report();
            if self.told.as_ref() != Some(&report) {
                self.told = Some(report.clone());
                return Some(report);
            }
            if phase == Phase::Stopped {
                return None;
            }
            // The site holds both senders.
            tokio::select! {
                _ = self.runs.changed() => {}
                _ = self.phase.changed() => {}
            }
        }
    }
}
