//! The records of an incomplete reply: emitted when the attempt is void, or when the log ends with it.
//!
//! A complete reply has its own event, so no part of it is emitted twice.

use adjutant_llm::{ModelId, Usage};

use crate::{
    event::EventKind,
    record::{AcknowledgedPart, Record},
};

/// The parts of the reply that is on its way in a thread, as a log holds them.
#[derive(Debug, Default)]
pub(super) struct Speaking {
    now: Option<Attempt>,
}

/// An attempt at a reply.
#[derive(Debug)]
struct Attempt {
    no: u32,
    model: ModelId,
    parts: Vec<AcknowledgedPart>,
    /// True if its start was emitted.
    is_told: bool,
    /// The emitted progress of each part.
    told: Vec<BlockProgress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct BlockProgress {
    opened: bool,
    closed: bool,
    bytes: usize,
}

impl Speaking {
    /// Follows a record; content that the listener knows is not emitted.
    pub(super) fn hear(
        &mut self,
        record: &Record,
        is_known: bool,
        mut show: impl FnMut(EventKind),
    ) {
        let mut show = |kind| {
            if !is_known {
                show(kind);
            }
        };
        match record {
            Record::Heard {
                attempt,
                model,
                parts,
                ..
            } => {
                if self.now.as_ref().is_some_and(|now| now.no < *attempt) {
                    self.void(Usage::default(), &mut show);
                }
                let now = self
                    .now
                    .get_or_insert_with(|| Attempt::new(*attempt, model));
                AcknowledgedPart::join(&mut now.parts, parts);
                if is_known {
                    now.tell(|_| {});
                }
            }
            Record::Retracted { attempt, usage, .. }
                if self.now.as_ref().is_some_and(|now| *attempt >= now.no) =>
            {
                self.void(*usage, show);
            }
            Record::Replied { .. } => self.now = None,
            Record::Overflowed { .. }
            | Record::Refused { .. }
            | Record::Settled { .. }
            | Record::Opened { .. }
            | Record::Ended { .. } => {
                if let Some(now) = self.now.take().filter(|now| now.is_told) {
                    show(EventKind::cut_off(now.no, Usage::default()));
                }
            }
            _ => {}
        }
    }

    /// Emits the pending content.
    pub(super) fn tell(&mut self, show: impl FnMut(EventKind)) {
        if let Some(now) = &mut self.now {
            now.tell(show);
        }
    }

    fn void(&mut self, usage: Usage, mut show: impl FnMut(EventKind)) {
        if let Some(mut now) = self.now.take() {
            now.tell(&mut show);
            show(EventKind::cut_off(now.no, usage));
        }
    }
}

impl Attempt {
    fn new(no: u32, model: &ModelId) -> Self {
        Self {
            no,
            model: model.clone(),
            parts: Vec::new(),
            is_told: false,
            told: Vec::new(),
        }
    }

    fn tell(&mut self, mut show: impl FnMut(EventKind)) {
        if !std::mem::replace(&mut self.is_told, true) {
            let (attempt, model, limits) = (self.no, self.model.clone(), Box::default());
            show(EventKind::ReplyStarted {
                attempt,
                model,
                limits,
            });
        }
        self.told.resize(self.parts.len(), BlockProgress::default());
        for (part, told) in self.parts.iter().zip(&mut self.told) {
            told.tell(part, &mut show);
        }
    }
}

impl BlockProgress {
    fn tell(&mut self, part: &AcknowledgedPart, mut show: impl FnMut(EventKind)) {
        let block = part.block;
        if !std::mem::replace(&mut self.opened, true) {
            show(EventKind::BlockStarted {
                block,
                kind: part.kind.clone(),
            });
        }
        let whole = part
            .content
            .as_deref()
            .and_then(AcknowledgedPart::text_of)
            .unwrap_or(&part.text);
        let more = whole.get(self.bytes..).unwrap_or_default();
        self.bytes = self.bytes.max(whole.len());
        EventKind::delta(block, &part.kind, more)
            .into_iter()
            .for_each(&mut show);
        if part.closed && !std::mem::replace(&mut self.closed, true) {
            part.to_block()
                .into_iter()
                .for_each(|content| show(EventKind::BlockFinished { block, content }));
        }
    }
}
