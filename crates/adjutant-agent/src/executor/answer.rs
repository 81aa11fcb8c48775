//! Answer: sends the question of a pause to the outside.

use std::{panic::AssertUnwindSafe, sync::Arc, task::Poll, time::Duration};

use adjutant_core::{ActivityId, Answered, Digest, Limits, Pause, Record, Run, Terms, panic_text};
use adjutant_llm::{CallId, Warning, WarningKind};
use adjutant_tool::{Answer, AskKind, Cancel};
use futures_util::FutureExt;

use super::{LocalExecutor, Performed, Records};
use crate::{
    event_sink::EventSink,
    hooks::{Point, Verdict},
    points::{PauseAnswered, Pausing},
    setup::Responder,
    turn_position::TurnPosition,
};

/// The number of refused answers to a pause after which no one here is asked again.
const MAX_REFUSED: usize = 3;

/// A pending question: its pause, its call, and its cancellation.
pub(super) struct PendingQuestion {
    pub(super) at: u32,
    call: Option<CallId>,
    pub(super) stop: Cancel,
}

/// A pause with a question.
pub(super) struct Asking {
    feed: Arc<EventSink>,
    place: TurnPosition,
    at: u32,
    pause: Arc<Pause>,
    /// True if its call cannot wait beyond this drive, so that the pause ends without an answer.
    ends: bool,
}

impl LocalExecutor {
    pub(super) fn answer(&mut self, run: &Run, at: u32) -> Option<Performed> {
        let pause = run.waiting().pause(at).cloned()?;
        if let Some(posts) = &mut self.posts {
            posts.mark_asked(at, &pause);
        }
        let is_own = pause.thread == self.setup.who.thread;
        let call = pause.call_id().filter(|_| is_own);
        let ends = pause.key.is_some()
            && call.is_some_and(|call| run.calls().call(call).is_none_or(|it| !it.is_resumable));
        let asking = Asking {
            feed: Arc::clone(&self.feed),
            place: self.place,
            at,
            pause,
            ends,
        };
        if asking.is_late() {
            return Some(asking.finish_with_answer(Answer::Expired));
        }
        let is_in_vain = asking.pause.refused.len() > MAX_REFUSED;
        if is_in_vain || (self.setup.responder.is_none() && !self.setup.hooks.hears::<Pausing>()) {
            return Some(asking.finish_unanswered(Records::new()));
        }
        let stop = self.stop.child();
        self.asking.push(PendingQuestion {
            at,
            call,
            stop: stop.clone(),
        });
        self.perform(ActivityId::Answer(at), asking.run(stop));
        None
    }

    /// A question of a call that has its result needs no answer.
    pub(super) fn stop_asking(&mut self, record: &Record) {
        let is_over = |call: &CallId| match record {
            Record::Returned { call: ended, .. } => ended == call,
            Record::Opened { .. } => true,
            _ => false,
        };
        for asked in self
            .asking
            .extract_if(.., |it| it.call.as_ref().is_some_and(is_over))
        {
            asked.stop.cancel();
        }
    }

    /// Returns the records of the answers that a parked run continues with, and of the hooks' decisions about them.
    ///
    /// A late answer counts as expired; an answer that a hook denies leaves its pause open. A cancellation that
    /// arrives while hooks run ends the run instead.
    pub(crate) async fn hear_answers(
        &mut self,
        run: &Run,
        answers: &[Answered],
        (mut limits, mut terms): (Option<Limits>, Option<Box<Terms>>),
    ) -> Vec<Record> {
        let place = self.place;
        let answered = |it: &Answered| {
            let pause = run.pauses().find(|pause| pause.id == it.pause).cloned()?;
            let asking = Asking {
                feed: Arc::clone(&self.feed),
                place,
                at: 0,
                pause,
                ends: false,
            };
            let answer = if asking.is_late() {
                Answer::Expired
            } else {
                it.answer.clone()
            };
            Some((asking, answer, it.shown))
        };
        let answers: Vec<_> = answers.iter().filter_map(answered).collect();
        let (mut heard, mut news) = (Box::pin(process_answers(answers)), Vec::new());
        std::future::poll_fn(|cx| match heard.as_mut().poll(cx) {
            Poll::Ready((said, answers)) => {
                let resumed = Record::Resumed {
                    answers,
                    limits: limits.take(),
                    terms: terms.take(),
                };
                // First, so that the time before it is free.
                Poll::Ready(
                    [resumed]
                        .into_iter()
                        .chain(said)
                        .chain(std::mem::take(&mut news))
                        .collect(),
                )
            }
            Poll::Pending => {
                self.hear_all(cx, &mut news);
                let ends = news
                    .iter()
                    .any(|record| matches!(record, Record::CancelAsked { .. }));
                if ends {
                    Poll::Ready(std::mem::take(&mut news))
                } else {
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Asking {
    /// An answer that arrived from outside, while the run is running.
    pub(super) fn from_outside(
        feed: Arc<EventSink>,
        place: TurnPosition,
        pause: Arc<Pause>,
    ) -> Self {
        Self {
            feed,
            place,
            at: 0,
            pause,
            ends: false,
        }
    }

    pub(super) fn pause(&self) -> &Pause {
        &self.pause
    }
}

async fn process_answers(
    answers: Vec<(Asking, Answer, Option<Digest>)>,
) -> (Records, Vec<Answered>) {
    let (mut records, mut heard) = (Records::new(), Vec::new());
    for (asking, answer, shown) in answers {
        let answer = asking.through_hooks(answer, &mut records).await;
        heard.extend(answer.map(|answer| Answered {
            pause: asking.pause.id.clone(),
            answer,
            shown,
        }));
    }
    (records, heard)
}

impl Asking {
    async fn run(self, stop: Cancel) -> Performed {
        let act = ActivityId::Answer(self.at);
        // The time limits of the calls above are suspended in the meantime.
        let _standing = self
            .feed
            .setup
            .within
            .as_ref()
            .map(|within| within.standstill().stand());
        tokio::select! {
            biased;
            performed = self.ask() => performed,
            () = stop.cancelled() => Performed::nothing(act),
        }
    }

    async fn ask(&self) -> Performed {
        let setup = &self.feed.setup;
        if setup.hooks.hears::<Pausing>() {
            let point = Pausing::new(Arc::clone(&self.pause));
            // Observed only.
            let _ = self
                .feed
                .pass(&self.feed.hook_context(self.place), point)
                .await;
        }
        let Some(responder) = &setup.responder else {
            return self.finish_unanswered(Records::new());
        };
        let left = self
            .pause
            .deadline_ms
            .map(|at| at.saturating_sub(setup.world.now_ms()));
        let asked = self.respond(&**responder);
        let answer = match left {
            Some(left) => match tokio::time::timeout(Duration::from_millis(left), asked).await {
                Ok(answer) => answer,
                Err(_) => return self.finish_with_answer(Answer::Expired),
            },
            None => asked.await,
        };
        let Some(answer) = answer.filter(|answer| self.fits(answer)) else {
            return self.finish_unanswered(Records::new());
        };
        let mut records = Records::new();
        match self.through_hooks(answer, &mut records).await {
            Some(answer) => {
                records.push(Record::Answered {
                    pause: self.pause.id.clone(),
                    answer,
                });
                Performed {
                    records,
                    ..Performed::nothing(ActivityId::Answer(self.at))
                }
            }
            None => self.finish_unanswered(records),
        }
    }

    /// Calls the responder. Its panic denies a pause for an approval, and leaves every other one open.
    async fn respond(&self, responder: &Responder) -> Option<Answer> {
        let who = match self.pause.call_id() {
            Some(call) => self.feed.setup.who.within(call),
            None => (*self.feed.setup.who).clone(),
        };
        match AssertUnwindSafe(async { responder(who, (*self.pause).clone()).await })
            .catch_unwind()
            .await
        {
            Ok(answer) => answer,
            Err(panic) => {
                let text = format!("the responder panicked: {}", panic_text(&*panic));
                self.warn(text.clone());
                (self.pause.ask.kind == AskKind::Approval).then(|| Answer::deny(text))
            }
        }
    }

    /// True if an answer fits the question; otherwise adds a warning.
    pub(super) fn fits(&self, answer: &Answer) -> bool {
        let fits = answer.fits(&self.pause.ask);
        if let Err(error) = &fits {
            self.warn(format!(
                "an answer to {} is passed over: {error}",
                self.pause.id
            ));
        }
        fits.is_ok()
    }

    /// Returns the answer after its hooks; `None` if one of them denied it, or its change does not fit the question.
    pub(super) async fn through_hooks(
        &self,
        answer: Answer,
        records: &mut Records,
    ) -> Option<Answer> {
        if !self.feed.setup.hooks.hears::<PauseAnswered>() {
            return Some(answer);
        }
        let point = PauseAnswered::new(Arc::clone(&self.pause), answer);
        match self
            .feed
            .pass(&self.feed.hook_context(self.place), point)
            .await
        {
            Verdict::Pass(point) => Some(point.answer).filter(|answer| self.fits(answer)),
            Verdict::Deny(reason) => {
                let call = self.pause.call_id();
                records.push(Record::Denied {
                    point: PauseAnswered::NAME.into(),
                    reason,
                    call,
                });
                None
            }
        }
    }

    pub(super) fn is_late(&self) -> bool {
        self.pause.is_late(self.feed.setup.world.now_ms())
    }

    fn finish_with_answer(&self, answer: Answer) -> Performed {
        Performed::new(
            ActivityId::Answer(self.at),
            Record::Answered {
                pause: self.pause.id.clone(),
                answer,
            },
        )
    }

    fn finish_unanswered(&self, mut records: Records) -> Performed {
        records.push(Record::Unanswered {
            pause: self.pause.id.clone(),
        });
        if self.ends {
            records.push(Record::Answered {
                pause: self.pause.id.clone(),
                answer: Answer::Expired,
            });
        }
        Performed {
            records,
            ..Performed::nothing(ActivityId::Answer(self.at))
        }
    }

    fn warn(&self, message: String) {
        let warning = Warning {
            kind: WarningKind::Degraded,
            message: message.into(),
        };
        self.feed
            .warn(self.place, self.feed.setup.world.now_ms(), &warning);
    }
}
