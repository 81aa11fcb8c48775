//! The stage: models that answer by what they are shown, children of every kind of pause, and what a log must hold.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{
    Agent, Answered, LogId, MemoryJournal, Outcome, Pause, PauseId, Record, Run, RunResult, Stamped,
};
use adjutant_llm::{
    CallResult, Entry, FixedWorld, Model, ModelInfo, Request, ScriptedModel, ThreadId, World,
    model_fn,
};
use adjutant_tool::{Answer, Approval, CallContext, ErasedTool, Replay, ToolSpec, external_tool};
use serde_json::json;

use super::desk::{calls, open, records, said, says, tool};

pub(crate) const LOG: &str = "log";

/// Calls these tools when it is told `Go.`, and answers everything else.
pub(crate) fn by_entry(
    tools: &'static [&'static str],
    answer: &'static str,
) -> impl Model + 'static {
    model_fn(ModelInfo::new("scripted/model"), move |request: Request| {
        let go = request
            .entries
            .last()
            .is_some_and(|it| it.entry == Entry::User("Go.".into()));
        let script = if go { calls(tools) } else { says(answer) };
        ScriptedModel::new([script]).stream(request)
    })
}

/// How a child comes to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Approval,
    Body,
    External,
}

pub(crate) const WAYS: [Waits; 3] = [Waits::Approval, Waits::Body, Waits::External];

impl Waits {
    fn tool(self) -> Box<dyn Fn(Agent) -> Agent> {
        let spec = || ToolSpec::new("step", "A tool.", json!({"type": "object"}));
        match self {
            Waits::Approval => Box::new(move |agent| {
                agent.tool(adjutant_tool::tool_fn(
                    ToolSpec {
                        approval: Approval::Always,
                        ..spec()
                    },
                    |_: serde_json::Value, _| async { Ok(CallResult::ok("stepped")) },
                ))
            }),
            Waits::Body => Box::new(|agent| agent.tool(asks())),
            Waits::External => Box::new(move |agent| agent.tool(external_tool(spec()))),
        }
    }

    pub(crate) fn child(self) -> Agent {
        self.tool()(Agent::new(by_entry(&["step"], "Stepped on.")).name("kid"))
    }

    pub(crate) fn answer(self) -> Answer {
        match self {
            Waits::Approval => Answer::approve(),
            Waits::Body => Answer::give("this"),
            Waits::External => Answer::Return {
                result: CallResult::ok("stepped elsewhere").into(),
            },
        }
    }

    pub(crate) fn wrong(self) -> Answer {
        match self {
            Waits::Approval => Answer::give("yes"),
            Waits::Body | Waits::External => Answer::approve(),
        }
    }
}

fn asks() -> impl ErasedTool + 'static {
    tool("step", Replay::Resumable, |cx: CallContext| async move {
        Ok(CallResult::ok(cx.ask("what", "What?").await?.to_string()))
    })
}

/// A resumable tool that prompts one child.
pub(crate) fn through(
    child: impl Fn() -> Agent + Send + Sync + 'static,
) -> impl ErasedTool + 'static {
    tool("work", Replay::Resumable, move |cx| {
        let child = child();
        async move { Ok(said(&open(&cx, "kid", child).await?.run("Go.").await?)) }
    })
}

/// The first agent, over a journal.
pub(crate) fn boss(journal: &MemoryJournal, work: impl ErasedTool + 'static) -> Agent {
    let agent = Agent::new(by_entry(&["work"], "Done."))
        .name("boss")
        .tool(work)
        .world(FixedWorld::at_ms(1_000));
    agent
        .journal(journal.clone())
        .session(LogId(LOG.into()))
        .take_over()
}

pub(crate) fn pauses(result: &RunResult) -> Vec<Arc<Pause>> {
    let Outcome::Paused { pauses } = &result.outcome else {
        unreachable!("not paused: {:?}", result.outcome)
    };
    pauses.clone()
}

pub(crate) fn answered(pause: &PauseId, answer: Answer) -> Answered {
    Answered {
        pause: pause.clone(),
        answer,
        shown: None,
    }
}

/// The log is contiguous, every thread folds, the session rests; gives the folds.
pub(crate) async fn check(journal: &MemoryJournal) -> BTreeMap<ThreadId, Run> {
    let log = log(journal).await;
    let mut runs: BTreeMap<ThreadId, Run> = BTreeMap::new();
    let mut began: BTreeMap<ThreadId, (usize, usize)> = BTreeMap::new();
    for (seq, stamped) in (1..).zip(&log) {
        assert_eq!(stamped.seq.0, seq, "a gap");
        runs.entry(stamped.thread.clone())
            .or_default()
            .apply(stamped)
            .expect("the log folds");
        let bounds = began.entry(stamped.thread.clone()).or_default();
        match &stamped.record {
            Record::Began { .. } => bounds.0 += 1,
            Record::Ended { .. } => bounds.1 += 1,
            _ => {}
        }
    }
    let main = ThreadId::from("main");
    assert!(
        runs.get(&main).is_none_or(|run| !run.is_open()),
        "the first run is open"
    );
    assert!(
        began.get(&main).is_none_or(|(began, ended)| began == ended),
        "one end for each run"
    );
    runs
}

pub(crate) async fn log(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    records(journal, &LogId(LOG.into())).await
}

pub(crate) fn count(log: &[Arc<Stamped>], word: &str) -> usize {
    log.iter()
        .filter(|it| super::desk::record(&it.record) == word)
        .count()
}

/// A world whose clock is that of the paused runtime.
#[derive(Debug)]
pub(crate) struct Clock(pub(crate) tokio::time::Instant);

impl World for Clock {
    fn now_ms(&self) -> u64 {
        1_000 + u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn id(&self) -> u128 {
        7
    }

    fn unit(&self) -> f64 {
        0.5
    }
}
