//! An executor over a world that outlives it: every step burns fuel, and an empty tank is a crash.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use adjutant_agent::{
    Activity, ActivityId, Admission, Error, Executor, Flush, JournalError, JournalErrorKind,
    Limits, Log, Record, Run, RunNo, Seq, Stamped,
};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, FinishReason, Reply, Status, UserMessage,
};
use adjutant_tool::Replay;
use bytes::Bytes;
use serde_json::Value;

/// How many replies call tools before the last one answers.
const TURNS_WITH_CALLS: u64 = 6;

/// What a crash does not touch: the bytes of the log, and what was done to the world.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) log: Vec<Bytes>,
    pub(crate) ran: BTreeMap<CallId, u32>,
    pub(crate) fuel: usize,
}

pub(crate) type Shared = Arc<Mutex<Outside>>;

/// Performs acts at once, the newest first, so that nothing comes back in the order it was started in.
pub(crate) struct FuelPort {
    outside: Shared,
    busy: BTreeSet<ActivityId>,
    todo: Vec<Activity>,
    batch: Vec<Arc<Stamped>>,
}

pub(crate) fn lock(outside: &Shared) -> MutexGuard<'_, Outside> {
    outside.lock().expect("nobody panics inside")
}

/// A world in which one run has begun.
pub(crate) fn begun() -> Shared {
    let outside = Shared::default();
    let prompts = vec![Entry::User(UserMessage::text("Go on."))];
    append(
        &outside,
        vec![Record::began(RunNo(1), prompts, Limits::default())],
    );
    outside
}

/// The replay class of a call, by its block.
pub(crate) fn class(call: CallId) -> Replay {
    [
        Replay::Once,
        Replay::Pure,
        Replay::Idempotent,
        Replay::Resumable,
    ][call.block as usize % 4]
}

/// The fold of the bytes, as a new process makes it.
pub(crate) fn fold(outside: &Shared) -> Run {
    let mut run = Run::default();
    for bytes in &lock(outside).log {
        let stamped: Stamped = serde_json::from_slice(bytes).expect("the log reads back");
        run.apply(&stamped).expect("the log folds");
    }
    run
}

fn append(outside: &Shared, records: Vec<Record>) -> Vec<Arc<Stamped>> {
    let mut outside = lock(outside);
    let stamp = |record| {
        let stamped = Stamped::new(Seq(outside.log.len() as u64 + 1), 0, "main".into(), record);
        outside
            .log
            .push(stamped.bytes().expect("a record is JSON").clone());
        Arc::new(stamped)
    };
    records.into_iter().map(stamp).collect()
}

fn reply(turn: u64) -> Reply {
    let mut reply = Reply::new("outside/model".into(), FinishReason::End);
    let blocks = if turn > TURNS_WITH_CALLS { 0 } else { 4 };
    let call = |block| Call {
        id: CallId {
            turn,
            attempt: 0,
            block,
        },
        wire_id: None,
        name: "tool".into(),
        args: "{}".into(),
        extra: Default::default(),
    };
    reply.blocks = (0..blocks)
        .map(|block| Arc::new(Block::Call(call(block))))
        .collect();
    reply
}

impl FuelPort {
    pub(crate) fn new(outside: &Shared) -> Self {
        Self {
            outside: Arc::clone(outside),
            busy: BTreeSet::new(),
            todo: Vec::new(),
            batch: Vec::new(),
        }
    }

    fn burn(&self) -> Result<(), Error> {
        let mut outside = lock(&self.outside);
        outside.fuel = match outside.fuel.checked_sub(1) {
            Some(left) => left,
            None => return Err(JournalError::new(JournalErrorKind::Io, "a crash").into()),
        };
        Ok(())
    }

    fn perform(&self, act: Activity) -> Result<Record, Error> {
        Ok(match act {
            Activity::Prepare { turn } => {
                Record::turn_prepared(turn, "outside/model".into(), Vec::new())
            }
            Activity::Ask { turn, .. } => {
                Record::reply_received(turn, Arc::new(reply(turn.0)), None)
            }
            Activity::Admit { call } => {
                let replay = class(call);
                let admission = Admission::Allow {
                    args: "{}".into(),
                    changed: false,
                    title: None,
                    replay,
                    sequential: false,
                };
                Record::Admitted { call, admission }
            }
            Activity::Call {
                call,
                replay: Replay::Resumable,
                ..
            } => self.enter(call)?,
            Activity::Call { call, .. } => {
                *lock(&self.outside).ran.entry(call).or_default() += 1;
                returned(call, Status::Ok)
            }
            Activity::Settle { turn } => Record::turn_settled(turn),
            _ => return Err(Error::Stuck),
        })
    }

    /// A body that is entered from the top, with one step that must not be done twice.
    fn enter(&self, call: CallId) -> Result<Record, Error> {
        let log = lock(&self.outside).log.clone();
        let records = || {
            log.iter().map(|it| {
                serde_json::from_slice::<Stamped>(it)
                    .expect("the log reads back")
                    .record
            })
        };
        if records()
            .any(|record| matches!(record, Record::Noted { call: noted, .. } if noted == call))
        {
            return Ok(returned(call, Status::Ok));
        }
        if records()
            .any(|record| matches!(record, Record::Begun { call: begun, .. } if begun == call))
        {
            return Ok(returned(call, Status::OutcomeUnknown));
        }
        append(
            &self.outside,
            vec![Record::Begun {
                call,
                key: "step".into(),
            }],
        );
        self.burn()?;
        *lock(&self.outside).ran.entry(call).or_default() += 1;
        self.burn()?;
        append(
            &self.outside,
            vec![Record::Noted {
                call,
                key: "step".into(),
                value: Value::Null,
            }],
        );
        self.burn()?;
        Ok(returned(call, Status::Ok))
    }
}

fn returned(call: CallId, status: Status) -> Record {
    Record::call_returned(call, CallResult::new(status, "done"))
}

impl Executor for FuelPort {
    fn busy(&self) -> &BTreeSet<ActivityId> {
        &self.busy
    }

    fn start(&mut self, _: &Run, act: Activity, _: &mut Vec<Record>) {
        self.busy.insert(act.id());
        self.todo.push(act);
    }

    fn stop(&mut self, _: &[ActivityId]) {}

    async fn next(&mut self, _: Option<u64>, heard: &mut Vec<Record>) -> Result<(), Error> {
        self.burn()?;
        let act = self.todo.pop().ok_or_else(|| Error::Stuck)?;
        let record = self.perform(act)?;
        self.busy.remove(&act.id());
        // Done, and nobody has written it down.
        self.burn()?;
        heard.push(record);
        Ok(())
    }

    async fn commit(&mut self, records: &mut Vec<Record>) -> Result<&[Arc<Stamped>], Error> {
        self.burn()?;
        self.batch = append(&self.outside, std::mem::take(records));
        // Written down, and the one who wrote it does not know.
        self.burn()?;
        Ok(&self.batch)
    }
}

/// A journal in memory whose appends take a while before and after they happen.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlowJournal(pub(crate) adjutant_agent::MemoryJournal);

#[derive(Debug)]
struct SlowLog(Box<dyn Log>);

#[async_trait::async_trait]
impl adjutant_agent::Journal for SlowJournal {
    async fn own(
        &self,
        log: &adjutant_agent::LogId,
        owner: &adjutant_agent::Owner,
    ) -> Result<Box<dyn Log>, JournalError> {
        tokio::task::yield_now().await;
        Ok(Box::new(SlowLog(self.0.own(log, owner).await?)))
    }

    fn read(&self, log: &adjutant_agent::LogId, after: Seq) -> adjutant_agent::RecordStream {
        self.0.read(log, after)
    }
}

#[async_trait::async_trait]
impl Log for SlowLog {
    fn head(&self) -> adjutant_agent::Head {
        self.0.head()
    }

    async fn append(
        &mut self,
        batch: &[Arc<Stamped>],
        flush: Flush,
    ) -> Result<adjutant_agent::Head, JournalError> {
        tokio::task::yield_now().await;
        let head = self.0.append(batch, flush).await;
        tokio::task::yield_now().await;
        head
    }
}
