//! The fold from events to chunks of UI messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use adjutant_core::{Event, EventKind, Outcome, Pause, RunResult};
use adjutant_llm::{Block, CallResult, Content, Entry, FinishReason, Origin, Status, ThreadId};
use adjutant_tool::{Answer, AskKind, Identity};
use serde_json::{Value, json};

use super::ChatRequest;
use crate::{
    answer,
    blocks::{Beat, Blocks, Part, What},
    sse::Encode,
    wish,
};

/// Makes chunks of one UI message of the events of one run, live or read from its log.
///
/// Messages of subagents are sent as a whole, as a `data-agent` part of each one; their calls only if they wait.
#[derive(Debug)]
pub struct Encoder {
    /// The message that is continued.
    message: Option<String>,
    root: Option<ThreadId>,
    blocks: Blocks,
    /// The displayed arguments of each call, until it has its result.
    shown: HashMap<String, Arc<str>>,
    /// The calls of the attempt at a reply.
    said: Vec<String>,
    /// The open approvals that were requested here.
    asked: HashMap<String, String>,
    /// The calls that were denied.
    refused: HashSet<String>,
    agents: BTreeMap<ThreadId, Value>,
    in_step: bool,
    is_over: bool,
}

impl Encoder {
    /// For the run of this request.
    pub fn new(input: &ChatRequest) -> Self {
        Self {
            message: input.open_message().map(str::to_owned),
            root: None,
            blocks: Blocks::default(),
            shown: HashMap::new(),
            said: Vec::new(),
            asked: HashMap::new(),
            refused: HashSet::new(),
            agents: BTreeMap::new(),
            in_step: false,
            is_over: false,
        }
    }

    /// The chunks that an event becomes, in order; none after the end of the run.
    pub fn tell(&mut self, event: &Event) -> Vec<Value> {
        let mut out = Vec::new();
        if self.is_over {
            return out;
        }
        if self.root.is_none() {
            self.root = Some(event.who.thread.clone());
            let id = self
                .message
                .clone()
                .unwrap_or_else(|| format!("run-{}", event.run.0));
            out.push(json!({"type": "start", "messageId": id}));
        }
        if self.is_root(&event.who.thread) {
            for piece in self.blocks.fold(event) {
                self.piece(piece, &mut out);
            }
            self.own(event, &mut out);
        } else {
            self.agent(event, &mut out);
        }
        self.all(event, &mut out);
        out
    }

    /// The chunks that report an interruption; empty after the end of the run.
    pub fn broken(&mut self, message: &str) -> Vec<Value> {
        if self.is_over {
            return Vec::new();
        }
        self.is_over = true;
        error_frames(message).into()
    }

    fn is_root(&self, thread: &ThreadId) -> bool {
        self.root.as_ref() == Some(thread)
    }

    fn call(&self, who: &ThreadId, call: adjutant_llm::CallId) -> String {
        answer::call(who, self.root.as_ref().unwrap_or(who), call)
    }

    fn piece(&mut self, piece: Beat, out: &mut Vec<Value>) {
        let id = piece.id;
        match (piece.part, piece.what) {
            (Part::Text, What::Began) => out.push(json!({"type": "text-start", "id": id})),
            (Part::Text, What::Grew(text)) => {
                out.push(json!({"type": "text-delta", "id": id, "delta": text}))
            }
            (Part::Text, What::Ended(_)) => out.push(json!({"type": "text-end", "id": id})),
            (Part::Thinking, What::Began) => out.push(json!({"type": "reasoning-start", "id": id})),
            (Part::Thinking, What::Grew(text)) => {
                out.push(json!({"type": "reasoning-delta", "id": id, "delta": text}));
            }
            (Part::Thinking, What::Ended(_)) => {
                out.push(json!({"type": "reasoning-end", "id": id}))
            }
            (Part::Call { call, name }, What::Began) => {
                out.push(json!({"type": "tool-input-start", "toolCallId": call, "toolName": name}));
            }
            (Part::Call { call, .. }, What::Grew(text)) => {
                out.push(
                    json!({"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": text}),
                );
            }
            (Part::Call { call, name }, What::Ended(Some(block))) => {
                if let Block::Call(it) = &*block {
                    self.said.push(call.to_string());
                    self.input(call.to_string(), name.as_str(), &it.args, out);
                }
            }
            (Part::Call { call, .. }, What::Ended(None)) => out.push(never_ran(&call.to_string())),
        }
    }

    /// The arguments of a call, whole; as a text if they are no JSON.
    fn input(&mut self, id: String, name: &str, args: &Arc<str>, out: &mut Vec<Value>) {
        let input = serde_json::from_str(args).unwrap_or_else(|_| Value::from(&**args));
        out.push(json!({"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input}));
        self.shown.insert(id, Arc::clone(args));
    }

    /// Events of the client's agent.
    fn own(&mut self, event: &Event, out: &mut Vec<Value>) {
        match &event.kind {
            EventKind::TurnStarted => {
                self.in_step = true;
                out.push(json!({"type": "start-step"}));
            }
            EventKind::TurnFinished => {
                self.in_step = false;
                out.push(json!({"type": "finish-step"}));
            }
            EventKind::ReplyStarted { .. } => self.said.clear(),
            EventKind::ReplyRetracted { .. } => out.push(json!({"type": "reset-step"})),
            EventKind::ReplyFinished { reply, .. } => {
                let is_kept = |id: &String| reply.calls().any(|call| call.id.to_string() == *id);
                out.extend(
                    self.said
                        .drain(..)
                        .filter(|id| !is_kept(id))
                        .map(|id| never_ran(&id)),
                );
            }
            EventKind::EntryAdded { content } => {
                if let Entry::User(message) = &**content
                    && matches!(message.origin, Origin::Steering | Origin::FollowUp)
                    && message.ids.is_empty()
                {
                    let (id, text) = (wish::told(event.seq), message.to_text());
                    let parts = json!([{"type": "text", "text": text}]);
                    out.push(json!({"type": "steering-message", "id": id, "parts": parts}));
                }
            }
            EventKind::ToolStarted {
                call, name, args, ..
            } => {
                // They differ from the model's arguments: a person has edited them.
                let id = self.call(&event.who.thread, *call);
                if self.shown.get(&id) != Some(args) {
                    self.input(id, name.as_str(), args, out);
                }
            }
            EventKind::ToolProgress { call, progress } => {
                let id = self.call(&event.who.thread, *call);
                let output = output(&progress.content, &progress.details);
                out.push(json!({
                    "type": "tool-output-available", "toolCallId": id, "output": output, "preliminary": true,
                }));
            }
            EventKind::ToolFinished { call, result, .. } => {
                self.finish_call(event, *call, result, out)
            }
            EventKind::RunFinished { result } | EventKind::RunPaused { result } => {
                self.end(result, out)
            }
            _ => {}
        }
    }

    /// Events of a subagent: one part with its current state.
    fn agent(&mut self, event: &Event, out: &mut Vec<Value>) {
        match &event.kind {
            EventKind::RunStarted | EventKind::RunResumed => {
                self.show_agent(&event.who, out, |_| {})
            }
            EventKind::ReplyFinished { reply, .. } => {
                self.show_agent(&event.who, out, |data| data["text"] = reply.text().into());
            }
            EventKind::ToolFinished { call, result, .. }
                if self
                    .shown
                    .contains_key(&self.call(&event.who.thread, *call)) =>
            {
                self.finish_call(event, *call, result, out);
            }
            _ => {}
        }
    }

    fn show_agent(
        &mut self,
        who: &Identity,
        out: &mut Vec<Value>,
        change: impl FnOnce(&mut Value),
    ) {
        let call = who
            .parent
            .as_ref()
            .zip(who.call)
            .map(|(parent, call)| self.call(parent, call));
        let data = self.agents.entry(who.thread.clone()).or_insert_with(|| {
            json!({"name": who.name, "path": who.path, "task": who.task, "toolCallId": call, "state": "working", "text": ""})
        });
        change(data);
        out.push(json!({"type": "data-agent", "id": who.thread, "data": data}));
    }

    /// Events of any agent.
    fn all(&mut self, event: &Event, out: &mut Vec<Value>) {
        match &event.kind {
            EventKind::Paused { pause } => self.pause(pause, out),
            EventKind::Answered { pause, answer } => {
                let id = &*pause.0;
                // `thread/call`, which is the name of a call here, but for the first agent's.
                let call = self
                    .root
                    .as_ref()
                    .and_then(|root| id.strip_prefix(root.as_str())?.strip_prefix('/'));
                let call = call.filter(|call| !call.contains('/')).unwrap_or(id);
                let approved = !matches!(**answer, Answer::Deny { .. } | Answer::Expired);
                if !approved {
                    self.refused.insert(call.to_owned());
                }
                if call == id {
                    // A call of a subagent, which may have been displayed in an earlier stream.
                    self.shown
                        .entry(call.to_owned())
                        .or_insert_with(|| "".into());
                }
                if let Some(asked) = self.asked.remove(id) {
                    out.push(json!({"type": "tool-approval-response", "approvalId": asked, "approved": approved}));
                }
            }
            EventKind::ChildEnded {
                thread, outcome, ..
            } => {
                if let Some(data) = self.agents.get_mut(thread) {
                    data["state"] = outcome.kind().into();
                    out.push(json!({"type": "data-agent", "id": thread, "data": data}));
                }
            }
            EventKind::App {
                kind,
                version,
                data,
            } => {
                let data = json!({"kind": kind, "version": version, "data": data});
                out.push(json!({"type": "data-app", "data": data}));
            }
            EventKind::Warning { .. }
            | EventKind::CancelAsked { .. }
            | EventKind::MessageQueued { .. }
            | EventKind::MessageWithdrawn { .. }
            | EventKind::Denied { .. }
            | EventKind::OutputRefused { .. }
            | EventKind::LimitReached { .. }
            | EventKind::Lagged { .. } => {
                let data = serde_json::to_value(&event.kind).unwrap_or_default();
                out.push(json!({"type": "data-event", "data": data, "transient": true}));
            }
            _ => {}
        }
    }

    fn pause(&mut self, pause: &Pause, out: &mut Vec<Value>) {
        let name = answer::name(pause);
        let call = pause
            .call
            .as_ref()
            .map(|call| (self.call(&pause.thread, call.id), call));
        if let Some((id, call)) = &call {
            // Displays it as waiting, independent of an answer to the previous question.
            self.input(id.clone(), call.name.as_str(), &call.args, out);
            if pause.ask.kind == AskKind::Approval {
                self.asked.insert(pause.id.to_string(), name.clone());
                let asked = json!({"prompt": pause.ask.prompt, "data": pause.ask.data, "refused": pause.refused});
                out.push(json!({
                    "type": "tool-approval-request", "toolCallId": id, "approvalId": name, "approvalDescriptor": asked,
                }));
                return;
            }
        }
        let data = json!({
            "kind": answer::kind(pause), "prompt": pause.ask.prompt, "schema": answer::schema(pause),
            "data": pause.ask.data, "toolCallId": call.map(|(id, _)| id), "agent": pause.path,
            "deadlineMs": pause.deadline_ms,
        });
        out.push(json!({"type": "data-pause", "id": name, "data": data}));
    }

    fn finish_call(
        &mut self,
        event: &Event,
        call: adjutant_llm::CallId,
        result: &CallResult,
        out: &mut Vec<Value>,
    ) {
        let id = self.call(&event.who.thread, call);
        self.shown.remove(&id);
        let was_refused = self.refused.remove(&id);
        out.push(match result.status {
            Status::Ok => json!({
                "type": "tool-output-available", "toolCallId": id, "output": output(&result.content, &result.details),
            }),
            Status::Denied if was_refused => json!({"type": "tool-output-denied", "toolCallId": id}),
            _ => json!({"type": "tool-output-error", "toolCallId": id, "errorText": result.text()}),
        });
    }

    fn end(&mut self, result: &RunResult, out: &mut Vec<Value>) {
        self.is_over = true;
        for piece in self
            .root
            .clone()
            .map(|root| self.blocks.cut(&root))
            .unwrap_or_default()
        {
            self.piece(piece, out);
        }
        if self.in_step {
            out.push(json!({"type": "finish-step"}));
        }
        let reason = match &result.outcome {
            Outcome::Cancelled { by } => {
                out.push(json!({"type": "abort", "reason": format!("stopped by {by}")}));
                return;
            }
            Outcome::Failed { failure } => return out.extend(error_frames(&failure.to_string())),
            Outcome::Paused { .. } => "tool-calls",
            Outcome::Limit { .. } => "other",
            Outcome::Finished { reply, .. } => match reply.stop {
                FinishReason::Length => "length",
                FinishReason::Refused | FinishReason::Filtered => "content-filter",
                FinishReason::Calls => "tool-calls",
                _ => "stop",
            },
        };
        let mut told = json!({"outcome": result.outcome.kind(), "usage": result.total_usage});
        if let Some(output) = &result.output {
            told["output"] = Value::clone(output);
        }
        out.push(json!({"type": "finish", "finishReason": reason, "messageMetadata": told}));
    }
}

impl Encode for Encoder {
    const END: &str = "data: [DONE]\n\n";

    fn tell(&mut self, event: &Event) -> Vec<Value> {
        Self::tell(self, event)
    }

    fn broken(&mut self, message: &str) -> Vec<Value> {
        Self::broken(self, message)
    }
}

fn never_ran(call: &str) -> Value {
    let why = "The reply was cut off: this call never ran.";
    json!({"type": "tool-output-error", "toolCallId": call, "errorText": why})
}

fn error_frames(message: &str) -> [Value; 2] {
    [
        json!({"type": "error", "errorText": message}),
        json!({"type": "finish", "finishReason": "error"}),
    ]
}

/// Text if the result is only text and has no details, else both.
fn output(content: &[Content], details: &Value) -> Value {
    let texts: Option<Vec<&str>> = content.iter().map(Content::as_text).collect();
    match texts {
        Some(texts) if details.is_null() => texts.join("\n").into(),
        _ => json!({"content": content, "details": details}),
    }
}
