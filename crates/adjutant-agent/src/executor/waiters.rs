//! The waiting of call bodies for answers.

use std::sync::{Mutex, PoisonError};

use adjutant_core::{PauseId, Record};
use adjutant_tool::Answer;
use tokio::sync::oneshot;

/// The waiting bodies with their pauses, and the results of the pauses of this turn.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    inner: Mutex<WaiterLists>,
}

#[derive(Debug, Default)]
struct WaiterLists {
    waiting: Vec<(PauseId, oneshot::Sender<PauseReply>)>,
    told: Vec<(PauseId, PauseReply)>,
}

/// The answer to a pause; `None` if no one here can answer.
pub(super) type PauseReply = Option<Answer>;

impl Waiters {
    /// Waits for the result of a pause; the sender is dropped with the executor.
    pub(super) fn wait(&self, pause: &PauseId) -> oneshot::Receiver<PauseReply> {
        let (tell, told) = oneshot::channel();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match inner.told.iter().find(|(known, _)| known == pause) {
            Some((_, known)) => {
                // The receiver is still here.
                let _ = tell.send(known.clone());
            }
            None => {
                inner.waiting.retain(|(_, tell)| !tell.is_closed());
                inner.waiting.push((pause.clone(), tell));
            }
        }
        told
    }

    /// Notifies waiters about a durable record.
    pub(super) fn tell(&self, record: &Record) {
        let (pause, told) = match record {
            Record::Answered { pause, answer } => (pause, Some(answer)),
            Record::Unanswered { pause } => (pause, None),
            Record::Opened { .. } => {
                self.inner
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .told
                    .clear();
                return;
            }
            _ => return,
        };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.told.push((pause.clone(), told.cloned()));
        for (_, tell) in inner.waiting.extract_if(.., |(waits, _)| waits == pause) {
            // The waiting body may be gone.
            let _ = tell.send(told.cloned());
        }
    }
}
