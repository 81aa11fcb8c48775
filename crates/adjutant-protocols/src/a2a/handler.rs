//! The requests of clients: the methods and their answers.

use std::{
    collections::HashMap,
    fmt,
    hash::BuildHasher,
    pin::Pin,
    sync::{Arc, PoisonError},
    time::Duration,
};

use adjutant_core::{Digest, Seq};
use futures_core::Stream;
use futures_util::{StreamExt, lock::Mutex, stream};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    card::AgentCard,
    desk::{Desk, DeskWish, Until},
    push::{Pushes, Target},
    read,
    refusal::{Code, RpcRefusal},
    task::{Tasks, context_of},
    watch::WatchedTask,
    wire::{OfTask, Part, PushConfig, Role, SendMessage, Task, TaskState},
};
use crate::ErrorKind;

/// The version of the protocol that is spoken here.
const VERSION: &str = "1.0";
/// The interval at which a comment is sent when nothing else is.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The number of conversations in which operations can start at the same time.
const LOCKS: usize = 64;
/// The number of conversations whose tasks are cached while their logs are unchanged.
const KEPT: usize = 64;
/// The default number of tasks of a page, and the largest.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 100;
/// The number of times that a task is stopped, where several callers cancel it at once or it waits before it stops.
const STOPS: u32 = 4;

/// An agent for callers that speak A2A over JSON-RPC. Cheap to clone.
#[derive(Clone)]
pub struct Handler(Arc<Served>);

struct Served {
    desk: Arc<dyn Desk>,
    card: Value,
    /// None where nothing is pushed.
    pushes: Option<Pushes>,
    /// A lock for each conversation, or a few: the effect of a message is complete before the next message is
    /// processed.
    locks: Vec<Mutex<()>>,
    hasher: std::hash::RandomState,
    /// Conversations at a log position: repeated reads do not parse an unchanged log again.
    kept: std::sync::Mutex<HashMap<String, KeptTasks>>,
}

type KeptTasks = ((u64, Seq), Arc<Tasks>);

/// The answer to a request.
pub enum Reply {
    /// JSON: the body of an answer of the type `application/json`, with the status 200 for refusals too.
    Json(Value),
    /// Server-sent events, each a text that is sent as it is, of an answer with [`HEADERS`](super::HEADERS).
    Stream(Pin<Box<dyn Stream<Item = String> + Send>>),
}

impl Handler {
    /// An agent whose tasks run on this desk.
    pub fn new(desk: impl Desk, card: &AgentCard) -> Self {
        let locks = (0..LOCKS).map(|_| Mutex::new(())).collect();
        Self(Arc::new(Served {
            desk: Arc::new(desk),
            card: card.value(),
            pushes: card.pushes.as_ref().map(Pushes::new),
            locks,
            hasher: Default::default(),
            kept: Default::default(),
        }))
    }

    /// The description of the agent, for `GET /.well-known/agent-card.json`.
    pub fn card(&self) -> &Value {
        &self.0.card
    }

    /// Answers a request: the header `A2A-Version`, and the body.
    ///
    /// Cancel: a started run continues, also if a streamed answer is dropped.
    pub async fn handle(&self, version: Option<&str>, body: &[u8]) -> Reply {
        let request = match adjutant_llm::json::from_slice(body) {
            Ok(request) => request,
            Err(error) => {
                return Reply::Json(
                    RpcRefusal::new(Code::Parse, format!("no JSON: {error}"))
                        .to_response(&Value::Null),
                );
            }
        };
        let id = request["id"].clone();
        let method = request["method"]
            .as_str()
            .filter(|_| request["jsonrpc"] == "2.0");
        let (Some(method), true) = (method, id.is_string() || id.is_number()) else {
            let failure = RpcRefusal::new(
                Code::Request,
                "a request has `jsonrpc` 2.0, an `id` and a `method`",
            );
            return Reply::Json(failure.to_response(&Value::Null));
        };
        let answered = match check(version) {
            Ok(()) => self.answer(method, request["params"].clone(), &id).await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| Reply::Json(failure.to_response(&id)))
    }

    async fn answer(&self, method: &str, params: Value, id: &Value) -> Result<Reply, RpcRefusal> {
        let result = match method {
            "SendMessage" => {
                let asked: SendMessage = read(params)?;
                let options = asked.configuration.clone();
                let task = self
                    .send(asked)
                    .await?
                    .wait_for_task(options.return_immediately)
                    .await?;
                json!({"task": limit_history(task, options.history_length)})
            }
            "SendStreamingMessage" => {
                let followed = self.send(read(params)?).await?;
                return Ok(self.stream(followed, id, |_| false));
            }
            "GetTask" => {
                let asked: OfTask = read(params)?;
                let (tasks, at) = self.find_task(&asked.id).await?;
                let task = tasks
                    .find(at)
                    .map(|kept| kept.task.clone())
                    .unwrap_or_default();
                json!(limit_history(task, asked.history_length))
            }
            "ListTasks" => {
                let state = params["status"].clone();
                let asked: OfTask = read(params)?;
                if asked.status == Some(TaskState::Unspecified)
                    && state != json!(TaskState::Unspecified)
                {
                    return Err(RpcRefusal::params("unknown task `status`"));
                }
                self.list(&asked).await?
            }
            "CancelTask" => {
                let asked: OfTask = read(params)?;
                json!(self.cancel(&asked.id).await?)
            }
            "SubscribeToTask" => {
                let asked: OfTask = read(params)?;
                let (tasks, at) = self.find_task(&asked.id).await?;
                if tasks
                    .find(at)
                    .is_some_and(|kept| kept.task.status.state.is_over())
                {
                    return Err(RpcRefusal::new(
                        Code::UnsupportedOperation,
                        "the task is over: GetTask tells what came of it",
                    ));
                }
                let events = self
                    .0
                    .desk
                    .events(tasks.context(), tasks.at(), Until::End)
                    .await?;
                let tasks = Arc::unwrap_or_clone(tasks);
                let followed = WatchedTask {
                    tasks,
                    events,
                    message: None,
                    at: Some(at),
                    is_begun: true,
                };
                return Ok(self.stream(followed, id, TaskState::waits));
            }
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => self.push(method, params).await?,
            "GetExtendedAgentCard" => {
                return Err(RpcRefusal::new(
                    Code::UnsupportedOperation,
                    "there is no extended agent card",
                ));
            }
            _ => {
                return Err(RpcRefusal::new(
                    Code::Method,
                    format!("unknown method {method:?}"),
                ));
            }
        };
        Ok(Reply::Json(
            json!({"jsonrpc": "2.0", "id": id, "result": result}),
        ))
    }

    /// The current tasks of a conversation; a task that a crash interrupted is resumed.
    async fn tasks(&self, context: &str) -> Result<Arc<Tasks>, RpcRefusal> {
        let mark = self.0.desk.mark(context).await;
        let kept = || self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept()
            .get(context)
            .filter(|(at, _)| Some(*at) == mark)
            .map(|(_, tasks)| Arc::clone(tasks));
        let tasks = match known {
            Some(tasks) => tasks,
            None => {
                let mut tasks = Tasks::new(context);
                let mut events = self.0.desk.events(context, Seq(0), Until::Now).await?;
                while let Some(event) = events.next().await {
                    tasks.tell(&event?);
                }
                let tasks = Arc::new(tasks);
                if let Some(mark) = mark {
                    let mut kept = kept();
                    if kept.len() >= KEPT && !kept.contains_key(context) {
                        kept.clear();
                    }
                    kept.insert(context.to_owned(), (mark, Arc::clone(&tasks)));
                }
                tasks
            }
        };
        if is_at_work(&tasks) {
            self.0.desk.perform(context, DeskWish::GoOn).await?;
        }
        Ok(tasks)
    }

    async fn find_task(&self, id: &str) -> Result<(Arc<Tasks>, usize), RpcRefusal> {
        let tasks = self
            .tasks(context_of(id).ok_or_else(|| RpcRefusal::no_task(id))?)
            .await?;
        let at = tasks.position(id).ok_or_else(|| RpcRefusal::no_task(id))?;
        Ok((tasks, at))
    }

    /// Starts the task of a message, or continues an existing one; a repeated message has no effect.
    async fn send(&self, asked: SendMessage) -> Result<WatchedTask, RpcRefusal> {
        let SendMessage {
            message,
            configuration,
        } = asked;
        if message.message_id.is_empty() || message.parts.is_empty() {
            return Err(RpcRefusal::params(
                "a message has a `messageId` and `parts`",
            ));
        }
        if message.role != Role::User {
            return Err(RpcRefusal::params(
                "a message to an agent has the `role` ROLE_USER",
            ));
        }
        if !message.parts.iter().all(Part::is_one) {
            return Err(RpcRefusal::params(
                "a part is one of `text`, `raw`, `url` and `data`",
            ));
        }
        let push = match configuration.task_push_notification_config {
            Some(config) => {
                let config = PushConfig {
                    task_id: message.task_id.clone(),
                    ..config
                };
                let pushes = self.pushes()?;
                pushes.room(&config)?;
                Some((pushes.target(&config)?, config))
            }
            None => None,
        };
        let modes = &configuration.accepted_output_modes;
        if !modes.is_empty()
            && !modes
                .iter()
                .any(|mode| ["text/plain", "text/*", "*/*"].contains(&&**mode))
        {
            return Err(RpcRefusal::new(
                Code::ContentTypeNotSupported,
                "the answer is text/plain",
            ));
        }
        let context = context(&message.task_id, &message.context_id)?.unwrap_or_else(|| {
            // The same message again begins the same conversation.
            let digest = Digest::compute(json!(message).to_string().as_bytes()).to_string();
            format!("a2a-{}", digest.get(..32).unwrap_or_default())
        });
        let lock = self.0.hasher.hash_one(&context) as usize % LOCKS;
        let _begins = match self.0.locks.get(lock) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        let tasks = self.tasks(&context).await?;
        let mut at = tasks.find_by_message(&message.message_id);
        let is_begun = at.is_some();
        if !is_begun {
            let wish = match &*message.task_id {
                "" if is_at_work(&tasks) => {
                    let why = "a task of this conversation is at work: wait for its end";
                    return Err(RpcRefusal::new(Code::UnsupportedOperation, why));
                }
                "" => DeskWish::Prompt(read::prompt(&message)?),
                id => {
                    at = tasks.position(id);
                    let kept = at
                        .and_then(|at| tasks.find(at))
                        .ok_or_else(|| RpcRefusal::no_task(id))?;
                    let state = kept.task.status.state;
                    if !state.waits() {
                        let why = if state.is_over() {
                            "is over"
                        } else {
                            "is at work, and asks for nothing"
                        };
                        return Err(RpcRefusal::new(
                            Code::UnsupportedOperation,
                            format!("the task {why}"),
                        ));
                    }
                    DeskWish::Answers {
                        answers: read::answers(&message, &kept.pauses)?,
                        note: read::note(&message),
                    }
                }
            };
            self.0.desk.perform(&context, wish).await?;
        }
        let events = self.0.desk.events(&context, tasks.at(), Until::End).await?;
        let tasks = Arc::unwrap_or_clone(tasks);
        let mut followed = WatchedTask {
            tasks,
            events,
            message: Some(message.message_id),
            at,
            is_begun,
        };
        if let Some((target, config)) = push {
            let task_id = followed.wait_for_task(true).await?.id;
            self.push_to(
                PushConfig { task_id, ..config },
                target,
                &followed.tasks,
                followed.at.unwrap_or_default(),
            )
            .await?;
        }
        Ok(followed)
    }

    async fn cancel(&self, id: &str) -> Result<Task, RpcRefusal> {
        let (tasks, at) = self.find_task(id).await?;
        let kept = tasks.find(at).ok_or_else(|| RpcRefusal::no_task(id))?;
        if kept.task.status.state == TaskState::Canceled {
            return Ok(kept.task.clone());
        }
        if kept.task.status.state.is_over() {
            return Err(RpcRefusal::new(Code::TaskNotCancelable, "the task is over"));
        }
        let (tasks, events) = (Arc::unwrap_or_clone(tasks), Box::pin(stream::empty()));
        let mut followed = WatchedTask {
            tasks,
            events,
            message: None,
            at: Some(at),
            is_begun: true,
        };
        let mut tries = STOPS;
        loop {
            let stopped = self
                .0
                .desk
                .perform(followed.tasks.context(), DeskWish::Stop)
                .await;
            followed.events = self
                .0
                .desk
                .events(followed.tasks.context(), followed.tasks.at(), Until::End)
                .await?;
            let task = followed.wait_for_task(false).await?;
            tries -= 1;
            match stopped {
                _ if task.status.state.is_over() => return Ok(task),
                Err(error) if error.kind() != ErrorKind::Stale || tries == 0 => {
                    return Err(error.into());
                }
                // Another caller stops it, or it began to wait before it could stop.
                Err(_) => {}
                Ok(()) if task.status.state.waits() && tries > 0 => {}
                Ok(()) => return Ok(task),
            }
        }
    }

    /// A page of the tasks of a conversation, the newest first.
    async fn list(&self, asked: &OfTask) -> Result<Value, RpcRefusal> {
        if asked.context_id.is_empty() {
            let message = "the tasks of all conversations are not listed: name one by `contextId`";
            return Err(RpcRefusal::new(Code::UnsupportedOperation, message));
        }
        let size = asked.page_size.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&size) {
            return Err(RpcRefusal::params(format!(
                "a page has from 1 to {MAX_PAGE} tasks"
            )));
        }
        let wanted = asked
            .status
            .filter(|state| *state != TaskState::Unspecified);
        let after = Some(&asked.status_timestamp_after).filter(|time| !time.is_empty());
        let after = after
            .map(|time| time.parse::<jiff::Timestamp>())
            .transpose();
        let after =
            after.map_err(|error| RpcRefusal::params(format!("statusTimestampAfter: {error}")))?;
        let is_wanted = |task: &&Task| {
            let since = task.status.timestamp.parse::<jiff::Timestamp>().ok();
            wanted.is_none_or(|state| task.status.state == state)
                && after.is_none_or(|after| since >= Some(after))
        };
        let tasks = self.tasks(&asked.context_id).await?;
        let all: Vec<&Task> = tasks.all().rev().filter(is_wanted).collect();
        let from = match &*asked.page_token {
            "" => 0,
            mark => all
                .iter()
                .position(|task| task.id == mark)
                .ok_or_else(|| RpcRefusal::params("no such page"))?,
        };
        let page = all.iter().skip(from).take(size as usize).map(|task| {
            let artifacts = if asked.include_artifacts {
                task.artifacts.clone()
            } else {
                Vec::new()
            };
            limit_history(
                Task {
                    artifacts,
                    ..Task::clone(task)
                },
                asked.history_length,
            )
        });
        let next = all.get(from + size as usize).map_or("", |task| &task.id);
        let page: Vec<Task> = page.collect();
        Ok(json!({"tasks": page, "nextPageToken": next, "pageSize": size, "totalSize": all.len()}))
    }

    /// A task and its changes as server-sent events; in the given states the stream continues without an active run.
    fn stream(&self, followed: WatchedTask, id: &Value, goes_on: fn(TaskState) -> bool) -> Reply {
        let id = id.clone();
        let frames = followed
            .updates(Arc::clone(&self.0.desk), goes_on)
            .map(move |updates| match updates {
                Ok(updates) => updates
                    .iter()
                    .map(|update| {
                        format_frame(&json!({"jsonrpc": "2.0", "id": id, "result": update}))
                    })
                    .collect(),
                Err(failure) => format_frame(&RpcRefusal::to_response(&failure, &id)),
            });
        Reply::Stream(Box::pin(alive(frames)))
    }

    /// Makes, shows or takes back addresses to which the updates of a task are pushed.
    async fn push(&self, method: &str, params: Value) -> Result<Value, RpcRefusal> {
        let pushes = self.pushes()?;
        let config = PushConfig::read(params)?;
        let (tasks, at) = self.find_task(&config.task_id).await?;
        match method {
            "CreateTaskPushNotificationConfig" => {
                let target = pushes.target(&config)?;
                self.push_to(config, target, &tasks, at).await
            }
            "GetTaskPushNotificationConfig" => {
                let found = pushes
                    .configs(&config.task_id)
                    .into_iter()
                    .find(|it| it["id"] == config.id);
                found.ok_or_else(|| {
                    RpcRefusal::new(Code::TaskNotFound, "nothing is pushed under this `id`")
                })
            }
            "ListTaskPushNotificationConfigs" => {
                Ok(json!({"configs": pushes.configs(&config.task_id), "nextPageToken": ""}))
            }
            _ => {
                pushes.remove(&config);
                Ok(json!({}))
            }
        }
    }

    /// Pushes the current task, and then its updates until it is over.
    async fn push_to(
        &self,
        config: PushConfig,
        to: Target,
        tasks: &Tasks,
        at: usize,
    ) -> Result<Value, RpcRefusal> {
        let events = self
            .0
            .desk
            .events(tasks.context(), tasks.at(), Until::End)
            .await?;
        let followed = WatchedTask {
            tasks: tasks.clone(),
            events,
            message: None,
            at: Some(at),
            is_begun: true,
        };
        self.pushes()?.keep(
            config,
            to,
            followed.updates(Arc::clone(&self.0.desk), |state| !state.is_over()),
        )
    }

    fn pushes(&self) -> Result<&Pushes, RpcRefusal> {
        let why = "updates are not pushed: SubscribeToTask streams them";
        self.0
            .pushes
            .as_ref()
            .ok_or_else(|| RpcRefusal::new(Code::PushNotificationNotSupported, why))
    }
}

/// Refuses what another version means.
fn check(version: Option<&str>) -> Result<(), RpcRefusal> {
    let version = version.map_or("0.3", str::trim);
    if version == VERSION
        || version
            .strip_prefix(VERSION)
            .is_some_and(|patch| patch.starts_with('.'))
    {
        return Ok(());
    }
    let version: String = version.chars().take(40).collect();
    let message = format!(
        "version {version:?} is not spoken here; hint: the header A2A-Version is {VERSION}"
    );
    Err(RpcRefusal::new(Code::VersionNotSupported, message))
}

/// True if the newest task is active.
fn is_at_work(tasks: &Tasks) -> bool {
    tasks
        .all()
        .next_back()
        .is_some_and(|task| task.status.state == TaskState::Working)
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcRefusal> {
    serde_json::from_value(params).map_err(|error| RpcRefusal::params(format!("params: {error}")))
}

/// The conversation of a message; `None` for a new one.
fn context(task: &str, context: &str) -> Result<Option<String>, RpcRefusal> {
    let given = Some(context).filter(|it| !it.is_empty());
    if task.is_empty() {
        return Ok(given.map(str::to_owned));
    }
    let own = context_of(task).ok_or_else(|| RpcRefusal::no_task(task))?;
    if given.is_some_and(|given| given != own) {
        return Err(RpcRefusal::params(
            "the task does not belong to the conversation of `contextId`",
        ));
    }
    Ok(Some(own.to_owned()))
}

/// A task with so much of its history: the newest of it.
fn limit_history(mut task: Task, history: Option<u32>) -> Task {
    let many = task
        .history
        .len()
        .saturating_sub(history.map_or(usize::MAX, |many| many as usize));
    task.history.drain(..many);
    task
}

fn format_frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Comments between frames, so that no connection counts as dead.
fn alive(frames: impl Stream<Item = String> + Send) -> impl Stream<Item = String> + Send {
    stream::unfold(
        Box::pin(frames),
        async |mut frames| match tokio::time::timeout(KEEP_ALIVE, frames.next()).await {
            Ok(frame) => frame.map(|frame| (frame, frames)),
            Err(_) => Some((": \n\n".to_owned(), frames)),
        },
    )
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("card", &self.0.card)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(value) => f.debug_tuple("Json").field(value).finish(),
            Self::Stream(_) => f.debug_tuple("Stream").finish_non_exhaustive(),
        }
    }
}
