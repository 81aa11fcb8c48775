//! Inspects sessions by their logs, independent of the processes that run them.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{
    Config, DueWork, LogId, LogInfo, LogQuery, PostNo, Record, ResumeItem, Seq, Sessions, Work,
};
use adjutant_llm::{Entry, Request, ToolName};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{Glances, MAX_HEARD, glance::is_driven, session, shown_request, told};
use crate::{Error, ErrorKind};

/// The maximum number of sessions in the list of workers, and of inspected sessions for it.
const MAX_TOLD: usize = 100;
const MAX_LOOKED: usize = 10_000;
/// The number of records at the end of a log that are first searched for the start of a run.
const TAIL: u64 = 256;

/// An inspection of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Look {
    /// Its ancestors and its forks.
    Tree,
    /// The differences to another session.
    Diff {
        /// The other session.
        with: Arc<str>,
    },
    /// The calls that a resume would repeat, and the differences of current requests.
    Explain,
    /// The request of the turn that a record belongs to.
    Request {
        /// The record.
        seq: u64,
    },
    /// The tokens of its requests by category.
    Context {
        /// Only requests after this record.
        after: u64,
        /// The number of requests, 1 to 1,000; 50 by default.
        limit: Option<u32>,
    },
    /// Its state, and the start of its latest run.
    Run,
    /// The same, with the processed messages of clients.
    Heard {
        /// The clients' ids, at most [`MAX_HEARD`](super::MAX_HEARD).
        messages: Vec<Arc<str>>,
    },
    /// The queued sessions of the store, and the workers; without a session.
    Fleet,
}

impl Look {
    /// Returns the route of this inspection, and its query.
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

/// Inspects a session of a journal.
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
        .map_err(told::journal_error)?;
    Ok(match look {
        Look::Run | Look::Heard { .. } => {
            let began = began(sessions, &info).await?;
            let heard = match look {
                Look::Heard { messages } => Some(heard(sessions, &info, messages).await?),
                _ => None,
            };
            let is_due = match &info.work {
                Some(_) => info.due_ms == Some(0),
                // A message in the inbox of a session without records waits for a run.
                None if info.head == Seq(0) => !sessions
                    .journal()
                    .read_posts(&log, PostNo::default())
                    .await
                    .map_err(told::journal_error)?
                    .is_empty(),
                None => is_driven(&info),
            };
            // Only the records of a copy show if its run has ended.
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
        Look::Tree => json!(sessions.tree(&log).await.map_err(told::journal_error)?),
        Look::Diff { with } => {
            let with = session::check(with)?;
            json!(
                sessions
                    .diff(&log, &with)
                    .await
                    .map_err(told::journal_error)?
            )
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

/// Returns the record that started the latest run of the first agent. The log is read backwards up to it.
async fn began(sessions: &Sessions, info: &LogInfo) -> Result<Option<Seq>, Error> {
    let journal = sessions.journal();
    let first = journal
        .read(&info.log, Seq(0))
        .next()
        .await
        .transpose()
        .map_err(told::journal_error)?;
    let Some(first) = first else { return Ok(None) };
    let mut most = TAIL;
    loop {
        let after = Seq(info.head.0.saturating_sub(most));
        let (mut found, mut records) = (None, journal.read(&info.log, after));
        while let Some(stamped) = records.next().await {
            let stamped = stamped.map_err(told::journal_error)?;
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

/// Returns the processed messages among these, each with the record at the start of its run.
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
    // For the first agent: the open run or the latest one, and the messages before its start.
    let (mut heard, mut first, mut began, mut is_open) = (BTreeMap::new(), None, Seq(0), false);
    let mut early = Vec::new();
    let mut records = sessions.journal().read(&info.log, Seq(0));
    while !messages.is_empty()
        && let Some(stamped) = records.next().await
    {
        let stamped = stamped.map_err(told::journal_error)?;
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

/// Returns the client's ids of a message.
fn named(entry: &Entry) -> impl Iterator<Item = Arc<str>> {
    let ids = match entry {
        Entry::User(message) => message.ids.clone(),
        _ => Vec::new(),
    };
    ids.into_iter()
}

/// Adds their descriptions and schemas to the tools of a request, if the tools are unchanged.
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
    let again = sessions.explain(log).await.map_err(told::journal_error)?;
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

/// Returns the numbers of a journal's work queue, and the sessions that are active, waiting, or unfinished.
async fn fleet(due: &dyn DueWork) -> Result<Value, Error> {
    let told = due.backlog().await.map_err(told::journal_error)?;
    let (mut shown, mut query, mut looked) = (
        Vec::new(),
        LogQuery {
            limit: 1_000,
            ..LogQuery::default()
        },
        0,
    );
    loop {
        let page = due.list(&query).await.map_err(told::journal_error)?;
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
