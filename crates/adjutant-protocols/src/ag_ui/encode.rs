//! The fold from events to AG-UI events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use adjutant_core::{Event, EventKind, Outcome, Pause, RunResult};
use adjutant_llm::{Content, Entry, Origin, Source, ThreadId};
use adjutant_tool::{AskKind, Identity};
use serde_json::{Value, json};

use super::RunAgentInput;
use crate::{
    answer,
    blocks::{Beat, Blocks, Part, What},
    sse::Encode,
    wish,
};

/// Creates AG-UI events from the events of one run, live or from its log.
///
/// Invariant: the first event is `RUN_STARTED`; all started items end before `RUN_FINISHED`, which is the last event.
#[derive(Debug)]
pub struct Encoder {
    thread: String,
    run: String,
    root: Option<ThreadId>,
    blocks: Blocks,
    /// By thread: the text or reply that calls belong to, and all ids of the attempt.
    said: HashMap<ThreadId, Said>,
    agents: BTreeMap<ThreadId, Subagent>,
    /// Turns that are open, by thread.
    steps: BTreeSet<(ThreadId, u64)>,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Said {
    parent: Option<String>,
    messages: Vec<String>,
    calls: Vec<String>,
}

#[derive(Debug)]
struct Subagent {
    id: String,
    times: u32,
    is_open: bool,
}

impl Encoder {
    /// For the run of this request.
    pub fn new(input: &RunAgentInput) -> Self {
        let (thread, run) = (input.thread_id.clone(), input.run_id.clone());
        let (root, blocks, said) = (None, Blocks::default(), HashMap::new());
        Self {
            thread,
            run,
            root,
            blocks,
            said,
            agents: BTreeMap::new(),
            steps: BTreeSet::new(),
            is_over: false,
        }
    }

    /// The events that an event becomes, in order; none after the end of the run.
    pub fn tell(&mut self, event: &Event) -> Vec<Value> {
        let mut out = Vec::new();
        if self.is_over {
            return out;
        }
        if self.root.is_none() {
            self.root = Some(event.who.thread.clone());
            out.push(self.start_event());
        }
        let tag = self.agent(&event.who, &mut out);
        let from = out.len();
        for piece in self.blocks.fold(event) {
            self.piece(&event.who.thread, piece, &mut out);
        }
        self.kind(event, &mut out);
        out.iter_mut()
            .skip(from)
            .for_each(|frame| attribute(frame, tag.as_deref()));
        out.iter_mut()
            .for_each(|frame| frame["timestamp"] = event.at_ms.into());
        out
    }

    /// The events that report an interruption; empty after the end of the run.
    pub fn broken(&mut self, message: &str) -> Vec<Value> {
        if self.is_over {
            return Vec::new();
        }
        self.is_over = true;
        let started = self.root.is_none().then(|| self.start_event());
        let error = json!({"type": "RUN_ERROR", "message": message, "code": "broken_off"});
        started.into_iter().chain([error]).collect()
    }

    fn start_event(&self) -> Value {
        json!({
            "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run, "protocolVersion": "1.0",
        })
    }

    fn root(&self) -> &ThreadId {
        static NONE: std::sync::LazyLock<ThreadId> =
            std::sync::LazyLock::new(|| ThreadId::from(""));
        self.root.as_ref().unwrap_or(&NONE)
    }

    /// The subagent of this event, which starts with its first event.
    fn agent(&mut self, who: &Identity, out: &mut Vec<Value>) -> Option<String> {
        if who.thread == *self.root() {
            return None;
        }
        if let Some(known) = self.agents.get(&who.thread).filter(|it| it.is_open) {
            return Some(known.id.clone());
        }
        let times = self.agents.get(&who.thread).map_or(1, |it| it.times + 1);
        // The same id in the run that continues after a pause; another one if it is called again in this run.
        let id = if times == 1 {
            who.thread.to_string()
        } else {
            format!("{}~{times}", who.thread)
        };
        let mut frame = json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": who.name});
        let parent = who.parent.as_ref();
        if let Some(above) = parent.and_then(|it| self.agents.get(it)) {
            frame["parentSubagentRunId"] = above.id.clone().into();
        }
        if let (Some(parent), Some(call)) = (parent, who.call) {
            frame["parentToolCallId"] = answer::call(parent, self.root(), call).into();
        }
        if let Some(task) = &who.task {
            frame["description"] = (**task).into();
        }
        out.push(frame);
        self.agents.insert(
            who.thread.clone(),
            Subagent {
                id: id.clone(),
                times,
                is_open: true,
            },
        );
        Some(id)
    }

    fn piece(&mut self, thread: &ThreadId, piece: Beat, out: &mut Vec<Value>) {
        let prefix = if thread == self.root() {
            String::new()
        } else {
            format!("{thread}/")
        };
        let (id, reply) = (
            format!("{prefix}{}", piece.id),
            format!("{prefix}{}", piece.reply),
        );
        let call = match &piece.part {
            Part::Call { call, .. } => answer::call(thread, self.root(), *call),
            Part::Text | Part::Thinking => String::new(),
        };
        let said = self.said.entry(thread.clone()).or_default();
        match (piece.part, piece.what) {
            (Part::Text, What::Began) => {
                said.parent = Some(id.clone());
                said.messages.push(id.clone());
                out.push(
                    json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}),
                );
            }
            (Part::Text, What::Grew(text)) => {
                out.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}));
            }
            (Part::Text, What::Ended(_)) => {
                out.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}))
            }
            (Part::Thinking, What::Began) => {
                said.messages.push(id.clone());
                out.push(json!({"type": "REASONING_START", "messageId": id}));
                out.push(json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
            }
            (Part::Thinking, What::Grew(text)) => {
                out.push(
                    json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text}),
                );
            }
            (Part::Thinking, What::Ended(_)) => {
                out.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
                out.push(json!({"type": "REASONING_END", "messageId": id}));
            }
            (Part::Call { name, .. }, What::Began) => {
                said.calls.push(call.clone());
                let parent = said.parent.get_or_insert(reply).clone();
                out.push(json!({
                    "type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, "parentMessageId": parent,
                }));
            }
            (Part::Call { .. }, What::Grew(text)) => {
                out.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": text}));
            }
            (Part::Call { .. }, What::Ended(block)) => {
                out.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
                if block.is_none() {
                    said.calls.retain(|it| *it != call);
                    out.push(never_ran(&call));
                }
            }
        }
    }

    fn kind(&mut self, event: &Event, out: &mut Vec<Value>) {
        let thread = &event.who.thread;
        let is_root = thread == self.root();
        match &event.kind {
            EventKind::TurnStarted if self.steps.insert((thread.clone(), event.turn.0)) => {
                out.push(step("STEP_STARTED", event.turn.0));
            }
            EventKind::TurnFinished if self.steps.remove(&(thread.clone(), event.turn.0)) => {
                out.push(step("STEP_FINISHED", event.turn.0));
            }
            EventKind::ReplyRetracted { attempt, cause, .. } => {
                let Said {
                    messages, calls, ..
                } = self.said.remove(thread).unwrap_or_default();
                let value = json!({
                    "turn": event.turn, "attempt": attempt, "cause": cause.to_string(), "messageIds": messages,
                    "toolCallIds": calls,
                });
                out.extend(calls.iter().map(|call| never_ran(call)));
                out.push(json!({"type": "CUSTOM", "name": "reply_retracted", "value": value}));
            }
            EventKind::ReplyFinished { reply, .. } => {
                let said = self.said.remove(thread).unwrap_or_default().calls;
                let kept: Vec<_> = reply
                    .calls()
                    .map(|call| answer::call(thread, self.root(), call.id))
                    .collect();
                out.extend(
                    said.iter()
                        .filter(|call| !kept.contains(call))
                        .map(|call| never_ran(call)),
                );
            }
            EventKind::EntryAdded { content } => {
                if let Entry::User(message) = &**content
                    && matches!(message.origin, Origin::Steering | Origin::FollowUp)
                    && message.ids.is_empty()
                {
                    let id = wish::told(event.seq);
                    out.push(
                        json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "user"}),
                    );
                    out.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": message.to_text()}));
                    out.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
                }
            }
            EventKind::ToolProgress { call, progress } => {
                let call = answer::call(thread, self.root(), *call);
                let text: Vec<&str> = progress
                    .content
                    .iter()
                    .filter_map(Content::as_text)
                    .collect();
                let content = json!({"toolCallId": call, "text": text.join("\n"), "details": progress.details});
                out.push(json!({
                    "type": "ACTIVITY_SNAPSHOT", "messageId": format!("{call}_progress"),
                    "activityType": "tool_progress", "content": content, "replace": true,
                }));
            }
            EventKind::ToolFinished {
                call, result: done, ..
            } => {
                let call = answer::call(thread, self.root(), *call);
                let status = serde_json::to_value(done.status).unwrap_or_default();
                out.push(result(
                    &call,
                    content(&done.content),
                    status.as_str().unwrap_or_default(),
                ));
            }
            EventKind::ChildOpened { child, .. } => drop(self.agent(child, out)),
            EventKind::ChildEnded {
                thread, outcome, ..
            } => self.end_agent(thread, outcome, out),
            EventKind::App { kind, data, .. } => match (&**kind, &**data) {
                ("state", state) => out.push(json!({"type": "STATE_SNAPSHOT", "snapshot": state})),
                ("state_delta", Value::Array(delta)) => {
                    out.push(json!({"type": "STATE_DELTA", "delta": delta}))
                }
                (name, value) => out.push(json!({"type": "CUSTOM", "name": name, "value": value})),
            },
            EventKind::RunFinished { result } | EventKind::RunPaused { result } if is_root => {
                self.end(result, out)
            }
            EventKind::Warning { .. }
            | EventKind::CancelAsked { .. }
            | EventKind::MessageQueued { .. }
            | EventKind::MessageWithdrawn { .. }
            | EventKind::MessagePlaced { .. }
            | EventKind::Denied { .. }
            | EventKind::OutputRefused { .. }
            | EventKind::Answered { .. }
            | EventKind::LimitReached { .. }
            | EventKind::Lagged { .. } => out.push(custom(&event.kind)),
            _ => {}
        }
    }

    /// Ends the open items of a thread.
    fn close(&mut self, thread: &ThreadId, out: &mut Vec<Value>) {
        let from = out.len();
        for piece in self.blocks.cut(thread) {
            self.piece(thread, piece, out);
        }
        self.said.remove(thread);
        let open: Vec<_> = self
            .steps
            .iter()
            .filter(|(of, _)| of == thread)
            .cloned()
            .collect();
        for key in open {
            self.steps.remove(&key);
            out.push(step("STEP_FINISHED", key.1));
        }
        let tag = self.agents.get(thread).map(|it| it.id.as_str());
        out.iter_mut()
            .skip(from)
            .for_each(|frame| attribute(frame, tag));
    }

    fn end_agent(&mut self, thread: &ThreadId, outcome: &Outcome, out: &mut Vec<Value>) {
        self.close(thread, out);
        let Some(agent) = self.agents.get_mut(thread).filter(|it| it.is_open) else {
            return;
        };
        agent.is_open = false;
        let id = &agent.id;
        out.push(match outcome {
            Outcome::Failed { failure } => json!({
                "type": "SUBAGENT_ERROR", "subagentRunId": id, "message": failure.to_string(), "code": failure.kind(),
            }),
            Outcome::Paused { pauses } => {
                let own = pauses.iter().filter(|pause| pause.thread == *thread).map(|pause| answer::name(pause));
                let outcome = json!({"type": "suspended", "interruptIds": own.collect::<Vec<_>>()});
                json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": outcome})
            }
            Outcome::Finished { .. } | Outcome::Limit { .. } | Outcome::Cancelled { .. } => json!({
                "type": "SUBAGENT_FINISHED", "subagentRunId": id, "result": {"outcome": outcome.kind()},
                "outcome": {"type": "success"},
            }),
        });
    }

    fn end(&mut self, result: &RunResult, out: &mut Vec<Value>) {
        self.is_over = true;
        // Deeper agents first: their threads are longer than their parents' threads.
        let agents: Vec<_> = self.agents.keys().rev().cloned().collect();
        agents
            .iter()
            .for_each(|thread| self.end_agent(thread, &result.outcome, out));
        self.close(&self.root().clone(), out);
        let usage = json!([usage(result)]);
        if let Outcome::Failed { failure } = &result.outcome {
            let (message, code) = (failure.to_string(), failure.kind());
            out.push(
                json!({"type": "RUN_ERROR", "message": message, "code": code, "usage": usage}),
            );
            return;
        }
        let mut told = json!({"outcome": result.outcome.kind()});
        if let Outcome::Limit { limit } = &result.outcome {
            told["limit"] = json!(limit);
        }
        if let Some(output) = &result.output {
            told["output"] = Value::clone(output);
        }
        let outcome = match &result.outcome {
            Outcome::Paused { pauses }
                if pauses.iter().all(|it| it.ask.kind == AskKind::External) =>
            {
                let call = |pause: &Arc<Pause>| {
                    Some(answer::call(&pause.thread, self.root(), pause.call_id()?))
                };
                json!({"type": "success", "pendingToolCallIds": pauses.iter().filter_map(call).collect::<Vec<_>>()})
            }
            Outcome::Paused { pauses } => {
                let interrupts: Vec<_> = pauses.iter().map(|pause| self.interrupt(pause)).collect();
                json!({"type": "interrupt", "interrupts": interrupts})
            }
            Outcome::Cancelled { .. } => json!({"type": "cancelled"}),
            Outcome::Finished { .. } | Outcome::Limit { .. } | Outcome::Failed { .. } => {
                json!({"type": "success"})
            }
        };
        out.push(json!({
            "type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run, "result": told, "outcome": outcome,
            "usage": usage,
        }));
    }

    fn interrupt(&self, pause: &Pause) -> Value {
        let reason = match pause.ask.kind {
            AskKind::Approval if pause.call.is_some() => "tool_call",
            AskKind::Question => "input_required",
            _ => "confirmation",
        };
        let mut metadata = json!({"kind": answer::kind(pause), "agent": pause.path});
        if let Some(call) = &pause.call {
            metadata["tool"] = json!({"name": call.name, "args": call.args});
        }
        for (name, value) in [
            ("data", &pause.ask.data),
            ("refused", &json!(pause.refused)),
        ] {
            if !value.is_null() {
                metadata[name] = value.clone();
            }
        }
        let mut it = json!({
            "id": answer::name(pause), "reason": reason, "message": pause.ask.prompt, "metadata": metadata,
        });
        if let Some(call) = pause.call_id() {
            it["toolCallId"] = answer::call(&pause.thread, self.root(), call).into();
        }
        if let schema @ Value::Object(_) = answer::schema(pause) {
            it["responseSchema"] = schema;
        }
        let deadline = pause.deadline_ms.and_then(|at| i64::try_from(at).ok());
        if let Some(Ok(at)) = deadline.map(jiff::Timestamp::from_millisecond) {
            it["expiresAt"] = at.to_string().into();
        }
        attribute(
            &mut it,
            self.agents
                .get(&pause.thread)
                .map(|agent| agent.id.as_str()),
        );
        it
    }
}

impl Encode for Encoder {
    const END: &str = "";

    fn tell(&mut self, event: &Event) -> Vec<Value> {
        Self::tell(self, event)
    }

    fn broken(&mut self, message: &str) -> Vec<Value> {
        Self::broken(self, message)
    }
}

/// Adds the agent of an event, unless the event contains it or belongs to the run.
fn attribute(frame: &mut Value, tag: Option<&str>) {
    let is_run = frame["type"]
        .as_str()
        .is_some_and(|kind| kind.starts_with("RUN_"));
    if let Some(tag) = tag.filter(|_| !is_run && frame.get("subagentRunId").is_none()) {
        frame["subagentRunId"] = tag.into();
    }
}

fn step(kind: &str, turn: u64) -> Value {
    json!({"type": kind, "stepName": format!("turn {turn}")})
}

/// Clients treat a call without a result as waiting.
fn never_ran(call: &str) -> Value {
    result(
        call,
        "The reply was cut off: this call never ran.".into(),
        "interrupted",
    )
}

fn result(call: &str, content: Value, status: &str) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT", "messageId": format!("{call}_result"), "toolCallId": call, "content": content,
        "role": "tool", "metadata": {"status": status},
    })
}

/// A text where all is text, else parts.
fn content(content: &[Content]) -> Value {
    let texts: Option<Vec<&str>> = content.iter().map(Content::as_text).collect();
    let part = |it: &Content| match it {
        Content::Text { text } => Some(json!({"type": "text", "text": text})),
        Content::Image(it) => Some(media("image", &it.media_type, &it.source)),
        Content::Document(it) => Some(media("document", &it.media_type, &it.source)),
        Content::Audio(it) => Some(media("audio", &it.media_type, &it.source)),
        _ => None,
    };
    texts.map_or_else(
        || content.iter().filter_map(part).collect(),
        |texts| texts.join("\n").into(),
    )
}

fn media(kind: &str, media_type: &str, source: &Source) -> Value {
    let (at, value) = match source {
        Source::Base64 { data } => ("data", data),
        Source::Url { url } => ("url", url),
        _ => return json!({"type": "text", "text": format!("[{kind}: {media_type}]")}),
    };
    json!({"type": kind, "source": {"type": at, "value": value, "mimeType": media_type}})
}

fn usage(result: &RunResult) -> Value {
    let it = &result.total_usage;
    let input = it.input_uncached + it.cache_read + it.cache_write;
    json!({
        "inputTokens": input, "outputTokens": it.output, "totalTokens": input + it.output,
        "reasoningTokens": it.reasoning, "cachedInputTokens": it.cache_read, "cacheWriteInputTokens": it.cache_write,
    })
}

/// An event that AG-UI has no name for, under its own.
fn custom(kind: &EventKind) -> Value {
    let mut value = serde_json::to_value(kind).unwrap_or_default();
    let name = value
        .as_object_mut()
        .and_then(|it| it.shift_remove("event"))
        .unwrap_or_default();
    json!({"type": "CUSTOM", "name": name, "value": value})
}
