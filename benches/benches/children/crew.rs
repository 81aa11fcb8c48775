//! A lead and those it delegates to, with models that answer at once, or when all may; and the same agents without a lead.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use adjutant_agent::{Agent, Journal, Limits, MemoryJournal};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Chunk, ChunkStream, FinishReason, Gate, Model, ModelInfo,
    Reply, Request, Script, ScriptedModel,
};
use adjutant_orchestration::{Delegation, Profile, Registry};
use adjutant_tool::{Replay, ToolSpec, tool_fn};
use futures_util::{future::join_all, stream};
use serde_json::{Value, json};

/// What a task and its context say.
const TASK: &str = "Look at the file and say what is in it.";
const CONTEXT: &str = "It is one of many.";

/// Whether agents wait before they answer.
#[derive(Debug)]
pub(crate) enum Waits {
    Never,
    /// They count, and wait for the gate.
    At(Arc<AtomicUsize>, Gate),
}

/// What keeps the log of an agent.
pub(crate) type Journals = Box<dyn Fn() -> Arc<dyn Journal> + Send + Sync>;

/// Who is given tasks.
pub(crate) struct Crew {
    journals: Journals,
    worker: Agent,
    delegation: Delegation,
}

/// A model that calls the tool in each turn but the last, and does nothing else.
#[derive(Debug)]
struct Worker {
    info: ModelInfo,
    turns: u64,
    waits: Waits,
}

impl Crew {
    /// Agents of so many turns.
    pub(crate) fn new(turns: u64, waits: Waits) -> Self {
        let model = Worker {
            info: ModelInfo {
                context_window: 100_000_000,
                ..ModelInfo::new("bench/worker")
            },
            turns,
            waits,
        };
        let spec = ToolSpec {
            replay: Replay::Pure,
            ..ToolSpec::new("look", "Looks.", json!({"type": "object"}))
        };
        let look = tool_fn(spec, |_: Value, _| async {
            Ok(CallResult::ok("It is there."))
        });
        let worker = Agent::new(model)
            .tool(look)
            .instructions("You look at files.");
        let (registry, factory) = (Registry::new(), worker.clone());
        registry.register(Profile::new("worker", "Looks at files."), move || {
            factory.new_session()
        });
        let journals: Journals = Box::new(|| Arc::new(MemoryJournal::default()));
        Self {
            journals,
            worker,
            delegation: Delegation::new(registry).max_depth(1),
        }
    }

    /// The same agents, whose logs are kept here.
    pub(crate) fn kept_by(self, journals: Journals) -> Self {
        Self { journals, ..self }
    }

    /// A lead gives this many tasks, so many in one call at most, and all calls in one reply.
    pub(crate) async fn delegated(&self, tasks: usize, in_one_call: usize) {
        let order = json!({ "agent": "worker", "task": TASK, "context": CONTEXT });
        let orders = vec![order; tasks];
        let mut script = Script::new();
        for some in orders.chunks(in_one_call) {
            script = script.call("delegate", json!({ "tasks": some }));
        }
        if tasks == 0 {
            script = script.call("delegate", json!({ "tasks": [] }));
        }
        let model = ScriptedModel::new([script.delta_chars(1 << 20), Script::new().text("Done.")]);
        let limits = Limits {
            max_parallel_tools: 64,
            ..Limits::default()
        };
        let lead = Agent::new(model)
            .name("lead")
            .limits(limits)
            .journal((self.journals)());
        let result = self
            .delegation
            .install(lead)
            .run("Go.")
            .await
            .expect("the run finishes");
        let reports = result
            .calls
            .iter()
            .map(|call| call.result.details.as_array().map_or(0, Vec::len));
        assert_eq!(reports.sum::<usize>(), tasks);
        assert!(result.calls.iter().all(|call| {
            call.result
                .details
                .as_array()
                .is_some_and(|all| all.iter().all(|report| report["result"] == "Done."))
        }));
    }

    /// The same agents are given the same tasks, all at once.
    pub(crate) async fn by_hand(&self, tasks: usize) {
        let run = |_| async {
            let agent = self.worker.new_session().journal((self.journals)());
            let context = format!("<delegation_context>\n{CONTEXT}\n</delegation_context>");
            let result = agent
                .run([context.as_str(), TASK].join("\n"))
                .await
                .expect("the run finishes");
            assert_eq!(result.text(), "Done.");
            black_box(result);
        };
        join_all((0..tasks).map(run)).await;
    }
}

impl Model for Worker {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        if let Waits::At(asked, gate) = &self.waits {
            asked.fetch_add(1, Ordering::SeqCst);
            return ScriptedModel::new([Script::new().text("Done.").wait_at(0, gate)])
                .stream(request);
        }
        let (turn, attempt) = (request.turn(), request.attempt);
        let mut reply = Reply::new(self.info.id.clone(), FinishReason::End);
        if turn < self.turns {
            let id = CallId {
                turn,
                attempt,
                block: 0,
            };
            let extra = Default::default();
            let call = Call {
                id,
                wire_id: None,
                name: "look".into(),
                args: "{}".into(),
                extra,
            };
            reply.blocks.push(Arc::new(Block::Call(call)));
            reply.stop = FinishReason::Calls;
        } else {
            reply.blocks.push(Arc::new(Block::text("Done.")));
        }
        let start = Chunk::Start {
            attempt,
            model: self.info.id.clone(),
            limits: Box::default(),
            warnings: Vec::new(),
        };
        Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(Arc::new(reply)))]))
    }
}
