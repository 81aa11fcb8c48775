//! Settle: after a closed turn, applies changes of hooks, decides whether the run ends, and places messages.

use std::sync::Arc;

use adjutant_core::{
    ActivityId, Closed, Error, Failure, NextStep, OutputVerdict, Record, Run, RunChange, TurnNo,
};
use adjutant_llm::{Edit, Entry, ErrorKind, Warning, WarningKind};

use super::{LocalExecutor, Performed, queue::Poller};
use crate::{
    event_sink::EventSink,
    hooks::{Point, Verdict},
    output::{Judged, Judging},
    points::{AfterTurn, NextTurn},
};

/// A turn on its way to its end.
struct Settling {
    feed: Arc<EventSink>,
    poller: Poller,
    turn: TurnNo,
    /// The next step without an answer, with a refused one, and with an accepted one.
    ahead: [NextStep; 3],
    judging: Option<Judging>,
}

impl LocalExecutor {
    /// Settles a turn if it needs no calls and places nothing.
    pub(super) fn try_settle(&self, turn: TurnNo) -> Option<Record> {
        let hooks = &self.setup.hooks;
        let is_asked = self.setup.goal.is_some()
            || hooks.hears::<NextTurn>()
            || hooks.hears::<AfterTurn>()
            || self.queue.queues().is_used();
        (!is_asked).then(|| Record::turn_settled(turn))
    }

    #[cold]
    pub(super) fn settle(&mut self, run: &Run, turn: TurnNo) -> Option<Performed> {
        let act = ActivityId::Settle(turn);
        let judging = self.judging(run);
        let hooks = &self.setup.hooks;
        let watched = hooks.hears::<NextTurn>() || hooks.hears::<AfterTurn>();
        let (closed, poller) = (
            if watched {
                run.waiting().closed()
            } else {
                None
            },
            self.poller(self.place),
        );
        let ahead = |checked| run.waiting().ahead(false, checked);
        if closed.is_none() && judging.is_none() && !poller.is_asked() {
            let mut performed = Performed::new(act, Record::turn_settled(turn));
            performed.records.extend(poller.poll_now(ahead(None)));
            return Some(performed);
        }
        let ahead = [None, Some(false), Some(true)].map(ahead);
        let settling = Settling {
            feed: Arc::clone(&self.feed),
            poller,
            turn,
            ahead,
            judging,
        };
        self.perform_unless_stopped(act, async move {
            Performed {
                records: settling.records(closed).await.into(),
                ..Performed::nothing(act)
            }
        });
        None
    }
}

impl LocalExecutor {
    /// The answer of the turn that is about to be settled, if one is wanted and given.
    fn judging(&self, run: &Run) -> Option<Judging> {
        let (goal, reply, (_, refused)) = (self.setup.goal.as_ref()?, run.reply()?, run.output()?);
        // It has answered; only the words depend on it.
        let model = self
            .setup
            .chosen(run.request().chosen_model())
            .unwrap_or(&self.setup.model);
        Judging::new(
            goal,
            reply,
            refused,
            (Arc::clone(model), self.setup.options_of(run)),
        )
    }
}

impl Settling {
    /// Hooks first, then the queues: what stops the run leaves them as they are.
    async fn records(mut self, closed: Option<Closed>) -> Vec<Record> {
        let judged = match self.judging.take() {
            Some(judging) => Some(judging.judge().await),
            None => None,
        };
        let checked = |verdict| Record::OutputChecked {
            turn: self.turn,
            verdict,
        };
        if let Some(Judged {
            verdict: OutputVerdict::Refused { reason, left: 0 },
            ..
        }) = judged
        {
            let failure = Failure::Output {
                reason: Arc::clone(&reason),
            };
            let broke = Record::Broke {
                act: ActivityId::Settle(self.turn),
                failure,
            };
            return vec![checked(OutputVerdict::Refused { reason, left: 0 }), broke];
        }
        let (stop, mut change) = match closed {
            Some(closed) => match self.ask(closed).await {
                Ok(said) => said,
                Err(ended) => return ended,
            },
            None => (false, RunChange::default()),
        };
        let [unanswered, refused, accepted] = self.ahead;
        let mut records = Vec::new();
        let ahead = match judged {
            None => unanswered,
            Some(Judged { verdict, again }) => {
                records.push(checked(verdict));
                let is_accepted = again.is_none();
                change
                    .edits
                    .extend(again.filter(|_| !stop).map(|again| Edit::Append {
                        entry: Entry::User(again),
                    }));
                if is_accepted { accepted } else { refused }
            }
        };
        let ahead = if stop { NextStep::Ends } else { ahead };
        records.push(Record::Settled {
            turn: self.turn,
            stop,
            change,
        });
        records.extend(self.poller.poll(ahead).await);
        records
    }

    async fn ask(&self, mut closed: Closed) -> Result<(bool, RunChange), Vec<Record>> {
        let cx = &self.poller.cx;
        let (reply, results) = (Arc::clone(&closed.reply), closed.results.clone());
        let next = NextTurn::new(reply, results, closed.view().clone(), RunChange::default());
        let mut change = match self.feed.pass(cx, next).await {
            Verdict::Pass(next) => next.change,
            Verdict::Deny(reason) => return Err(self.denial_records::<NextTurn>(reason).into()),
        };
        if let Err(error) = self.feed.setup.chosen(change.model.as_ref()) {
            return Err(vec![broke(ActivityId::Settle(self.turn), &error)]);
        }
        self.check(&mut closed, &mut change);
        let view = closed.view().clone();
        let after = AfterTurn::new(closed.reply, closed.results, view, closed.entries, false);
        match self.feed.pass(cx, after).await {
            Verdict::Pass(after) => Ok((after.stop, change)),
            Verdict::Deny(reason) => Err(self.denial_records::<AfterTurn>(reason).into()),
        }
    }

    /// Drops invalid changes, and notifies an observer.
    fn check(&self, closed: &mut Closed, change: &mut RunChange) {
        if !closed.edit(&change.edits) {
            change.edits = Vec::new();
            self.warn("an edit names an entry that is not shown, so the view stays".into());
        }
    }

    fn warn(&self, message: String) {
        let (place, at_ms) = (
            super::TurnPosition {
                run: self.poller.cx.run,
                turn: self.turn,
            },
            self.poller.cx.at_ms,
        );
        self.feed.warn(
            place,
            at_ms,
            &Warning {
                kind: WarningKind::OptionDropped,
                message: message.into(),
            },
        );
    }

    fn denial_records<P: Point>(&self, reason: Arc<str>) -> [Record; 2] {
        let (act, point) = (ActivityId::Settle(self.turn), Arc::from(P::NAME));
        let failure = Failure::Denied {
            point: Arc::clone(&point),
            reason: Arc::clone(&reason),
        };
        [
            Record::Denied {
                point,
                reason,
                call: None,
            },
            Record::Broke { act, failure },
        ]
    }
}

/// The run ends, because its next model is unknown.
#[cold]
pub(super) fn broke(act: ActivityId, error: &Error) -> Record {
    let error = adjutant_llm::Error::new(ErrorKind::Config, error.to_string());
    Record::Broke {
        act,
        failure: Failure::Model { error },
    }
}
