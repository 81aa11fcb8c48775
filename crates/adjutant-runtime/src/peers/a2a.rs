//! An A2A agent as a peer: starts its task once, follows it to its end, and asks its questions here.

use std::{borrow::Cow, sync::Arc, time::Duration};

use adjutant_agent::Digest;
use adjutant_llm::{CallResult, Schema};
use adjutant_protocols::a2a::{
    HEARS_ONCE, Message, Part, SendMessage, SendOptions, Task, TaskState, TaskStatus,
};
use adjutant_tool::{Answer, Ask, AskKind, CallContext, Cancel, Noted, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    call::{LOOK, PAUSE, RESTART, STOP},
    reach::{Lost, QUICK, Remote},
};

/// The maximum number of characters of a question, and of bytes of the schema of its answer.
const MAX_QUESTION: usize = 4_000;
const MAX_SCHEMA: usize = 16 << 10;
/// The maximum number of simultaneous questions, and of rounds of a call.
const MAX_PAUSES: usize = 100;
/// The maximum length of a stored or returned name, and of the agent's output: the maximum of a result in a log.
const MAX_NAME: usize = 1_000;
const MAX_TEXT: usize = (4 << 20) - 100;
/// The maximum number of characters of the reason why an answer is invalid.
const MAX_WHY: usize = 200;
/// The timeout for the start of a task: an agent without `returnImmediately` answers only at the end.
const BEGIN: Duration = Duration::from_secs(600);

/// The outcome of the initial message.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Begun {
    /// A task, at this endpoint.
    Task {
        endpoint: String,
        once: bool,
        id: String,
        context: String,
    },
    /// An immediate answer.
    Answer(String),
}

/// Sends the request once, even if the call is entered again, and waits for the answer. A new call gets this name, or
/// is refused.
pub(super) async fn call(
    name: &str,
    (url, token): (&str, Option<&str>),
    prompt: &str,
    admitted: Result<String, ToolError>,
    cx: &CallContext,
) -> Result<CallResult, ToolError> {
    let message = cx.once("message", || async move { admitted }).await?;
    let asking = async {
        let step = match cx.backend.begin("task").await? {
            Noted::Done(begun) => return noted(begun),
            step => step,
        };
        let remote = Remote::find(name, url, token).await?;
        let once = remote.card["capabilities"]["extensions"].as_array();
        let once = once.is_some_and(|all| all.iter().any(|it| it["uri"] == HEARS_ONCE));
        if step == Noted::Unknown && !once {
            return Err(unknown(name, "it was asked before a crash"));
        }
        let begun = begin(
            &remote,
            once,
            Message::user(&message, vec![Part::text(prompt)]),
        )
        .await?;
        cx.backend.finish("task", json!(begun)).await?;
        Ok(begun)
    };
    let begun = tokio::select! {
        biased;
        begun = asking => begun?,
        () = cx.cancel.cancelled() => {
            let message = format!("the call was cancelled while {name} was asked: it may have begun");
            return Err(ToolError::new(ToolErrorKind::Cancelled, message));
        }
    };
    let followed = match begun {
        Begun::Answer(text) => return Ok(CallResult::ok(text)),
        Begun::Task {
            endpoint,
            once,
            id,
            context,
        } => RemoteTask {
            remote: Remote::at(name, &endpoint, token)?,
            once,
            message,
            id,
            context,
        },
    };
    let mut left = LeftTask {
        task: Some((followed.remote.clone(), followed.id.clone())),
        cancel: cx.cancel.clone(),
    };
    let ended = tokio::select! {
        biased;
        ended = followed.follow(cx) => ended,
        () = cx.cancel.cancelled() => Err(ToolError::new(ToolErrorKind::Cancelled, "the call was cancelled")),
    };
    match (ended, left.task.take()) {
        (Ok(ended), _) => ended,
        // The run was dropped; the next process that runs it follows the task again.
        (Err(error), _) if error.kind == ToolErrorKind::Cancelled && !cx.cancel.is_cancelled() => {
            Err(error)
        }
        (Err(mut error), task) => {
            let stopped = match &task {
                Some((remote, id)) => remote
                    .ask("CancelTask", json!({"id": id}), STOP)
                    .await
                    .is_ok(),
                None => false,
            };
            let said = if stopped {
                "was told to stop"
            } else {
                "has not said that it stops"
            };
            error.message = format!("{}; {name} {said}", error.message).into();
            Err(error)
        }
    }
}

/// A task that is cancelled with its call. If the call is dropped for another reason, the task continues, because the
/// call is entered again, here or elsewhere.
struct LeftTask {
    task: Option<(Remote, String)>,
    cancel: Cancel,
}

impl Drop for LeftTask {
    fn drop(&mut self) {
        let task = self.task.take().filter(|_| self.cancel.is_cancelled());
        if let (Some((remote, id)), Ok(runtime)) = (task, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                // The task may be gone; the result does not matter.
                let _ended = remote.ask("CancelTask", json!({"id": id}), STOP).await;
            });
        }
    }
}

/// Sends the message that starts a task, and retries if a repeated message is harmless.
async fn begin(remote: &Remote, once: bool, message: Message) -> Result<Begun, ToolError> {
    let name = &remote.name;
    let mut told = send(remote, once, message).await?;
    let unread = |why: String| unknown(name, &format!("it {why}"));
    if !told["message"].is_null() {
        let message: Message = read(told["message"].take()).map_err(unread)?;
        return Ok(Begun::Answer(text(message.parts.iter())));
    }
    let task: Task = read(told["task"].take()).map_err(unread)?;
    if task.id.is_empty() || task.id.len().max(task.context_id.len()) > MAX_NAME {
        return Err(unknown(
            name,
            "it answered with a task that has no id, or one that is too long",
        ));
    }
    Ok(Begun::Task {
        endpoint: remote.endpoint.to_string(),
        once,
        id: task.id,
        context: task.context_id,
    })
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
            Err(Lost::Unheard(why)) if !once || since.elapsed() > RESTART => {
                return Err(unknown(
                    &remote.name,
                    &format!("it was asked, and its answer was lost: {why}"),
                ));
            }
            Err(Lost::Unsent(_) | Lost::Unheard(_)) => {}
        }
        sleep(pause).await;
        pause = PAUSE.min(pause * 2);
    }
}

/// The result of a task.
type CallEnd = Result<CallResult, ToolError>;

/// A question of a task in the log: the pauses here, each with its name, `null` without one.
#[derive(Serialize, Deserialize)]
struct RemoteQuestion {
    /// Its name; each question is asked once.
    id: String,
    asks: Vec<(Value, Ask)>,
}

/// The result of a wait.
enum Waited {
    Ended(CallEnd),
    Asks(RemoteQuestion),
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
    /// Waits until the task is finished, and asks its questions here.
    ///
    /// # Errors
    /// If the task cannot be followed to its end.
    async fn follow(&self, cx: &CallContext) -> Result<CallEnd, ToolError> {
        let mut heard = Vec::new();
        for at in 0..MAX_PAUSES {
            // Recorded before it is asked: a call that is entered again asks the same question, independent of the
            // task's state.
            let step = format!("question {at}");
            let question = match cx.backend.begin(&step).await? {
                Noted::Done(question) => noted(question)?,
                _ => match self.wait(&heard).await? {
                    Waited::Ended(ended) => return Ok(ended),
                    Waited::Asks(question) => {
                        cx.backend.finish(&step, json!(question)).await?;
                        question
                    }
                },
            };
            if let Some(ended) = self.answer(cx, at, &question).await? {
                return Ok(ended);
            }
            heard.push(question.id);
        }
        Err(ToolError::failed(format!(
            "{} has asked {MAX_PAUSES} times, and asks on",
            self.remote.name
        )))
    }

    /// Waits until the task is finished, or has new questions.
    async fn wait(&self, heard: &[String]) -> Result<Waited, ToolError> {
        let (name, mut pause, mut heard_at) = (&self.remote.name, LOOK, Instant::now());
        loop {
            let why = match self.look().await {
                Ok(task) => {
                    heard_at = Instant::now();
                    if let Some(ended) = ended(name, &task) {
                        return Ok(Waited::Ended(ended));
                    }
                    let question = task
                        .status
                        .state
                        .waits()
                        .then(|| RemoteQuestion::from_status(name, &task.status))
                        .transpose()?;
                    if let Some(question) = question.filter(|it| !heard.contains(&it.id)) {
                        return Ok(Waited::Asks(question));
                    }
                    String::new()
                }
                Err(Lost::Refused(error)) => return Err(error),
                Err(Lost::Unsent(error)) => error.message.to_string(),
                Err(Lost::Unheard(why)) => why,
            };
            if heard_at.elapsed() > RESTART {
                let seconds = RESTART.as_secs();
                return Err(unknown(
                    name,
                    &format!("it was lost, and did not come back in {seconds} s: {why}"),
                ));
            }
            sleep(pause).await;
            pause = PAUSE.min(pause * 2);
        }
    }

    async fn look(&self) -> Result<Task, Lost> {
        let told = self
            .remote
            .ask("GetTask", json!({"id": self.id, "historyLength": 0}), QUICK)
            .await?;
        let wrong =
            |why: &str| Lost::Refused(ToolError::failed(format!("{} {why}", self.remote.name)));
        let task: Task = read(told).map_err(|why| wrong(&why))?;
        if task.id != self.id {
            return Err(wrong("answered with another task"));
        }
        Ok(task)
    }

    /// Asks a question of the task here, and sends the answer; returns the result if the task finished first.
    async fn answer(
        &self,
        cx: &CallContext,
        at: usize,
        question: &RemoteQuestion,
    ) -> Result<Option<CallEnd>, ToolError> {
        let mut answers = Vec::new();
        for (nth, (pause, ask)) in question.asks.iter().enumerate() {
            let answer = cx.pause(&format!("asked {at} {nth}"), ask.clone()).await?;
            answers.extend(given(pause.clone(), answer));
        }
        let step = format!("answer {at}");
        match cx.backend.begin(&step).await? {
            Noted::Done(_) => return Ok(None),
            Noted::Unknown if !self.once => {
                return Err(unknown(&self.remote.name, "it was answered before a crash"));
            }
            _ => {}
        }
        // The remote agent notices access that was granted elsewhere.
        if !answers.is_empty() {
            let mut said = Message::user(format!("{}-{at}", self.message), answers);
            (said.task_id, said.context_id) = (self.id.clone(), self.context.clone());
            if let Err(error) = send(&self.remote, self.once, said).await {
                let over = self
                    .look()
                    .await
                    .ok()
                    .and_then(|task| ended(&self.remote.name, &task));
                return over.map(Some).ok_or(error);
            }
        }
        cx.backend.finish(&step, Value::Null).await?;
        Ok(None)
    }
}

impl RemoteQuestion {
    /// # Errors
    /// If the question is too large.
    fn from_status(name: &str, status: &TaskStatus) -> Result<Self, ToolError> {
        let message = status.message.clone().unwrap_or_default();
        let id = if message.message_id.is_empty() {
            json!(status).to_string()
        } else {
            message.message_id
        };
        let id = if id.len() > MAX_NAME {
            Digest::compute(id.as_bytes()).to_string()
        } else {
            id
        };
        let kind = if status.state == TaskState::AuthRequired {
            AskKind::Authorisation
        } else {
            AskKind::Question
        };
        let prompt: String = match text(message.parts.iter()).trim() {
            "" => format!("{name} waits for an answer, and does not say what it asks"),
            texts => format!("{name} asks: {texts}")
                .chars()
                .take(MAX_QUESTION)
                .collect(),
        };
        let named = |part: &Part| {
            let is_named = part.data.as_ref()?["pause"]
                .as_str()
                .is_some_and(|it| it.len() <= MAX_NAME);
            part.data.clone().filter(|_| is_named)
        };
        let pauses: Vec<Value> = message
            .parts
            .iter()
            .filter_map(named)
            .take(MAX_PAUSES + 1)
            .collect();
        if pauses.len() > MAX_PAUSES {
            return Err(ToolError::failed(format!(
                "{name} asks more than {MAX_PAUSES} things at once"
            )));
        }
        if pauses.is_empty() {
            return Ok(Self {
                id,
                asks: vec![(Value::Null, Ask::new(kind, prompt))],
            });
        }
        let asks = pauses.into_iter().map(|mut data| {
            let mut small = |key: &str| {
                let value = data[key].take();
                if value.to_string().len() <= MAX_SCHEMA {
                    value
                } else {
                    Value::Null
                }
            };
            let (pause, schema, call) = (small("pause"), small("schema"), small("call"));
            let is_schema = !schema.is_null() && Schema::compile(Arc::new(schema.clone())).is_ok();
            let mut ask = Ask::new(kind, prompt.clone());
            (ask.schema, ask.data) = (
                if is_schema { schema } else { Value::Null },
                json!({"call": call}),
            );
            (pause, ask)
        });
        Ok(Self {
            id,
            asks: asks.collect(),
        })
    }
}

/// Returns the part with the answer; `None` if access was granted elsewhere.
fn given(pause: Value, answer: Answer) -> Option<Part> {
    let (value, words) = match answer {
        Answer::Give { value } => {
            let words = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (value, Some(words))
        }
        Answer::Approve { .. } => (json!({"approved": true}), None),
        Answer::Deny { reason } => (
            json!({"approved": false, "reason": reason}),
            Some(format!("no: {reason}")),
        ),
        _ => (Value::Null, Some("no answer is given".to_owned())),
    };
    match pause {
        Value::Null => words.map(Part::text),
        pause => Some(Part::data(json!({"pause": pause, "answer": value}))),
    }
}

/// Returns the result of a finished task.
fn ended(name: &str, task: &Task) -> Option<CallEnd> {
    let why = task
        .status
        .message
        .as_ref()
        .map(|message| text(message.parts.iter()))
        .unwrap_or_default();
    let output = text(task.artifacts.iter().flat_map(|artifact| &artifact.parts));
    let failed = |what: &str| {
        let output = if output.is_empty() {
            String::new()
        } else {
            format!(" Its output: {output}")
        };
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        Some(Err(ToolError::failed(format!(
            "{name} {what}{why}.{output}"
        ))))
    };
    match task.status.state {
        // Some agents put their answer into the final status message.
        TaskState::Completed => Some(Ok(CallResult::ok(if output.is_empty() {
            why
        } else {
            output
        }))),
        TaskState::Failed => failed("failed"),
        TaskState::Rejected => failed("does not do that"),
        TaskState::Canceled => failed("was cancelled"),
        _ => None,
    }
}

/// Returns the texts of parts, with placeholders for JSON and files, up to a limit.
fn text<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let texts = parts.filter_map(|part| match (&part.text, &part.data, &part.url) {
        (Some(text), ..) => Some(Cow::from(text)),
        (_, Some(data), _) if data["pause"].is_string() => None,
        (_, Some(data), _) => Some(data.to_string().into()),
        (.., Some(url)) => Some(Cow::from(url)),
        _ => Some(
            format!(
                "[a file of the type {:?}, which is not shown]",
                part.media_type
            )
            .into(),
        ),
    });
    let mut whole = String::new();
    for (at, text) in texts.enumerate() {
        whole.extend((at > 0).then_some('\n'));
        whole.push_str(&text);
        if whole.len() > MAX_TEXT {
            whole.truncate(whole.floor_char_boundary(MAX_TEXT));
            whole.push_str("\n[cut: what follows is too long]");
            break;
        }
    }
    whole
}

fn read<T: serde::de::DeserializeOwned>(told: Value) -> Result<T, String> {
    serde_json::from_value(told).map_err(|error| {
        let why: String = error.to_string().chars().take(MAX_WHY).collect();
        format!("answered what cannot be read: {why}")
    })
}

/// Reads a step from the log.
fn noted<T: serde::de::DeserializeOwned>(step: Value) -> Result<T, ToolError> {
    serde_json::from_value(step)
        .map_err(|error| ToolError::failed("the step cannot be read").with_source(error))
}

fn unknown(name: &str, why: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::OutcomeUnknown,
        format!("outcome unknown: {name}: {why}"),
    )
}
