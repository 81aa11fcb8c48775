//! Cuts runs at every place and goes on from their logs: nothing that may be done once is done twice.

#[path = "crash/outside.rs"]
mod outside;
#[path = "crash/waiting.rs"]
mod waiting;

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
};

use adjutant_agent::{
    Agent, CancelBy, ErrorKind, Exit, Journal, LocalExecutor, LogId, Outcome, Owner, Record, Run,
    Seq, Setup, Stamped, drive,
};
use adjutant_llm::{
    CallId, CallResult, Entry, FnModel, Model, ModelInfo, Script, ScriptedModel, Status, model_fn,
};
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolSpec, tool_fn};
use futures_util::StreamExt;
use outside::{FuelPort, Shared, SlowJournal, begun, class, fold, lock};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Enough fuel for any run here.
const FULL: usize = 100_000;

/// What happened over several trials.
#[derive(Debug, Default)]
struct Tally {
    trials: usize,
    crashes: usize,
    repeated: u32,
    unknown: usize,
}

impl Tally {
    /// Drives until the run is done; `fuel` says how much each drive gets.
    async fn drive(&mut self, outside: &Shared, mut fuel: impl FnMut(usize) -> usize) {
        self.trials += 1;
        for drives in 0.. {
            assert!(drives < 5_000, "no progress");
            lock(outside).fuel = fuel(drives);
            let mut run = fold(outside);
            match drive(&mut run, &mut FuelPort::new(outside)).await {
                Ok(Exit::Done(outcome)) => {
                    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
                    assert_eq!(run, fold(outside), "the state is not the fold of the log");
                    return self.check(outside, &run);
                }
                Err(error) if error.kind() == ErrorKind::Journal => self.crashes += 1,
                other => assert!(matches!(other, Ok(Exit::Done(_))), "{other:?}"),
            }
        }
    }

    fn check(&mut self, outside: &Shared, run: &Run) {
        for (call, times) in &lock(outside).ran {
            match class(*call) {
                Replay::Once | Replay::Resumable => {
                    assert_eq!(*times, 1, "{call} took effect {times} times")
                }
                _ => self.repeated += times - 1,
            }
        }
        self.unknown += results(run)
            .iter()
            .filter(|(_, status)| *status == Status::OutcomeUnknown)
            .count();
    }
}

fn results(run: &Run) -> Vec<(CallId, Status)> {
    let turns = run
        .history()
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(
                turn.pairs()
                    .map(|(call, result)| (call.id, result.status))
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        });
    turns.flatten().collect()
}

#[tokio::test]
async fn once_runs_once_when_a_run_is_cut_at_every_place() {
    let mut tally = Tally::default();
    for cut in 0.. {
        let before = tally.crashes;
        tally
            .drive(&begun(), |drives| if drives == 0 { cut } else { FULL })
            .await;
        if tally.crashes == before {
            break;
        }
    }
    println!("{tally:?}");
    assert!(tally.crashes >= 199, "only {} places", tally.crashes);
    assert!(
        tally.repeated > 0 && tally.unknown > 0,
        "the cuts missed the calls"
    );
}

#[tokio::test]
async fn once_runs_once_when_a_run_is_cut_again_and_again() {
    let mut tally = Tally::default();
    for seed in 1_u64..=60 {
        let mut chance = seed;
        let mut draw = || {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) as usize
        };
        tally.drive(&begun(), |_| 8 + draw() % 24).await;
    }
    println!("{tally:?}");
    assert!(
        tally.crashes > 500 && tally.repeated > 0 && tally.unknown > 0,
        "{tally:?}"
    );
}

type Done = Arc<Mutex<BTreeMap<(CallId, &'static str), u32>>>;

fn tool(name: &'static str, replay: Replay, done: &Done) -> impl ErasedTool + 'static {
    let done = Arc::clone(done);
    let spec = ToolSpec {
        replay,
        ..ToolSpec::new(name, "A tool.", json!({"type": "object"}))
    };
    tool_fn(spec, move |_: Value, cx: CallContext| {
        let done = Arc::clone(&done);
        async move {
            let call = cx.who.call.expect("a call of a run");
            let step = |key| {
                *done
                    .lock()
                    .expect("nobody panics inside")
                    .entry((call, key))
                    .or_default() += 1;
                tokio::task::yield_now()
            };
            if replay == Replay::Resumable {
                for key in ["first", "second"] {
                    cx.once(key, || async {
                        step(key).await;
                        Ok(())
                    })
                    .await?;
                }
            } else {
                step(name).await;
            }
            tokio::task::yield_now().await;
            Ok(CallResult::ok("done"))
        }
    })
}

/// Answers by what it is shown: two batches of calls, one single call, and the end.
fn model() -> FnModel<impl Fn(adjutant_llm::Request) -> adjutant_llm::ChunkStream + Send + Sync> {
    model_fn(ModelInfo::new("test/model"), |request| {
        assert_eq!(request.tools.len(), 3, "a request without its tools");
        let last =
            |entry: &Entry| matches!(entry, Entry::User(message) if *message == "Again.".into());
        let turns = request
            .entries
            .iter()
            .filter(|stored| matches!(stored.entry, Entry::Turn(_)))
            .count();
        let call = |script: Script, name| script.call(name, json!({}));
        let script = match turns {
            _ if request.entries.iter().any(|stored| last(&stored.entry)) => {
                Script::new().text("The end.")
            }
            0 | 1 => ["write", "steps", "look"]
                .into_iter()
                .fold(Script::new().text("Let me see."), call),
            2 => call(Script::new(), "write"),
            _ => Script::new().text("Done."),
        };
        let stream = ScriptedModel::new([script]).stream(request);
        Box::pin(stream.then(|chunk| async {
            tokio::task::yield_now().await;
            chunk
        }))
    })
}

struct Cut {
    runtime: Runtime,
    journal: SlowJournal,
    agent: Agent,
    done: Done,
    finished: bool,
}

fn agent(journal: &SlowJournal, done: &Done) -> Agent {
    let agent = Agent::new(model()).journal(journal.clone());
    let agent =
        agent
            .tool(tool("write", Replay::Once, done))
            .tool(tool("look", Replay::Pure, done));
    agent.tool(tool("steps", Replay::Resumable, done))
}

/// Runs an agent for a number of polls, and drops it where nothing can close its turn.
fn cut(polls: usize) -> Cut {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let (journal, done) = (SlowJournal::default(), Done::default());
    let agent = agent(&journal, &done);
    let mut running: Pin<Box<dyn Future<Output = _>>> = Box::pin({
        let agent = agent.clone();
        async move { agent.run("Go.").await }
    });
    let mut left = polls;
    let finished = runtime.block_on(std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        running
            .as_mut()
            .poll(cx)
            .map(|result| result.is_ok_and(|result| result.text() == "Done."))
    }));
    assert!(finished || left == 0, "the run failed");
    drop(running);
    Cut {
        runtime,
        journal,
        agent,
        done,
        finished,
    }
}

impl Cut {
    fn records(&self) -> Vec<Arc<Stamped>> {
        let read = self.journal.0.read(self.agent.session_id(), Seq(0));
        let records = self.runtime.block_on(read.collect::<Vec<_>>());
        records.into_iter().filter_map(Result::ok).collect()
    }

    fn check_done(&self, polls: usize) {
        for ((call, step), times) in &*self.done.lock().expect("nobody panics inside") {
            assert!(
                *step == "look" || *times == 1,
                "{step} of {call} was done {times} times, cut at {polls}"
            );
        }
    }
}

/// Cuts at every poll until a run gets through; gives the number of cuts.
fn at_every_poll(check: impl Fn(&Cut, usize)) -> usize {
    for polls in 0.. {
        let cut = cut(polls);
        if cut.finished {
            return polls;
        }
        check(&cut, polls);
        cut.check_done(polls);
    }
    unreachable!("a run ends")
}

/// The next run of the session closes what was left, says who ended it, and answers.
fn check_next_run(cut: &Cut, next: &Agent, polls: usize) {
    let result = cut
        .runtime
        .block_on(next.run("Again."))
        .expect("the session can be used");
    assert_eq!(result.text(), "The end.", "cut at {polls}");
    let mut run = Run::default();
    let mut ends = Vec::new();
    for stamped in cut.records() {
        run.apply(&stamped).expect("the log folds");
        if let Record::Ended { outcome, .. } = &stamped.record {
            ends.push(outcome.clone());
        }
    }
    assert_eq!(run.history(), &next.log().transcript(), "cut at {polls}");
    let closed = [CancelBy::Shutdown, CancelBy::Crash].map(|by| Outcome::Cancelled { by });
    let before = ends.len() - 1;
    assert!(
        before == 0 || closed.contains(&ends[0]) || matches!(ends[0], Outcome::Finished { .. }),
        "{ends:?}"
    );
    let calls = results(&run);
    let done = cut.done.lock().expect("nobody panics inside");
    for (call, step) in done.keys() {
        assert!(
            calls.iter().any(|(id, _)| id == call),
            "{step} of {call} is not in the transcript, cut at {polls}"
        );
    }
}

#[test]
fn session_goes_on_when_its_run_was_dropped_at_any_poll() {
    let cuts = at_every_poll(|cut, polls| check_next_run(cut, &cut.agent, polls));
    println!("cuts {cuts}");
    assert!(cuts > 80, "only {cuts} places");
}

#[test]
fn session_goes_on_when_another_program_opens_its_log() {
    for looks in [false, true] {
        let cuts = at_every_poll(|cut, polls| {
            let log: LogId = cut.agent.session_id().clone();
            let next = agent(&cut.journal, &cut.done).session(log);
            if looks {
                cut.runtime
                    .block_on(next.log().open())
                    .expect("it can be looked at first");
            }
            check_next_run(cut, &next, polls);
        });
        assert!(cuts > 80, "only {cuts} places");
    }
}

#[test]
fn drive_finishes_a_run_when_it_was_dropped_at_any_poll() {
    let cuts = at_every_poll(|cut, polls| {
        let records = cut.records();
        let mut run = Run::default();
        records
            .iter()
            .for_each(|stamped| run.apply(stamped).expect("the log folds"));
        if !run.is_open() {
            return;
        }
        let outcome = cut.runtime.block_on(async {
            let log = cut
                .journal
                .own(
                    cut.agent.session_id(),
                    &Owner {
                        takes_over: true,
                        ..Owner::default()
                    },
                )
                .await
                .expect("memory does not fail");
            let setup = Setup::new(model()).tool(tool("write", Replay::Once, &cut.done));
            let setup = setup.tool(tool("look", Replay::Pure, &cut.done));
            let setup = setup.tool(tool("steps", Replay::Resumable, &cut.done));
            drive(&mut run, &mut LocalExecutor::new(setup, log)).await
        });
        assert!(
            matches!(outcome, Ok(Exit::Done(Outcome::Finished { .. }))),
            "{outcome:?}, cut at {polls}"
        );
        assert_eq!(run.history().len(), 5, "cut at {polls}");
    });
    assert!(cuts > 80, "only {cuts} places");
}
