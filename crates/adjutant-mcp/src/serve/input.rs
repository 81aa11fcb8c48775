//! The pauses of a run as questions for a client of the protocol, and its answers.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::Pause;
use adjutant_tool::{Answer, AskKind};
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ElicitationSchema, InputRequest, PrimitiveSchemaDefinition,
    RootsCapabilities, SamplingCapability, UrlElicitationCapability,
};
use serde_json::{Value, json};

/// The key for protocol requests in a pause's data: such a request, with its `method`, is sent to the client
/// unchanged.
const OF_PROTOCOL: &str = "mcp";
/// The largest number of characters of a call's arguments that are displayed.
const MAX_SHOWN: usize = 4_000;

/// A pause as a question for the client.
pub(super) struct Question {
    /// The name of its answer.
    pub(super) key: String,
    pub(super) pause: Arc<Pause>,
    /// `None` if the protocol has no request for it.
    pub(super) request: Option<InputRequest>,
    reading: AnswerForm,
}

/// The conversion of a client's response to an answer.
#[derive(Clone, Copy)]
enum AnswerForm {
    /// Consent is all that is wanted.
    Consent,
    /// The form is the value.
    Form,
    /// The value is the one field of the form.
    Field,
    /// The value is JSON text in the one field of the form.
    Json,
    /// The one field of the form is a number to extend a limit by.
    Number,
    /// The client's response is the value.
    Raw,
}

impl Question {
    /// The questions of pauses, in order, each with a unique name: the name of its step, if there is one.
    pub(super) fn from_pauses(pauses: &[Arc<Pause>]) -> Vec<Self> {
        let mut names = BTreeMap::<String, usize>::new();
        let mut named = |pause: &Arc<Pause>| {
            let name = pause.key.as_deref().unwrap_or("approval").to_owned();
            let seen = names
                .entry(name.clone())
                .and_modify(|seen| *seen += 1)
                .or_insert(1);
            if *seen == 1 {
                name
            } else {
                format!("{name}#{seen}")
            }
        };
        let question = |pause: &Arc<Pause>| {
            let (request, reading) = request(pause);
            // A question that the protocol cannot express is not sent.
            let request = request.and_then(|request| serde_json::from_value(request).ok());
            Self {
                key: named(pause),
                pause: Arc::clone(pause),
                request,
                reading,
            }
        };
        pauses.iter().map(question).collect()
    }

    /// The capability that the client lacks for this question; all capabilities if no client supports it.
    pub(super) fn lacks(&self, can: &ClientCapabilities) -> Option<ClientCapabilities> {
        let mut lacks = ClientCapabilities::default();
        match &self.request {
            Some(InputRequest::CreateMessage(_)) if can.sampling.is_none() => {
                lacks.sampling = Some(SamplingCapability::default());
            }
            Some(InputRequest::ListRoots(_)) if can.roots.is_none() => {
                lacks.roots = Some(RootsCapabilities::default())
            }
            Some(InputRequest::Elicitation(elicit)) => {
                let can = can.elicitation.as_ref();
                let is_url = matches!(
                    elicit.params,
                    ElicitRequestParams::UrlElicitationParams { .. }
                );
                let has = match (can, is_url) {
                    (Some(can), true) => can.url.is_some(),
                    // A client without further details supports forms.
                    (Some(can), false) => can.form.is_some() || can.url.is_none(),
                    (None, _) => false,
                };
                if has {
                    return None;
                }
                let url =
                    ElicitationCapability::new().with_url(UrlElicitationCapability::default());
                lacks.elicitation = Some(if is_url {
                    url
                } else {
                    ElicitationCapability::new()
                });
            }
            Some(_) => return None,
            None => {}
        }
        Some(lacks)
    }

    /// The answer in a client's response; `None` if it is invalid.
    pub(super) fn read(&self, said: &Value) -> Option<Answer> {
        let answer = match self.reading {
            AnswerForm::Raw => Answer::give(said.is_object().then(|| said.clone())?),
            reading => {
                let ElicitResult {
                    action, content, ..
                } = serde_json::from_value(said.clone()).ok()?;
                let field = || content.as_ref()?.as_object()?.values().next().cloned();
                match (action, reading) {
                    (ElicitationAction::Accept, AnswerForm::Consent) => Answer::approve(),
                    (ElicitationAction::Accept, AnswerForm::Form) => Answer::give(content?),
                    (ElicitationAction::Accept, AnswerForm::Field) => Answer::give(field()?),
                    (ElicitationAction::Accept, AnswerForm::Json) => {
                        Answer::give(serde_json::from_str::<Value>(field()?.as_str()?).ok()?)
                    }
                    (ElicitationAction::Accept, AnswerForm::Number) => Answer::Extend {
                        by: field()?.as_u64()?,
                        message: None,
                    },
                    (ElicitationAction::Decline, AnswerForm::Consent) => {
                        Answer::deny("the user declined")
                    }
                    (_, AnswerForm::Consent) => Answer::deny("the user dismissed the question"),
                    _ => Answer::Decline { message: None },
                }
            }
        };
        answer.fits(&self.pause.ask).is_ok().then_some(answer)
    }

    /// The answer if the client does not support the question.
    pub(super) fn default_answer(&self) -> Answer {
        let message = "no answer is to be had from this client";
        match self.pause.ask.kind {
            AskKind::Approval => Answer::deny(message),
            _ => Answer::Decline {
                message: Some(message.into()),
            },
        }
    }
}

/// The request for the question.
fn request(pause: &Pause) -> (Option<Value>, AnswerForm) {
    let ask = &pause.ask;
    let form = |schema: Value| {
        json!({ "method": "elicitation/create", "params": {
            "mode": "form", "message": message(pause), "requestedSchema": schema,
        }})
    };
    let field = |of: Value, reading| {
        let schema =
            json!({ "type": "object", "properties": { "answer": of }, "required": ["answer"] });
        (Some(form(schema)), reading)
    };
    let of_protocol = ask.data.get(OF_PROTOCOL);
    let as_it_is = of_protocol.filter(|it| it.get("method").is_some());
    // If a server that is used here sends people to an address, this one does too.
    let url = [Some(&ask.data), of_protocol]
        .into_iter()
        .flatten()
        .find_map(|data| data.get("url")?.as_str());
    match ask.kind {
        AskKind::Question => match (&ask.schema, as_it_is) {
            (_, Some(request)) => (Some(request.clone()), AnswerForm::Raw),
            (Value::Null, None) => field(json!({ "type": "string" }), AnswerForm::Field),
            (schema, None)
                if serde_json::from_value::<ElicitationSchema>(schema.clone()).is_ok() =>
            {
                (Some(form(schema.clone())), AnswerForm::Form)
            }
            (schema, None)
                if serde_json::from_value::<PrimitiveSchemaDefinition>(schema.clone()).is_ok() =>
            {
                field(schema.clone(), AnswerForm::Field)
            }
            (schema, None) => {
                let said = format!("JSON that fits this schema: {schema}");
                field(
                    json!({ "type": "string", "description": said }),
                    AnswerForm::Json,
                )
            }
        },
        AskKind::Limit => field(
            json!({ "type": "integer", "minimum": 1 }),
            AnswerForm::Number,
        ),
        AskKind::Authorisation if url.is_some() => {
            let params = json!({ "mode": "url", "message": message(pause), "url": url, "elicitationId": pause.id });
            (
                Some(json!({ "method": "elicitation/create", "params": params })),
                AnswerForm::Consent,
            )
        }
        AskKind::Approval | AskKind::Authorisation => (
            Some(form(json!({ "type": "object", "properties": {} }))),
            AnswerForm::Consent,
        ),
        // The result of a call that runs elsewhere is nothing that a person fills in.
        _ => (None, AnswerForm::Raw),
    }
}

fn message(pause: &Pause) -> String {
    let mut message = pause.ask.prompt.to_string();
    let shown = pause
        .call
        .as_ref()
        .filter(|_| pause.ask.kind == AskKind::Approval);
    if let Some(call) = shown {
        let args: String = call.args.chars().take(MAX_SHOWN).collect();
        let more = if args.len() < call.args.len() {
            " … (there is more)"
        } else {
            ""
        };
        message.push_str(&format!("\n\n{} {args}{more}", call.name));
    }
    for reason in &pause.refused {
        message.push_str(&format!("\n\nAn answer was refused before: {reason}"));
    }
    message
}
