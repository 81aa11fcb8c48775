//! The tasks of a conversation: a fold over the events of its session, live or read from its log.

use std::{collections::HashMap, sync::Arc};

use adjutant_core::{Completion, Event, EventKind, Failure, Outcome, Pause, RunNo, RunResult, Seq};
use adjutant_llm::{CallResult, Custom, Entry, Reply, Status, UserMessage};
use adjutant_tool::AskKind;
use serde_json::{Value, json};

use super::wire::{Artifact, Message, Part, Task, TaskState, TaskStatus, Update};
use crate::answer;

/// The kind of the entries that name the messages of callers.
pub(super) const MARK: &str = "a2a";
/// The most messages that the history of a task has: the newest ones.
const MAX_HISTORY: usize = 100;
/// The ids of the artifacts for the text of the newest reply, and for the structured answer of the run.
const ANSWER: &str = "answer";
const OUTPUT: &str = "output";

/// The tasks of a conversation, each a run that was prompted.
///
/// Messages of subagents are omitted, and so are calls and thinking. The text of a reply is the content of the
/// artifact `answer`, replacing the previous reply; a reply with tool calls is also in the history.
#[derive(Debug, Clone)]
pub struct Tasks {
    context: Arc<str>,
    all: Vec<HeldTask>,
    /// The messages of callers, and the tasks that they were for.
    seen: HashMap<String, usize>,
    /// The started run that has no prompt so far: the next one of a handoff chain never has one.
    begun: Option<RunNo>,
    /// The message that the next prompt is.
    named: Option<String>,
    /// True if the artifact holds the text of the reply that is on its way.
    speaks: bool,
    at: Seq,
}

/// A task with its internal state.
#[derive(Debug, Clone)]
pub(super) struct HeldTask {
    pub(super) task: Task,
    /// The pauses that it waits for.
    pub(super) pauses: Vec<Arc<Pause>>,
}

impl Tasks {
    /// An empty list for the session with this name.
    pub fn new(context: impl Into<Arc<str>>) -> Self {
        Self {
            context: context.into(),
            all: Vec::new(),
            seen: HashMap::new(),
            begun: None,
            named: None,
            speaks: false,
            at: Seq(0),
        }
    }

    /// The tasks, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.all.iter().map(|kept| &kept.task)
    }

    /// The newest processed record.
    pub(super) fn at(&self) -> Seq {
        self.at
    }

    pub(super) fn find(&self, at: usize) -> Option<&HeldTask> {
        self.all.get(at)
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.all.iter().position(|kept| kept.task.id == id)
    }

    /// The task that a message was for.
    pub(super) fn find_by_message(&self, message: &str) -> Option<usize> {
        self.seen.get(message).copied()
    }

    pub(super) fn context(&self) -> &str {
        &self.context
    }

    /// The changes of the newest task by an event, in order; empty for most.
    pub fn tell(&mut self, event: &Event) -> Vec<Update> {
        self.at = self.at.max(event.seq);
        let mut out = Vec::new();
        if event.who.depth > 0 {
            return out;
        }
        match &event.kind {
            EventKind::RunStarted => (self.begun, self.named) = (Some(event.run), None),
            EventKind::EntryAdded { content } | EventKind::MessageQueued { content, .. } => {
                self.apply_entry(event, content, &mut out);
            }
            EventKind::TurnStarted if self.begun.take().is_some() => {
                self.change(TaskState::Working, None, event.at_ms, &mut out);
            }
            EventKind::ReplyStarted { .. } => self.speaks = false,
            EventKind::TextDelta { text, .. } => {
                let append = std::mem::replace(&mut self.speaks, true);
                self.answer(text.clone(), append, &mut out);
            }
            EventKind::ReplyRetracted { .. } => self.answer(String::new(), false, &mut out),
            EventKind::ReplyFinished { reply, .. } => self.apply_reply(event, reply, &mut out),
            EventKind::RunResumed => self.change(TaskState::Working, None, event.at_ms, &mut out),
            EventKind::RunPaused { result } | EventKind::RunFinished { result } => {
                self.apply_end(event, result, &mut out)
            }
            _ => {}
        }
        out
    }

    /// A message of the user: the first one in a run is its prompt.
    fn apply_entry(&mut self, event: &Event, entry: &Entry, out: &mut Vec<Update>) {
        let is_queued = matches!(event.kind, EventKind::MessageQueued { .. });
        match entry {
            Entry::Custom(Custom { kind, value }) if &**kind == MARK => {
                let Some(id) = value["messageId"].as_str().map(str::to_owned) else {
                    return;
                };
                match value.get("parts") {
                    // It is in the history with its answer.
                    Some(parts) if !self.seen.contains_key(&id) => {
                        let parts = serde_json::from_value(parts.clone()).unwrap_or_default();
                        self.hear(&id);
                        self.note(Message::user(id, parts));
                    }
                    Some(_) => {}
                    None => self.named = Some(id),
                }
            }
            Entry::User(message) if !is_queued => {
                if let Some(run) = self.begun.take() {
                    self.begin(run, event.at_ms, out);
                }
                let named = self.named.take();
                named.iter().for_each(|id| self.hear(id));
                let id = named.unwrap_or_else(|| format!("u{}", event.seq.0));
                self.note(Message::user(id, parts(message)));
            }
            _ => {}
        }
    }

    fn begin(&mut self, run: RunNo, at_ms: u64, out: &mut Vec<Update>) {
        let (id, context_id) = (id(&self.context, run), self.context.to_string());
        let status = TaskStatus {
            state: TaskState::Working,
            message: None,
            timestamp: time(at_ms),
        };
        let task = Task {
            id,
            context_id,
            status,
            ..Task::default()
        };
        out.push(Update::Task(task.clone()));
        self.all.push(HeldTask {
            task,
            pauses: Vec::new(),
        });
        self.speaks = false;
    }

    /// A message that a caller has named was for the newest task.
    fn hear(&mut self, id: &str) {
        if let Some(at) = self.all.len().checked_sub(1) {
            self.seen.insert(id.to_owned(), at);
        }
    }

    /// A message in the newest task.
    fn note(&mut self, message: Message) {
        let Some(HeldTask { task, .. }) = self.all.last_mut() else {
            return;
        };
        let context_id = task.context_id.clone();
        let message = Message {
            context_id,
            task_id: task.id.clone(),
            ..message
        };
        if task.history.len() >= MAX_HISTORY {
            task.history.remove(0);
        }
        task.history.push(message);
    }

    fn apply_reply(&mut self, event: &Event, reply: &Arc<Reply>, out: &mut Vec<Update>) {
        let text = reply.text();
        if text != self.text() {
            self.answer(text.clone(), false, out);
        }
        if reply.calls().next().is_some() && !text.trim().is_empty() {
            let message = Message::agent(format!("m{}", event.seq.0), vec![Part::text(text)]);
            self.change(TaskState::Working, Some(message), event.at_ms, out);
        }
    }

    fn apply_end(&mut self, event: &Event, result: &Arc<RunResult>, out: &mut Vec<Update>) {
        let (state, message) = match &result.outcome {
            Outcome::Paused { pauses } => (
                waiting(pauses),
                Some(pauses.iter().flat_map(|it| encode_pause(it)).collect()),
            ),
            // The agent that took over continues it.
            Outcome::Finished {
                why: Completion::Terminated,
                ..
            } if is_handed_over(result) => return,
            Outcome::Finished {
                why: Completion::Length,
                ..
            } => (TaskState::Completed, say("the answer was cut off")),
            Outcome::Finished { .. } => (TaskState::Completed, None),
            Outcome::Cancelled { by } => (TaskState::Canceled, say(&format!("cancelled by {by}"))),
            Outcome::Limit { limit } => (
                TaskState::Failed,
                say(&format!("the limit of {limit} was reached")),
            ),
            Outcome::Failed { failure } => (failure_state(failure), say(&failure.to_string())),
        };
        // A middleware may have replaced the outcome.
        let text = result.text();
        if text != self.text() {
            self.answer(text, false, out);
        }
        if let Some(output) = &result.output {
            self.artifact(OUTPUT, Part::data(Value::clone(output)), false, out);
        }
        let message = message.map(|parts| Message::agent(format!("s{}", event.seq.0), parts));
        self.change(state, message, event.at_ms, out);
        if let (Some(kept), pauses) = (self.all.last_mut(), result.pauses()) {
            kept.pauses = pauses.to_vec();
        }
    }

    /// Another state; the message of the one before is history.
    fn change(
        &mut self,
        state: TaskState,
        message: Option<Message>,
        at_ms: u64,
        out: &mut Vec<Update>,
    ) {
        let Some(kept) = self.all.last_mut() else {
            return;
        };
        kept.pauses.clear();
        let (task_id, context_id) = (kept.task.id.clone(), kept.task.context_id.clone());
        let within = |message| Message {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            ..message
        };
        let status = TaskStatus {
            state,
            message: message.map(within),
            timestamp: time(at_ms),
        };
        let before = std::mem::replace(&mut kept.task.status, status.clone());
        before
            .message
            .into_iter()
            .for_each(|message| self.note(message));
        out.push(Update::StatusUpdate {
            task_id,
            context_id,
            status,
        });
    }

    fn text(&self) -> &str {
        let artifacts = self.all.last().map(|kept| &kept.task.artifacts);
        let answer = artifacts.and_then(|all| all.iter().find(|it| it.artifact_id == ANSWER));
        answer
            .and_then(|it| it.parts.first()?.text.as_deref())
            .unwrap_or_default()
    }

    fn answer(&mut self, text: String, append: bool, out: &mut Vec<Update>) {
        if append || !text.is_empty() || !self.text().is_empty() {
            self.artifact(ANSWER, Part::text(text), append, out);
        }
    }

    fn artifact(&mut self, id: &str, part: Part, append: bool, out: &mut Vec<Update>) {
        let Some(HeldTask { task, .. }) = self.all.last_mut() else {
            return;
        };
        let at = task.artifacts.iter().position(|it| it.artifact_id == id);
        match at.map(|at| &mut task.artifacts[at].parts) {
            Some(parts) if append => {
                let (said, more) = (
                    parts.first_mut().and_then(|it| it.text.as_mut()),
                    part.text.as_deref(),
                );
                said.zip(more)
                    .into_iter()
                    .for_each(|(said, more)| said.push_str(more));
            }
            Some(parts) => *parts = vec![part.clone()],
            None => task.artifacts.push(Artifact {
                artifact_id: id.to_owned(),
                parts: vec![part.clone()],
            }),
        }
        // Text that was taken back is nothing that the task came to.
        task.artifacts
            .retain(|it| it.parts.iter().any(|part| part.text.as_deref() != Some("")));
        let artifact = Artifact {
            artifact_id: id.to_owned(),
            parts: vec![part],
        };
        let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
        out.push(Update::ArtifactUpdate {
            task_id,
            context_id,
            artifact,
            append,
        });
    }
}

/// The id of the task that a run is.
fn id(context: &str, run: RunNo) -> String {
    format!("{}.{context}", run.0)
}

/// The conversation that the task of this id would belong to.
pub(super) fn context_of(id: &str) -> Option<&str> {
    let (run, context) = id.split_once('.')?;
    run.parse::<u64>().is_ok().then_some(context)
}

/// True if the agent has handed the conversation over: the next agent continues without a prompt.
fn is_handed_over(result: &RunResult) -> bool {
    let hands_over = |result: &CallResult| {
        result.status == Status::Ok && result.details["handoff"]["to"].is_string()
    };
    result.calls.iter().any(|call| hands_over(&call.result))
}

fn say(text: &str) -> Option<Vec<Part>> {
    Some(vec![Part::text(text)])
}

fn waiting(pauses: &[Arc<Pause>]) -> TaskState {
    let is_access = |pause: &Arc<Pause>| pause.ask.kind == AskKind::Authorisation;
    if pauses.iter().all(is_access) {
        TaskState::AuthRequired
    } else {
        TaskState::InputRequired
    }
}

/// A pause in the form for clients: the question as text, and everything that an answer needs as JSON.
fn encode_pause(pause: &Pause) -> [Part; 2] {
    let mut data = json!({"pause": answer::name(pause), "kind": answer::kind(pause), "schema": answer::schema(pause)});
    if let Some(call) = &pause.call {
        let args = serde_json::from_str(&call.args).unwrap_or_else(|_| Value::from(&*call.args));
        data["call"] = json!({"name": call.name, "args": args});
    }
    if !pause.ask.data.is_null() {
        data["data"] = pause.ask.data.clone();
    }
    [Part::text(&*pause.ask.prompt), Part::data(data)]
}

/// A denial by a policy is `rejected`, another failure `failed`.
fn failure_state(failure: &Failure) -> TaskState {
    match failure {
        Failure::Refused { .. } | Failure::Denied { .. } | Failure::Guardrail { .. } => {
            TaskState::Rejected
        }
        _ => TaskState::Failed,
    }
}

fn parts(message: &UserMessage) -> Vec<Part> {
    let text = message.to_text();
    let mut parts: Vec<Part> = (!text.is_empty())
        .then(|| Part::text(text))
        .into_iter()
        .collect();
    // Files are the caller's own: it is not sent them back.
    let files = message
        .content
        .iter()
        .filter(|it| it.as_text().is_none())
        .count();
    parts.extend((files > 0).then(|| Part::text(format!("[{files} files]"))));
    parts
}

fn time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}
