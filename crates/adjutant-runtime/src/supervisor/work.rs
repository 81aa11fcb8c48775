//! Operations on agents for the supervisor: each in a separate task that reports its result.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, task::JoinError, time};
use uuid::Uuid;

use crate::{Backend, Error, ErrorKind, Instance, Loaded, Status, prompt::SessionsRequest};

/// The interval of checks of an agent that is already starting.
const LOOK: Duration = Duration::from_millis(50);

/// The result of an operation.
pub(super) enum Done {
    Started(Uuid, Result<(), Error>),
    /// With the reason, if the stop was not requested.
    Stopped(Uuid, Result<(), Error>, Option<Arc<str>>),
    Removed(Uuid, Result<(), Error>),
    /// A health check ended; true if the agent answered.
    Probed(Uuid, bool),
    Loaded(Result<Loaded, Error>),
    Rotated(Vec<(Uuid, Error)>),
}

/// The channel for results.
pub(super) type DoneSender = mpsc::UnboundedSender<Done>;

pub(super) fn start(instance: Arc<dyn Instance>, within: Duration, told: DoneSender) {
    tokio::spawn(async move {
        let id = instance.id();
        // After the supervisor has stopped, there is no receiver.
        let _ = told.send(Done::Started(id, started(instance, within).await));
    });
}

async fn started(instance: Arc<dyn Instance>, within: Duration) -> Result<(), Error> {
    let begun = Arc::clone(&instance);
    let mut starting = tokio::spawn(async move { begin(&*begun).await });
    match time::timeout(within, &mut starting).await {
        Ok(ended) => ended.unwrap_or_else(|error| Err(broken(&error))),
        Err(_) => {
            instance.stop().await?;
            // It returns because its operation was stopped; otherwise it is no longer relevant.
            starting.abort();
            let text = format!("it did not become ready within {} s", within.as_secs_f32());
            Err(Error::new(ErrorKind::Readiness, text))
        }
    }
}

/// Starts it, or waits for a start in progress.
async fn begin(instance: &dyn Instance) -> Result<(), Error> {
    while matches!(instance.status(), Status::Preparing | Status::Starting) {
        time::sleep(LOOK).await;
    }
    match instance.status() {
        Status::Ready | Status::Working => Ok(()),
        _ => instance.start().await,
    }
}

pub(super) fn stop(instance: Arc<dyn Instance>, why: Option<Arc<str>>, told: DoneSender) {
    tokio::spawn(async move {
        let id = instance.id();
        let ended = tokio::spawn(async move { instance.stop().await }).await;
        let _ = told.send(Done::Stopped(
            id,
            ended.unwrap_or_else(|error| Err(broken(&error))),
            why,
        ));
    });
}

pub(super) fn remove(instance: Arc<dyn Instance>, told: DoneSender) {
    tokio::spawn(async move {
        let id = instance.id();
        let ended = tokio::spawn(async move { instance.remove().await }).await;
        let _ = told.send(Done::Removed(
            id,
            ended.unwrap_or_else(|error| Err(broken(&error))),
        ));
    });
}

/// Sends a cheap request. Any answer counts as success; a timeout and a lost connection do not.
pub(super) fn probe(instance: Arc<dyn Instance>, within: Duration, told: DoneSender) {
    tokio::spawn(async move {
        let asked = async {
            let prompter = instance.prompter().await?;
            prompter.sessions(SessionsRequest::new().limit(1)).await
        };
        let answered = match time::timeout(within, asked).await {
            Ok(Err(error)) => !matches!(error.kind(), ErrorKind::Connection | ErrorKind::TimedOut),
            Ok(Ok(_)) => true,
            Err(_) => false,
        };
        let _ = told.send(Done::Probed(instance.id(), answered));
    });
}

pub(super) fn load(backend: Arc<dyn Backend>, told: DoneSender) {
    tokio::spawn(async move {
        let _ = told.send(Done::Loaded(backend.load().await));
    });
}

fn broken(error: &JoinError) -> Error {
    Error::new(ErrorKind::Init, format!("the backend broke off: {error}"))
}
