//! A run with children, pauses and tools of all four classes is cut at every step, and ends as if it never had been.

#[path = "crash/cutting.rs"]
mod cutting;
#[path = "crash/desk.rs"]
mod desk;

use std::{collections::BTreeMap, sync::Arc};

use adjutant::{
    Error, Outcome, RunResult,
    agent::{Answered, Journal, LogId, MemoryJournal, Record, Run, Seq, Stamped},
    llm::{CallResult, Entry, Status, ThreadId, Usage},
    store::Sqlite,
    tools::{Answer, AskKind},
};
use cutting::{Cutting, Fuel, cut, runtime};
use desk::{Deeds, Desk, LOG};
use futures_util::StreamExt;

/// Everything that is left of a session when it has ended.
#[derive(Debug, Clone, PartialEq)]
struct End {
    /// What was said in each thread, call by call.
    said: BTreeMap<ThreadId, Vec<String>>,
    /// What each thread used, itself and with everything under it.
    used: BTreeMap<ThreadId, (Usage, Usage)>,
    outcomes: BTreeMap<ThreadId, Outcome>,
}

/// What is known of a session from its log alone.
struct Log(Vec<Arc<Stamped>>);

impl Log {
    async fn read(journal: &dyn Journal) -> Self {
        let records: Vec<_> = journal.read(&LogId(LOG.into()), Seq(0)).collect().await;
        Self(records.into_iter().filter_map(Result::ok).collect())
    }

    fn threads(&self) -> BTreeMap<ThreadId, Run> {
        let mut threads = BTreeMap::<ThreadId, Run>::new();
        for stamped in &self.0 {
            let run = threads.entry(stamped.thread.clone()).or_default();
            run.apply(stamped).expect("the log folds");
        }
        threads
    }

    fn first(&self) -> Option<Run> {
        self.threads().remove(&ThreadId::from("main"))
    }

    fn end(&self, who: &Arc<adjutant::tools::Identity>) -> End {
        let threads = self.threads();
        let result = |run: &Run| run.result(who).expect("a run was begun");
        End {
            said: threads
                .iter()
                .map(|(thread, run)| (thread.clone(), said(run)))
                .collect(),
            used: threads
                .iter()
                .map(|(id, run)| (id.clone(), (result(run).usage, result(run).total_usage)))
                .collect(),
            outcomes: threads
                .iter()
                .map(|(thread, run)| (thread.clone(), result(run).outcome))
                .collect(),
        }
    }

    /// What may have happened and nobody knows: `Once` calls and steps that were begun and have no end in the log.
    fn in_doubt(&self) -> Vec<(ThreadId, u64, u32)> {
        let mut begun = Vec::new();
        for stamped in &self.0 {
            let place =
                |call: &adjutant::llm::CallId| (stamped.thread.clone(), call.turn, call.block);
            match &stamped.record {
                Record::Launched { calls } => {
                    begun.extend(calls.iter().map(|call| (place(call), None)))
                }
                Record::Begun { call, key } => begun.push((place(call), Some(key.clone()))),
                Record::Noted { call, key, .. } => {
                    begun.retain(|it| *it != (place(call), Some(key.clone())))
                }
                Record::Returned { call, .. } => begun.retain(|it| it.0 != place(call)),
                _ => {}
            }
        }
        begun.into_iter().map(|(place, _)| place).collect()
    }
}

/// The conversation without the numbers of attempts; a result whose outcome nobody knows stands by itself.
fn said(run: &Run) -> Vec<String> {
    let mut said = Vec::new();
    for stored in run.history().iter() {
        match &stored.entry {
            Entry::Turn(turn) => {
                said.push(format!("reply: {}", turn.reply().text()));
                said.extend(turn.pairs().map(|(call, result)| match result.status {
                    Status::OutcomeUnknown => unknown(call.id.turn, call.id.block),
                    status => format!("{}({}): {status:?} {}", call.name, call.args, result.text()),
                }));
            }
            other => said.push(format!("{other:?}")),
        }
    }
    said
}

fn unknown(turn: u64, block: u32) -> String {
    format!("unknown {turn} {block}")
}

/// Answers whatever is asked, each question by its id.
fn answers(pauses: &[Arc<adjutant::agent::Pause>]) -> Vec<Answered> {
    let answer = |kind, id: &str| match kind {
        AskKind::Approval => Answer::approve(),
        AskKind::External => Answer::Return {
            result: CallResult::ok("from afar").into(),
        },
        AskKind::Limit => Answer::Extend {
            by: 5,
            message: None,
        },
        _ => Answer::give(id),
    };
    pauses
        .iter()
        .map(|it| it.with_answer(answer(it.ask.kind, &it.id.0)))
        .collect()
}

/// A program: opens the log, begins the run or goes on with it, and answers whatever it waits for.
async fn program(desk: &Desk, journal: Cutting) -> Result<RunResult, Error> {
    let begun = Log::read(&journal)
        .await
        .first()
        .is_some_and(|run| run.outcome().is_some() || run.is_open());
    let agent = desk.agent(journal);
    agent.log().open().await?;
    let mut result = if begun {
        agent.resume(answers(&agent.log().pauses())).await?
    } else {
        agent.run("Go.").await?
    };
    while let Outcome::Paused { .. } = result.outcome {
        result = agent.resume(answers(&agent.log().pauses())).await?;
    }
    Ok(result)
}

/// One session over two programs: the first has so much fuel, or so many polls.
struct Trial {
    end: End,
    deeds: Deeds,
    doubt: Vec<(ThreadId, u64, u32)>,
    was_cut: bool,
}

fn trial(store: Arc<dyn Journal>, fuel: Fuel) -> Trial {
    let deeds = Deeds::default();
    let first = Desk::new(&deeds, &fuel);
    let was_cut = cut(&fuel, program(&first, Cutting::new(&store, &fuel))).is_none();
    let full = Fuel::endless();
    let second = Desk::new(&deeds, &full);
    runtime().block_on(async {
        let left = Log::read(&*store).await;
        let doubt = left.in_doubt();
        if left
            .first()
            .is_none_or(|run| run.is_open() || run.outcome().is_none())
        {
            let result = program(&second, Cutting::new(&store, &full))
                .await
                .expect("the run goes on");
            assert_eq!(result.text(), "Done.", "cut at {fuel:?}");
        }
        let who = Arc::new(second.agent(Cutting::new(&store, &full)).identity().clone());
        Trial {
            end: Log::read(&*store).await.end(&who),
            deeds,
            doubt,
            was_cut,
        }
    })
}

impl Trial {
    /// Ends as the run that was never cut; but a call of which nobody knows whether it happened has no other result.
    fn check(&self, whole: &Trial, fuel: &Fuel) {
        let mut expect = whole.end.clone();
        for (thread, lines) in &mut expect.said {
            let here = &self.end.said[thread];
            assert_eq!(
                here.len(),
                lines.len(),
                "{thread:?} cut at {fuel:?}: {here:#?}"
            );
            for (line, here) in lines
                .iter_mut()
                .zip(here)
                .filter(|(line, here)| line != here)
            {
                let doubted = |(of, turn, block): &(ThreadId, u64, u32)| {
                    of == thread && unknown(*turn, *block) == **here
                };
                assert!(
                    self.doubt.iter().any(doubted),
                    "{thread:?} says {here:?}, not {line:?}, cut at {fuel:?}"
                );
                line.clone_from(here);
            }
        }
        assert_eq!(self.end, expect, "cut at {fuel:?}");
        self.deeds.check(&whole.deeds, fuel);
    }

    fn unknown(&self) -> usize {
        self.end
            .said
            .values()
            .flatten()
            .filter(|line| line.starts_with("unknown "))
            .count()
    }
}

/// Cuts at every place of a kind until the run gets through; gives the number of cuts.
fn everywhere(store: impl Fn() -> Arc<dyn Journal>, fuel: impl Fn(usize) -> Fuel) -> usize {
    let whole = trial(store(), Fuel::endless());
    assert!(!whole.was_cut && whole.unknown() == 0, "{:#?}", whole.end);
    let mut unknown = 0;
    for place in 0.. {
        let fuel = fuel(place);
        let trial = trial(store(), fuel.clone());
        trial.check(&whole, &fuel);
        unknown += trial.unknown();
        if !trial.was_cut {
            assert!(
                unknown > 0,
                "the cuts missed the calls that may not be repeated"
            );
            println!("cuts {place}, outcomes unknown {unknown}");
            return place;
        }
    }
    unreachable!("a run ends")
}

fn memory() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::default())
}

#[test]
fn run_ends_in_the_same_state_when_it_is_cut_between_any_two_acts() {
    let cuts = everywhere(memory, Fuel::appends);
    assert!(cuts > 80, "only {cuts} places");
}

#[test]
fn run_ends_in_the_same_state_when_it_is_cut_at_any_step() {
    let cuts = everywhere(memory, Fuel::steps);
    assert!(cuts > 150, "only {cuts} places");
}

#[test]
fn run_ends_in_the_same_state_when_it_is_cut_at_any_poll() {
    let cuts = everywhere(memory, Fuel::polls);
    assert!(cuts > 80, "only {cuts} places");
}

#[test]
fn run_ends_in_the_same_state_when_it_is_cut_between_any_two_acts_over_sqlite() {
    let store =
        || -> Arc<dyn Journal> { Arc::new(Sqlite::in_memory().expect("it opens").journal()) };
    let cuts = everywhere(store, Fuel::appends);
    assert!(cuts > 80, "only {cuts} places");
}
