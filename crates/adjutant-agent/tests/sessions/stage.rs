//! What the tests of sessions share: logs with all that can be in them, and journals that fail.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Agent, Epoch, Flush, Head, Journal, JournalError, JournalErrorKind, Log, LogId, LogInfo,
    LogPage, LogQuery, MemoryJournal, Outcome, Owner, Record, RecordStream, Seq, SessionMeta,
    Sessions, Spawn, Stamped, StoredRecord,
};
use adjutant_llm::{CallResult, FixedWorld, Script, ScriptedModel, ThreadId};
use adjutant_tool::{
    Answer, Approval, CallContext, ErasedTool, Replay, ToolError, ToolSpec, tool_fn,
};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};

pub(crate) fn id(name: &str) -> LogId {
    LogId::from(name)
}

pub(crate) fn sessions(journal: &MemoryJournal) -> Sessions {
    Sessions::new(Arc::new(journal.clone()))
}

/// The names of all logs, hidden ones too.
pub(crate) async fn all(journal: &MemoryJournal) -> Vec<LogId> {
    let query = LogQuery {
        limit: 1_000,
        ..LogQuery::default()
    };
    let page = journal.list(&query).await.expect("memory does not fail");
    let mut names: Vec<LogId> = page.logs.into_iter().map(|info| info.log).collect();
    names.sort();
    names
}

#[track_caller]
pub(crate) fn kind<T>(result: Result<T, JournalError>) -> JournalErrorKind {
    result.err().expect("it fails").kind
}

/// An error and what caused it.
pub(crate) fn message(error: &JournalError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

pub(crate) async fn records(journal: &MemoryJournal, log: &LogId) -> Vec<Arc<Stamped>> {
    journal
        .read(log, Seq(0))
        .map(|read| read.expect("memory does not fail"))
        .collect()
        .await
}

pub(crate) async fn stored(journal: &MemoryJournal, log: &LogId) -> Vec<StoredRecord> {
    journal
        .read_stored(log, Seq(0))
        .map(|read| read.expect("memory does not fail"))
        .collect()
        .await
}

/// A log of these records.
pub(crate) async fn write(journal: &MemoryJournal, name: &str, records: &[Arc<Stamped>]) {
    let mut log = journal
        .own(&id(name), &Owner::default())
        .await
        .expect("the log is free");
    log.append(records, Flush::Now)
        .await
        .expect("memory does not fail");
}

/// Records of the thread `main`, one behind the other.
pub(crate) fn stamped(records: impl IntoIterator<Item = Record>) -> Vec<Arc<Stamped>> {
    let stamp = |(seq, record)| {
        Arc::new(Stamped::new(
            Seq(seq),
            1_000 + seq,
            ThreadId::from("main"),
            record,
        ))
    };
    (1..).zip(records).map(stamp).collect()
}

pub(crate) fn tool<F, Fut>(spec: ToolSpec, body: F) -> impl ErasedTool + 'static
where
    F: Fn(CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    tool_fn(spec, move |_: Value, cx: CallContext| body(cx))
}

pub(crate) fn spec(name: &'static str) -> ToolSpec {
    ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new(name, "A tool.", json!({"type": "object"}))
    }
}

/// An agent that asks a helper, writes with approval, and answers.
pub(crate) fn agent(journal: &MemoryJournal) -> Agent {
    let script = [
        Script::new()
            .thinking(adjutant_llm::Thinking::new("Hm."))
            .text("Let me see.")
            .call("ask", json!({"q": 1})),
        Script::new().call("write", json!({"n": 1})),
        Script::new().text("Done."),
        Script::new().text("Bye."),
    ];
    let ask = tool(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("ask")
        },
        |cx| async move {
            let helper =
                Agent::new(ScriptedModel::new([Script::new().text("Yes.")])).name("helper");
            let child = cx
                .get::<dyn Spawn>()
                .expect("a call of a run")
                .open("a", helper.into())
                .await?;
            Ok(CallResult::ok(child.run("Well?").await?.text()))
        },
    );
    let write = tool(
        ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        },
        |_| async { Ok(CallResult::ok("written")) },
    );
    let agent = Agent::new(ScriptedModel::new(script))
        .name("boss")
        .world(FixedWorld::at_ms(1_000));
    agent.tool(ask).tool(write).journal(journal.clone())
}

/// A log with a child, a pause and its answer, and two runs.
pub(crate) async fn log(journal: &MemoryJournal, name: &str) -> Vec<Arc<Stamped>> {
    let agent = agent(journal).session(id(name));
    let paused = agent.run("Go.").await.expect("the run waits");
    let Outcome::Paused { pauses } = &paused.outcome else {
        unreachable!("it waits: {paused:?}")
    };
    let answer = pauses[0].with_answer(Answer::approve());
    agent.resume(vec![answer]).await.expect("the run finishes");
    agent.run("Bye.").await.expect("the run finishes");
    records(journal, &id(name)).await
}

/// A journal that can only what every journal must.
#[derive(Debug)]
pub(crate) struct Bare(pub(crate) MemoryJournal);

#[async_trait]
impl Journal for Bare {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.0.own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }
}

/// A journal that is full after so many appends.
#[derive(Debug, Clone)]
pub(crate) struct Full {
    pub(crate) journal: MemoryJournal,
    pub(crate) left: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FullLog(Box<dyn Log>, Arc<AtomicUsize>);

pub(crate) fn full() -> JournalError {
    JournalError::new(JournalErrorKind::Io, "the disk is full")
}

/// Takes one away, if there is one.
fn take(from: &AtomicUsize) -> bool {
    from.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    })
    .is_ok()
}

#[async_trait]
impl Journal for Full {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(FullLog(
            self.journal.own(log, owner).await?,
            Arc::clone(&self.left),
        )))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.journal.read(log, after)
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        self.journal.info(log).await
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        self.journal.list(query).await
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        self.journal.describe(log, about).await
    }

    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        self.journal.rename(from, to).await
    }

    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        self.journal.delete(log).await
    }
}

#[async_trait]
impl Log for FullLog {
    fn head(&self) -> Head {
        Head {
            epoch: Epoch(1),
            ..self.0.head()
        }
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        if take(&self.1) {
            self.0.append(batch, flush).await
        } else {
            Err(full())
        }
    }
}
