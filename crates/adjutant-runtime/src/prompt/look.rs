//! Looks into sessions: what their logs tell, no matter who works in them.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{
    Config, DueWork, LogId, LogInfo, LogQuery, PostNo, Record, ResumeItem, Seq, Sessions, Work,
};
use adjutant_llm::{Entry, Request, ToolName};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{Glances, MAX_HEARD, glance::is_driven, session, shown_request, told};
use crate::{Error, ErrorKind};

/// The largest number of sessions of workers that are told, and of those that are looked at for them.
const MAX_TOLD: usize = 100;
const MAX_LOOKED: usize = 10_000;
/// The number of records at the end of a log in which the beginning of a run is looked for first.
const TAIL: u64 = 256;

/// A look into a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Look {
    /// The sessions that it was forked from, and those that were forked from it.
    Tree,
    /// Where it parts from another session.
    Diff {
        /// The other session.
        with: Arc<str>,
    },
    /// What would be done again if it went on, and what today's requests would be made with otherwise.
    Explain,
    /// The request of the turn that a record belongs to.
    Request {
        /// The record.
        seq: u64,
    },
    /// What its requests are made of, in tokens.
    Context {
        /// Only requests behind this record.
        after: u64,
        /// The number of requests, 1 to 1,000; 50 without it.
        limit: Option<u32>,
    },
    /// Where it stands, and where its newest run began.
    Run,
    /// The same, and which messages of pages it has heard.
    Heard {
        /// What their pages call them, at most [`MAX_HEARD`](super::MAX_HEARD).
        messages: Vec<Arc<str>>,
    },
    /// What is due among all sessions, and who works; no session is named.
    Fleet,
}

impl Look {
    /// The route of this look, and its query.
    pub(crate) fn asked(&self) -> (&'static str, Vec<(&'static str, String)>) {
        match self {
            Self::Tree => ("/tree", Vec::new()),
            Self::Diff { with } => ("/diff", vec![("with", with.to_string())]),
            Self::Explain => ("/explain", Vec::new()),
            Self::Request { seq } => ("/request", vec![("seq", seq.to_string())]),
            Self::Context { after, limit } => {
                let limit = limit.map(|limit| ("limit", limit.to_string()));
                (
                    "/context",
                    [("after", after.to_string())]
                        .into_iter()
                        .chain(limit)
                        .collect(),
                )
            }
            Self::Run => ("/run", Vec::new()),
            Self::Heard { messages } => ("/run", vec![("messages", json!(messages).to_string())]),
            Self::Fleet => ("/fleet", Vec::new()),
        }
    }
}

/// Looks into a session of a journal.
pub(super) async fn look(
    sessions: &Sessions,
    glances: &Glances,
    due: Option<&Arc<dyn DueWork>>,
    name: &str,
    look: &Look,
) -> Result<Value, Error> {
    if let Look::Fleet = look {
        let due = due.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "the store does not know what of it is due",
            )
        })?;
        return fleet(&**due).await;
    }
    let log = session::check(name)?;
    let info = sessions
        .journal()
        .info(&log)
        .await
        .map_err(told::of_journal)?;
    Ok(match look {
        Look::Run | Look::Heard { .. } => {
            let began = began(sessions, &info).await?;
            let heard = match look {
                Look::Heard { messages } => Some(heard(sessions, &info, messages).await?),
                _ => None,
            };
            let is_due = match &info.work {
                Some(_) => info.due_ms == Some(0),
                // What is posted to a session without a record waits for somebody who begins it.
                None if info.head == Seq(0) => !sessions
                    .journal()
                    .posted(&log, PostNo::default())
                    .await
                    .map_err(told::of_journal)?
                    .is_empty(),
                None => is_driven(&info),
            };
            // Whether a run has ended in a copy is known from its records alone.
            let stands = glances.at(sessions, info, &mut u64::MAX.clone()).await?;
            let mut told = json!({"state": stands.state, "head": stands.records});
            if is_due {
                told["due"] = true.into();
            }
            if let Some(began) = began {
                told["began"] = json!(began);
            }
            if let Some(heard) = heard {
                told["heard"] = json!(heard);
            }
            told
        }
        Look::Tree => json!(sessions.tree(&log).await.map_err(told::of_journal)?),
        Look::Diff { with } => {
            let with = session::check(with)?;
            json!(sessions.diff(&log, &with).await.map_err(told::of_journal)?)
        }
        Look::Explain => json!({"again": again(sessions, &log).await?}),
        Look::Request { seq } => shown_request::request(sessions, &log, Seq(*seq)).await?,
        Look::Context { after, limit } => {
            let asked = (Seq(*after), session::page(*limit)?);
            let (requests, after) = shown_request::context(sessions, &log, asked).await?;
            match after {
                Some(after) => json!({"requests": requests, "after": after}),
                None => json!({"requests": requests}),
            }
        }
        Look::Fleet => Value::Null,
    })
}

/// The record that the newest run of the first agent began with. The log is read back to it and no further.
async fn began(sessions: &Sessions, info: &LogInfo) -> Result<Option<Seq>, Error> {
    let journal = sessions.journal();
    let first = journal
        .read(&info.log, Seq(0))
        .next()
        .await
        .transpose()
        .map_err(told::of_journal)?;
    let Some(first) = first else { return Ok(None) };
    let mut most = TAIL;
    loop {
        let after = Seq(info.head.0.saturating_sub(most));
        let (mut found, mut records) = (None, journal.read(&info.log, after));
        while let Some(stamped) = records.next().await {
            let stamped = stamped.map_err(told::of_journal)?;
            if stamped.seq > info.head {
                break;
            }
            if stamped.thread == first.thread && matches!(stamped.record, Record::Began { .. }) {
                found = Some(stamped.seq);
            }
        }
        if found.is_some() || after == Seq(0) {
            return Ok(found);
        }
        most = most.saturating_mul(4);
    }
}

/// The messages of these that the log names as heard, each with the record that its run began with.
async fn heard(
    sessions: &Sessions,
    info: &LogInfo,
    messages: &[Arc<str>],
) -> Result<BTreeMap<Arc<str>, Seq>, Error> {
    if messages.len() > MAX_HEARD {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("{MAX_HEARD} messages at most are looked for"),
        ));
    }
    // Of the first agent: the run that is open, or the newest, and what was said before it began.
    let (mut heard, mut first, mut began, mut is_open) = (BTreeMap::new(), None, Seq(0), false);
    let mut early = Vec::new();
    let mut records = sessions.journal().read(&info.log, Seq(0));
    while !messages.is_empty()
        && let Some(stamped) = records.next().await
    {
        let stamped = stamped.map_err(told::of_journal)?;
        if *first.get_or_insert_with(|| stamped.thread.clone()) != stamped.thread {
            continue;
        }
        match &stamped.record {
            Record::Began { prompts, .. } => {
                (began, is_open) = (stamped.seq, true);
                let ids = prompts.iter().flat_map(named).chain(early.drain(..));
                heard.extend(ids.map(|id| (id, began)));
            }
            Record::Ended { .. } => is_open = false,
            Record::Queued { content, .. } if is_open => {
                heard.extend(named(content).map(|id| (id, began)))
            }
            Record::Queued { content, .. } => early.extend(named(content)),
            _ => {}
        }
    }
    heard.retain(|id, _| messages.contains(id));
    Ok(heard)
}

/// What a page calls a message.
fn named(entry: &Entry) -> impl Iterator<Item = Arc<str>> {
    let ids = match entry {
        Entry::User(message) => message.ids.clone(),
        _ => Vec::new(),
    };
    ids.into_iter()
}

/// Adds to the tools of a request what they are, as far as they are the same today.
pub(super) fn declare(told: &mut Value, request: &Request, now: &Config) {
    for tool in told
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let declared = request.tools.iter().find(|it| it.name.as_str() == name);
        let Some(declared) = declared else { continue };
        let is_same = |name: &ToolName| {
            now.tools.get(name).map(|it| json!(it)) == tool.get("digest").cloned()
        };
        if is_same(&declared.name)
            && let Some(tool) = tool.as_object_mut()
        {
            tool.insert("description".to_owned(), json!(declared.description));
            tool.insert("schema".to_owned(), json!(declared.schema));
        }
    }
}

async fn again(sessions: &Sessions, log: &LogId) -> Result<Vec<Value>, Error> {
    let again = sessions.explain(log).await.map_err(told::of_journal)?;
    let one = |item: &ResumeItem| {
        let mut told = json!(item);
        let text = json!(item.redo.to_string());
        told.as_object_mut()
            .into_iter()
            .for_each(|told| drop(told.insert("text".to_owned(), text.clone())));
        told
    };
    Ok(again.iter().map(one).collect())
}

/// The work of a journal in numbers, and the sessions that somebody works in, that wait, or that nobody drives.
async fn fleet(due: &dyn DueWork) -> Result<Value, Error> {
    let told = due.backlog().await.map_err(told::of_journal)?;
    let (mut shown, mut query, mut looked) = (
        Vec::new(),
        LogQuery {
            limit: 1_000,
            ..LogQuery::default()
        },
        0,
    );
    loop {
        let page = due.list(&query).await.map_err(told::of_journal)?;
        looked += page.logs.len();
        let stands = |info: &LogInfo| !matches!(info.work, None | Some(Work::Idle));
        shown.extend(page.logs.into_iter().filter(stands));
        if shown.len() >= MAX_TOLD || looked >= MAX_LOOKED || page.next.is_none() {
            break;
        }
        query.after = page.next;
    }
    shown.truncate(MAX_TOLD);
    let mut fleet = json!({
        "due": told.due, "at_work": told.at_work, "parked": told.parked, "aside": told.aside, "sessions": shown,
    });
    if let (Some(oldest), Some(fleet)) = (told.oldest, fleet.as_object_mut()) {
        fleet.insert("oldest_ms".to_owned(), json!(oldest.as_millis() as u64));
    }
    Ok(fleet)
}
