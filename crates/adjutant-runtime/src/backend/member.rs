//! The handle of one agent: when the last one is dropped, the agent is no longer followed.

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use uuid::Uuid;

use super::{
    Instance, Logs,
    life::{Begin, Life},
};
use crate::{Changes, Error, ErrorKind, Prompter, Resolved, Status, StatusWatch, Workspace};

pub(super) struct InstanceHandle(pub(super) Arc<Life>);

#[async_trait]
impl Instance for InstanceHandle {
    fn id(&self) -> Uuid {
        self.0.id
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(self.0.name())
    }

    fn resolved(&self) -> Arc<Resolved> {
        self.0.resolved()
    }

    fn workspace(&self) -> Workspace {
        self.0.workspace.clone()
    }

    fn status(&self) -> Status {
        self.0.tracker.get()
    }

    fn watch(&self) -> StatusWatch {
        self.0.tracker.subscribe()
    }

    fn address(&self) -> Option<SocketAddr> {
        self.0.tracker.address()
    }

    fn logs(&self) -> Logs {
        self.0.starter.logs(&self.0.workspace)
    }

    async fn prepare(&self) -> Result<(), Error> {
        self.0.prepare().await
    }

    async fn update(&self, resolved: Resolved) -> Result<Changes, Error> {
        let life = Arc::clone(&self.0);
        // The operation completes even if its future is dropped.
        let done = tokio::spawn(async move { life.update(resolved).await }).await;
        done.unwrap_or_else(|error| {
            Err(Error::new(
                ErrorKind::Crashed,
                format!("an update broke off: {error}"),
            ))
        })
    }

    async fn run(&self) -> Result<(), Error> {
        self.0.begin(Begin::New)?.ended().await
    }

    async fn start(&self) -> Result<(), Error> {
        self.0.start().await
    }

    async fn stop(&self) -> Result<(), Error> {
        self.0.stop().await
    }

    async fn remove(&self) -> Result<(), Error> {
        self.0.remove().await
    }

    async fn prompter(&self) -> Result<Arc<dyn Prompter>, Error> {
        self.0.prompter()
    }
}

impl Drop for InstanceHandle {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
