//! The door from a call to this run: progress, usage, steps and pauses.

use std::{
    any::{Any, TypeId},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_core::{EventKind, Pause, Record};
use adjutant_llm::{Call, Usage};
use adjutant_tool::{
    Answer, Ask, CallAdmission, CallBackend, Cancel, Noted, Progress, ToolError, ToolErrorKind,
};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::{
    steps::{PauseState, Steps},
    waiters::{PauseReply, Waiters},
};
use crate::{inbox::Input, scope::CallScope};

/// The number of times that a new step lets the other branches of its body reach the noted steps, before it waits for
/// them in time.
const MAX_TURNS_AWAY: usize = 64;

/// The version of the notes of calls.
const NOTE_VERSION: u32 = 1;

/// The door of one entry into a call.
pub(super) struct CallHandle {
    pub(super) scope: Arc<CallScope>,
    waiters: Arc<Waiters>,
    /// The call, with the arguments that it runs with.
    pub(super) call: Call,
    pub(super) resumable: bool,
    /// The admission of the call, if it is known.
    pub(super) admission: Option<Arc<CallAdmission>>,
    /// True if a pause can be answered: false if the run is unattended, or the body could not be entered again.
    pub(super) attended: bool,
    pub(super) stop: Cancel,
    pub(super) steps: Mutex<Steps>,
    pub(super) phase: Mutex<Phase>,
    /// Notified of every change of the steps and the phase.
    changed: Notify,
    /// Notified once the body waits for an answer that no one here can give.
    pub(super) parked: Notify,
}

/// The progress of an entry.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// The call runs before its admission: its reports are buffered.
    Early(Vec<Usage>),
    /// The call runs.
    #[default]
    Open,
    /// The call has ended: further reports are ignored.
    Ended,
}

impl CallHandle {
    /// Creates the handle of a call with its arguments: open, without steps, and without a waiter.
    pub(super) fn new(
        scope: Arc<CallScope>,
        waiters: Arc<Waiters>,
        call: Call,
        stop: Cancel,
    ) -> Self {
        Self {
            scope,
            waiters,
            call,
            resumable: false,
            admission: None,
            attended: false,
            stop,
            steps: Mutex::new(Steps::new(Vec::new(), false)),
            phase: Mutex::new(Phase::Open),
            changed: Notify::new(),
            parked: Notify::new(),
        }
    }

    /// Records something and waits until it is durable.
    async fn record(&self, record: Record) -> Result<(), ToolError> {
        self.wait_for_admission().await?;
        let (done, durable) = oneshot::channel();
        self.scope.inbox.push(Input::Note {
            call: self.call.id,
            record: Box::new(record),
            done: Some(done),
        });
        durable.await.map_err(|_| call_ended_error())
    }

    /// Waits until the call is admitted.
    async fn wait_for_admission(&self) -> Result<(), ToolError> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            match *self.phase() {
                Phase::Open => return Ok(()),
                Phase::Ended => return Err(call_ended_error()),
                Phase::Early(_) => {}
            }
            changed.await;
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the handle: further reports of the call are ignored.
    pub(super) fn shut(&self) {
        *self.phase() = Phase::Ended;
        self.changed.notify_waiters();
    }

    /// The call that ran ahead was admitted: its usage is reported.
    pub(super) fn open(&self) {
        let kept = std::mem::take(&mut *self.phase());
        if let Phase::Early(kept) = kept {
            kept.into_iter().for_each(|usage| self.charge(usage));
        }
        self.changed.notify_waiters();
    }

    /// Returns the difference between this entry and the earlier ones, if there is one.
    pub(super) fn divergence(&self) -> Option<ToolError> {
        self.steps().divergence()
    }

    /// Returns the unanswered pauses of the body.
    pub(super) fn open_pauses(&self) -> Vec<Arc<Pause>> {
        self.steps().open()
    }

    /// Waits until no step is running.
    pub(super) async fn at_rest(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if !self.steps().is_working() {
                return;
            }
            changed.await;
        }
    }

    fn check(&self) -> Result<(), ToolError> {
        if self.resumable {
            return Ok(());
        }
        Err(ToolError::new(
            ToolErrorKind::NotResumable,
            "only a tool of class `Resumable` has steps",
        ))
    }

    /// Lets the other branches of the body reach the requests of earlier entries, before this one makes new ones.
    ///
    /// # Errors
    /// `Diverged` if none of them does.
    async fn in_order(&self, key: &str) -> Result<(), ToolError> {
        for _ in 0..MAX_TURNS_AWAY {
            if self.steps().may_ask(key) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        let others = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if self.steps().may_ask(key) {
                    return;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(self.scope.feed.setup.calls.grace, others).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.steps().went_astray(key)),
        }
    }

    /// Waits for the result of a pause.
    async fn wait_for_answer(
        &self,
        key: &str,
        pause: &Arc<Pause>,
        told: oneshot::Receiver<PauseReply>,
    ) -> Result<Answer, ToolError> {
        let _standing = self.scope.standstill().stand();
        let told = tokio::select! {
            biased;
            told = told => told.map_err(|_| call_ended_error())?,
            () = self.stop.cancelled() => {
                let message = "the call was stopped while it waited for an answer";
                return Err(ToolError::new(ToolErrorKind::Cancelled, message));
            }
        };
        match told {
            Some(answer) => {
                self.steps().record_answer(key, pause, &answer);
                Ok(answer)
            }
            None if self.resumable => self.give_way().await,
            None => Err(no_user_error(key, &pause.ask)),
        }
    }

    /// The body is dropped here, and entered again when there is an answer.
    async fn give_way<T>(&self) -> T {
        self.parked.notify_one();
        std::future::pending().await
    }
}

#[async_trait]
impl CallBackend for CallHandle {
    fn emit(&self, progress: Progress) {
        // Held while the progress is emitted, so that none is emitted after the end.
        let phase = self.phase();
        if matches!(*phase, Phase::Open) {
            let at_ms = self.scope.feed.setup.world.now_ms();
            let progress = Box::new(progress);
            let kind = EventKind::ToolProgress {
                call: self.call.id,
                progress,
            };
            self.scope.feed.show_progress(self.scope.place, at_ms, kind);
        }
    }

    fn charge(&self, usage: Usage) {
        match &mut *self.phase() {
            Phase::Early(kept) => kept.push(usage),
            Phase::Open => {
                let call = self.call.id;
                let record = Record::Spent {
                    call,
                    usage,
                    cost: None,
                    requests: 0,
                    tool_calls: 0,
                };
                self.scope.inbox.push(Input::Note {
                    call,
                    record: Box::new(record),
                    done: None,
                });
            }
            Phase::Ended => {}
        }
    }

    async fn begin(&self, key: &str) -> Result<Noted, ToolError> {
        self.check()?;
        self.in_order(key).await?;
        // Recorded immediately, so that a step that is entered twice at the same time runs once.
        let noted = self.steps().begin(key)?;
        match noted {
            Noted::Fresh => {
                self.record(Record::Begun {
                    call: self.call.id,
                    key: key.into(),
                })
                .await?
            }
            _ => self.changed.notify_waiters(),
        }
        Ok(noted)
    }

    async fn finish(&self, key: &str, value: Value) -> Result<(), ToolError> {
        self.check()?;
        self.record(Record::Noted {
            call: self.call.id,
            key: key.into(),
            value: value.clone(),
        })
        .await?;
        self.steps().finish(key, value);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn note(&self, kind: &str, data: Value) -> Result<(), ToolError> {
        self.record(Record::App {
            kind: kind.into(),
            version: NOTE_VERSION,
            data,
        })
        .await
    }

    async fn pause(&self, key: &str, ask: Ask) -> Result<Answer, ToolError> {
        if !self.attended {
            return Err(no_user_error(key, &ask));
        }
        self.in_order(key).await?;
        let known = {
            let mut steps = self.steps();
            match steps.ask(key, &ask)? {
                PauseState::Fresh => {
                    let who = &self.scope.feed.setup.who;
                    let now_ms = self.scope.feed.setup.world.now_ms();
                    let pause = Arc::new(Pause::for_call(
                        who,
                        self.call.clone(),
                        Some(key),
                        ask,
                        now_ms,
                    ));
                    steps.record_pause(key, &pause);
                    Err(pause)
                }
                known => Ok(known),
            }
        };
        self.changed.notify_waiters();
        match known {
            Err(pause) => {
                let told = self.waiters.wait(&pause.id);
                self.record(Record::Paused {
                    pause: Arc::clone(&pause),
                })
                .await?;
                self.wait_for_answer(key, &pause, told).await
            }
            Ok(PauseState::Answered(answer)) => Ok(answer),
            Ok(PauseState::Open { parked: true, .. }) if self.resumable => self.give_way().await,
            Ok(PauseState::Open {
                parked: true,
                pause,
            }) => Err(no_user_error(key, &pause.ask)),
            Ok(PauseState::Open { pause, .. }) => {
                let told = self.waiters.wait(&pause.id);
                self.wait_for_answer(key, &pause, told).await
            }
            Ok(PauseState::Fresh) => Err(call_ended_error()),
        }
    }

    /// Most bodies use no handles, so they are created on request.
    fn handle(&self, of: TypeId) -> Option<Box<dyn Any + Send + Sync>> {
        if of == TypeId::of::<CallAdmission>() {
            let admission = self.admission.clone()?;
            return Some(Box::new(admission));
        }
        self.scope.handle(of)
    }
}

fn call_ended_error() -> ToolError {
    ToolError::new(ToolErrorKind::Cancelled, "the call has ended")
}

fn no_user_error(key: &str, ask: &Ask) -> ToolError {
    let message = format!("nobody can be asked here, for {key:?}: {}", ask.prompt);
    ToolError::new(ToolErrorKind::Unattended, message)
}
