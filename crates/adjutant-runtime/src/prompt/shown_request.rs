//! The requests of a session from its log, and their tokens by category.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{LogId, Record, Run, RunNo, Seq, Sessions, Stamped, TurnNo};
use adjutant_llm::{Block, Content, Entry, Estimate, ModelId, Origin, Reply, ThreadId};
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::told;
use crate::{Error, ErrorKind};

/// A request, without its texts.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ContextRow {
    /// The record of its preparation.
    seq: Seq,
    thread: ThreadId,
    run: RunNo,
    turn: TurnNo,
    model: ModelId,
    tokens: RequestTokens,
    /// The sum of the estimates, without tools, which are not in a log.
    estimated: u64,
    /// The number of tokens that the provider reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
}

/// The tokens of a request by category: estimates, except for `tools`, which is the remainder of the reported number.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct RequestTokens {
    system: u64,
    tools: u64,
    user: u64,
    reminders: u64,
    summaries: u64,
    replies: u64,
    thinking: u64,
    calls: u64,
    results: u64,
    media: u64,
}

/// Returns the requests of a session after a record, up to a maximum number; and the cursor of the next page.
///
/// # Errors
/// The errors of a journal, and `Storage` if the log cannot be folded.
pub(super) async fn context(
    sessions: &Sessions,
    log: &LogId,
    (after, most): (Seq, usize),
) -> Result<(Vec<ContextRow>, Option<Seq>), Error> {
    let mut runs: BTreeMap<ThreadId, Run> = BTreeMap::new();
    let (mut rows, mut asked) = (Vec::<ContextRow>::new(), BTreeMap::<ThreadId, usize>::new());
    let mut records = sessions.journal().read(log, Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(told::journal_error)?;
        let run = runs.entry(stamped.thread.clone()).or_default();
        apply(run, &stamped)?;
        match &stamped.record {
            Record::Prepared {
                model, stop: None, ..
            } if stamped.seq > after => {
                if rows.len() == most {
                    let last = rows.last().map(|row| row.seq);
                    return Ok((rows, last));
                }
                asked.insert(stamped.thread.clone(), rows.len());
                rows.push(ContextRow::from_run(run, &stamped, model));
            }
            Record::Replied {
                reply, original, ..
            } => {
                let row = asked
                    .remove(&stamped.thread)
                    .and_then(|at| rows.get_mut(at));
                row.into_iter()
                    .for_each(|row| row.count(original.as_ref().unwrap_or(reply)));
            }
            _ => {}
        }
    }
    Ok((rows, None))
}

/// Returns the complete request of the turn that a record belongs to; for a record before the request of its turn, that
/// request.
///
/// # Errors
/// The errors of a journal; `Missing` if the record or its request does not exist; `Storage` if the log cannot be
/// folded.
pub(super) async fn request(sessions: &Sessions, log: &LogId, seq: Seq) -> Result<Value, Error> {
    let journal = sessions.journal();
    let missing = |what: &str| {
        Error::new(
            ErrorKind::Missing,
            format!("the session {:?} has no {what} {seq}", log.0),
        )
    };
    let before = Seq(seq.0.checked_sub(1).ok_or_else(|| missing("record"))?);
    let wanted = journal
        .read(log, before)
        .next()
        .await
        .transpose()
        .map_err(told::journal_error)?;
    let thread = wanted.ok_or_else(|| missing("record"))?.thread.clone();
    // The latest request up to the record, or the first one after it.
    let (mut run, mut found): (Run, Option<(ContextRow, Run)>) = (Run::default(), None);
    let mut turn = None;
    let mut records = journal.read(log, Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(told::journal_error)?;
        if stamped.thread != thread {
            continue;
        }
        apply(&mut run, &stamped)?;
        if stamped.seq >= seq {
            turn.get_or_insert(run.turn());
        }
        let is_own = found
            .as_ref()
            .is_some_and(|(row, _)| turn.is_some_and(|turn| row.seq > seq || row.turn == turn));
        match &stamped.record {
            Record::Prepared {
                model, stop: None, ..
            } if !is_own || stamped.seq <= seq => {
                found = Some((ContextRow::from_run(&run, &stamped, model), run.clone()));
            }
            Record::Replied {
                reply,
                original,
                turn,
                ..
            } => {
                let row = found.as_mut().filter(|(row, _)| row.turn == *turn);
                row.into_iter()
                    .for_each(|(row, _)| row.count(original.as_ref().unwrap_or(reply)));
            }
            Record::Opened { .. } if is_own && stamped.seq > seq => break,
            _ => {}
        }
        if is_own
            && stamped.seq >= seq
            && found.as_ref().is_some_and(|(row, _)| row.counted.is_some())
        {
            break;
        }
    }
    let (row, run) = found.ok_or_else(|| missing("request at record"))?;
    Ok(whole(&row, &run))
}

/// Returns a request with its texts.
fn whole(row: &ContextRow, run: &Run) -> Value {
    let entries: Vec<Value> = run
        .request()
        .transcript()
        .iter()
        .map(|stored| json!({"id": stored.id, "entry": stored.entry}))
        .collect();
    let config = run.config();
    let tools = config.into_iter().flat_map(|config| &config.tools);
    let tools: Vec<Value> = tools
        .map(|(name, digest)| json!({"name": name, "digest": digest}))
        .collect();
    let mut told = serde_json::to_value(row).unwrap_or_default();
    if let Some(told) = told.as_object_mut() {
        told.insert("system".to_owned(), json!(system(run)));
        told.insert("entries".to_owned(), Value::Array(entries));
        told.insert("tools".to_owned(), Value::Array(tools));
        told.insert(
            "options".to_owned(),
            config
                .map(|config| config.options.clone())
                .unwrap_or_default(),
        );
    }
    told
}

fn system(run: &Run) -> Option<&Arc<str>> {
    run.terms().and_then(|terms| terms.system.as_ref())
}

fn apply(run: &mut Run, stamped: &Stamped) -> Result<(), Error> {
    run.apply(stamped)
        .map_err(|error| Error::new(ErrorKind::Storage, "the log does not fold").with_source(error))
}

impl ContextRow {
    fn from_run(run: &Run, stamped: &Stamped, model: &ModelId) -> Self {
        let mut tokens = RequestTokens {
            system: system(run).map_or(0, |it| Estimate.count(it)),
            ..Default::default()
        };
        run.request()
            .transcript()
            .iter()
            .for_each(|stored| tokens.add(&stored.entry));
        let (seq, thread, model) = (stamped.seq, stamped.thread.clone(), model.clone());
        let estimated = tokens.sum();
        Self {
            seq,
            thread,
            run: run.run(),
            turn: run.turn(),
            model,
            tokens,
            estimated,
            counted: None,
        }
    }

    fn count(&mut self, reply: &Reply) {
        let counted = reply.usage.input();
        if counted > 0 {
            self.tokens.tools = counted.saturating_sub(self.estimated);
            self.counted = Some(counted);
        }
    }
}

impl RequestTokens {
    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::User(message) => {
                let is_reminder = matches!(message.origin, Origin::Reminder { .. });
                let said = self.contents(&message.content);
                *(if is_reminder {
                    &mut self.reminders
                } else {
                    &mut self.user
                }) += said;
            }
            Entry::Summary(summary) => self.summaries += Estimate.count(&summary.text),
            Entry::Turn(turn) => {
                for block in &turn.reply().blocks {
                    match &**block {
                        Block::Text(said) => self.replies += Estimate.count(&said.text),
                        Block::Thinking(thinking) => {
                            self.thinking += Estimate.count(&thinking.text)
                        }
                        Block::Call(call) => {
                            self.calls +=
                                Estimate.count(call.name.as_str()) + Estimate.count(&call.args);
                        }
                        other => {
                            self.replies += serde_json::to_string(other)
                                .map_or(0, |text| Estimate.count(&text));
                        }
                    }
                }
                for result in turn.results() {
                    self.results += self.contents(&result.content);
                }
            }
            _ => {}
        }
    }

    /// Estimates the tokens of texts; tokens of images and other media are added separately.
    fn contents(&mut self, contents: &[Content]) -> u64 {
        let (texts, media): (Vec<_>, Vec<_>) =
            contents.iter().partition(|it| it.as_text().is_some());
        self.media += media.into_iter().map(Estimate::content).sum::<u64>();
        texts.into_iter().map(Estimate::content).sum()
    }

    fn sum(&self) -> u64 {
        let Self {
            system,
            tools,
            user,
            reminders,
            summaries,
            replies,
            thinking,
            calls,
            results,
            media,
        } = *self;
        system + tools + user + reminders + summaries + replies + thinking + calls + results + media
    }
}
