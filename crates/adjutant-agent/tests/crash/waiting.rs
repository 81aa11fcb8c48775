//! Cuts sessions that wait, queue and compact at every poll, and goes on from their logs in another program.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    task::Poll,
};

use adjutant_agent::{
    Agent, Answered, Error, Journal, LogId, Outcome, Record, Run, RunResult, Seq, Stamped,
};
use adjutant_context::Compact;
use adjutant_llm::{
    CallId, CallResult, Entry, FixedWorld, FnModel, Model, ModelInfo, Script, ScriptedModel,
    UserMessage, model_fn,
};
use adjutant_tool::{
    Answer, Approval, AskKind, CallContext, Replay, ToolError, ToolSpec, external_tool, tool_fn,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::outside::SlowJournal;

/// What a body was told: the call, the step, the words.
type Heard = BTreeSet<(CallId, &'static str, String)>;

/// What a crash does not touch.
#[derive(Clone, Default)]
struct World {
    journal: SlowJournal,
    done: Arc<Mutex<BTreeMap<(CallId, &'static str), u32>>>,
    /// What was answered to a body, by its call and key.
    heard: Arc<Mutex<Heard>>,
}

/// A program that ends after so many polls, where nothing can close its turn.
fn cut<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let (runtime, mut work, mut left) = (runtime(), Box::pin(work), polls);
    let done = runtime.block_on(std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(cx).map(Some)
    }));
    drop(work);
    done
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

impl World {
    fn note(&self, cx: &CallContext, step: &'static str) -> CallId {
        let call = cx.who.call.expect("a call of a run");
        *self
            .done
            .lock()
            .expect("nobody panics inside")
            .entry((call, step))
            .or_default() += 1;
        call
    }

    /// Two steps with a question between them, and one after the other.
    async fn body(self, cx: CallContext) -> Result<CallResult, ToolError> {
        for (step, key) in [("before", "first"), ("between", "second")] {
            let call = cx.once(step, || async { Ok(self.note(&cx, step)) }).await?;
            tokio::task::yield_now().await;
            let answer = cx.ask(key, format!("{key}?")).await?.to_string();
            self.heard
                .lock()
                .expect("nobody panics inside")
                .insert((call, key, answer));
        }
        Ok(CallResult::ok("asked"))
    }

    fn agent(&self) -> Agent {
        let spec = |name| ToolSpec::new(name, "A tool.", json!({"type": "object"}));
        let (write, body) = (self.clone(), self.clone());
        let write = tool_fn(
            ToolSpec {
                approval: Approval::Always,
                ..spec("write")
            },
            move |_: Value, cx: CallContext| {
                let world = write.clone();
                async move {
                    world.note(&cx, "write");
                    tokio::task::yield_now().await;
                    Ok(CallResult::ok("a long text ".repeat(30)))
                }
            },
        );
        let body = tool_fn(
            ToolSpec {
                replay: Replay::Resumable,
                ..spec("body")
            },
            move |_: Value, cx| body.clone().body(cx),
        );
        let summary = model_fn(
            ModelInfo {
                context_window: 2_000,
                ..ModelInfo::new("test/summary")
            },
            |request| ScriptedModel::new([Script::new().text("so far")]).stream(request),
        );
        let compact = Compact {
            threshold: 0.1,
            reserve_tokens: Some(100),
            keep_recent_tokens: 50,
            min_gain: 0.01,
            ..Compact::default()
        };
        let agent = Agent::new(model())
            .world(FixedWorld::at_ms(1_000))
            .journal(self.journal.clone());
        let agent = agent
            .effect(Compact {
                model: Some(Arc::new(summary)),
                ..compact
            })
            .tool(write)
            .tool(body);
        agent
            .tool(external_tool(spec("away")))
            .session(log())
            .take_over()
    }

    async fn records(&self) -> Vec<Arc<Stamped>> {
        let records = self
            .journal
            .0
            .read(&log(), Seq(0))
            .collect::<Vec<_>>()
            .await;
        records.into_iter().filter_map(Result::ok).collect()
    }

    async fn fold(&self) -> Run {
        let mut run = Run::default();
        self.records()
            .await
            .iter()
            .for_each(|stamped| run.apply(stamped).expect("the log folds"));
        run
    }
}

fn log() -> LogId {
    LogId("session".into())
}

/// Calls everything twice, and then answers; each request ends where a model may answer.
fn model() -> FnModel<impl Fn(adjutant_llm::Request) -> adjutant_llm::ChunkStream + Send + Sync> {
    model_fn(
        ModelInfo {
            context_window: 2_000,
            ..ModelInfo::new("test/model")
        },
        |request| {
            let last = request.entries.last().map(|stored| &stored.entry);
            let may_answer = match last {
                Some(Entry::User(_)) => true,
                Some(Entry::Turn(turn)) => !turn.results().is_empty(),
                _ => false,
            };
            assert!(may_answer, "nothing to answer in {last:?}");
            let again = |entry: &Entry| matches!(entry, Entry::User(message) if *message == "Again.".into());
            let ends =
                request.turn() > 2 || request.entries.iter().any(|stored| again(&stored.entry));
            let script = if ends {
                Script::new().text("Done.")
            } else {
                batch()
            };
            let stream = ScriptedModel::new([script]).stream(request);
            Box::pin(stream.then(|chunk| async {
                tokio::task::yield_now().await;
                chunk
            }))
        },
    )
}

fn batch() -> Script {
    ["write", "body", "away"]
        .into_iter()
        .fold(Script::new().text("Let me see."), |it, name| {
            it.call(name, json!({}))
        })
}

fn answers(agent: &Agent) -> Vec<Answered> {
    let answer = |kind, id: &str| match kind {
        AskKind::Approval => Answer::approve(),
        AskKind::External => Answer::Return {
            result: CallResult::ok("there").into(),
        },
        _ => Answer::give(id),
    };
    let pauses = agent.log().pauses();
    pauses
        .iter()
        .map(|it| it.with_answer(answer(it.ask.kind, &it.id.0)))
        .collect()
}

/// Begins the session: two messages wait, the run begins, and whatever it waits for is answered.
async fn play(agent: &Agent) -> Result<RunResult, Error> {
    for message in ["one", "two"] {
        agent.queue().steer(message).expect("there is room");
    }
    agent.queue().follow_up("at last").expect("there is room");
    let result = agent.run("Go.").await?;
    go_on(agent, result).await
}

async fn go_on(agent: &Agent, mut result: RunResult) -> Result<RunResult, Error> {
    while let Outcome::Paused { .. } = result.outcome {
        result = agent.resume(answers(agent)).await?;
    }
    Ok(result)
}

/// Another program: goes on with what is open, and then says something more.
async fn recover(world: &World, polls: usize) -> Agent {
    let agent = world.agent();
    agent.log().open().await.expect("the log opens");
    if world.fold().await.is_open() {
        let result = agent
            .resume(answers(&agent))
            .await
            .expect("the run goes on");
        let result = go_on(&agent, result).await.expect("the run goes on");
        assert!(
            matches!(result.outcome, Outcome::Finished { .. }),
            "{:?}, cut at {polls}",
            result.outcome
        );
    }
    let result = agent.run("Again.").await.expect("the session can be used");
    assert_eq!(result.text(), "Done.", "cut at {polls}");
    agent
}

async fn check(world: &World, agent: &Agent, polls: usize) {
    let (records, run) = (world.records().await, world.fold().await);
    assert!(!run.is_open());
    assert_eq!(run.history(), &agent.log().transcript(), "cut at {polls}");
    let read: Run = serde_json::from_value(serde_json::to_value(&run).expect("a run is JSON"))
        .expect("it reads back");
    assert_eq!(read, run, "cut at {polls}");
    for ((call, step), times) in &*world.done.lock().expect("nobody panics inside") {
        assert_eq!(
            *times, 1,
            "{step} of {call} was done {times} times, cut at {polls}"
        );
    }
    // A body hears the same answer as often as it is entered, and it is the one that was given.
    for (call, key, answer) in &*world.heard.lock().expect("nobody panics inside") {
        assert_eq!(*answer, format!("\"main/{call}/{key}\""), "cut at {polls}");
    }
    check_answers(&records, polls);
    check_queue(&records, &run, agent, polls);
}

/// An answer that the log holds is never asked for again.
fn check_answers(records: &[Arc<Stamped>], polls: usize) {
    let mut answered = BTreeSet::new();
    for stamped in records {
        match &stamped.record {
            Record::Resumed { answers, .. } => {
                answered.extend(answers.iter().map(|it| it.pause.clone()))
            }
            Record::Answered { pause, .. } => {
                answered.insert(pause.clone());
            }
            Record::Paused { pause } => assert!(
                !answered.contains(&pause.id),
                "{} again, cut at {polls}",
                pause.id
            ),
            _ => {}
        }
    }
}

/// What the log has heard of was placed once, in order; what it has not heard of is lost with its program.
fn check_queue(records: &[Arc<Stamped>], run: &Run, agent: &Agent, polls: usize) {
    let (mut queued, mut placed) = (Vec::new(), Vec::new());
    for stamped in records {
        match &stamped.record {
            Record::Queued { item, .. } => queued.push(*item),
            Record::Placed { items, .. } => placed.extend(items.clone()),
            _ => {}
        }
    }
    assert_eq!(
        (&queued, !agent.queue().is_empty()),
        (&placed, false),
        "cut at {polls}"
    );
    let said = |text: &str| {
        let is = |message: &UserMessage| message.content[0].as_text() == Some(text);
        run.history()
            .iter()
            .filter(|it| matches!(&it.entry, Entry::User(message) if is(message)))
            .count()
    };
    let expect: Vec<usize> = (1..=3)
        .map(|item| usize::from(queued.contains(&item)))
        .collect();
    assert_eq!(
        ["one", "two", "at last"].map(said),
        expect[..],
        "cut at {polls}"
    );
}

#[test]
fn waiting_session_goes_on_when_its_program_was_cut_at_any_poll() {
    let (mut cuts, mut folds) = (0, 0);
    for polls in 0.. {
        let (world, last) = (World::default(), runtime());
        let first = world.agent();
        let played = cut(polls, play(&first));
        let agent = last.block_on(recover(&world, polls));
        last.block_on(check(&world, &agent, polls));
        let is_fold = |it: &&Arc<Stamped>| {
            serde_json::to_string(&it.record)
                .expect("JSON")
                .contains("\"fold\"")
        };
        folds += last
            .block_on(world.records())
            .iter()
            .filter(is_fold)
            .count();
        if let Some(result) = played {
            assert_eq!(result.expect("the run finishes").text(), "Done.");
            break;
        }
        cuts += 1;
    }
    println!("cuts {cuts}, summaries {folds}");
    assert!(
        cuts > 80 && folds > 0,
        "only {cuts} places, {folds} summaries"
    );
}

#[test]
fn waiting_session_goes_on_when_every_program_is_cut_again() {
    let mut cuts = 0;
    for seed in 0..24_usize {
        let (world, last) = (World::default(), runtime());
        let first = world.agent();
        cuts += usize::from(cut(10 + seed * 3 % 50, play(&first)).is_none());
        for again in 0..6_usize {
            let agent = world.agent();
            let work = async {
                agent.log().open().await.expect("the log opens");
                if world.fold().await.is_open() {
                    let result = agent.resume(answers(&agent)).await?;
                    go_on(&agent, result).await?;
                }
                Ok::<_, Error>(())
            };
            match cut(5 + (seed * 7 + again * 11) % 40, work) {
                Some(ended) => ended.expect("the run goes on"),
                None => cuts += 1,
            }
        }
        let agent = last.block_on(recover(&world, seed));
        last.block_on(check(&world, &agent, seed));
    }
    assert!(cuts > 60, "only {cuts} cuts");
}
