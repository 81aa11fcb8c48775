//! Another engine: it performs the activities of a run sequentially, with only the public API of the core.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use adjutant::{
    CallContext,
    agent::{
        Activity, ActivityId, Admission, Agent, Error, Executor, Exit, Failure, Flush, Journal,
        Limits, Log, LogId, MemoryJournal, OpenCall, Owner, Record, Run, RunNo, Seq, Stamped,
        commit, drive,
    },
    llm::{
        CallId, CallResult, Entry, Model, Request, Script, ScriptedModel, Status, ThreadId,
        complete,
    },
    tool,
    tools::{Bound, Toolset},
};
use serde_json::json;

/// Doubles a whole number.
#[tool]
fn double(number: i64) -> i64 {
    number * 2
}

/// Performs acts in their order; nothing is in flight while it does something else.
struct Engine {
    model: Arc<dyn Model>,
    tools: Toolset,
    log: Box<dyn Log>,
    busy: BTreeSet<ActivityId>,
    /// The next activities, with all required data of the run.
    work: VecDeque<(ActivityId, Work)>,
    /// The last recorded batch.
    batch: Vec<Arc<Stamped>>,
}

enum Work {
    Records(Vec<Record>),
    Ask(Request),
    Call(Bound, Arc<str>),
}

impl Engine {
    fn new(model: impl Model + 'static, tools: Toolset, log: Box<dyn Log>) -> Self {
        Self {
            model: Arc::new(model),
            tools,
            log,
            busy: BTreeSet::new(),
            work: VecDeque::new(),
            batch: Vec::new(),
        }
    }

    /// The decision about a call: it runs, with these arguments, or it does not.
    fn admit(&self, run: &Run, id: CallId) -> Admission {
        let refuse = |result: CallResult| Admission::Refuse {
            result: Arc::new(result),
        };
        let Some(open) = run.calls().call(id) else {
            return refuse(CallResult::new(Status::Failed, "no such call"));
        };
        let call = open.call;
        let Some(tool) = self.tools.get(call.name.as_str()) else {
            return refuse(CallResult::new(Status::UnknownTool, "no such tool"));
        };
        match tool.admit(Arc::clone(&call.args)) {
            Ok(fits) => {
                let (args, replay) = (Arc::clone(&fits.text), tool.spec().replay);
                Admission::Allow {
                    args,
                    changed: fits.changed,
                    title: None,
                    replay,
                    sequential: true,
                }
            }
            Err(refusal) => refuse(CallResult::new(Status::InvalidArguments, refusal.message)),
        }
    }
}

impl Executor for Engine {
    fn busy(&self) -> &BTreeSet<ActivityId> {
        &self.busy
    }

    fn start(&mut self, run: &Run, act: Activity, ended: &mut Vec<Record>) {
        let work = match act {
            Activity::Prepare { turn } => Work::Records(vec![Record::turn_prepared(
                turn,
                self.model.info().id.clone(),
                Vec::new(),
            )]),
            // The run defines the content; every engine sends the same bytes.
            Activity::Ask { turn, attempt } => {
                let mut request = Request::from_entries(run.request().transcript());
                request.tools = Arc::clone(self.tools.hiding(run.request().hidden()).decls());
                (request.turn, request.attempt) = (Some(turn.0), attempt);
                Work::Ask(request)
            }
            Activity::Admit { call } => Work::Records(vec![Record::Admitted {
                call,
                admission: self.admit(run, call),
            }]),
            Activity::Call { call, .. } => match run.calls().call(call) {
                Some(OpenCall {
                    call: named,
                    args: Some((args, _)),
                    ..
                }) => match self.tools.get(named.name.as_str()) {
                    Some(tool) => Work::Call(tool.clone(), Arc::clone(args)),
                    None => Work::Records(vec![Record::call_returned(
                        call,
                        CallResult::new(Status::Failed, "it is gone"),
                    )]),
                },
                _ => Work::Records(Vec::new()),
            },
            // There is no responder here: the run parks, and another program resumes it with the answers.
            Activity::Answer { pause } => {
                let pause = run.waiting().pause(pause).map(|pause| pause.id.clone());
                Work::Records(
                    pause
                        .into_iter()
                        .map(|pause| Record::Unanswered { pause })
                        .collect(),
                )
            }
            Activity::Settle { turn } => Work::Records(vec![Record::turn_settled(turn)]),
        };
        // An activity that ends immediately is never in flight.
        if let Work::Records(records) = work {
            return ended.extend(records);
        }
        self.busy.insert(act.id());
        self.work.push_back((act.id(), work));
    }

    fn stop(&mut self, acts: &[ActivityId]) {
        self.work.retain(|(act, _)| !acts.contains(act));
        self.busy.retain(|act| !acts.contains(act));
    }

    async fn next(&mut self, _: Option<u64>, heard: &mut Vec<Record>) -> Result<(), Error> {
        let (act, work) = self.work.pop_front().ok_or(Error::Stuck)?;
        match (act, work) {
            (ActivityId::Ask(turn), Work::Ask(request)) => {
                heard.push(match complete(&*self.model, request).await {
                    Ok(reply) => Record::reply_received(turn, reply, None),
                    Err(error) => Record::Broke {
                        act,
                        failure: Failure::Model { error },
                    },
                })
            }
            (ActivityId::Call(call), Work::Call(tool, args)) => {
                let args = serde_json::from_str(&args).unwrap_or_default();
                let result = tool.call(args, CallContext::detached()).await;
                let result = result
                    .unwrap_or_else(|error| CallResult::new(Status::Failed, error.to_string()));
                heard.push(Record::call_returned(call, result));
            }
            _ => {}
        }
        self.busy.remove(&act);
        Ok(())
    }

    async fn commit(&mut self, records: &mut Vec<Record>) -> Result<&[Arc<Stamped>], Error> {
        let first = self.log.head().seq.0 + 1;
        let stamp =
            |(seq, record)| Arc::new(Stamped::new(Seq(seq), 0, ThreadId::from("main"), record));
        self.batch = (first..).zip(records.drain(..)).map(stamp).collect();
        self.log.append(&self.batch, Flush::Now).await?;
        Ok(&self.batch)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        Script::new().call("double", json!({"number": 21})),
        Script::new().text("Twice your number is 42."),
    ]);
    let (journal, log) = (MemoryJournal::default(), LogId::from("numbers"));
    let tools = Toolset::new([Bound::new(double)]);
    let mut engine = Engine::new(model, tools, journal.own(&log, &Owner::default()).await?);

    let mut run = Run::default();
    let prompts = vec![Entry::User("What is twice 21?".into())];
    let began = Record::began(RunNo(run.run().0 + 1), prompts, Limits::default());
    commit(&mut run, &mut engine, vec![began]).await?;
    let Exit::Done(outcome) = drive(&mut run, &mut engine).await? else {
        return Err("the run did not end".into());
    };
    println!("{} after {} records", outcome.kind(), run.seq());
    drop(engine);

    // The log is an ordinary one: an agent continues it.
    let agent = Agent::new(ScriptedModel::new([
        Script::new().text("And 84 is twice that.")
    ]));
    let result = agent
        .journal(journal)
        .session(log)
        .run("And twice that?")
        .await?;
    println!("run {}: {}", result.run, result.text());
    Ok(())
}
