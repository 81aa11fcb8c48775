//! The queues from the view of an executor: it is notified of queued messages, and removes them to place them.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use adjutant_core::{
    ActivityId, CancelBy, Failure, Lane, NextStep, Outcome, Record, Revised, Run, RunNo, Stamped,
    Tail, TurnNo,
};
use adjutant_llm::Entry;
use adjutant_tool::Cancel;
use futures_util::FutureExt;

use super::{LocalExecutor, Performed, Records};
use crate::{
    event_sink::EventSink,
    hooks::{HookContext, Point, Verdict},
    inbox::Input,
    points::{MessagePlaced, MessageQueued},
    queue::{Append, Queues, unfit},
    turn_position::TurnPosition,
};

/// The queues of a session while an executor exists: messages that it took and did not record are queued again when
/// it is dropped.
#[derive(Debug, Default)]
pub(super) struct Listening {
    queues: Arc<Queues>,
    /// True during an append: if it is dropped, the content of the log is unknown.
    pub(super) appending: bool,
    /// The records that were committed and may not be saved yet.
    unconfirmed: Vec<Arc<Stamped>>,
}

/// The rest that a hook left of the entries taken from a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Took {
    /// The lane is empty.
    Nothing,
    /// No message.
    Denied,
    /// Only what no model sees.
    Silent,
    /// A message.
    Said,
}

/// Takes messages out of the queues, on behalf of an activity.
pub(super) struct Poller {
    queues: Arc<Queues>,
    feed: Arc<EventSink>,
    pub(super) cx: HookContext,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.queues.put_back(if self.appending {
            Append::Dropped
        } else {
            Append::Failed
        });
    }
}

impl Listening {
    pub(super) fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(super) fn interrupts(&self) -> bool {
        self.queues.interrupts()
    }

    /// These records are on their way into the log.
    pub(super) fn note(&mut self, batch: &[Arc<Stamped>]) {
        let concerns = |it: &&Arc<Stamped>| {
            matches!(it.record, Record::Placed { .. } | Record::Withdrawn { .. })
        };
        self.unconfirmed
            .extend(batch.iter().filter(concerns).cloned());
    }

    /// Removes the noted messages from the queues: their records are in the log now.
    pub(super) fn confirm(&mut self) {
        self.unconfirmed
            .drain(..)
            .for_each(|stamped| self.queues.confirm(&stamped.record));
    }

    /// An activity that may have taken messages has ended: after a cancellation, nothing is placed any more.
    pub(super) fn end(&self, act: ActivityId, records: &mut Records, stopping: bool) {
        if !matches!(act, ActivityId::Settle(_) | ActivityId::Ask(_)) {
            return;
        }
        if stopping {
            records.retain(|record| !matches!(record, Record::Placed { .. }));
        }
        self.queues.hand_over(records);
    }
}

impl LocalExecutor {
    /// Connects the queues, and is notified of new messages.
    pub(crate) fn listen(&mut self, queues: Arc<Queues>) {
        self.feed.listen(&queues);
        self.queue = Listening {
            queues,
            appending: false,
            unconfirmed: Vec::new(),
        };
    }

    /// Adds records of the entries queued and withdrawn since the last time; their observers run concurrently with
    /// the activities.
    pub(super) fn hear_queue(&mut self, cx: &mut Context<'_>, records: &mut Vec<Record>) {
        self.queue.queues.watch(cx);
        let news = self.queue.queues.hear();
        if !news.is_empty() {
            if self.queue.interrupts() {
                self.generating.iter().for_each(Cancel::cancel);
            }
            if let Some(observing) = self.observing(&news, self.place) {
                self.asides.push(Box::pin(observing));
            }
        }
        if !self.asides.is_empty() {
            self.asides
                .retain_mut(|aside| aside.poll_unpin(cx).is_pending());
        }
        records.extend(news);
    }

    fn observing(
        &self,
        news: &[Record],
        place: TurnPosition,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        if !self.setup.hooks.hears::<MessageQueued>() {
            return None;
        }
        let points: Vec<_> = news.iter().filter_map(as_message_queued).collect();
        let (feed, cx) = (Arc::clone(&self.feed), self.feed.hook_context(place));
        Some(async move {
            for point in points {
                // The point is observed only, so a verdict could change nothing.
                let _ = feed.pass(&cx, point).await;
            }
        })
    }

    /// The news of the queues, if anything waits in them.
    pub(crate) fn collect_queue_records(&self) -> Option<Vec<Record>> {
        let news = self.queue.queues.hear();
        (!news.is_empty() || self.queue.queues.is_filled()).then_some(news)
    }

    /// The first records of a drive when nothing waits in the queues.
    pub(crate) fn opening_now(run: &Run, first: Record) -> Vec<Record> {
        let ended = match &first {
            Record::Began { run: number, .. } if follows_answer(run, &first) => {
                Some(nothing_to_say(*number))
            }
            _ => None,
        };
        [first].into_iter().chain(ended).collect()
    }

    /// The first records of a drive with queued messages: a new run places the queued messages of its first request.
    pub(crate) async fn opening(
        &mut self,
        run: &Run,
        first: Record,
        mut news: Vec<Record>,
    ) -> Vec<Record> {
        let Record::Began { run: number, .. } = &first else {
            return vec![first];
        };
        let (number, answered) = (*number, follows_answer(run, &first));
        // Without a prompt, the run starts for the queued messages, also after a message over which an earlier run
        // failed.
        let ahead = if is_unprompted(&first) {
            NextStep::Stops
        } else {
            NextStep::Goes
        };
        let place = TurnPosition {
            run: number,
            turn: TurnNo(0),
        };
        let (observing, poller) = (self.observing(&news, place), self.poller(place));
        let work = async move {
            if let Some(observing) = observing {
                observing.await;
            }
            poller.poll(ahead).await
        };
        let (mut placed, wish) = self.unless_wished(work).await;
        self.queue.queues.hand_over(&placed);
        news.extend(self.queue.queues.hear());
        if answered && wish.is_none() && !is_anything_said(run, &news, &placed) {
            placed.push(nothing_to_say(number));
        }
        [first]
            .into_iter()
            .chain(news)
            .chain(placed)
            .chain(wish)
            .collect()
    }

    /// Performs work before the first activity, unless the run is cancelled, which is recorded then.
    async fn unless_wished(
        &mut self,
        work: impl Future<Output = Vec<Record>>,
    ) -> (Vec<Record>, Option<Record>) {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            let mut by = self
                .inbox
                .take(cx)
                .into_iter()
                .find_map(|input| match input {
                    Input::Cancel(by) => Some(by),
                    Input::Note { .. } | Input::Kept { .. } | Input::StopCall(_) => None,
                });
            if self
                .outer
                .as_mut()
                .is_some_and(|outer| outer.poll_unpin(cx).is_ready())
            {
                self.outer = None;
                by = by.or(Some(CancelBy::User));
            }
            match by {
                Some(by) => Poll::Ready((Vec::new(), self.wish(by))),
                None => work.as_mut().poll(cx).map(|records| (records, None)),
            }
        })
        .await
    }

    /// An interrupting message is queued: it is placed before the request is sent.
    #[cold]
    pub(super) fn place_first(&mut self, act: ActivityId) -> Option<Performed> {
        let poller = self.poller(self.place);
        if poller.is_asked() {
            self.perform_unless_stopped(act, async move {
                let records = poller.poll(NextStep::Goes).await.into();
                Performed {
                    records,
                    ..Performed::nothing(act)
                }
            });
            return None;
        }
        let records = poller.poll_now(NextStep::Goes).into();
        Some(Performed {
            records,
            ..Performed::nothing(act)
        })
    }

    pub(super) fn poller(&self, place: TurnPosition) -> Poller {
        Poller {
            queues: Arc::clone(&self.queue.queues),
            feed: Arc::clone(&self.feed),
            cx: self.feed.hook_context(place),
        }
    }
}

impl Poller {
    /// True if a hook is called before a message is placed.
    pub(super) fn is_asked(&self) -> bool {
        self.feed.setup.hooks.hears::<MessagePlaced>() && self.queues.is_filled()
    }

    /// Takes out the messages to place now, without calls to hooks.
    pub(super) fn poll_now(&self, ahead: NextStep) -> Vec<Record> {
        let mut records = Vec::new();
        for lane in lanes(ahead) {
            loop {
                let held = self.queues.take(*lane, self.feed.setup.drains.of(*lane));
                if held.is_empty() {
                    break;
                }
                let says =
                    ahead != NextStep::Stops || held.iter().any(|held| is_said(&held.content));
                let items = held.iter().map(|held| held.item).collect();
                records.push(Record::Placed {
                    items,
                    revised: Vec::new(),
                });
                if says {
                    return records;
                }
            }
        }
        records
    }

    /// Removes the messages to place now, after their hooks; denied ones are dropped, and the next ones are used.
    ///
    /// Cancel: removed messages must be put back.
    pub(super) async fn poll(&self, ahead: NextStep) -> Vec<Record> {
        if !self.is_asked() {
            return self.poll_now(ahead);
        }
        let mut records = Vec::new();
        for lane in lanes(ahead) {
            loop {
                match self.place(*lane, &mut records).await {
                    Took::Nothing => break,
                    Took::Denied => {}
                    Took::Silent if ahead == NextStep::Stops => {}
                    Took::Silent | Took::Said => return records,
                }
            }
        }
        records
    }

    /// Places the messages of a lane; returns whether everything was denied and the lane must be tried again.
    async fn place(&self, lane: Lane, records: &mut Vec<Record>) -> Took {
        let held = self.queues.take(lane, self.feed.setup.drains.of(lane));
        let (mut items, mut revised) = (Vec::new(), Vec::new());
        if held.is_empty() {
            return Took::Nothing;
        }
        let mut took = Took::Denied;
        for held in held {
            let point = MessagePlaced::new(held.item, lane, held.content.clone());
            let reason = match self.feed.pass(&self.cx, point).await {
                Verdict::Pass(point) => match unfit(&point.content) {
                    None => {
                        items.push(held.item);
                        took = if took == Took::Said || is_said(&point.content) {
                            Took::Said
                        } else {
                            Took::Silent
                        };
                        if point.content != held.content {
                            revised.push(Revised {
                                item: held.item,
                                content: point.content,
                            });
                        }
                        continue;
                    }
                    Some(why) => format!("what a hook made of it cannot be placed: {why}").into(),
                },
                Verdict::Deny(reason) => reason,
            };
            records.push(Record::Withdrawn { item: held.item });
            records.push(Record::Denied {
                point: MessagePlaced::NAME.into(),
                reason,
                call: None,
            });
        }
        if !items.is_empty() {
            records.push(Record::Placed { items, revised });
        }
        took
    }
}

/// The lanes to check; the first one with a message counts.
fn lanes(ahead: NextStep) -> &'static [Lane] {
    match ahead {
        NextStep::Ends => &[],
        NextStep::Goes => &[Lane::Steering],
        NextStep::Stops => &[Lane::Steering, Lane::FollowUp],
    }
}

fn as_message_queued(record: &Record) -> Option<MessageQueued> {
    match record {
        Record::Queued {
            item,
            lane,
            content,
        } => Some(MessageQueued::new(*item, *lane, content.clone())),
        _ => None,
    }
}

/// True if a model sees an entry that was queued.
fn is_said(content: &Entry) -> bool {
    !matches!(content, Entry::Custom(_))
}

/// True if a message is among the placed entries; it was queued in the log, or in the news.
fn is_anything_said(run: &Run, news: &[Record], placed: &[Record]) -> bool {
    let mut queued: BTreeMap<u64, &Entry> = run
        .waiting()
        .pending_messages()
        .map(|(item, _, content)| (item, content))
        .collect();
    queued.extend(news.iter().filter_map(|record| match record {
        Record::Queued { item, content, .. } => Some((*item, content)),
        _ => None,
    }));
    placed.iter().any(|record| match record {
        Record::Placed { items, revised } => {
            queued.extend(
                revised
                    .iter()
                    .map(|revised| (revised.item, &revised.content)),
            );
            items
                .iter()
                .any(|item| queued.get(item).is_none_or(|content| is_said(content)))
        }
        _ => false,
    })
}

/// True if a run begins without a prompt, behind an answer or as the first.
fn follows_answer(run: &Run, began: &Record) -> bool {
    is_unprompted(began) && run.waiting().tail() != Tail::Open
}

fn is_unprompted(began: &Record) -> bool {
    matches!(began, Record::Began { prompts, .. } if prompts.is_empty())
}

/// Returns the failed end of a run: the entries that should have followed an answer have been withdrawn or denied.
fn nothing_to_say(run: RunNo) -> Record {
    let reason = "nothing is left that could follow the answer".into();
    let failure = Failure::Denied {
        point: MessagePlaced::NAME.into(),
        reason,
    };
    Record::Ended {
        run,
        outcome: Outcome::Failed { failure },
    }
}
