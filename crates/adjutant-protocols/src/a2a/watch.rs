//! A followed task: its updates as they occur, and its state when its run has ended or waits.

use std::{sync::Arc, time::Duration};

use futures_core::Stream;
use futures_util::{StreamExt, stream};

use super::{
    desk::{Desk, Events, Until},
    refusal::{Code, RpcRefusal},
    task::Tasks,
    wire::{Task, TaskState, Update},
};

/// The time between two reads of a task without an active run.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A followed task.
pub(super) struct WatchedTask {
    pub(super) tasks: Tasks,
    pub(super) events: Events,
    /// The message that started or continued it.
    pub(super) message: Option<String>,
    /// Its place among the tasks, once it is there.
    pub(super) at: Option<usize>,
    /// True once it has started or continued.
    pub(super) is_begun: bool,
}

impl WatchedTask {
    /// The task, once it has started or continued.
    fn current_task(&self) -> Option<&Task> {
        self.tasks
            .find(self.at?)
            .map(|kept| &kept.task)
            .filter(|_| self.is_begun)
    }

    /// The task at its start, then its changes. In the given states it is followed without an active run.
    pub(super) fn updates(
        self,
        desk: Arc<dyn Desk>,
        goes_on: fn(TaskState) -> bool,
    ) -> impl Stream<Item = Result<Vec<Update>, RpcRefusal>> + Send + 'static {
        stream::unfold(Some((self, false)), move |state| {
            let desk = Arc::clone(&desk);
            async move {
                let (mut followed, is_shown) = state?;
                loop {
                    if let (false, Some(task)) = (is_shown, followed.current_task()) {
                        let is_over = task.status.state.is_over();
                        let first = vec![Update::Task(task.clone())];
                        return Some((Ok(first), (!is_over).then_some((followed, true))));
                    }
                    match followed.next().await {
                        Some(Ok(updates)) if is_shown && !updates.is_empty() => {
                            return Some((Ok(updates), Some((followed, true))));
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Some((Err(error), None)),
                        None if followed
                            .current_task()
                            .is_some_and(|task| goes_on(task.status.state)) =>
                        {
                            tokio::time::sleep(LOOK_EVERY).await;
                            let (context, at) = (followed.tasks.context(), followed.tasks.at());
                            match desk.events(context, at, Until::End).await {
                                Ok(events) => followed.events = events,
                                Err(error) => return Some((Err(error.into()), None)),
                            }
                        }
                        None => return None,
                    }
                }
            }
        })
    }

    /// The changes by the next event; `None` when the run has ended or waits.
    async fn next(&mut self) -> Option<Result<Vec<Update>, RpcRefusal>> {
        if self
            .current_task()
            .is_some_and(|task| task.status.state.is_over())
        {
            return None;
        }
        let event = match self.events.next().await? {
            Ok(event) => event,
            Err(error) => return Some(Err(error.into())),
        };
        let updates = self.tasks.tell(&event);
        if self.at.is_none() {
            self.at = self
                .message
                .as_ref()
                .and_then(|message| self.tasks.find_by_message(message));
        }
        let stands = self
            .at
            .and_then(|at| self.tasks.find(at))
            .map(|kept| kept.task.status.state);
        self.is_begun |= stands.is_some_and(|state| !state.waits());
        Some(Ok(updates))
    }

    /// The task when its run has ended or waits, or as soon as it has started.
    pub(super) async fn wait_for_task(&mut self, at_once: bool) -> Result<Task, RpcRefusal> {
        while !(at_once && self.current_task().is_some()) {
            match self.next().await {
                Some(updates) => updates?,
                None => break,
            };
        }
        let lost = || RpcRefusal::new(Code::Internal, "the run ended without a trace");
        self.current_task().cloned().ok_or_else(lost)
    }
}
