//! The messages of a session, and the list of sessions, read from the log.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use adjutant_agent::{
    Event, EventKind, Events, Journal, LogId, LogInfo, LogQuery, PageMark, Record, Seq, Stamped,
    sessions::Sessions,
};
use adjutant_llm::{Entry, Origin, ThreadId};
use adjutant_tool::Identity;
use futures_util::StreamExt;

use super::{
    Glances, MessagePage, MessagesRequest, SessionMessage, SessionPage, SessionsRequest,
    glance::MAX_READ, session, told,
};
use crate::{Error, ErrorKind};

/// The number of records that are first read for each requested message.
const RECORDS: u64 = 8;
/// The maximum number of sessions that are inspected for a filtered page.
pub(super) const MAX_LOOKED: usize = 2_000;
/// The maximum number of messages in one record, for cursors.
const WITHIN: u64 = 1 << 20;

/// Returns the latest messages of a session, or the messages before a cursor.
///
/// Reads the end of the log, and more of it only if that has too few messages: the cost of a page does not depend on
/// the length of the log.
pub(super) async fn messages(
    journal: &dyn Journal,
    log: &LogId,
    request: &MessagesRequest,
) -> Result<MessagePage, Error> {
    let limit = session::page(request.limit)?;
    let head = journal.info(log).await.map_err(told::journal_error)?.head.0;
    let first = journal
        .read(log, Seq(0))
        .next()
        .await
        .transpose()
        .map_err(told::journal_error)?;
    let Some(first) = first else {
        return Ok(MessagePage::default());
    };
    // A cursor is the number of a record, and of a message in it.
    let until = request.before.unwrap_or(u64::MAX);
    let last = head.min(until / WITHIN);
    let mut span = RECORDS.saturating_mul(limit as u64);
    loop {
        let after = last.saturating_sub(span);
        let found = read(journal, log, &first.thread, (after, last)).await?;
        let mut page: VecDeque<(u64, SessionMessage)> = found
            .iter()
            .flatten()
            .filter(|(mark, _)| *mark < until)
            .cloned()
            .collect();
        if after > 0 && (found.is_none() || page.len() <= limit) {
            span = span.saturating_mul(4);
            continue;
        }
        let more = page.len() > limit;
        page.drain(..page.len().saturating_sub(limit));
        let before = page.front().filter(|_| more).map(|(mark, _)| *mark);
        return Ok(MessagePage {
            messages: page.into_iter().map(|(_, message)| message).collect(),
            before,
        });
    }
}

/// Returns the messages of the records in a range with their cursors, from the first turn that begins in it; `None` if
/// earlier records are needed.
async fn read(
    journal: &dyn Journal,
    log: &LogId,
    thread: &ThreadId,
    (after, last): (u64, u64),
) -> Result<Option<Vec<(u64, SessionMessage)>>, Error> {
    let (mut reader, mut all, mut has_begun) = (HistoryReader::new(thread), Vec::new(), after == 0);
    let mut queued = BTreeSet::new();
    let mut records = journal.read(log, Seq(after));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(told::journal_error)?;
        if stamped.seq.0 > last {
            break;
        }
        if stamped.thread != *thread {
            continue;
        }
        has_begun |= matches!(stamped.record, Record::Began { .. } | Record::Opened { .. });
        match &stamped.record {
            Record::Queued { item, .. } => drop(queued.insert(*item)),
            // Its text is at the position where it was queued.
            Record::Placed { items, .. }
                if after > 0 && has_begun && !items.iter().all(|it| queued.contains(it)) =>
            {
                return Ok(None);
            }
            _ => {}
        }
        let told = reader.read(&stamped);
        if has_begun {
            all.extend(
                (0..)
                    .zip(told)
                    .map(|(at, message)| (stamped.seq.0 * WITHIN + at, message)),
            );
        }
    }
    Ok(has_begun.then_some(all))
}

/// Returns the sessions, the most recently changed first.
pub(super) async fn sessions(
    sessions: &Sessions,
    glances: &Glances,
    request: &SessionsRequest,
) -> Result<SessionPage, Error> {
    let limit = session::page(request.limit)?;
    let after = request.after.as_deref().map(mark).transpose()?;
    let mut query = LogQuery {
        limit,
        after,
        ..LogQuery::default()
    };
    let wanted = request.search.as_ref().map(|text| text.to_lowercase());
    let is_choice = wanted.is_some() || request.state.is_some();
    let (mut page, mut looked, mut most) = (SessionPage::default(), 0, MAX_READ);
    loop {
        let found = sessions.list(&query).await.map_err(told::journal_error)?;
        for info in found.logs {
            looked += 1;
            if wanted
                .as_ref()
                .is_some_and(|wanted| !is_about(&info, wanted))
            {
                continue;
            }
            let here = mark_of(&info);
            let told = glances.at(sessions, info, &mut most).await?;
            if request.state.is_none_or(|state| state == told.state) {
                page.sessions.push(told);
            }
            if is_choice && page.sessions.len() == limit {
                page.after = Some(here);
                return Ok(page);
            }
        }
        match found.next {
            Some(next) if is_choice && looked < MAX_LOOKED => query.after = Some(next),
            next => {
                page.after = next.as_ref().map(format_mark);
                return Ok(page);
            }
        }
    }
}

/// True if the metadata of a session contains a lower-case text.
fn is_about(info: &LogInfo, wanted: &str) -> bool {
    let about = &info.about;
    let mut texts = [
        Some(&info.log.0),
        about.title.as_ref(),
        about.agent.as_ref(),
    ]
    .into_iter()
    .flatten()
    .chain(&about.labels);
    texts.any(|text| text.to_lowercase().contains(wanted))
}

pub(super) fn format_mark(mark: &PageMark) -> String {
    format!("{}:{}", mark.updated_ms, mark.log.0)
}

/// Returns the cursor after a session.
pub(super) fn mark_of(info: &LogInfo) -> String {
    format_mark(&PageMark {
        updated_ms: info.updated_ms,
        log: info.log.clone(),
    })
}

pub(super) fn mark(text: &str) -> Result<PageMark, Error> {
    let parts = text
        .split_once(':')
        .and_then(|(at, log)| Some((at.parse().ok()?, session::check(log).ok()?)));
    match parts {
        Some((updated_ms, log)) => Ok(PageMark { updated_ms, log }),
        None => Err(Error::new(
            ErrorKind::Invalid,
            "the mark is none that a page has given",
        )),
    }
}

/// Creates messages from the records of the lead; records of subagents are omitted.
struct HistoryReader {
    thread: ThreadId,
    events: Events,
}

impl HistoryReader {
    fn new(thread: &ThreadId) -> Self {
        let who = Arc::new(Identity::root(thread.clone(), "", ""));
        Self {
            thread: thread.clone(),
            events: Events::new(who),
        }
    }

    fn read(&mut self, stamped: &Stamped) -> Vec<SessionMessage> {
        let mut messages = Vec::new();
        if stamped.thread != self.thread {
            return messages;
        }
        if let Record::Seeded { entries } = &stamped.record {
            entries
                .iter()
                .for_each(|entry| add_entry(entry, stamped.at_ms, &mut messages));
        }
        self.events
            .fold(stamped, |event| add_event(&event, &mut messages));
        messages
    }
}

fn add_event(event: &Event, messages: &mut Vec<SessionMessage>) {
    match &event.kind {
        EventKind::EntryAdded { content } => add_entry(content, event.at_ms, messages),
        EventKind::ReplyFinished { reply, .. } => {
            add("assistant", reply.text(), event.at_ms, messages)
        }
        EventKind::ToolFinished { result, .. } => add("tool", result.text(), event.at_ms, messages),
        _ => {}
    }
}

fn add_entry(entry: &Entry, at_ms: u64, messages: &mut Vec<SessionMessage>) {
    match entry {
        // A reminder is for the model and has no author.
        Entry::User(message) if !matches!(message.origin, Origin::Reminder { .. }) => {
            let texts: Vec<&str> = message
                .content
                .iter()
                .filter_map(|it| it.as_text())
                .collect();
            add("user", texts.join("\n"), at_ms, messages);
        }
        Entry::Turn(turn) => {
            add("assistant", turn.reply().text(), at_ms, messages);
            turn.pairs()
                .for_each(|(_, result)| add("tool", result.text(), at_ms, messages));
        }
        _ => {}
    }
}

/// A reply that only calls tools has no text, and is not a message.
fn add(role: &str, text: String, at_ms: u64, messages: &mut Vec<SessionMessage>) {
    if !text.is_empty() {
        messages.push(SessionMessage {
            role: role.into(),
            text,
            at_ms,
        });
    }
}
