//! Tools with which models work on a board. They present tasks as data: see `show.rs`.

mod specs;

use std::{sync::Arc, time::Duration};

use adjutant_agent::LogId;
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, ToolError, ToolErrorKind, ToolSpec, Tools, tool_fn};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Board, Finish, MAX_KEY_BYTES, NewTask, TaskEdit, TaskId, TaskQuery, TaskStatus, show};
use crate::{Error, ErrorKind};

/// The largest number of tasks that are listed for a model at once.
const MAX_LISTED: usize = 50;
/// The default number of tasks in a list for a model.
const LISTED: usize = 20;
/// The longest wait of `wait_task`.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// The default wait of `wait_task`.
const WAIT: Duration = Duration::from_secs(60);
/// The time for which a task is claimed.
const LEASE: Duration = Duration::from_secs(600);

/// The builder of the tools of a board.
#[derive(Debug, Clone)]
pub struct BoardTools {
    prefix: Arc<str>,
    lease: Duration,
    worker: Option<Arc<str>>,
}

/// The arguments of any of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    task_id: Option<TaskId>,
    title: Option<Arc<str>>,
    description: Option<Arc<str>>,
    priority: Option<i32>,
    dependencies: Option<Vec<TaskId>>,
    acceptance_criteria: Option<Vec<Arc<str>>>,
    metadata: Map<String, Value>,
    status: Option<TaskStatus>,
    assignee: Option<Arc<str>>,
    blocked: Option<bool>,
    after: Option<TaskId>,
    limit: Option<usize>,
    result: Arc<str>,
    caveats: Option<Arc<str>>,
    evidence: Vec<CriterionProof>,
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CriterionProof {
    criterion: Arc<str>,
    proof: Arc<str>,
}

/// One call.
struct BoardCall {
    board: Board,
    lease: Duration,
    worker: Arc<str>,
    args: Args,
    cx: CallContext,
}

impl BoardTools {
    /// Tools without a prefix, which claim tasks for ten minutes in the name of the agent that calls.
    pub fn new() -> Self {
        Self {
            prefix: "".into(),
            lease: LEASE,
            worker: None,
        }
    }

    /// Sets a prefix for the name of each tool: `shared_` results in `shared_create_task`.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<Arc<str>>) -> Self {
        Self {
            prefix: prefix.into(),
            ..self
        }
    }

    /// Sets how long a task is claimed for; every change of it by its worker prolongs that.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the name that tasks are claimed in. Needed where agents of one name work on the board in several processes:
    /// a board takes two workers of one name for the same.
    #[must_use]
    pub fn worker(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            worker: Some(name.into()),
            ..self
        }
    }
}

impl Default for BoardTools {
    fn default() -> Self {
        Self::new()
    }
}

impl Board {
    /// The tools `create_task`, `list_tasks`, `get_task`, `claim_task`, `update_task`, `complete_task`, `wait_task`,
    /// `cancel_task` and `retry_task`.
    ///
    /// After a crash, each but `retry_task` may be run again: a task that a call creates is created once.
    pub fn tools(&self, options: BoardTools) -> Tools {
        let tool = |spec, run| self.tool(&options, spec, run);
        Tools::new(format!("{}board", options.prefix))
            .tool(tool(specs::create(), |call| {
                Box::pin(async move { call.create().await })
            }))
            .tool(tool(specs::list(), |call| {
                Box::pin(async move { call.list().await })
            }))
            .tool(tool(specs::get(), |call| {
                Box::pin(async move { call.get().await })
            }))
            .tool(tool(specs::claim(), |call| {
                Box::pin(async move { call.claim().await })
            }))
            .tool(tool(specs::update(), |call| {
                Box::pin(async move { call.update().await })
            }))
            .tool(tool(specs::complete(), |call| {
                Box::pin(async move { call.complete().await })
            }))
            .tool(tool(specs::wait(), |call| {
                Box::pin(async move { call.wait().await })
            }))
            .tool(tool(specs::cancel(), |call| {
                Box::pin(async move { call.cancel().await })
            }))
            .tool(tool(specs::retry(), |call| {
                Box::pin(async move { call.retry().await })
            }))
    }

    fn tool(
        &self,
        options: &BoardTools,
        mut spec: ToolSpec,
        run: Run,
    ) -> impl ErasedTool + 'static + use<> {
        spec.decl.name = format!("{}{}", options.prefix, spec.name()).as_str().into();
        let (board, options) = (self.clone(), options.clone());
        tool_fn(spec, move |args: Value, cx: CallContext| {
            let worker = options
                .worker
                .clone()
                .unwrap_or_else(|| Arc::clone(&cx.who.name));
            let (board, lease) = (board.clone(), options.lease);
            async move {
                let args = serde_json::from_value(args).map_err(|error| {
                    ToolError::new(ToolErrorKind::InvalidArguments, error.to_string())
                })?;
                let shown = run(BoardCall {
                    board,
                    lease,
                    worker,
                    args,
                    cx,
                })
                .await?;
                Ok(CallResult {
                    details: shown.clone(),
                    ..CallResult::ok(show::escape_json(&shown))
                })
            }
        })
    }
}

type Run = fn(BoardCall) -> std::pin::Pin<Box<dyn Future<Output = Result<Value, Error>> + Send>>;

impl BoardCall {
    async fn create(self) -> Result<Value, Error> {
        let key = self.key();
        let Args {
            title,
            description,
            priority,
            dependencies,
            acceptance_criteria,
            metadata,
            ..
        } = self.args;
        let new = NewTask {
            title: title.unwrap_or_default(),
            description: description.unwrap_or_default(),
            priority: priority.unwrap_or_default(),
            dependencies: dependencies.unwrap_or_default(),
            metadata,
            acceptance_criteria: acceptance_criteria.unwrap_or_default(),
            created_by: self.worker,
            key,
        };
        let task = self.board.create(new).await?;
        Ok(show::task(&self.board.show(&task.id).await?))
    }

    async fn list(self) -> Result<Value, Error> {
        let Args {
            status,
            assignee,
            blocked,
            after,
            limit,
            ..
        } = self.args;
        let limit = limit.unwrap_or(LISTED).clamp(1, MAX_LISTED);
        let page = self
            .board
            .list(&TaskQuery {
                status,
                assignee,
                is_blocked: blocked,
                after,
                limit,
            })
            .await?;
        Ok(show::page(&page))
    }

    async fn get(self) -> Result<Value, Error> {
        self.show_task().await
    }

    async fn claim(self) -> Result<Value, Error> {
        self.board
            .claim(self.id()?, &self.worker, self.lease)
            .await?;
        self.show_task().await
    }

    async fn update(self) -> Result<Value, Error> {
        let Args {
            title,
            description,
            priority,
            dependencies,
            acceptance_criteria,
            metadata,
            ..
        } = &self.args;
        let edit = TaskEdit {
            title: title.clone(),
            description: description.clone(),
            priority: *priority,
            dependencies: dependencies.clone(),
            metadata: metadata.clone(),
            acceptance_criteria: acceptance_criteria.clone(),
        };
        let task = self.board.update(self.id()?, edit).await?;
        if task.is_held_by(&self.worker) {
            self.board
                .heartbeat(&task.id, &self.worker, self.lease)
                .await?;
        }
        self.show_task().await
    }

    async fn complete(self) -> Result<Value, Error> {
        let Args {
            status,
            result,
            caveats,
            evidence,
            ..
        } = &self.args;
        let mut finish = match status {
            Some(TaskStatus::Failed) => Finish::failure(Arc::clone(result)),
            _ => Finish::success(Arc::clone(result)),
        };
        finish.caveats.clone_from(caveats);
        for CriterionProof { criterion, proof } in evidence {
            finish = finish.evidence(Arc::clone(criterion), Arc::clone(proof));
        }
        self.board.finish(self.id()?, &self.worker, finish).await?;
        self.show_task().await
    }

    async fn wait(self) -> Result<Value, Error> {
        let within = self
            .args
            .timeout_seconds
            .map_or(WAIT, Duration::from_secs)
            .min(MAX_WAIT);
        let id = self.id()?;
        tokio::select! {
            ended = self.board.wait(id, within) => match ended {
                Err(error) if error.kind() != ErrorKind::TimedOut => return Err(error),
                _ => {}
            },
            () = self.cx.cancel.cancelled() => {}
        }
        let listed = self.board.show(id).await?;
        let mut shown = show::task(&listed);
        if !listed.task.status.is_terminal() {
            shown["note"] = json!(format!(
                "it has not ended within {} seconds",
                within.as_secs()
            ));
        }
        Ok(shown)
    }

    async fn cancel(self) -> Result<Value, Error> {
        let id = self.id()?;
        let listed = self.board.show(id).await?;
        // The work that this call has done before is done.
        if listed.task.status != TaskStatus::Cancelled {
            self.board.cancel(id).await?;
        }
        self.show_task().await
    }

    async fn retry(self) -> Result<Value, Error> {
        self.board.retry(self.id()?).await?;
        self.show_task().await
    }

    async fn show_task(&self) -> Result<Value, Error> {
        Ok(show::task(&self.board.show(self.id()?).await?))
    }

    fn id(&self) -> Result<&TaskId, Error> {
        let missing = || {
            Error::new(
                ErrorKind::Invalid,
                "`task_id` says which task is meant, and is missing",
            )
        };
        self.args.task_id.as_ref().ok_or_else(missing)
    }

    /// The name by which the call creates a task once; none outside a run.
    fn key(&self) -> Option<Arc<str>> {
        let (who, call) = (&self.cx.who, self.cx.who.call?);
        let log = self.cx.get::<LogId>().filter(|log| !log.0.is_empty());
        // Without a log no call can be repeated; the agent's id separates several agents.
        let log = log.map_or_else(|| Arc::clone(&who.agent_id), |log| Arc::clone(&log.0));
        let key = format!("call {call} of {} in {log}", who.thread.as_str());
        (key.len() <= MAX_KEY_BYTES)
            .then(|| key.as_str().into())
            .or_else(|| Some(hash_key(&key).into()))
    }
}

/// A short name that comes of a long one.
///
/// Source: the FNV-1a hash of 128 bits, draft-eastlake-fnv.
fn hash_key(key: &str) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = key.bytes().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    format!("{hash:032x}")
}
