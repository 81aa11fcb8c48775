//! An incomplete reply: its text so far, for observers, acknowledgements and attached readers. It holds no durable
//! data.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::{AcknowledgedPart, Event, EventKind, Record, Seq};
use adjutant_llm::{BlockKind, BlockSoFar, Chunk, Collector, Error, Reply};
use adjutant_tool::Identity;

use crate::turn_position::TurnPosition;

/// A reply on its way.
///
/// Invariant: its content is emitted under its lock, so the holder of the lock knows what observers have received.
#[derive(Debug, Default)]
pub(crate) struct PartialReply {
    collector: Collector,
    who: Option<Arc<Identity>>,
    place: TurnPosition,
    at_ms: u64,
    /// The attempt, counted from 0 in its turn; never lower than one before it.
    attempt: u32,
    /// The part of each block that the log holds.
    heard: Vec<Heard>,
    /// True if it has observers.
    pub(crate) is_shown: bool,
}

/// The part of a block that the log holds.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    opened: bool,
    closed: bool,
    bytes: usize,
}

impl PartialReply {
    /// Another reply begins.
    pub(crate) fn begin(
        &mut self,
        who: &Arc<Identity>,
        place: TurnPosition,
        at_ms: u64,
        attempt: u32,
    ) {
        *self = Self {
            who: Some(Arc::clone(who)),
            place,
            at_ms,
            attempt,
            ..Self::default()
        };
    }

    /// Processes the next chunk; returns the reply when it is finished.
    ///
    /// # Errors
    /// `Protocol` if the chunk breaks the grammar.
    pub(crate) fn push(&mut self, chunk: &Chunk) -> Result<Option<Arc<Reply>>, Error> {
        let reply = self.collector.push(chunk)?;
        match chunk {
            Chunk::Start { attempt, .. } => self.attempt = self.attempt.max(*attempt),
            Chunk::Retracted { attempt, .. } => {
                self.attempt = self.attempt.max(*attempt).saturating_add(1);
                self.heard.clear();
            }
            _ => {}
        }
        Ok(reply)
    }

    /// Returns the partial reply so far, as an interrupted reply; `None` if no attempt is running.
    pub(crate) fn so_far(&self) -> Option<Reply> {
        self.collector.so_far()
    }

    /// Ends the reply: returns its content as interrupted.
    pub(crate) fn cut(&mut self) -> Option<Reply> {
        self.heard.clear();
        std::mem::take(&mut self.collector).into_interrupted()
    }

    /// Returns the part of the reply that the log does not hold yet, as a record; it counts as held from here on.
    pub(crate) fn hear(&mut self) -> Option<Record> {
        let model = self.collector.model()?.clone();
        let mut parts = Vec::new();
        for (block, kind, said) in self.collector.blocks() {
            let at = block as usize;
            if self.heard.len() <= at {
                self.heard.resize(at + 1, Heard::default());
            }
            parts.extend(self.heard[at].part(block, kind, said));
        }
        let (turn, attempt) = (self.place.turn, self.attempt);
        (!parts.is_empty()).then_some(Record::Heard {
            turn,
            attempt,
            model,
            parts,
        })
    }

    /// Returns the partial reply so far, as events at this place of the log.
    pub(crate) fn events(&self, seq: Seq) -> Vec<Event> {
        let (Some(model), Some(who)) = (self.collector.model(), &self.who) else {
            return Vec::new();
        };
        let limits = Box::default();
        let mut kinds = vec![EventKind::ReplyStarted {
            attempt: self.attempt,
            model: model.clone(),
            limits,
        }];
        for (block, kind, said) in self.collector.blocks() {
            kinds.push(EventKind::BlockStarted {
                block,
                kind: kind.clone(),
            });
            match said {
                BlockSoFar::Open(text) => kinds.extend(EventKind::delta(block, kind, text)),
                BlockSoFar::Closed(content) => {
                    kinds.extend(
                        AcknowledgedPart::text_of(content)
                            .and_then(|text| EventKind::delta(block, kind, text)),
                    );
                    kinds.push(EventKind::BlockFinished {
                        block,
                        content: Arc::clone(content),
                    });
                }
            }
        }
        let (at_ms, run, turn) = (self.at_ms, self.place.run, self.place.turn);
        kinds
            .into_iter()
            .map(|kind| Event {
                seq,
                at_ms,
                run,
                turn,
                who: Arc::clone(who),
                kind,
            })
            .collect()
    }
}

impl Heard {
    /// Returns the part of a block that the log does not hold yet.
    fn part(
        &mut self,
        block: u32,
        kind: &BlockKind,
        said: BlockSoFar<'_>,
    ) -> Option<AcknowledgedPart> {
        let (was_opened, kind) = (std::mem::replace(&mut self.opened, true), kind.clone());
        if self.closed {
            return None;
        }
        match said {
            BlockSoFar::Open(text) => {
                let more = text.get(self.bytes..).unwrap_or_default().to_owned();
                self.bytes = text.len();
                let is_news = !was_opened || !more.is_empty();
                is_news.then_some(AcknowledgedPart {
                    block,
                    kind,
                    text: more,
                    closed: false,
                    content: None,
                })
            }
            BlockSoFar::Closed(content) => {
                self.closed = true;
                let rest = AcknowledgedPart::only_text(&kind, content)
                    .and_then(|text| text.get(self.bytes..))
                    .map(str::to_owned);
                let content = rest.is_none().then(|| Arc::clone(content));
                Some(AcknowledgedPart {
                    block,
                    kind,
                    text: rest.unwrap_or_default(),
                    closed: true,
                    content,
                })
            }
        }
    }
}

pub(crate) fn lock(reply: &Mutex<PartialReply>) -> MutexGuard<'_, PartialReply> {
    reply.lock().unwrap_or_else(PoisonError::into_inner)
}
