//! Mailboxes: where messages between agents wait. A trait, and its form in memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::{Error, ErrorKind};

/// The largest number of messages that wait for one recipient, unless another number is set.
const MAX_MESSAGES: usize = 100;
/// The largest number of bytes of messages that wait for one recipient, unless another number is set.
const MAX_BYTES: usize = 256 * 1024;

/// A place where messages between the agents of teams wait until they are read.
///
/// One mailbox serves many runs at a time: each run of a lead has its own room. A message is given to one receiver
/// only.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a mailbox",
    note = "`MemoryMailbox` is one; a mailbox sends, receives and waits"
)]
pub trait Mailbox: Send + Sync {
    /// Puts a message at the end of the recipient's line.
    ///
    /// # Errors
    /// `Full` if it does not fit: nothing is dropped for it; `Closed` if the room was closed.
    async fn send(&self, to: &Address, message: Message) -> Result<(), Error>;

    /// Takes the oldest matching messages, in order; empty without any.
    ///
    /// # Errors
    /// `Closed` if the room was closed.
    async fn receive(&self, to: &Address, pick: &Pick) -> Result<Vec<Message>, Error>;

    /// Waits until there is a matching message; takes none.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// `Closed` if the room was closed.
    async fn wait(&self, to: &Address, pick: &Pick) -> Result<(), Error>;

    /// Opens a recipient's line; more than once is the same as once.
    fn open(&self, _to: &Address) {}

    /// Closes a room whose messages will not be read.
    fn close(&self, _room: &str) {}
}

/// The place where a recipient's messages wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Address {
    /// The run of a team, permanently unique.
    pub room: Arc<str>,
    /// The recipient, unique in its room.
    pub name: Arc<str>,
}

/// The choice of messages to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pick {
    /// Only messages of this sender.
    pub from: Option<Arc<str>>,
    /// The largest number of messages; 0 counts as 1.
    pub most: usize,
    /// The largest number of bytes of content; one message is always taken.
    pub max_bytes: usize,
}

/// A message between agents of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// `msg-<n>`, unique in its room; the copies of a broadcast share it.
    pub id: Arc<str>,
    /// The sender.
    pub from: Arc<str>,
    /// The recipient; `*` for all others.
    pub to: Arc<str>,
    /// The time when it was sent, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The kind of message.
    pub kind: MessageKind,
    /// The text of the message.
    pub content: Arc<str>,
}

/// The kind of a message: a text of an agent, or news of the team about the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageKind {
    /// A text of the sender.
    Said,
    /// The sender is done; the content is its result.
    Completed,
    /// The sender failed.
    Failed,
    /// The sender was stopped.
    Stopped,
    /// The sender took too long.
    TimedOut,
}

/// A mailbox in memory; cheap to clone.
#[derive(Debug, Clone)]
pub struct MemoryMailbox {
    rooms: Arc<Mutex<HashMap<Arc<str>, Room>>>,
    arrived: Arc<Notify>,
    max_messages: usize,
    max_bytes: usize,
}

type Room = HashMap<Arc<str>, RecipientQueue>;

/// The messages that wait for one recipient.
#[derive(Debug, Default)]
struct RecipientQueue {
    messages: VecDeque<Message>,
    bytes: usize,
}

impl Address {
    /// The line of a recipient in a room.
    pub fn new(room: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            room: room.into(),
            name: name.into(),
        }
    }
}

impl Pick {
    /// A mailbox with these limits of messages and bytes of content.
    pub fn new(most: usize, max_bytes: usize) -> Self {
        Self {
            from: None,
            most,
            max_bytes,
        }
    }

    /// Only messages of this sender.
    #[must_use]
    pub fn from(mut self, sender: impl Into<Arc<str>>) -> Self {
        self.from = Some(sender.into());
        self
    }

    /// True if a message matches.
    pub fn fits(&self, message: &Message) -> bool {
        self.from.as_ref().is_none_or(|from| *from == message.from)
    }
}

impl MemoryMailbox {
    /// 100 messages and 262,144 bytes for each recipient.
    pub fn new() -> Self {
        Self {
            rooms: Arc::default(),
            arrived: Arc::default(),
            max_messages: MAX_MESSAGES,
            max_bytes: MAX_BYTES,
        }
    }

    /// Sets how many messages, and how many bytes of them, wait for one recipient.
    #[must_use]
    pub fn limits(mut self, messages: usize, bytes: usize) -> Self {
        (self.max_messages, self.max_bytes) = (messages, bytes);
        self
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<Arc<str>, Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, to: &Address, pick: &Pick) -> Result<bool, Error> {
        let mut rooms = self.rooms();
        Ok(line(&mut rooms, to)?
            .messages
            .iter()
            .any(|message| pick.fits(message)))
    }
}

impl Default for MemoryMailbox {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Mailbox for MemoryMailbox {
    async fn send(&self, to: &Address, message: Message) -> Result<(), Error> {
        {
            let mut rooms = self.rooms();
            let line = line(&mut rooms, to)?;
            let bytes = line.bytes.saturating_add(message.content.len());
            if line.messages.len() >= self.max_messages || bytes > self.max_bytes {
                let (waiting, held) = (line.messages.len(), line.bytes);
                let message =
                    format!("the mailbox is full: {waiting} messages of {held} bytes wait unread");
                return Err(Error::new(ErrorKind::Full, message));
            }
            line.bytes = bytes;
            line.messages.push_back(message);
        }
        self.arrived.notify_waiters();
        Ok(())
    }

    async fn receive(&self, to: &Address, pick: &Pick) -> Result<Vec<Message>, Error> {
        let mut rooms = self.rooms();
        Ok(line(&mut rooms, to)?.take(pick))
    }

    async fn wait(&self, to: &Address, pick: &Pick) -> Result<(), Error> {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            // Registered before the check, so that no notification is missed.
            arrived.as_mut().enable();
            if self.has(to, pick)? {
                return Ok(());
            }
            arrived.await;
        }
    }

    fn open(&self, to: &Address) {
        self.rooms()
            .entry(Arc::clone(&to.room))
            .or_default()
            .entry(Arc::clone(&to.name))
            .or_default();
    }

    fn close(&self, room: &str) {
        self.rooms().remove(room);
        self.arrived.notify_waiters();
    }
}

impl RecipientQueue {
    fn take(&mut self, pick: &Pick) -> Vec<Message> {
        let (mut taken, mut left, mut bytes, mut full) =
            (Vec::new(), VecDeque::new(), 0_usize, false);
        for message in self.messages.drain(..) {
            let size = bytes.saturating_add(message.content.len());
            // Once one does not fit, those after it wait too: the order is kept.
            full =
                full || (!taken.is_empty() && (taken.len() >= pick.most || size > pick.max_bytes));
            if full || !pick.fits(&message) {
                left.push_back(message);
            } else {
                bytes = size;
                taken.push(message);
            }
        }
        self.messages = left;
        self.bytes = self.bytes.saturating_sub(bytes);
        taken
    }
}

fn line<'a>(
    rooms: &'a mut HashMap<Arc<str>, Room>,
    to: &Address,
) -> Result<&'a mut RecipientQueue, Error> {
    let closed = || Error::new(ErrorKind::Closed, "the mailbox is closed");
    let room = rooms.get_mut(&to.room).ok_or_else(closed)?;
    let missing = || {
        Error::new(
            ErrorKind::Missing,
            format!("the mailbox knows no recipient {:?}", &*to.name),
        )
    };
    room.get_mut(&to.name).ok_or_else(missing)
}
