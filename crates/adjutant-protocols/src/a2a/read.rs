//! The content of a client's message: a prompt, or answers to the pauses of its task.

use std::sync::Arc;

use adjutant_core::{Answered, Pause};
use adjutant_llm::{Content, Custom, Entry, Source, UserMessage};
use adjutant_tool::{Answer, AskKind};
use serde_json::{Value, json};

use super::{
    refusal::{Code, RpcRefusal},
    task::MARK,
    wire::{Message, Part},
};
use crate::{answer, file};

/// The words that approve and deny, where a text is nothing else; any other text denies, and is the reason.
const YES: [&str; 4] = ["approve", "approved", "yes", "ok"];
const NO: [&str; 4] = ["deny", "denied", "no", "decline"];

/// The entries of a run that a message starts: its ids and its content.
pub(super) fn prompt(message: &Message) -> Result<Vec<Entry>, RpcRefusal> {
    let content = message
        .parts
        .iter()
        .map(content)
        .collect::<Result<Vec<_>, _>>()?;
    let said = UserMessage::from(content);
    if said.is_empty() {
        return Err(RpcRefusal::params("the message says nothing"));
    }
    let value = json!({"messageId": message.message_id});
    Ok(vec![
        Entry::Custom(Custom {
            kind: MARK.into(),
            value,
        }),
        Entry::User(said),
    ])
}

/// The entry that names a message which answers.
pub(super) fn note(message: &Message) -> Entry {
    let value = json!({"messageId": message.message_id, "parts": message.parts});
    Entry::Custom(Custom {
        kind: MARK.into(),
        value,
    })
}

/// The answers that a message gives to what its task waits for.
///
/// A data part `{"pause", "answer"}` answers that pause; any other data part, or a text, answers the only open one.
pub(super) fn answers(
    message: &Message,
    pauses: &[Arc<Pause>],
) -> Result<Vec<Answered>, RpcRefusal> {
    let named = |part: &Part| {
        let name = part.data.as_ref()?.get("pause")?.as_str()?;
        Some(
            answer::find_pause(pauses, name)
                .map_err(RpcRefusal::from)
                .and_then(|pause| {
                    let payload = part
                        .data
                        .as_ref()
                        .and_then(|data| data.get("answer"))
                        .unwrap_or(&Value::Null);
                    parse_answer(pause, payload)
                }),
        )
    };
    let answers = message
        .parts
        .iter()
        .filter_map(named)
        .collect::<Result<Vec<_>, _>>()?;
    answer::once(&answers)?;
    let texts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| part.text.as_deref())
        .collect();
    let said = texts.join("\n");
    let said = said.trim();
    let data = message
        .parts
        .iter()
        .filter(|part| part.data.is_some())
        .count();
    if message
        .parts
        .iter()
        .any(|part| part.raw.is_some() || part.url.is_some())
    {
        return Err(RpcRefusal::params(
            "a file answers nothing: send a text or data parts",
        ));
    }
    if data > answers.len().max(1) {
        return Err(RpcRefusal::params(
            "of several data parts each names its pause: {\"pause\", \"answer\"}",
        ));
    }
    if data > 0 && !said.is_empty() {
        // They would be ignored, and could contradict the answers.
        return Err(RpcRefusal::params(
            "words beside an answer are not heard: send one of both",
        ));
    }
    if !answers.is_empty() {
        return Ok(answers);
    }
    let [pause] = pauses else {
        let message = format!(
            "{} questions wait: answer each by a data part {{\"pause\", \"answer\"}}",
            pauses.len()
        );
        return Err(RpcRefusal::params(message));
    };
    match (
        message.parts.iter().find_map(|part| part.data.as_ref()),
        said,
    ) {
        (Some(data), _) => Ok(vec![parse_answer(pause, data)?]),
        (None, "") => Err(RpcRefusal::params(
            "the message holds no answer: a text or a data part",
        )),
        (None, said) => Ok(vec![text(pause, said)?]),
    }
}

fn parse_answer(pause: &Pause, payload: &Value) -> Result<Answered, RpcRefusal> {
    match payload {
        // A question could accept `null` as its only answer, which does not occur in practice.
        Value::Null => Ok(answer::declined(pause, "the caller declined")),
        payload => answer::given(pause, payload).map_err(RpcRefusal::from),
    }
}

fn text(pause: &Pause, said: &str) -> Result<Answered, RpcRefusal> {
    let word = said.to_lowercase();
    match pause.ask.kind {
        AskKind::Approval | AskKind::Authorisation if YES.contains(&&*word) => Ok(pause.approve()),
        AskKind::Approval | AskKind::Authorisation if NO.contains(&&*word) => {
            Ok(pause.deny("the caller said no"))
        }
        // Anything except a plain yes is a denial.
        AskKind::Approval => Ok(pause.with_answer(Answer::deny(said))),
        _ => match answer::given(pause, &Value::from(said)) {
            Ok(answered) => Ok(answered),
            // A number, or an object, written as text.
            Err(error) => match serde_json::from_str(said) {
                Ok(value) => parse_answer(pause, &value),
                Err(_) => Err(error.into()),
            },
        },
    }
}

/// A part of a prompt.
fn content(part: &Part) -> Result<Content, RpcRefusal> {
    if let Some(text) = &part.text {
        return Ok(Content::text(&**text));
    }
    if let Some(data) = &part.data {
        return Ok(Content::text(data.to_string()));
    }
    let source = match (&part.raw, &part.url) {
        (Some(data), None) => Source::Base64 {
            data: data.as_str().into(),
        },
        (None, Some(url)) => Source::Url {
            url: url.as_str().into(),
        },
        _ => {
            return Err(RpcRefusal::params(
                "a part is one of `text`, `raw`, `url` and `data`",
            ));
        }
    };
    let media_type = part.media_type.as_str();
    let kind = media_type.split('/').next().unwrap_or_default();
    if !matches!(kind, "image" | "audio") && !matches!(media_type, "application/pdf" | "text/plain")
    {
        return Err(RpcRefusal::new(
            Code::ContentTypeNotSupported,
            format!("no model here accepts {media_type:?}"),
        ));
    }
    let name = Some(&*part.filename)
        .filter(|name| !name.is_empty())
        .map(Arc::from);
    let called = format!(
        "the part {:?}",
        part.filename.chars().take(40).collect::<String>()
    );
    Ok(file::content(&called, media_type, name, source)?)
}
