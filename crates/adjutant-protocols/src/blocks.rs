//! The blocks of replies as every stream needs them: each begins once, grows, and ends once, whatever was retracted, cut
//! off, or read from a log that holds no deltas.

use std::collections::{BTreeMap, HashMap};
use std::{mem, sync::Arc};

use adjutant_core::{Event, EventKind};
use adjutant_llm::{Block, BlockKind, CallId, Reply, ThreadId, ToolName};

/// The blocks of the replies that are on their way, by thread.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    threads: HashMap<ThreadId, Speaking>,
}

#[derive(Debug, Default)]
struct Speaking {
    turn: u64,
    attempt: u32,
    open: BTreeMap<u32, OpenBlock>,
    /// True once a block of the attempt was emitted.
    has_spoken: bool,
}

#[derive(Debug)]
struct OpenBlock {
    part: Part,
    has_grown: bool,
}

/// The kind of an emitted block.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text,
    Thinking,
    Call { call: CallId, name: ToolName },
}

/// Something that happened to a block.
#[derive(Debug)]
pub(crate) struct Beat {
    /// The name of the block in its thread.
    pub(crate) id: String,
    /// The name of its reply.
    pub(crate) reply: String,
    pub(crate) part: Part,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Began,
    Grew(String),
    /// The block, unless it was cut off.
    Ended(Option<Arc<Block>>),
}

impl Blocks {
    /// The effect of an event on blocks; empty for most.
    pub(crate) fn fold(&mut self, event: &Event) -> Vec<Beat> {
        let thread = &event.who.thread;
        let mut pieces = Vec::new();
        match &event.kind {
            EventKind::ReplyStarted { attempt, .. } => {
                pieces = self.cut(thread);
                let speaking = Speaking {
                    turn: event.turn.0,
                    attempt: *attempt,
                    ..Speaking::default()
                };
                self.threads.insert(thread.clone(), speaking);
            }
            EventKind::BlockStarted { block, kind } => {
                if let Some(part) = part(kind) {
                    self.speaking(event).begin(*block, part, &mut pieces);
                }
            }
            EventKind::TextDelta { block, text } => {
                self.speaking(event)
                    .grow(*block, Some(Part::Text), text, &mut pieces);
            }
            EventKind::ThinkingDelta { block, text } => {
                self.speaking(event)
                    .grow(*block, Some(Part::Thinking), text, &mut pieces);
            }
            EventKind::ArgsDelta { block, text } => {
                self.speaking(event).grow(*block, None, text, &mut pieces)
            }
            EventKind::BlockFinished { block, content } => {
                self.speaking(event).end(*block, content, &mut pieces);
            }
            EventKind::ReplyRetracted { .. } => pieces = self.cut(thread),
            EventKind::ReplyFinished { reply, .. } => {
                self.speaking(event).whole(reply, &mut pieces);
                pieces.extend(self.cut(thread));
            }
            _ => {}
        }
        pieces
    }

    /// Ends the open blocks of a thread.
    pub(crate) fn cut(&mut self, thread: &ThreadId) -> Vec<Beat> {
        let Some(mut speaking) = self.threads.remove(thread) else {
            return Vec::new();
        };
        let open = mem::take(&mut speaking.open);
        open.into_iter()
            .map(|(block, it)| speaking.piece(block, it.part, What::Ended(None)))
            .collect()
    }

    fn speaking(&mut self, event: &Event) -> &mut Speaking {
        let new = || Speaking {
            turn: event.turn.0,
            ..Speaking::default()
        };
        self.threads
            .entry(event.who.thread.clone())
            .or_insert_with(new)
    }
}

impl Speaking {
    fn begin(&mut self, block: u32, part: Part, pieces: &mut Vec<Beat>) {
        self.has_spoken = true;
        self.open.insert(
            block,
            OpenBlock {
                part: part.clone(),
                has_grown: false,
            },
        );
        pieces.push(self.piece(block, part, What::Began));
    }

    /// A late subscriber has missed the start of the block; for a call, the event contains its name.
    fn grow(&mut self, block: u32, part: Option<Part>, text: &str, pieces: &mut Vec<Beat>) {
        if let (false, Some(part)) = (self.open.contains_key(&block), part) {
            self.begin(block, part, pieces);
        }
        let Some(open) = self.open.get_mut(&block) else {
            return;
        };
        open.has_grown = true;
        let part = open.part.clone();
        pieces.push(self.piece(block, part, What::Grew(text.to_owned())));
    }

    fn end(&mut self, block: u32, content: &Arc<Block>, pieces: &mut Vec<Beat>) {
        let (part, text) = match &**content {
            Block::Text(it) => (Part::Text, &it.text),
            Block::Thinking(it) => (Part::Thinking, &it.text),
            Block::Call(it) => (
                Part::Call {
                    call: it.id,
                    name: it.name.clone(),
                },
                &it.args,
            ),
            _ => return,
        };
        if !self.open.contains_key(&block) {
            self.begin(block, part.clone(), pieces);
        }
        if self.open.remove(&block).is_some_and(|it| !it.has_grown) && !text.is_empty() {
            pieces.push(self.piece(block, part.clone(), What::Grew(text.to_string())));
        }
        pieces.push(self.piece(block, part, What::Ended(Some(Arc::clone(content)))));
    }

    /// A log contains only complete replies: then all of it is emitted at once.
    fn whole(&mut self, reply: &Reply, pieces: &mut Vec<Beat>) {
        if !self.has_spoken {
            let blocks = reply.blocks.iter().zip(0..);
            blocks.for_each(|(content, block)| self.end(block, content, pieces));
        }
    }

    fn piece(&self, block: u32, part: Part, what: What) -> Beat {
        let reply = format!("m{}_{}", self.turn, self.attempt);
        Beat {
            id: format!("{reply}_{block}"),
            reply,
            part,
            what,
        }
    }
}

fn part(kind: &BlockKind) -> Option<Part> {
    match kind {
        BlockKind::Text => Some(Part::Text),
        BlockKind::Thinking => Some(Part::Thinking),
        BlockKind::Call { id, name } => Some(Part::Call {
            call: *id,
            name: name.clone(),
        }),
        _ => None,
    }
}
