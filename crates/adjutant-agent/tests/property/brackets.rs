//! What must hold of every stream of events.

use std::collections::BTreeSet;

use adjutant_agent::{Event, EventKind, Seq};
use adjutant_llm::{CallId, FinishReason};

/// Where the streams of a session stand: one stream for each drive.
#[derive(Debug, Default)]
pub(crate) struct Brackets {
    /// Whether hooks and middleware may give replies that no model began.
    supplied: bool,
    run: bool,
    turn: bool,
    reply: bool,
    /// Whether the reply has a block; one that was interrupted before that leaves no trace.
    said: bool,
    over: bool,
    resumed: bool,
    /// Whether the last drive was not read to its end: its run may have been closed, or may wait.
    lost: bool,
    blocks: BTreeSet<u32>,
    asked: BTreeSet<CallId>,
    running: BTreeSet<CallId>,
    ended: BTreeSet<CallId>,
    seq: Seq,
}

impl Brackets {
    /// A session; `supplied` says whether a reply may be given by others than its model.
    pub(crate) fn new(supplied: bool) -> Self {
        Self {
            supplied,
            ..Self::default()
        }
    }

    /// Every start has one end, in order; `whole` says whether the drive was read to its end. What waits goes on in the
    /// next drive.
    pub(crate) fn drive(&mut self, events: &[Event], whole: bool) {
        (self.over, self.resumed) = (false, false);
        let goes_on = !matches!(
            events.first().map(|event| &event.kind),
            Some(EventKind::RunStarted)
        );
        if self.lost && goes_on {
            // Nobody knows what the run that goes on has open.
            let ends = |event: &&Event| {
                matches!(
                    event.kind,
                    EventKind::RunFinished { .. } | EventKind::RunPaused { .. }
                )
            };
            let ended = events.iter().filter(ends).count();
            assert!(ended == usize::from(whole), "{ended} ends: {events:#?}");
            return;
        }
        self.lost = false;
        events.iter().for_each(|event| self.take(event));
        assert!(
            !whole || self.over,
            "a drive that ended without telling: {events:#?}"
        );
        if !whole {
            *self = Self {
                supplied: self.supplied,
                lost: true,
                ..Self::default()
            };
        }
    }

    fn take(&mut self, event: &Event) {
        assert!(!self.over, "an event after the last one: {event:?}");
        assert!(
            event.seq >= self.seq,
            "an event of {} after one of {}: {event:?}",
            event.seq,
            self.seq
        );
        self.seq = event.seq;
        let starts = matches!(event.kind, EventKind::RunStarted);
        assert_eq!(self.run, !starts, "RunStarted is first, once: {event:?}");
        match &event.kind {
            EventKind::RunStarted => self.run = true,
            EventKind::RunResumed => {
                assert!(!std::mem::replace(&mut self.resumed, true), "resumed twice")
            }
            EventKind::TurnStarted => assert!(
                !std::mem::replace(&mut self.turn, true),
                "a turn within a turn"
            ),
            EventKind::TurnFinished => {
                assert!(std::mem::take(&mut self.turn), "the end of no turn");
                assert_eq!(
                    self.asked, self.ended,
                    "calls without a result at the end of a turn"
                );
                let (supplied, resumed, seq) = (self.supplied, self.resumed, self.seq);
                *self = Self {
                    run: true,
                    supplied,
                    resumed,
                    seq,
                    ..Self::default()
                };
            }
            EventKind::RunPaused { .. } => self.over = true,
            EventKind::RunFinished { .. } => {
                assert!(!self.turn, "the run ended within a turn");
                (self.over, self.run) = (true, false);
            }
            kind if is_anywhere(kind) => {}
            kind => {
                assert!(self.turn, "{event:?} outside a turn");
                self.within(kind);
            }
        }
    }

    fn within(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ReplyStarted { .. } => {
                assert!(
                    !std::mem::replace(&mut self.reply, true) || !self.said,
                    "two replies"
                );
                self.said = false;
            }
            EventKind::BlockStarted { block, .. } => {
                assert!(self.reply && self.blocks.insert(*block), "{kind:?}");
                self.said = true;
            }
            EventKind::TextDelta { block, .. }
            | EventKind::ThinkingDelta { block, .. }
            | EventKind::ArgsDelta { block, .. } => {
                assert!(self.blocks.contains(block), "{kind:?}")
            }
            EventKind::BlockFinished { block, .. } => {
                assert!(self.blocks.remove(block), "{kind:?}")
            }
            EventKind::ReplyRetracted { .. } => {
                assert!(std::mem::take(&mut self.reply), "a retraction of nothing");
                self.blocks.clear();
            }
            // What was said of a reply whose request did not fit is void.
            EventKind::Overflowed => {
                self.reply = false;
                self.blocks.clear();
            }
            EventKind::ReplyFinished { reply, .. } => {
                assert!(
                    std::mem::take(&mut self.reply) || self.supplied,
                    "the end of no reply"
                );
                assert!(
                    reply.stop == FinishReason::Interrupted || self.blocks.is_empty(),
                    "open blocks in {reply:?}"
                );
                self.asked = reply.calls().map(|call| call.id).collect();
            }
            EventKind::ToolStarted { call, .. } => {
                assert!(
                    self.asked.contains(call) && !self.ended.contains(call),
                    "{kind:?}"
                );
                assert!(self.running.insert(*call), "{call} started twice");
            }
            EventKind::ToolProgress { call, .. } => {
                assert!(self.running.contains(call), "{kind:?}")
            }
            EventKind::ToolFinished { call, .. } => {
                assert!(
                    self.running.remove(call) && self.ended.insert(*call),
                    "{call} ended twice or never began"
                );
            }
            _ => {}
        }
    }
}

/// Whether an event may stand between two turns too.
fn is_anywhere(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::EntryAdded { .. }
            | EventKind::CancelAsked { .. }
            | EventKind::MessageQueued { .. }
            | EventKind::MessageWithdrawn { .. }
            | EventKind::MessagePlaced { .. }
            | EventKind::Denied { .. }
            | EventKind::Paused { .. }
            | EventKind::Answered { .. }
            | EventKind::LimitReached { .. }
            | EventKind::Overruled { .. }
            | EventKind::Warning { .. }
    )
}

/// Whether an event is a record; the others are deltas and warnings, and the last one is the driver's.
pub(crate) fn is_record(event: &Event) -> bool {
    !matches!(
        event.kind,
        EventKind::ReplyStarted { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ArgsDelta { .. }
            | EventKind::BlockFinished { .. }
            | EventKind::ReplyRetracted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::Warning { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunFinished { .. }
    )
}
