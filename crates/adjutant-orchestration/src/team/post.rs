//! Messages between the agents of a team: permitted receivers, forwarding, and read messages.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{Verdict, points::TeamMessage};
use adjutant_llm::UserMessage;
use serde_json::json;

use super::{
    LEAD, Message, MessageKind, Pick,
    recipe::ALL,
    roster::{MessageHeader, Roster, State},
    texts,
};
use crate::{Error, ErrorKind};

/// The largest number of bytes in one message.
pub(super) const MAX_CONTENT: usize = 8 * 1024;
/// The largest number of messages that are read at a time.
const MAX_READ: usize = 20;
/// The largest number of bytes of messages that are read at a time.
const MAX_READ_BYTES: usize = 48 * 1024;

/// The outcome of sending a message.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) id: Arc<str>,
    pub(super) to: Vec<Arc<str>>,
    pub(super) not_to: BTreeMap<Arc<str>, Error>,
}

impl Roster {
    /// Sends a text of an agent to another one, or to all others.
    pub(super) async fn say(&self, from: &str, to: &str, content: &str) -> Result<Sent, Error> {
        check(content)?;
        self.recipients(from, to)?;
        let line = self.line().ok_or_else(closed)?;
        let (from, asked): (Arc<str>, Arc<str>) = (from.into(), to.into());
        let point = TeamMessage::new(
            Arc::clone(&self.plan.name),
            Arc::clone(&from),
            asked,
            content.into(),
        );
        let point = match line.pass(point).await {
            Verdict::Pass(point) => point,
            Verdict::Deny(reason) => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("the message was not passed on: {reason}"),
                ));
            }
        };
        check(&point.content)?;
        let to = self.recipients(&from, &point.to)?;
        let sent = self
            .deliver(&from, &point.to, to, MessageKind::Said, &point.content)
            .await?;
        line.app(
            "team.message",
            1,
            self.event(&sent, &from, &point.to, &point.content),
        );
        match sent.not_to.values().next() {
            Some(error) if sent.to.is_empty() => Err(error.clone()),
            _ => Ok(sent),
        }
    }

    /// Notifies the lead of a member's end; with a note if its mailbox is full.
    pub(super) async fn notify(&self, from: &Arc<str>, kind: MessageKind, content: &str) {
        let sent = self
            .deliver(from, LEAD, vec![LEAD.into()], kind, content)
            .await;
        let (id, received_by) = sent.map(|sent| (sent.id, sent.to)).unwrap_or_default();
        let reached = !received_by.is_empty();
        if let Some(line) = self.line() {
            let notice = json!({
                "team": self.plan.name, "id": id, "from": from, "to": LEAD, "kind": kind, "at_ms": self.now_ms(),
                "content": content, "received_by": received_by,
            });
            line.app("team.notice", 1, notice);
        }
        if reached {
            return;
        }
        let note = UserMessage::text(format!("[team {}] {content}", self.plan.name));
        if let Some(Err(error)) = self.line().map(|line| line.steer(note)) {
            tracing::warn!("the lead of a team could not be told of {from:?}: {error}");
        }
    }

    /// Takes the oldest messages of an agent.
    pub(super) async fn read(
        &self,
        name: &str,
        from: Option<&Arc<str>>,
    ) -> Result<Vec<Message>, Error> {
        let to = {
            let state = self.state();
            if state.closed {
                return Err(closed());
            }
            self.address_of(&state, name)
        };
        let mut pick = Pick::new(MAX_READ, MAX_READ_BYTES);
        pick.from = from.cloned();
        let messages = self.plan.mailbox.receive(&to, &pick).await?;
        let mut state = self.state();
        if let Some(unread) = state.unread.get_mut(name) {
            unread.retain(|header| {
                !messages
                    .iter()
                    .any(|message| message.id == texts::message_id(header.number))
            });
        }
        Ok(messages)
    }

    /// Adds a message to the queues of its recipients; returns those whose queue is full.
    async fn deliver(
        &self,
        from: &Arc<str>,
        asked: &str,
        to: Vec<Arc<str>>,
        kind: MessageKind,
        content: &str,
    ) -> Result<Sent, Error> {
        let number = {
            let mut state = self.state();
            if state.closed {
                return Err(closed());
            }
            state.sent += 1;
            state.sent
        };
        let (id, at_ms) = (texts::message_id(number), self.now_ms());
        let message = Message {
            id: Arc::clone(&id),
            from: Arc::clone(from),
            to: asked.into(),
            at_ms,
            kind,
            content: content.into(),
        };
        let mut sent = Sent {
            id,
            to: Vec::new(),
            not_to: BTreeMap::new(),
        };
        for name in to {
            let header = MessageHeader {
                number,
                from: Arc::clone(from),
                kind,
            };
            match self.put(&name, header, message.clone()).await {
                Ok(()) => sent.to.push(name),
                Err(error) => drop(sent.not_to.insert(name, error)),
            }
        }
        self.bump();
        Ok(sent)
    }

    async fn put(
        &self,
        name: &Arc<str>,
        header: MessageHeader,
        message: Message,
    ) -> Result<(), Error> {
        let number = header.number;
        // Known before it is there: who reads it finds it listed.
        let to = {
            let mut state = self.state();
            may_receive(&state, name)?;
            state
                .unread
                .entry(Arc::clone(name))
                .or_default()
                .push_back(header);
            self.address_of(&state, name)
        };
        let sent = self.plan.mailbox.send(&to, message).await;
        sent.map_err(|error| {
            let mut state = self.state();
            if let Some(unread) = state.unread.get_mut(name) {
                unread.retain(|header| header.number != number);
            }
            let hint = "hint: it must read before it can be sent more";
            Error::new(
                error.kind(),
                format!("{name:?} was not reached: {}; {hint}", error.message()),
            )
        })
    }

    /// Returns the recipients of a message.
    fn recipients(&self, from: &str, to: &str) -> Result<Vec<Arc<str>>, Error> {
        let state = self.state();
        if state.closed {
            return Err(closed());
        }
        if to == ALL {
            let lead = Arc::from(LEAD);
            let all = state.active().map(|(name, _)| name).chain([&lead]);
            let others: Vec<Arc<str>> = all.filter(|name| ***name != *from).cloned().collect();
            let nobody = || Error::new(ErrorKind::Missing, "no other member of the team is active");
            return if others.is_empty() {
                Err(nobody())
            } else {
                Ok(others)
            };
        }
        if to == from {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a message to oneself goes nowhere",
            ));
        }
        may_receive(&state, to)?;
        Ok(vec![to.into()])
    }

    fn event(&self, sent: &Sent, from: &str, to: &str, content: &Arc<str>) -> serde_json::Value {
        json!({
            "team": self.plan.name, "id": sent.id, "from": from, "to": to, "received_by": sent.to,
            "at_ms": self.now_ms(), "kind": MessageKind::Said, "content": content,
        })
    }
}

/// Fails if a message cannot be sent to an agent of this name.
fn may_receive(state: &State, name: &str) -> Result<(), Error> {
    if name == LEAD || state.is_active(name) {
        return Ok(());
    }
    Err(match state.members.get(name) {
        Some(member) => Error::new(
            ErrorKind::Closed,
            format!(
                "{name:?} is not at work: {}; hint: the lead can give it a new task",
                member.status.words()
            ),
        ),
        None => unknown(state, name),
    })
}

/// There is no agent with this name.
pub(super) fn unknown(state: &State, name: &str) -> Error {
    let known = texts::names(state.members.keys().chain([&Arc::from(LEAD)]));
    Error::new(
        ErrorKind::Missing,
        format!("nobody in the team is called {name:?}; hint: there are {known}"),
    )
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the team's run has ended")
}

fn check(content: &str) -> Result<(), Error> {
    if content.trim().is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "`content` is blank: say something",
        ));
    }
    if content.len() > MAX_CONTENT {
        let message = format!(
            "`content` has {} bytes, and may have {MAX_CONTENT}",
            content.len()
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}
