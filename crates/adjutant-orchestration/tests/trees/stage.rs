//! The programs of a tree: what they share is the log, the board and the clock.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, Caps, Journal, Limits, LogId, MemoryJournal, Seq, Stamped,
    kv::{KvStore, MemoryKvStore},
};
use adjutant_llm::{CallResult, Error, ErrorKind, Request, Script};
use adjutant_orchestration::{
    Delegation, Profile, Registry,
    board::{Board, Finish, NewTask, TaskId},
};
use adjutant_tool::{ErasedTool, Replay, ToolSpec, tool_fn};
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::{
    plan::{LEAD, Line, NAMES, Order, Plan, REQUESTS, Role, Says, Stranger},
    torn::Torn,
    world::{Busy, Clock, model, used},
};

/// The one who works at the board beside the tree.
pub(crate) const STRANGER: &str = "stranger";

/// Everything that outlives a program.
pub(crate) struct Stage {
    plan: Arc<Plan>,
    pub(crate) clock: Clock,
    pub(crate) journal: MemoryJournal,
    pub(crate) busy: Arc<Busy>,
    kv: Arc<MemoryKvStore>,
    tasks: Arc<[TaskId]>,
}

/// An agent's lines.
pub(crate) struct Speaker {
    pub(crate) name: Arc<str>,
    plan: Arc<Plan>,
    lines: Vec<Line>,
    tasks: Arc<[TaskId]>,
}

/// Runs what a program does, in a runtime of its own whose time passes when nothing else happens.
pub(crate) fn play<T>(stage: &Stage, program: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    let done = runtime.block_on(async {
        stage.clock.start();
        let done = program.await;
        stage.clock.stop();
        done
    });
    drop(runtime);
    stage.busy.forget();
    done
}

/// A program goes on, and dies when its log has so many records; `false` if it came to its end before.
pub(crate) fn die(stage: &Stage, records: u64) -> bool {
    play(stage, async {
        stage.let_strangers_in();
        let torn = Torn::new(&stage.journal, records);
        let broken = torn.broken();
        let agent = stage.agent(torn);
        let is_new = stage.records().await.is_empty();
        let run = async {
            if is_new {
                agent.run("Go.").await
            } else {
                agent.resume(Vec::new()).await
            }
        };
        tokio::select! {
            biased;
            () = broken.notified() => true,
            _ = run => false,
        }
    })
}

impl Stage {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (clock, kv) = (Clock::default(), Arc::new(MemoryKvStore::default()));
        let board = Board::new(Arc::clone(&kv) as Arc<dyn KvStore>).world(Arc::new(clock.clone()));
        let create = |at| {
            let created = board
                .create(NewTask::new(format!("Task {at}")))
                .now_or_never();
            created
                .expect("memory answers at once")
                .expect("memory does not fail")
                .id
        };
        let tasks = (0..plan.tasks).map(create).collect();
        let (plan, journal) = (Arc::new(plan.clone()), MemoryJournal::default());
        Self {
            plan,
            clock,
            journal,
            busy: Arc::default(),
            kv,
            tasks,
        }
    }

    pub(crate) fn board(&self) -> Board {
        Board::new(Arc::clone(&self.kv) as Arc<dyn KvStore>).world(Arc::new(self.clock.clone()))
    }

    pub(crate) fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    pub(crate) async fn records(&self) -> Vec<Arc<Stamped>> {
        let log = LogId("log".into());
        self.journal
            .read(&log, Seq(0))
            .filter_map(|it| async { it.ok() })
            .collect()
            .await
    }

    /// The lead of one program, with everything under it.
    pub(crate) fn agent(&self, journal: impl Journal + 'static) -> Agent {
        let registry = Registry::new();
        for (name, role) in NAMES.into_iter().zip(&self.plan.roles) {
            self.register(&registry, name, role);
        }
        let delegation = Delegation::new(registry)
            .max_depth(self.plan.depth)
            .max_handoffs(self.plan.handoffs);
        let delegation = if self.tasks.is_empty() {
            delegation
        } else {
            delegation.board(self.board())
        };
        let bounds = &self.plan.bounds;
        let mut caps = Caps {
            requests: Some(REQUESTS),
            ..Caps::default()
        };
        caps.tokens = bounds.tokens;
        caps.agents = bounds.agents;
        caps.depth = bounds.depth;
        let lead = Agent::new(model(&self.speaker(LEAD, &self.plan.lead), &self.busy))
            .name(LEAD)
            .tool(work());
        let lead = delegation
            .install(lead)
            .limits(Limits {
                caps,
                ..Limits::default()
            })
            .world(self.clock.clone());
        lead.journal(journal)
            .session(LogId("log".into()))
            .take_over()
    }

    fn speaker(&self, name: &str, lines: &[Line]) -> Arc<Speaker> {
        let (plan, tasks) = (Arc::clone(&self.plan), Arc::clone(&self.tasks));
        Arc::new(Speaker {
            name: name.into(),
            plan,
            lines: lines.to_vec(),
            tasks,
        })
    }

    fn register(&self, registry: &Registry, name: &'static str, role: &Role) {
        let (speaker, busy) = (self.speaker(name, &role.lines), Arc::clone(&self.busy));
        let mut profile = Profile::new(name, "Does something.")
            .max_depth(role.depth)
            .max_handoffs(role.handoffs);
        profile.max_concurrency = role.concurrency;
        let caps = Caps {
            tokens: role.tokens,
            ..Caps::default()
        };
        let mut limits = Limits {
            caps,
            ..Limits::default()
        };
        limits.max_turns = role.turns.or(limits.max_turns);
        registry.register(profile, move || {
            Agent::new(model(&speaker, &busy))
                .tool(work())
                .limits(limits.clone())
        });
    }

    /// Others come to the board, in their own time.
    pub(crate) fn let_strangers_in(&self) {
        for stranger in &self.plan.strangers {
            let Some(task) = self.tasks.get(stranger.task) else {
                continue;
            };
            tokio::spawn(work_at(self.board(), task.clone(), stranger.clone()));
        }
    }
}

async fn work_at(board: Board, task: TaskId, stranger: Stranger) {
    tokio::time::sleep(Duration::from_millis(stranger.at_ms)).await;
    let claimed = board
        .claim(&task, STRANGER, Duration::from_millis(stranger.lease_ms))
        .await;
    let (Ok(_), Some(is_done)) = (claimed, stranger.ends) else {
        return;
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    let finish = if is_done {
        Finish::success(STRANGER)
    } else {
        Finish::failure(STRANGER)
    };
    // Its lease may have run out, and another may have the task.
    drop(board.finish(&task, STRANGER, finish).await);
}

fn work() -> impl ErasedTool + 'static {
    let spec = ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new("work", "Works.", json!({ "type": "object" }))
    };
    tool_fn(spec, |_: Value, _| async { Ok(CallResult::ok("Worked.")) })
}

impl Speaker {
    /// What it says to this, and after how many milliseconds.
    pub(crate) fn says(&self, request: &Request) -> (u64, Script) {
        let at = usize::try_from(request.turn())
            .unwrap_or_default()
            .saturating_sub(1);
        let Some(line) = self.lines.get(at) else {
            return (0, Script::new().text("Done.").usage(used()));
        };
        let script = match &line.says {
            Says::Text => Script::new().text("I see."),
            Says::Work => Script::new().call("work", json!({})),
            Says::Fail => Script::new().fail(Error::new(ErrorKind::Auth, "no key")),
            Says::Delegates(calls) => calls.iter().fold(Script::new(), |script, orders| {
                let tasks: Vec<Value> = orders.iter().map(|order| self.task(order)).collect();
                script.call("delegate", json!({ "tasks": tasks }))
            }),
            Says::Completes(true) => {
                Script::new().call("task_complete", report("completed", "So."))
            }
            Says::Completes(false) => Script::new().call("task_complete", report("failed", "No.")),
            Says::Twice => Script::new()
                .call("task_complete", report("completed", "Once."))
                .call("task_complete", report("failed", "Twice.")),
            Says::HandsOn(to) => {
                let target = self.plan.named(*to, &self.name);
                Script::new().call(
                    "handoff",
                    json!({ "target_agent": target, "reason": "r", "context": "c" }),
                )
            }
        };
        (line.wait_ms, script.usage(used()))
    }

    fn task(&self, order: &Order) -> Value {
        let agent = self.plan.named(order.agent, &self.name);
        let mut task = json!({ "agent": agent, "task": "Do a part.", "context": "Some." });
        if let Some(at) = order.task {
            let id = self
                .tasks
                .get(at)
                .map_or_else(|| "none".to_owned(), ToString::to_string);
            task["task_id"] = json!(id);
        }
        task
    }
}

fn report(status: &str, summary: &str) -> Value {
    json!({ "status": status, "summary": summary })
}
