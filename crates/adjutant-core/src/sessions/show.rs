//! A session as a timeline for people.

mod narrator;

use std::{collections::VecDeque, fmt, pin::Pin, sync::Arc};

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use self::narrator::Narrator;
use super::Sessions;
use crate::{
    journal::{JournalError, JournalErrorKind, LogId, RecordStream},
    number::Seq,
};

/// One message or action in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimelineItem {
    /// The record that contains it; one record may contain several.
    pub seq: Seq,
    /// The time when that was recorded, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The number of agents above its agent.
    pub depth: u16,
    /// Its author: an agent, a tool, a component, or `user`.
    pub who: Arc<str>,
    /// The kind of the item.
    pub kind: ShownKind,
    /// The text or action. Arguments are shortened to 400 characters, results and received parts of replies to 1,000.
    pub text: String,
}

/// The kind of an item: a message or an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShownKind {
    /// A person or the application prompted.
    Prompt,
    /// The user steered the run.
    Steering,
    /// A follow-up that had waited for the end of the run.
    FollowUp,
    /// A component reminded the model.
    Reminder,
    /// A task from a parent.
    Task,
    /// Another agent sent a message.
    Peer,
    /// A summary took the place of earlier entries.
    Summary,
    /// An entry of the application.
    Custom,
    /// The model thought.
    Thinking,
    /// The model replied.
    Reply,
    /// The model called a tool.
    Call,
    /// The result of a call.
    Result,
    /// The received part of an incomplete reply.
    Heard,
    /// The received part of a void attempt.
    Void,
    /// Something waits for the outside.
    Pause,
    /// A pause was answered.
    Answer,
    /// An agent was opened under a call.
    Agent,
    /// A limit was reached.
    Limit,
    /// A hook denied something.
    Denied,
    /// A caller requested to cancel the run.
    Cancel,
    /// Something failed.
    Failure,
    /// A run ended.
    End,
    /// Something else that changed what happened next.
    Note,
}

/// A part of a session's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShownPage {
    /// The messages and actions, in order.
    pub items: Vec<TimelineItem>,
    /// The record after which the next page begins; `None` if this is the last one.
    pub next: Option<Seq>,
}

/// The messages and actions of a session, in order.
pub type ShownStream = Pin<Box<dyn Stream<Item = Result<TimelineItem, JournalError>> + Send>>;

/// A log that is being converted to a timeline.
struct Telling {
    records: RecordStream,
    narrator: Narrator,
    ready: VecDeque<TimelineItem>,
    is_over: bool,
}

impl Sessions {
    /// Returns the current timeline of a session, with sub-agents at their depth.
    ///
    /// # Errors
    /// As the last item: `Missing`, `Corrupt`, `Version`, `Io`.
    pub fn show(&self, id: &LogId) -> ShownStream {
        let (journal, id) = (Arc::clone(&self.journal), id.clone());
        let begin = async move {
            let name = match journal.info(&id).await {
                Ok(info) => info.about.agent,
                Err(error) if error.kind == JournalErrorKind::Unsupported => None,
                Err(error) => return stream::iter([Err(error)]).boxed(),
            };
            let narrator = Narrator::new(name.unwrap_or_else(|| "agent".into()));
            let records = journal.read(&id, Seq(0));
            tell(Telling {
                records,
                narrator,
                ready: VecDeque::new(),
                is_over: false,
            })
        };
        Box::pin(stream::once(begin).flatten())
    }

    /// Returns about this many items after a record: the items of one record are never split.
    ///
    /// The records before the page are read again; a reader of many pages is better served by
    /// [`show`](Sessions::show).
    ///
    /// # Errors
    /// `Missing`, `Corrupt`, `Version`, `Io`.
    pub async fn show_page(
        &self,
        id: &LogId,
        after: Seq,
        limit: usize,
    ) -> Result<ShownPage, JournalError> {
        let mut page = ShownPage {
            items: Vec::new(),
            next: None,
        };
        let mut shown = self.show(id);
        while let Some(item) = shown.next().await {
            let item = item?;
            let last = page.items.last().map(|last| last.seq);
            if page.items.len() >= limit.max(1) && last.is_some_and(|last| last < item.seq) {
                page.next = last;
                break;
            }
            if item.seq > after {
                page.items.push(item);
            }
        }
        Ok(page)
    }
}

fn tell(telling: Telling) -> ShownStream {
    let step = |mut telling: Telling| async move {
        loop {
            if let Some(shown) = telling.ready.pop_front() {
                return Some((Ok(shown), telling));
            }
            if telling.is_over {
                return None;
            }
            match telling.records.next().await {
                Some(Ok(stamped)) => telling.ready.extend(telling.narrator.tell(&stamped)),
                Some(Err(error)) => {
                    telling.is_over = true;
                    return Some((Err(error), telling));
                }
                None => {
                    telling.is_over = true;
                    telling.ready.extend(telling.narrator.rest());
                }
            }
        }
    };
    Box::pin(stream::unfold(telling, step))
}

/// The kind in one word, as it is written in JSON.
impl fmt::Display for ShownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Prompt => "prompt",
            Self::Steering => "steering",
            Self::FollowUp => "follow_up",
            Self::Reminder => "reminder",
            Self::Task => "task",
            Self::Peer => "peer",
            Self::Summary => "summary",
            Self::Custom => "custom",
            Self::Thinking => "thinking",
            Self::Reply => "reply",
            Self::Call => "call",
            Self::Result => "result",
            Self::Heard => "heard",
            Self::Void => "void",
            Self::Pause => "pause",
            Self::Answer => "answer",
            Self::Agent => "agent",
            Self::Limit => "limit",
            Self::Denied => "denied",
            Self::Cancel => "cancel",
            Self::Failure => "failure",
            Self::End => "end",
            Self::Note => "note",
        };
        f.pad(name)
    }
}
