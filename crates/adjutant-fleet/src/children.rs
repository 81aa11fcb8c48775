//! Children of sessions on workers: each is a session that begins with its order, and whose end answers the pause of
//! its parent. The outcome of a child is only in its log; its post just saves the parent from reading it.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use adjutant_agent::{
    Answered, ChildLink, ChildOrder, ChildReport, DueWork, Flush, JournalError, JournalErrorKind,
    LogId, Outcome, Owner, Pause, Placement, Post, PostNo, Record, Run, RunResult, Seq,
    SessionMeta, Stamped, Work,
};
use adjutant_llm::{Block, CallResult, SystemWorld, Terminate, ThreadId, World};
use adjutant_tool::{Answer, Identity, ToolError};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::time::sleep;

/// The kind of the record that holds an order.
const ORDER: &str = "child.ordered";
/// The version of its content.
const VERSION: u32 = 1;
/// The thread of the first agent of a session.
const ROOT: &str = "main";
/// The largest number of characters of an answer to the parent.
const MAX_TOLD: usize = 100_000;
/// The number of retries of a storage that is down, and the first delay, which doubles each time. In total half a
/// minute: the run cannot continue without that storage either.
const TRIES: (u32, Duration) = (9, Duration::from_millis(50));

/// Children run as sessions of a journal, wherever a worker is free.
///
/// The agents of a [`Fleet`](crate::Fleet) over this journal must include those of its children:
/// [`ChildRole::from_info`](adjutant_agent::ChildRole::from_info) returns the agent that a session needs. The parent's session must
/// be driven by such a worker too, or be resumed by its driver.
#[derive(Clone)]
pub struct FleetPlacement {
    journal: Arc<dyn DueWork>,
}

impl FleetPlacement {
    /// Children in this journal, which must be the journal of their parents.
    pub fn new(journal: impl DueWork + 'static) -> Self {
        Self {
            journal: Arc::new(journal),
        }
    }
}

#[async_trait]
impl Placement for FleetPlacement {
    async fn begin(&self, order: ChildOrder) -> Result<ChildLink, ToolError> {
        let failed = |error| {
            ToolError::failed("the agent could not be started on another worker").with_source(error)
        };
        let link = patiently(|| begin(&*self.journal, &order))
            .await
            .map_err(failed)?;
        link.ok_or_else(|| {
            ToolError::failed(format!(
                "the session {:?} is something else",
                order.session.0
            ))
        })
    }

    async fn stop(&self, child: &LogId) -> Result<(), ToolError> {
        let failed = |error| {
            ToolError::failed("the stop request could not be sent to the agent on another worker")
                .with_source(error)
        };
        stop(&*self.journal, child).await.map_err(failed)
    }
}

/// Does something at a storage that may be away for a while.
pub(crate) async fn patiently<T, D: Future<Output = Result<T, JournalError>>>(
    work: impl Fn() -> D,
) -> Result<T, JournalError> {
    for tried in 0..TRIES.0 {
        match work().await {
            Err(error) if error.is_retryable() => sleep(TRIES.1 * 2_u32.pow(tried)).await,
            done => return done,
        }
    }
    work().await
}

/// Starts a child; returns the existing one, or `None` if its session has another purpose.
async fn begin(
    journal: &dyn DueWork,
    order: &ChildOrder,
) -> Result<Option<ChildLink>, JournalError> {
    let is_there = match journal.info(&order.session).await {
        Ok(info) => info.head > Seq(0),
        Err(error) if error.kind == JournalErrorKind::Missing => false,
        Err(error) => return Err(error),
    };
    if !is_there {
        // An empty log belongs to a process that was about to start the same child.
        let owner = Owner {
            takes_over: true,
            ..Owner::default()
        };
        let mut log = journal.own(&order.session, &owner).await?;
        if log.head().seq == Seq(0) {
            journal
                .describe(&order.session, SessionMeta::from(&order.role))
                .await?;
            let unfit = |error| {
                JournalError::new(JournalErrorKind::Invalid, "an order is not JSON")
                    .with_source(error)
            };
            let data = serde_json::to_value(order).map_err(unfit)?;
            let record = Record::App {
                kind: ORDER.into(),
                version: VERSION,
                data,
            };
            let stamped = Stamped::new(Seq(1), SystemWorld.now_ms(), ThreadId::from(ROOT), record);
            log.mark(Work::Open);
            log.append(&[Arc::new(stamped)], Flush::Now).await?;
            return Ok(Some(order.into()));
        }
    }
    let known = read_order(journal, &order.session).await?;
    let is_same =
        |known: &ChildOrder| (&known.parent, &known.pause) == (&order.parent, &order.pause);
    Ok(known.filter(is_same).map(|known| ChildLink::from(&known)))
}

/// The order that a session began with; `None` if it is no child.
pub(crate) async fn read_order(
    journal: &dyn DueWork,
    log: &LogId,
) -> Result<Option<ChildOrder>, JournalError> {
    let first = journal.read(log, Seq(0)).next().await.transpose()?;
    let Some(Record::App { kind, data, .. }) = first.as_ref().map(|first| &first.record) else {
        return Ok(None);
    };
    Ok(if **kind == *ORDER {
        ChildOrder::deserialize(data).ok()
    } else {
        None
    })
}

/// Requests a child to stop, unless it has ended.
async fn stop(journal: &dyn DueWork, child: &LogId) -> Result<(), JournalError> {
    match journal.info(child).await {
        Ok(info) if matches!(info.work, None | Some(Work::Open | Work::Parked { .. })) => {
            journal.post(child, Post::Cancel).await.map(drop)
        }
        Err(error) if error.kind != JournalErrorKind::Missing => Err(error),
        _ => Ok(()),
    }
}

/// True if a stop request was posted.
pub(crate) async fn is_stopped(journal: &dyn DueWork, log: &LogId) -> Result<bool, JournalError> {
    Ok(journal
        .read_posts(log, PostNo(0))
        .await?
        .iter()
        .any(|posted| posted.post == Post::Cancel))
}

/// Requests all children of a session's newest run to stop, except those that have ended.
pub(crate) async fn stop_all(journal: &dyn DueWork, parent: &LogId) -> Result<(), JournalError> {
    let (mut children, mut records) = (BTreeSet::new(), journal.read(parent, Seq(0)));
    while let Some(stamped) = records.next().await {
        let stamped = stamped?;
        match &stamped.record {
            Record::Began { .. } if stamped.thread.as_str() == ROOT => children.clear(),
            Record::Noted { value, .. } => {
                children.extend(ChildLink::deserialize(value).map(|link| link.child))
            }
            _ => {}
        }
    }
    for child in children {
        stop(journal, &child).await?;
    }
    Ok(())
}

/// The answers to the pauses whose children have ended, or cannot end.
pub(crate) async fn answers(
    journal: &dyn DueWork,
    pauses: &[Arc<Pause>],
) -> Result<Vec<Answered>, JournalError> {
    let mut answers = Vec::new();
    for (pause, link) in pauses
        .iter()
        .filter_map(|pause| Some((pause, ChildLink::from_pause(pause)?)))
    {
        let answer = match journal.info(&link.child).await {
            Ok(info) => match info.work {
                Some(Work::Aside { why }) => {
                    Some(decline_answer(format!("its session was set aside: {why}")))
                }
                Some(Work::Idle) => Some(answer(journal, &link.child).await?),
                // It may have reported this already, before its parent waited.
                _ => report(journal, &link.child).await?.map(return_answer),
            },
            Err(error) if error.kind == JournalErrorKind::Missing => {
                Some(decline_answer("its session is gone"))
            }
            Err(error) => return Err(error),
        };
        answers.extend(answer.map(|answer| pause.with_answer(answer)));
    }
    Ok(answers)
}

/// Reports a child's outcome to its parent, and marks the child as done. Until then its log is due.
pub(crate) async fn tell(
    journal: &dyn DueWork,
    child: &LogId,
    owner: &Owner,
) -> Result<(), JournalError> {
    if let Some(order) = read_order(journal, child).await? {
        post(journal, order, answer(journal, child).await?).await?;
    }
    let mut log = journal.own(child, owner).await?;
    log.mark(Work::Idle);
    log.append(&[], Flush::Lazy).await.map(drop)
}

/// Reports to a parent that its child is no longer driven.
pub(crate) async fn give_up(
    journal: &dyn DueWork,
    child: &LogId,
    why: &str,
) -> Result<(), JournalError> {
    match read_order(journal, child).await? {
        Some(order) => {
            post(
                journal,
                order,
                decline_answer(format!("its session was set aside: {why}")),
            )
            .await
        }
        None => Ok(()),
    }
}

async fn post(
    journal: &dyn DueWork,
    order: ChildOrder,
    answer: Answer,
) -> Result<(), JournalError> {
    let ChildOrder {
        session,
        parent,
        pause,
        ..
    } = order;
    match journal
        .post(
            &parent,
            Post::Answer {
                pause,
                answer,
                shown: None,
            },
        )
        .await
    {
        // The parent checks later.
        Err(error) if !error.is_retryable() => {
            tracing::warn!(%error, log = %session, "nobody hears what came of a child")
        }
        posted => drop(posted?),
    }
    Ok(())
}

fn decline_answer(why: impl Into<Arc<str>>) -> Answer {
    Answer::Decline {
        message: Some(why.into()),
    }
}

/// The answer to the parent of a child that is done.
async fn answer(journal: &dyn DueWork, child: &LogId) -> Result<Answer, JournalError> {
    Ok(report(journal, child)
        .await?
        .map_or_else(|| decline_answer("its session holds no run"), return_answer))
}

fn return_answer(report: ChildReport) -> Answer {
    let text = report.result.text();
    let details = serde_json::to_value(report).unwrap_or_default();
    Answer::Return {
        result: Arc::new(CallResult {
            details,
            ..CallResult::ok(text)
        }),
    }
}

/// The outcome of a child's first run; `None` if it has not ended.
pub(crate) async fn report(
    journal: &dyn DueWork,
    child: &LogId,
) -> Result<Option<ChildReport>, JournalError> {
    let (mut run, mut records) = (Run::default(), journal.read(child, Seq(0)));
    while let Some(stamped) = records.next().await {
        let stamped = stamped?;
        if stamped.thread.as_str() != ROOT {
            continue;
        }
        if run.outcome().is_some() && matches!(stamped.record, Record::Began { .. }) {
            break;
        }
        run.apply(&stamped).map_err(|error| {
            JournalError::new(
                JournalErrorKind::Corrupt,
                "the log of a child does not fold",
            )
            .with_source(error)
        })?;
    }
    let who = Arc::new(Identity::root(ThreadId::from(ROOT), &*child.0, &*child.0));
    let tally = run.request().tally();
    let result = run.outcome().is_some().then(|| run.result(&who)).flatten();
    Ok(result.map(|result| ChildReport {
        result: short(result),
        tally,
    }))
}

/// The part of a result for the parent: the answer, truncated, and the calls that ended the run.
fn short(mut result: RunResult) -> RunResult {
    let cut = |text: String| text.chars().take(MAX_TOLD).collect::<String>();
    if let Some(reply) = &mut result.reply {
        let text = cut(reply.text());
        let reply = Arc::make_mut(reply);
        reply.blocks = vec![Arc::new(Block::text(text))];
    }
    if let (Outcome::Finished { reply, .. }, Some(short)) = (&mut result.outcome, &result.reply) {
        *reply = Arc::clone(short);
    }
    result.entries.clear();
    result
        .calls
        .retain(|call| call.result.terminate == Terminate::Now);
    result
}

impl fmt::Debug for FleetPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetPlacement")
            .field(&self.journal)
            .finish()
    }
}
