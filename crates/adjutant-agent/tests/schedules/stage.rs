//! A session whose model speaks only when it is told to, and what must hold of it at the end.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use adjutant_agent::{
    Agent, Continue, Error, ErrorKind, HookContext, Journal, Lane, Limits, MemoryJournal, Queued,
    Record, Run, RunResult, Seq, Stamped, Verdict, points::MessagePlaced,
};
use adjutant_llm::{
    CallResult, Chunk, ChunkStream, Entry, Model, ModelInfo, Request, Script, ScriptedModel,
};
use adjutant_tool::{CallContext, ToolSpec, tool_fn};
use futures_core::Stream;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::check;

/// Something that happens to a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Move {
    Steer,
    FollowUp,
    Interrupt,
    /// One of those that were queued, counted from the newest.
    Withdraw(usize),
    Clear,
    Cancel,
    /// The model says so many chunks more.
    Chunks(usize),
    /// Others get so many turns.
    Rest(usize),
}

/// How many chunks the model may say.
#[derive(Debug, Default)]
struct Permits(Mutex<(usize, Vec<Waker>)>);

/// A model that waits for permission before every chunk.
#[derive(Debug)]
struct Gated {
    script: Arc<ScriptedModel>,
    permits: Arc<Permits>,
}

struct GatedStream {
    inner: ChunkStream,
    permits: Arc<Permits>,
}

/// A session on stage.
pub(crate) struct Stage {
    agent: Agent,
    journal: MemoryJournal,
    permits: Arc<Permits>,
    queued: Vec<(Lane, String, Queued)>,
    withdrawn: BTreeSet<String>,
    run: Option<JoinHandle<Result<RunResult, Error>>>,
}

impl Permits {
    fn give(&self, chunks: usize) {
        let mut permits = self.0.lock().expect("no panic inside");
        permits.0 = permits.0.saturating_add(chunks);
        permits.1.drain(..).for_each(Waker::wake);
    }

    fn poll_take(&self, cx: &Context<'_>) -> Poll<()> {
        let mut permits = self.0.lock().expect("no panic inside");
        if permits.0 > 0 {
            permits.0 -= 1;
            return Poll::Ready(());
        }
        permits.1.push(cx.waker().clone());
        Poll::Pending
    }
}

impl Model for Gated {
    fn info(&self) -> &ModelInfo {
        self.script.info()
    }

    fn stream(&self, request: Request) -> ChunkStream {
        Box::pin(GatedStream {
            inner: self.script.stream(request),
            permits: Arc::clone(&self.permits),
        })
    }
}

impl Stream for GatedStream {
    type Item = Result<Chunk, adjutant_llm::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.permits.poll_take(cx).is_pending() {
            return Poll::Pending;
        }
        self.inner.as_mut().poll_next(cx)
    }
}

/// Answers and calls by turns.
fn scripts() -> impl Iterator<Item = Script> {
    (0..400).map(|nth| match nth % 3 {
        0 => Script::new()
            .text("Let me see.")
            .call("work", json!({}))
            .call("work", json!({}))
            .delta_chars(6),
        1 => Script::new().call("work", json!({})),
        _ => Script::new().text("That is it.").delta_chars(6),
    })
}

impl Stage {
    pub(crate) fn new(hooked: bool) -> Self {
        let (journal, permits) = (MemoryJournal::default(), Arc::new(Permits::default()));
        let script = Arc::new(ScriptedModel::new(scripts()));
        let model = Gated {
            script,
            permits: Arc::clone(&permits),
        };
        let spec = ToolSpec::new("work", "A tool.", json!({"type": "object"}));
        let tool = tool_fn(spec, |_: Value, _: CallContext| async {
            tokio::task::yield_now().await;
            Ok(CallResult::ok("ok"))
        });
        let mut agent = Agent::new(model)
            .journal(journal.clone())
            .tool(tool)
            .limits(Limits {
                max_turns: None,
                ..Limits::default()
            });
        if hooked {
            agent = agent.on(|_: HookContext, point: MessagePlaced| async {
                tokio::task::yield_now().await;
                Verdict::Pass(point)
            });
        }
        let (queued, withdrawn) = (Vec::new(), BTreeSet::new());
        Self {
            agent,
            journal,
            permits,
            queued,
            withdrawn,
            run: None,
        }
    }

    pub(crate) async fn play(&mut self, made: Move) {
        if self.run.as_ref().is_none_or(JoinHandle::is_finished) {
            self.start().await;
        }
        match made {
            Move::Steer => self.queue(Lane::Steering, |agent, text| agent.queue().steer(text)),
            Move::FollowUp => {
                self.queue(Lane::FollowUp, |agent, text| agent.queue().follow_up(text))
            }
            Move::Interrupt => {
                self.queue(Lane::Steering, |agent, text| agent.queue().interrupt(text))
            }
            Move::Withdraw(nth) => {
                let Some((_, text, queued)) = self.queued.iter().rev().nth(nth) else {
                    return;
                };
                if queued.withdraw() {
                    assert!(
                        self.withdrawn.insert(text.clone()),
                        "{text} was withdrawn twice"
                    );
                }
            }
            Move::Clear => {
                for entry in self.agent.queue().clear(&[Lane::Steering, Lane::FollowUp]) {
                    assert!(
                        self.withdrawn.insert(text(&entry)),
                        "a message was withdrawn twice"
                    );
                }
            }
            Move::Cancel => drop(self.agent.abort()),
            Move::Chunks(chunks) => self.permits.give(chunks),
            Move::Rest(turns) => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn queue(&mut self, lane: Lane, how: impl Fn(&Agent, String) -> Result<Queued, Error>) {
        let text = format!("{lane:?} {}", self.queued.len());
        let queued = how(&self.agent, text.clone()).expect("there is room");
        self.queued.push((lane, text, queued));
    }

    async fn start(&mut self) {
        self.finish().await;
        let running = self.agent.run("Go.").stream().expect("the session is free");
        self.run = Some(tokio::spawn(running.finish()));
    }

    async fn finish(&mut self) {
        let Some(run) = self.run.take() else { return };
        let ended = tokio::time::timeout(Duration::from_secs(3_600), run)
            .await
            .expect("the run is stuck");
        ended.expect("no panic").expect("the run does not fail");
    }

    /// Lets everything end, and checks what came of it.
    pub(crate) async fn end(mut self) {
        self.permits.give(usize::MAX);
        self.finish().await;
        self.check().await;
        // What waits is placed by a run without a prompt, or there is nothing to say.
        match self.agent.run(Continue).await {
            Ok(_) => assert!(self.agent.queue().is_empty()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Prompt),
        }
        self.check().await;
    }

    async fn check(&self) {
        let history = self.agent.log().transcript();
        let said: Vec<String> = history.iter().map(|stored| text(&stored.entry)).collect();
        for lane in [Lane::Steering, Lane::FollowUp] {
            let of: Vec<&String> = self
                .queued
                .iter()
                .filter(|it| it.0 == lane)
                .map(|it| &it.1)
                .collect();
            let placed: Vec<&String> = said.iter().filter(|text| of.contains(text)).collect();
            let in_order: Vec<&String> = of
                .iter()
                .copied()
                .filter(|text| placed.contains(text))
                .collect();
            assert_eq!(
                placed, in_order,
                "not in the order in which they were queued, once each"
            );
        }
        for (_, text, queued) in &self.queued {
            let ends = [
                said.contains(text),
                self.withdrawn.contains(text),
                queued.is_queued(),
            ];
            assert_eq!(
                ends.iter().filter(|end| **end).count(),
                1,
                "{text}: placed, withdrawn, queued: {ends:?}"
            );
        }
        let waiting: Vec<String> = self
            .agent
            .queue()
            .items()
            .iter()
            .map(|waiting| text(&waiting.content))
            .collect();
        assert_eq!(
            waiting.len(),
            self.queued.iter().filter(|it| it.2.is_queued()).count()
        );
        check::transcript(&history, &all_calls(&history));
        let mut run = Run::default();
        self.records()
            .await
            .iter()
            .for_each(|stamped| run.apply(stamped).expect("the log folds"));
        assert_eq!((run.history(), run.is_open()), (&history, false));
    }

    async fn records(&self) -> Vec<Arc<Stamped>> {
        let read = self.journal.read(self.agent.session_id(), Seq(0));
        let records: Vec<_> = read
            .map(|stamped| stamped.expect("memory does not fail"))
            .collect()
            .await;
        let numbers = records.iter().filter_map(|stamped| match &stamped.record {
            Record::Queued { item, .. } => Some(*item),
            _ => None,
        });
        assert!(
            numbers.zip(1..).all(|(item, nth)| item == nth),
            "numbers count upwards without gaps"
        );
        records
    }
}

/// The calls that ran: those whose results say so.
fn all_calls(history: &adjutant_llm::Transcript) -> Vec<adjutant_llm::CallId> {
    let turns = history.iter().filter_map(|stored| match &stored.entry {
        Entry::Turn(turn) => Some(turn.pairs()),
        _ => None,
    });
    let ran = |(call, result): (&adjutant_llm::Call, &Arc<CallResult>)| {
        (result.status == adjutant_llm::Status::Ok).then_some(call.id)
    };
    turns.flatten().filter_map(ran).collect()
}

fn text(entry: &Entry) -> String {
    match entry {
        Entry::User(message) => message
            .content
            .iter()
            .filter_map(|it| it.as_text())
            .collect(),
        _ => String::new(),
    }
}
