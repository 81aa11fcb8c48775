//! The fold from events to `session/update` notifications.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_core::{Event, EventKind, Pause};
use adjutant_llm::{Block, CallId, CallResult, Entry, Origin, Status, ThreadId};
use adjutant_tool::Answer;
use serde_json::{Value, json};

use super::{
    ask::{self, AskWay},
    call,
    content::{self, text_block},
};
use crate::{
    answer,
    blocks::{Beat, Blocks, Part, What},
};

/// Creates updates of a session from the events of its runs, live or from its log: pass the events of all runs, in
/// order.
///
/// Messages of subagents become content of the call that they belong to; their calls are displayed like the first
/// agent's.
#[derive(Debug)]
pub struct Encoder {
    root: PathBuf,
    thread: Option<ThreadId>,
    blocks: Blocks,
    /// The displayed arguments of each call, until it has its result.
    shown: HashMap<String, Arc<str>>,
    /// The calls of the attempt at a reply.
    said: Vec<String>,
}

impl Encoder {
    /// For a session in this folder: the paths of calls are relative to it.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let (blocks, shown) = (Blocks::default(), HashMap::new());
        Self {
            root: root.into(),
            thread: None,
            blocks,
            shown,
            said: Vec::new(),
        }
    }

    /// The updates for an event of a past run, including the user's messages.
    pub fn recall(&mut self, event: &Event) -> Vec<Value> {
        let mut out = self.tell(event);
        let mut said = |block| {
            out.push(chunk(
                "user_message_chunk",
                &format!("u{}", event.seq.0),
                block,
            ))
        };
        match &event.kind {
            EventKind::EntryAdded { content } if self.is_root(&event.who.thread) => {
                match &**content {
                    Entry::User(message)
                        if matches!(
                            message.origin,
                            Origin::Person | Origin::Steering | Origin::FollowUp
                        ) =>
                    {
                        message.content.iter().map(content::block).for_each(said);
                    }
                    _ => {}
                }
            }
            EventKind::Answered { answer, .. } => {
                if let Answer::Give { value } = &**answer {
                    said(text_block(value.as_str().unwrap_or(&value.to_string())));
                }
            }
            _ => {}
        }
        out
    }

    /// The updates that an event becomes, in order.
    pub fn tell(&mut self, event: &Event) -> Vec<Value> {
        let mut out = Vec::new();
        if self.thread.is_none() {
            self.thread = Some(event.who.thread.clone());
        }
        if self.is_root(&event.who.thread) {
            for beat in self.blocks.fold(event) {
                self.beat(beat, &mut out);
            }
            self.own(event, &mut out);
        } else if let (EventKind::ReplyFinished { reply, .. }, Some((parent, call))) =
            (&event.kind, event.who.parent.as_ref().zip(event.who.call))
        {
            let text = text_block(&format!("{}: {}", event.who.name, reply.text()));
            let content = json!([{"type": "content", "content": text}]);
            out.push(update(
                &self.call(parent, call),
                json!({"content": content}),
            ));
        }
        self.all(event, &mut out);
        out
    }

    fn is_root(&self, thread: &ThreadId) -> bool {
        self.thread.as_ref() == Some(thread)
    }

    fn call(&self, who: &ThreadId, call: CallId) -> String {
        answer::call(who, self.thread.as_ref().unwrap_or(who), call)
    }

    fn beat(&mut self, beat: Beat, out: &mut Vec<Value>) {
        match (beat.part, beat.what) {
            (Part::Text, What::Grew(text)) => {
                out.push(chunk("agent_message_chunk", &beat.reply, text_block(&text)))
            }
            (Part::Thinking, What::Grew(text)) => {
                out.push(chunk("agent_thought_chunk", &beat.id, text_block(&text)))
            }
            (Part::Call { call, name }, What::Began) => {
                let told = json!({
                    "sessionUpdate": "tool_call", "toolCallId": call, "title": name, "kind": call::kind(name.as_str()),
                    "status": "pending",
                });
                self.shown.insert(call.to_string(), "".into());
                self.said.push(call.to_string());
                out.push(told);
            }
            (Part::Call { call, name }, What::Ended(Some(block))) => {
                if let Block::Call(it) = &*block {
                    self.show(&call.to_string(), name.as_str(), &it.args, json!({}), out);
                }
            }
            (Part::Call { call, .. }, What::Ended(None)) => self.never(&call.to_string(), out),
            _ => {}
        }
    }

    /// Events of the first agent.
    fn own(&mut self, event: &Event, out: &mut Vec<Value>) {
        match &event.kind {
            EventKind::ReplyStarted { .. } => self.said.clear(),
            EventKind::ReplyRetracted { attempt, cause, .. } => {
                for id in std::mem::take(&mut self.said) {
                    self.never(&id, out);
                }
                let text = text_block(&format!("\n[what was said since is taken back: {cause}]\n"));
                out.push(chunk(
                    "agent_message_chunk",
                    &format!("v{}_{attempt}", event.turn.0),
                    text,
                ));
            }
            EventKind::ReplyFinished { reply, .. } => {
                let is_kept = |id: &String| reply.calls().any(|call| call.id.to_string() == *id);
                for id in std::mem::take(&mut self.said)
                    .into_iter()
                    .filter(|id| !is_kept(id))
                {
                    self.never(&id, out);
                }
            }
            EventKind::App { kind, data, .. } if **kind == *"plan" => out.extend(plan(data)),
            _ => {}
        }
    }

    /// Events of any agent.
    fn all(&mut self, event: &Event, out: &mut Vec<Value>) {
        let id = |call: &CallId| self.call(&event.who.thread, *call);
        match &event.kind {
            EventKind::ToolStarted {
                call, name, args, ..
            } => {
                let id = id(call);
                if self.shown.get(&id) == Some(args) {
                    out.push(update(
                        &id,
                        json!({"title": call::title(name.as_str(), args), "status": "in_progress"}),
                    ));
                } else {
                    self.show(
                        &id,
                        name.as_str(),
                        args,
                        json!({"status": "in_progress"}),
                        out,
                    );
                }
            }
            EventKind::ToolProgress { call, progress } => {
                out.push(update(
                    &id(call),
                    json!({"content": content::encode_call_content(&progress.content)}),
                ));
            }
            EventKind::ToolFinished {
                call, name, result, ..
            } => {
                let id = id(call);
                let args = self.shown.remove(&id).unwrap_or_default();
                out.push(update(&id, encode_result(name.as_str(), &args, result)));
            }
            EventKind::Paused { pause } => self.pause(pause, out),
            _ => {}
        }
    }

    /// Displays a call with its arguments: as a new one, or as an update.
    fn show(&mut self, id: &str, name: &str, args: &Arc<str>, more: Value, out: &mut Vec<Value>) {
        let is_known = self.shown.insert(id.to_owned(), Arc::clone(args)).is_some();
        let mut told = Value::Object(call::describe_call(id, name, args, &self.root));
        told["sessionUpdate"] = if is_known {
            "tool_call_update"
        } else {
            "tool_call"
        }
        .into();
        merge(&mut told, more);
        out.push(told);
    }

    /// A call that was started in a reply that became void.
    fn never(&mut self, id: &str, out: &mut Vec<Value>) {
        if self.shown.remove(id).is_some() {
            let content = json!([{"type": "content", "content": text_block("it never ran")}]);
            out.push(update(id, json!({"status": "failed", "content": content})));
        }
    }

    fn pause(&mut self, pause: &Pause, out: &mut Vec<Value>) {
        if let Some(call) = &pause.call {
            let id = self.call(&pause.thread, call.id);
            if self.shown.get(&id) != Some(&call.args) {
                self.show(
                    &id,
                    call.name.as_str(),
                    &call.args,
                    json!({"status": "pending"}),
                    out,
                );
            }
        }
        if matches!(AskWay::from_pause(pause), AskWay::Text) {
            out.push(chunk(
                "agent_message_chunk",
                &format!("p{}", pause.id),
                text_block(&ask::question(pause)),
            ));
        }
    }
}

/// The subject of a permission request, as a call.
pub(super) fn encode_pause(pause: &Pause, thread: &ThreadId, root: &Path) -> Value {
    let mut told = match &pause.call {
        Some(call) => {
            let id = answer::call(&pause.thread, thread, call.id);
            Value::Object(call::describe_call(
                &id,
                call.name.as_str(),
                &call.args,
                root,
            ))
        }
        None => json!({"toolCallId": pause.id, "title": pause.ask.prompt}),
    };
    let mut content =
        vec![json!({"type": "content", "content": text_block(&ask::question(pause))})];
    content.extend(told["content"].as_array().into_iter().flatten().cloned());
    merge(&mut told, json!({"status": "pending", "content": content}));
    told
}

fn chunk(kind: &str, id: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "messageId": id, "content": content})
}

fn update(id: &str, more: Value) -> Value {
    let mut told = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
    merge(&mut told, more);
    told
}

fn merge(told: &mut Value, more: Value) {
    if let (Value::Object(told), Value::Object(more)) = (told, more) {
        told.extend(more);
    }
}

/// Some editors display an update on its own, so it contains the title too.
fn encode_result(name: &str, args: &str, result: &CallResult) -> Value {
    let is_ok = result.status == Status::Ok;
    let mut told = json!({"title": call::title(name, args), "status": if is_ok { "completed" } else { "failed" }});
    if !(is_ok && call::shows_change(name)) {
        told["content"] = content::encode_call_content(&result.content).into();
    }
    if !result.details.is_null() {
        told["rawOutput"] = result.details.clone();
    }
    told
}

/// The plan of a note, as the toolkit's plan keeps it.
fn plan(data: &Value) -> Option<Value> {
    let entry = |step: &Value| {
        let status = match step["status"].as_str()? {
            "done" => "completed",
            "in_progress" => "in_progress",
            _ => "pending",
        };
        Some(json!({"content": step["text"].as_str()?, "priority": "medium", "status": status}))
    };
    let entries = data["steps"]
        .as_array()?
        .iter()
        .filter_map(entry)
        .collect::<Vec<_>>();
    Some(json!({"sessionUpdate": "plan", "entries": entries}))
}
