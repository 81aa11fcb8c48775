//! One task: its state, its waiters, and the messages about it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_agent::{LogId, Queued};
use adjutant_llm::{ThreadId, Usage};
use adjutant_tool::Cancel;
use tokio::sync::watch;

use super::{TaskSnapshot, TaskState};

/// One task.
#[derive(Debug)]
pub(super) struct BackgroundTask {
    pub(super) session: LogId,
    pub(super) by: ThreadId,
    pub(super) number: u64,
    pub(super) id: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) thread: ThreadId,
    pub(super) task: Arc<str>,
    /// True if it outlives the run that launched it.
    pub(super) kept: bool,
    /// The stop request.
    pub(super) wish: Cancel,
    state: watch::Sender<TaskStanding>,
    told: Mutex<LaunchNotice>,
}

/// The standing of a task.
#[derive(Debug, Clone)]
pub(super) struct TaskStanding {
    pub(super) state: TaskState,
    pub(super) progress: Arc<str>,
    pub(super) text: Arc<str>,
    pub(super) usage: Usage,
}

/// The notice of a task's end to the agent that launched it.
#[derive(Debug, Default)]
struct LaunchNotice {
    /// The source of the stop request.
    stopper: Stopper,
    /// True if a message about it was queued, and contains the complete text.
    whole: bool,
    /// That message, as long as it can be taken back.
    notice: Option<Queued>,
    read: bool,
}

/// The source of a task's stop request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stopper {
    /// No request, or the run, which ended.
    #[default]
    Run,
    /// The agent that launched it.
    Model,
    /// The application.
    Application,
}

/// The parts of a new task.
pub(super) struct NewTask {
    pub(super) session: LogId,
    pub(super) by: ThreadId,
    pub(super) number: u64,
    pub(super) agent: Arc<str>,
    pub(super) thread: ThreadId,
    pub(super) task: Arc<str>,
    pub(super) kept: bool,
}

impl BackgroundTask {
    pub(super) fn new(new: NewTask) -> Self {
        let NewTask {
            session,
            by,
            number,
            agent,
            thread,
            task,
            kept,
        } = new;
        let standing = TaskStanding {
            state: TaskState::Running,
            progress: Arc::default(),
            text: Arc::default(),
            usage: Usage::default(),
        };
        let (state, id) = (
            watch::Sender::new(standing),
            format!("task-{number}").into(),
        );
        Self {
            session,
            by,
            number,
            id,
            agent,
            thread,
            task,
            kept,
            wish: Cancel::new(),
            state,
            told: Mutex::default(),
        }
    }

    pub(super) fn standing(&self) -> TaskStanding {
        self.state.borrow().clone()
    }

    pub(super) fn state(&self) -> TaskState {
        self.state.borrow().state
    }

    /// Waits until it has ended.
    pub(super) async fn wait_finished(&self) {
        // The sender is this task's own.
        let _ = self
            .state
            .subscribe()
            .wait_for(|standing| standing.state.is_ended())
            .await;
    }

    pub(super) fn progress(&self, line: Arc<str>) {
        self.state.send_modify(|standing| standing.progress = line);
    }

    /// Ends it, once.
    pub(super) fn end(&self, state: TaskState, text: Arc<str>, usage: Usage) {
        self.state.send_if_modified(|standing| {
            let first = !standing.state.is_ended();
            if first {
                *standing = TaskStanding {
                    state,
                    text,
                    usage,
                    progress: Arc::clone(&standing.progress),
                };
            }
            first
        });
    }

    /// Requests it to stop; returns whether it was running.
    pub(super) fn stop(&self, stopper: Stopper) -> bool {
        if self.state().is_ended() {
            return false;
        }
        self.lock_notice().stopper = stopper;
        self.wish.cancel();
        true
    }

    pub(super) fn stopper(&self) -> Stopper {
        self.lock_notice().stopper
    }

    /// A message reports its end; `None` if an earlier one did.
    pub(super) fn tell(&self, notice: Option<Queued>, whole: bool) {
        let mut told = self.lock_notice();
        (told.notice, told.whole) = (notice, whole);
    }

    /// True if a message about its end waits to be placed.
    pub(super) fn is_told(&self) -> bool {
        self.lock_notice()
            .notice
            .as_ref()
            .is_some_and(Queued::is_queued)
    }

    /// The agent that launched it has received the text: the message about it is no longer needed.
    pub(super) fn read(&self) {
        let mut told = self.lock_notice();
        told.read = true;
        if let Some(notice) = told.notice.take() {
            // It may have been placed already.
            let _ = notice.withdraw();
        }
    }

    /// True if the agent that launched it knows its end: it read it, it got the complete message, or there was no
    /// result.
    pub(super) fn is_read(&self) -> bool {
        let told = self.lock_notice();
        let placed = told.whole && !told.notice.as_ref().is_some_and(Queued::is_queued);
        told.read || placed || (told.notice.is_none() && self.state() == TaskState::Cancelled)
    }

    pub(super) fn snapshot(&self) -> TaskSnapshot {
        let TaskStanding {
            state,
            progress,
            text,
            usage,
        } = self.standing();
        TaskSnapshot {
            session: self.session.clone(),
            by: self.by.clone(),
            id: Arc::clone(&self.id),
            agent: Arc::clone(&self.agent),
            thread: self.thread.clone(),
            task: Arc::clone(&self.task),
            state,
            progress,
            text,
            usage,
            read: state.is_ended() && self.is_read(),
        }
    }

    fn lock_notice(&self) -> MutexGuard<'_, LaunchNotice> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
