//! An agent anywhere that speaks A2A, as a peer: its task is begun once and followed to its end, and its questions are asked here.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{CallResult, Schema};
use adjutant_protocols::a2a::{HEARS_ONCE, Message, Part, SendMessage, SendOptions, Task, TaskState};
use adjutant_tool::{Answer, Ask, AskKind, CallContext, Noted, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    call::{LOOK, PAUSE, RESTART, STOP},
    reach::{Lost, QUICK, Remote},
};

/// The most characters of a question that are shown, and the most bytes of the schema of its answer.
const MAX_QUESTION: usize = 4_000;
const MAX_SCHEMA: usize = 16 << 10;
/// The time that an agent may take to begin: one that knows no `returnImmediately` answers when it is done.
const BEGIN: Duration = Duration::from_secs(600);

/// What came of the message that asks.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Begun {
    /// A task, at this endpoint.
    Task { endpoint: String, once: bool, id: String, context: String },
    /// The answer itself.
    Answer(String),
}

/// Asks, once however often the call is entered, and waits for the answer. A new call is named so, or refused.
pub(super) async fn call(
    name: &str,
    (url, token): (&str, Option<&str>),
    prompt: &str,
    admitted: Result<String, ToolError>,
    cx: &CallContext,
) -> Result<CallResult, ToolError> {
    let message = cx.once("message", || async move { admitted }).await?;
    let begun = match cx.backend.begin("task").await? {
        Noted::Done(begun) => serde_json::from_value(begun)
            .map_err(|error| ToolError::failed("the step cannot be read").with_source(error))?,
        noted => {
            let remote = Remote::find(name, url, token).await?;
            let once = remote.card["capabilities"]["extensions"].as_array();
            let once = once.is_some_and(|all| all.iter().any(|it| it["uri"] == HEARS_ONCE));
            if noted == Noted::Unknown && !once {
                return Err(unknown(name, "it was asked before a crash"));
            }
            let begun = tokio::select! {
                begun = begin(&remote, once, Message::user(&message, vec![Part::text(prompt)])) => begun?,
                () = cx.cancel.cancelled() => {
                    return Err(ToolError::new(ToolErrorKind::Cancelled, format!("{name} was asked as the call was cancelled")));
                }
            };
            cx.backend.finish("task", json!(begun)).await?;
            begun
        }
    };
    let followed = match begun {
        Begun::Answer(text) => return Ok(CallResult::ok(text)),
        Begun::Task { endpoint, once, id, context } => {
            RemoteTask { remote: Remote::at(name, &endpoint, token)?, once, message, id, context }
        }
    };
    let mut left = LeftTask(Some((followed.remote.clone(), followed.id.clone())));
    let ended = tokio::select! {
        biased;
        ended = followed.follow(cx, &mut left) => ended,
        () = cx.cancel.cancelled() => {
            let stopped = timeout(STOP, followed.remote.ask("CancelTask", json!({"id": followed.id}), STOP)).await;
            let is_told = matches!(stopped, Ok(Ok(_)));
            let said = if is_told { "was told to stop" } else { "has not said that it stops" };
            Err(ToolError::new(ToolErrorKind::Cancelled, format!("the call was cancelled; {name} {said}")))
        }
    };
    left.0 = None;
    ended
}

/// A task that nobody waits for any more is cancelled.
struct LeftTask(Option<(Remote, String)>);

impl Drop for LeftTask {
    fn drop(&mut self) {
        if let (Some((remote, id)), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                // It may be gone, and nobody waits for it.
                let _ended = remote.ask("CancelTask", json!({"id": id}), STOP).await;
            });
        }
    }
}

/// Sends the message that begins a task, again where that does nothing twice.
async fn begin(remote: &Remote, once: bool, message: Message) -> Result<Begun, ToolError> {
    let mut told = send(remote, once, message).await?;
    if !told["message"].is_null() {
        let message: Message = read(&remote.name, told["message"].take())?;
        return Ok(Begun::Answer(text(message.parts.iter())));
    }
    let task: Task = read(&remote.name, told["task"].take())?;
    if task.id.is_empty() {
        return Err(ToolError::failed(format!("{} answered with no task", remote.name)));
    }
    Ok(Begun::Task { endpoint: remote.endpoint.to_string(), once, id: task.id, context: task.context_id })
}

async fn send(remote: &Remote, once: bool, message: Message) -> Result<Value, ToolError> {
    let mut asked = SendMessage::default();
    asked.message = message;
    asked.configuration = SendOptions::default();
    asked.configuration.return_immediately = true;
    asked.configuration.history_length = Some(0);
    let mut pause = LOOK;
    let since = Instant::now();
    loop {
        match remote.ask("SendMessage", json!(asked), BEGIN).await {
            Ok(told) => return Ok(told),
            Err(Lost::Refused(error)) => return Err(error),
            Err(Lost::Unsent(error)) if since.elapsed() > RESTART => return Err(error),
            Err(Lost::Unheard) if !once || since.elapsed() > RESTART => {
                return Err(unknown(&remote.name, "it was asked, and its answer was lost"));
            }
            Err(Lost::Unsent(_) | Lost::Unheard) => {}
        }
        sleep(pause).await;
        pause = PAUSE.min(pause * 2);
    }
}

/// A task that is followed.
struct RemoteTask {
    remote: Remote,
    once: bool,
    message: String,
    id: String,
    context: String,
}

impl RemoteTask {
    /// Waits until it is over, and asks here what it asks.
    async fn follow(&self, cx: &CallContext, left: &mut LeftTask) -> Result<CallResult, ToolError> {
        let (name, mut pause, mut heard_at) = (&self.remote.name, LOOK, Instant::now());
        loop {
            match self.remote.ask("GetTask", json!({"id": self.id, "historyLength": 0}), QUICK).await {
                Ok(told) => {
                    heard_at = Instant::now();
                    let task: Task = read(name, told)?;
                    if let Some(ended) = ended(name, &task) {
                        return ended;
                    }
                    if task.status.state.waits() && self.asked(cx, &task, left).await? {
                        pause = LOOK;
                    }
                }
                Err(Lost::Refused(error)) => return Err(error),
                Err(_) if heard_at.elapsed() > RESTART => {
                    let seconds = RESTART.as_secs();
                    return Err(unknown(name, &format!("it was lost, and did not come back in {seconds} s")));
                }
                Err(_) => {}
            }
            sleep(pause).await;
            pause = PAUSE.min(pause * 2);
        }
    }

    /// Asks here what the task asks, and passes the answer on; false if that was done before.
    async fn asked(&self, cx: &CallContext, task: &Task, left: &mut LeftTask) -> Result<bool, ToolError> {
        let message = task.status.message.clone().unwrap_or_default();
        let of = if message.message_id.is_empty() { &task.status.timestamp } else { &message.message_id };
        let key: String = of.chars().filter(|c| !c.is_control()).take(80).collect();
        // The body may be dropped while it waits for somebody here: the task goes on waiting.
        let kept = left.0.take();
        let asks = asks(&self.remote.name, task.status.state, &message);
        let mut answers = Vec::new();
        for (at, (pause, ask)) in asks.into_iter().enumerate() {
            let answer = cx.pause(&format!("asked {key} {at}"), ask).await?;
            answers.extend(given(pause, answer));
        }
        left.0 = kept;
        let step = format!("answer {key}");
        match cx.backend.begin(&step).await? {
            Noted::Done(_) => return Ok(false),
            Noted::Unknown if !self.once => return Err(unknown(&self.remote.name, "it was answered before a crash")),
            _ => {}
        }
        // Access that was given elsewhere is noticed there.
        if !answers.is_empty() {
            let mut said = Message::user(format!("{}-{key}", self.message), answers);
            (said.task_id, said.context_id) = (self.id.clone(), self.context.clone());
            send(&self.remote, self.once, said).await?;
        }
        cx.backend.finish(&step, Value::Null).await?;
        Ok(true)
    }
}

/// What a message asks, each with the name of the pause if the agent has given one.
fn asks(name: &str, state: TaskState, message: &Message) -> Vec<(Option<Value>, Ask)> {
    let kind = if state == TaskState::AuthRequired { AskKind::Authorisation } else { AskKind::Question };
    let texts = text(message.parts.iter());
    let prompt: String = format!("{name} asks: {texts}").chars().take(MAX_QUESTION).collect();
    let named = |part: &Part| part.data.clone().filter(|data| data["pause"].is_string());
    let pauses: Vec<Value> = message.parts.iter().filter_map(named).collect();
    if pauses.is_empty() {
        return vec![(None, Ask::new(kind, prompt))];
    }
    let asks = pauses.into_iter().map(|mut data| {
        let (pause, schema) = (data["pause"].take(), data["schema"].take());
        let is_small = schema.to_string().len() <= MAX_SCHEMA;
        let is_schema = !schema.is_null() && is_small && Schema::compile(Arc::new(schema.clone())).is_ok();
        let mut ask = Ask::new(kind, prompt.clone());
        (ask.schema, ask.data) = (if is_schema { schema } else { Value::Null }, json!({"call": data["call"]}));
        (Some(pause), ask)
    });
    asks.collect()
}

/// The part that answers; none where access was given elsewhere.
fn given(pause: Option<Value>, answer: Answer) -> Option<Part> {
    let (value, words) = match answer {
        Answer::Give { value } => {
            let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (value, Some(words))
        }
        Answer::Approve { .. } => (json!({"approved": true}), None),
        Answer::Deny { reason } => (json!({"approved": false, "reason": reason}), Some(format!("no: {reason}"))),
        _ => (Value::Null, Some("no answer is given".to_owned())),
    };
    match pause {
        Some(pause) => Some(Part::data(json!({"pause": pause, "answer": value}))),
        None => words.map(Part::text),
    }
}

/// The result of a task that is over.
fn ended(name: &str, task: &Task) -> Option<Result<CallResult, ToolError>> {
    let why = task.status.message.as_ref().map(|message| text(message.parts.iter())).unwrap_or_default();
    let said = text(task.artifacts.iter().flat_map(|artifact| &artifact.parts));
    let failed = |what: &str| {
        let said = if said.is_empty() { String::new() } else { format!(" It said: {said}") };
        Some(Err(ToolError::failed(format!("{name} {what}: {why}.{said}"))))
    };
    match task.status.state {
        // Some agents put their answer into the message of the end.
        TaskState::Completed => Some(Ok(CallResult::ok(if said.is_empty() { why } else { said }))),
        TaskState::Failed => failed("failed"),
        TaskState::Rejected => failed("does not do that"),
        TaskState::Canceled => failed("was cancelled"),
        _ => None,
    }
}

/// The texts of parts, and JSON and files in the place of theirs.
fn text<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let texts = parts.filter_map(|part| match (&part.text, &part.data, &part.url) {
        (Some(text), ..) => Some(text.clone()),
        (_, Some(data), _) if data["pause"].is_string() => None,
        (_, Some(data), _) => Some(data.to_string()),
        (.., Some(url)) => Some(url.clone()),
        _ => Some(format!("[a file of the type {:?}, which is not shown]", part.media_type)),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn read<T: serde::de::DeserializeOwned>(name: &str, told: Value) -> Result<T, ToolError> {
    serde_json::from_value(told)
        .map_err(|error| ToolError::failed(format!("{name} answered what cannot be read")).with_source(error))
}

fn unknown(name: &str, why: &str) -> ToolError {
    ToolError::new(ToolErrorKind::OutcomeUnknown, format!("outcome unknown: {name}: {why}"))
}
