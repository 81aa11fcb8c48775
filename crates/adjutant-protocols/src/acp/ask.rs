//! The pauses of a run as questions in the editor: a permission, a form, or a message that the next prompt answers.

use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::Pause;
use adjutant_llm::ThreadId;
use adjutant_tool::{Answer, AskKind, Cancel};
use serde_json::{Value, json};

use super::{
    content::text_block,
    encode,
    link::Link,
    open::{Always, OpenSession},
};
use crate::answer;

/// The form of a question.
#[derive(Debug)]
pub(super) enum AskWay {
    /// One of two: yes or no.
    Permission,
    /// One of these.
    Choice(Vec<Value>),
    /// Words of the user.
    Text,
}

impl AskWay {
    pub(super) fn from_pause(pause: &Pause) -> Self {
        match pause.ask.kind {
            AskKind::Approval | AskKind::Authorisation => Self::Permission,
            AskKind::Question => match pause.ask.schema["enum"].as_array() {
                Some(options) if !options.is_empty() => Self::Choice(options.clone()),
                _ => Self::Text,
            },
            _ => Self::Text,
        }
    }
}

/// The question, for people.
pub(super) fn question(pause: &Pause) -> String {
    let who = if pause.path.contains('/') {
        format!("{}: ", pause.path)
    } else {
        String::new()
    };
    let refused = pause
        .refused
        .iter()
        .map(|reason| format!("\nrefused before: {reason}"));
    refused.fold(format!("{who}{}", pause.ask.prompt), |text, reason| {
        text + &reason
    })
}

/// Sends a session's questions to the editor.
#[derive(Clone)]
pub(super) struct Asker {
    link: Arc<Link>,
    session: String,
    thread: ThreadId,
    root: Arc<std::path::Path>,
    always: Option<Arc<Always>>,
    /// The active prompt, which ends if the editor cancels it instead of answering.
    turn: Arc<Mutex<Option<Cancel>>>,
    /// True if the editor shows forms.
    has_forms: bool,
}

impl Asker {
    pub(super) fn new(
        link: &Arc<Link>,
        open: &OpenSession,
        root: &std::path::Path,
        has_forms: bool,
    ) -> Self {
        let (session, thread) = (
            open.agent.session_id().to_string(),
            open.agent.identity().thread.clone(),
        );
        let (link, always, turn) = (Arc::clone(link), open.always.clone(), Arc::default());
        Self {
            link,
            session,
            thread,
            root: root.into(),
            always,
            turn,
            has_forms,
        }
    }

    /// The active prompt.
    pub(super) fn turn(&self) -> Arc<Mutex<Option<Cancel>>> {
        Arc::clone(&self.turn)
    }

    /// Sends the question; `None` if it needs another form, or the prompt was cancelled. An invalid answer is a
    /// denial.
    ///
    /// Cancel: nothing is answered.
    pub(super) async fn ask(&self, pause: &Pause) -> Option<Answer> {
        match AskWay::from_pause(pause) {
            AskWay::Text if self.has_forms => self.form(pause).await,
            AskWay::Text => None,
            AskWay::Permission => self.permission(pause, &[]).await,
            AskWay::Choice(values) => self.permission(pause, &values).await,
        }
    }

    async fn permission(&self, pause: &Pause, values: &[Value]) -> Option<Answer> {
        let option =
            |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let mut options: Vec<Value> = (0..)
            .zip(values)
            .map(|(at, value)| {
                let name = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                option(&format!("value-{at}"), &name, "allow_once")
            })
            .collect();
        if values.is_empty() {
            options.push(option("allow", "Allow", "allow_once"));
        }
        let always = self
            .always
            .as_ref()
            .filter(|_| pause.ask.kind == AskKind::Approval);
        // The editor's user agrees to what the option says: the rules word for word.
        let rules = pause.ask.data["always"].as_array().into_iter().flatten();
        let rules: Vec<&str> = rules.filter_map(Value::as_str).collect();
        let name = match rules.is_empty() {
            true => "Always allow this call in this run".to_owned(),
            false => format!("Always: {}", adjutant_llm::hidden::whole(&rules.join(", "))),
        };
        options.extend(always.map(|_| option("always", &name, "allow_always")));
        let no = if values.is_empty() {
            "Reject"
        } else {
            "No answer"
        };
        options.push(option("reject", no, "reject_once"));
        let call = encode::encode_pause(pause, &self.thread, &self.root);
        let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
        let answered = self.link.call("session/request_permission", params).await;
        let why = match &answered {
            Ok(answer) if answer["outcome"]["outcome"] == "cancelled" => {
                self.turn
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .iter()
                    .for_each(Cancel::cancel);
                return None;
            }
            Ok(answer) => match self.chosen(pause, values, &answer["outcome"]) {
                Some(chosen) => return Some(chosen),
                None => "the editor chose none of the options",
            },
            Err(fault) => &fault.1,
        };
        self.say(&format!("[taken as a no, as it was not answered: {why}]"))
            .await;
        Some(answer::declined(pause, why).answer)
    }

    /// The answer of an option that was offered.
    fn chosen(&self, pause: &Pause, values: &[Value], outcome: &Value) -> Option<Answer> {
        let id = outcome["optionId"]
            .as_str()
            .filter(|_| outcome["outcome"] == "selected")?;
        match (id, pause.ask.kind) {
            ("allow", _) if values.is_empty() => Some(Answer::approve()),
            ("always", AskKind::Approval) => self.always.as_ref().map(|always| always(pause)),
            ("reject", _) => Some(answer::declined(pause, "the user said no").answer),
            _ => values
                .get(id.strip_prefix("value-")?.parse::<usize>().ok()?)
                .cloned()
                .map(Answer::give),
        }
    }

    async fn say(&self, text: &str) {
        let told = json!({"sessionUpdate": "agent_message_chunk", "content": text_block(text)});
        self.link.update(&self.session, told).await;
    }

    async fn form(&self, pause: &Pause) -> Option<Answer> {
        let schema = answer::schema(pause);
        let is_object = schema["type"] == "object";
        let shown = if schema.is_null() {
            json!({"type": "string"})
        } else {
            schema.clone()
        };
        let asked = match is_object {
            true => schema,
            false => {
                json!({"type": "object", "properties": {"answer": shown}, "required": ["answer"]})
            }
        };
        let call = pause
            .call_id()
            .map(|call| answer::call(&pause.thread, &self.thread, call));
        let params = json!({
            "mode": "form", "sessionId": self.session, "toolCallId": call, "message": question(pause),
            "requestedSchema": asked,
        });
        let said = self.link.call("elicitation/create", params).await.ok()?;
        let content = if is_object {
            &said["content"]
        } else {
            &said["content"]["answer"]
        };
        match said["action"].as_str()? {
            "accept" => match answer::given(pause, content) {
                Ok(given) => Some(given.answer),
                Err(why) => {
                    self.say(&format!("{why}\n\n{}", question(pause))).await;
                    None
                }
            },
            "decline" => Some(answer::declined(pause, "the user gave no answer").answer),
            _ => None,
        }
    }
}
