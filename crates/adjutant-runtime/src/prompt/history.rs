//! The messages of a session, and the list of sessions: read from the log, no matter who works in it.

use std::{collections::VecDeque, sync::Arc};

use adjutant_agent::{
    Event, EventKind, Events, Journal, LogId, LogQuery, PageMark, Record, Seq, Stamped, sessions::Sessions,
};
use adjutant_llm::{Entry, Origin, ThreadId};
use adjutant_tool::Identity;
use futures_util::StreamExt;

use super::{MessagePage, MessagesRequest, SessionInfo, SessionMessage, SessionPage, SessionsRequest, session, told};
use crate::{Error, ErrorKind};

/// The newest messages of a session, or those before a mark.
///
/// The log is read from its beginning; what is kept of it meanwhile is one page.
pub(super) async fn messages(
    journal: &dyn Journal,
    log: &LogId,
    request: &MessagesRequest,
) -> Result<MessagePage, Error> {
    let limit = session::page(request.limit)?;
    let (mut page, mut first, mut reader) = (VecDeque::new(), 0_u64, None);
    let until = request.before.unwrap_or(u64::MAX);
    let mut records = journal.read(log, Seq(0));
    'read: while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(told::of_journal)?;
        let reader = reader.get_or_insert_with(|| HistoryReader::new(&stamped.thread));
        for message in reader.read(&stamped) {
            if first + page.len() as u64 >= until {
                break 'read;
            }
            page.push_back(message);
            if page.len() > limit {
                page.pop_front();
                first += 1;
            }
        }
    }
    let before = (first > 0 && !page.is_empty()).then_some(first);
    Ok(MessagePage { messages: page.into(), before })
}

/// The sessions, the one that changed last first.
pub(super) async fn sessions(sessions: &Sessions, request: &SessionsRequest) -> Result<SessionPage, Error> {
    let query = LogQuery {
        limit: session::page(request.limit)?,
        after: request.after.as_deref().map(mark).transpose()?,
        ..LogQuery::default()
    };
    let page = sessions.list(&query).await.map_err(told::of_journal)?;
    let sessions = page.logs.into_iter().map(|info| SessionInfo { name: info.log.0, changed_ms: info.updated_ms });
    let after = page.next.map(|mark| format!("{}:{}", mark.updated_ms, mark.log.0));
    Ok(SessionPage { sessions: sessions.collect(), after })
}

fn mark(text: &str) -> Result<PageMark, Error> {
    let parts = text.split_once(':').and_then(|(at, log)| Some((at.parse().ok()?, session::check(log).ok()?)));
    match parts {
        Some((updated_ms, log)) => Ok(PageMark { updated_ms, log }),
        None => Err(Error::new(ErrorKind::Invalid, "the mark is none that a page has given")),
    }
}

/// Makes messages of the records of whoever leads; those of agents below are left out.
struct HistoryReader {
    thread: ThreadId,
    events: Events,
}

impl HistoryReader {
    fn new(thread: &ThreadId) -> Self {
        let who = Arc::new(Identity::root(thread.clone(), "", ""));
        Self { thread: thread.clone(), events: Events::of(who) }
    }

    fn read(&mut self, stamped: &Stamped) -> Vec<SessionMessage> {
        let mut messages = Vec::new();
        if stamped.thread != self.thread {
            return messages;
        }
        if let Record::Seeded { entries } = &stamped.record {
            entries.iter().for_each(|entry| of_entry(entry, stamped.at_ms, &mut messages));
        }
        self.events.fold(stamped, |event| of_event(&event, &mut messages));
        messages
    }
}

fn of_event(event: &Event, messages: &mut Vec<SessionMessage>) {
    match &event.kind {
        EventKind::EntryAdded { content } => of_entry(content, event.at_ms, messages),
        EventKind::ReplyFinished { reply, .. } => add("assistant", reply.text(), event.at_ms, messages),
        EventKind::ToolFinished { result, .. } => add("tool", result.text(), event.at_ms, messages),
        _ => {}
    }
}

fn of_entry(entry: &Entry, at_ms: u64, messages: &mut Vec<SessionMessage>) {
    match entry {
        // A reminder is for the model: nobody said it.
        Entry::User(message) if !matches!(message.origin, Origin::Reminder { .. }) => {
            let texts: Vec<&str> = message.content.iter().filter_map(|it| it.as_text()).collect();
            add("user", texts.join("\n"), at_ms, messages);
        }
        Entry::Turn(turn) => {
            add("assistant", turn.reply().text(), at_ms, messages);
            turn.pairs().for_each(|(_, result)| add("tool", result.text(), at_ms, messages));
        }
        _ => {}
    }
}

/// A reply that only calls tools has no text, and is no message.
fn add(role: &str, text: String, at_ms: u64, messages: &mut Vec<SessionMessage>) {
    if !text.is_empty() {
        messages.push(SessionMessage { role: role.into(), text, at_ms });
    }
}
