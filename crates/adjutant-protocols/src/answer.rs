//! Pauses as pages name them, and what pages send back as answers. The shapes around both are each protocol's own.

use std::sync::Arc;

#[cfg(any(feature = "a2a", feature = "ag-ui", feature = "ai-sdk"))]
use adjutant_core::Digest;
use adjutant_core::{Answered, Pause};
use adjutant_llm::CallResult;
#[cfg(any(feature = "acp", feature = "ag-ui", feature = "ai-sdk"))]
use adjutant_llm::{CallId, ThreadId};
use adjutant_tool::{Answer, AskKind};
use serde_json::{Value, json};

use crate::error::Error;

/// The name of a pause for clients: it contains the digest of the displayed content, so that an answer applies only
/// to it.
#[cfg(any(feature = "a2a", feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn name(pause: &Pause) -> String {
    format!("{}:{}", pause.digest(), pause.id)
}

/// The pause with this name, as it was displayed.
#[cfg(any(feature = "a2a", feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn find_pause<'a>(pauses: &'a [Arc<Pause>], name: &str) -> Result<&'a Pause, Error> {
    let parts = name
        .split_once(':')
        .and_then(|(digest, id)| Some((digest.parse::<Digest>().ok()?, id)));
    let (digest, id) =
        parts.ok_or_else(|| Error::invalid("the answered pause has an unknown name"))?;
    let pause = pauses.iter().find(|pause| &*pause.id.0 == id);
    let pause = pause.ok_or_else(|| Error::stale(format!("nothing waits under {id}")))?;
    pause
        .differs(Some(digest))
        .map_or(Ok(&**pause), |why| Err(Error::stale(why)))
}

/// The answer in a client's JSON: a verdict, a value, a result or an amount, depending on the pause.
pub(crate) fn given(pause: &Pause, payload: &Value) -> Result<Answered, Error> {
    let answer = match pause.ask.kind {
        AskKind::Approval => {
            match verdict(payload).ok_or_else(|| Error::invalid("a verdict needs `approved`"))? {
                // A rule requires an approval for this call: its tool can do more than that, and permanent rules are
                // given elsewhere.
                Answer::Approve { args, .. } if pause.ask.data.get("why").is_some() => {
                    Answer::Approve {
                        args,
                        for_run: false,
                    }
                }
                verdict => verdict,
            }
        }
        AskKind::Authorisation => verdict(payload).unwrap_or_else(|| Answer::give(payload.clone())),
        AskKind::External => Answer::Return {
            result: Arc::new(CallResult::ok(text(payload))),
        },
        AskKind::Limit => {
            let by = payload.as_u64().or_else(|| payload["by"].as_u64());
            let by = by.ok_or_else(|| Error::invalid("a limit is extended `by` a whole number"))?;
            Answer::Extend { by, message: None }
        }
        _ => Answer::give(payload.clone()),
    };
    answer
        .fits(&pause.ask)
        .map_err(|error| Error::invalid(error.message))?;
    Ok(pause.with_answer(answer))
}

/// Refuses two answers to one pause: only one of them would count, and the other could contradict it.
#[cfg(any(feature = "a2a", feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn once(answers: &[Answered]) -> Result<(), Error> {
    let mut rest = answers.iter();
    while let Some(answer) = rest.next() {
        if rest.clone().any(|other| other.pause == answer.pause) {
            return Err(Error::invalid(format!(
                "{} is answered twice",
                answer.pause
            )));
        }
    }
    Ok(())
}

/// Nothing is given, or a permission is not.
pub(crate) fn declined(pause: &Pause, reason: &str) -> Answered {
    pause.with_answer(match pause.ask.kind {
        AskKind::Approval => Answer::deny(reason),
        _ => Answer::Decline {
            message: Some(reason.into()),
        },
    })
}

/// The shape of what [`given`] takes; `null` for any.
pub(crate) fn schema(pause: &Pause) -> Value {
    match pause.ask.kind {
        AskKind::Approval => json!({
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "editedArgs": {"type": "object"},
                "reason": {"type": "string"},
                "forRun": {"type": "boolean"},
            },
            "required": ["approved"],
        }),
        AskKind::Limit => json!({
            "type": "object", "properties": {"by": {"type": "integer", "minimum": 1}}, "required": ["by"],
        }),
        _ => pause.ask.schema.clone(),
    }
}

/// The name of a call for clients: a subagent's call contains its thread.
#[cfg(any(feature = "acp", feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn call(thread: &ThreadId, root: &ThreadId, call: CallId) -> String {
    if thread == root {
        call.to_string()
    } else {
        format!("{thread}/{call}")
    }
}

/// The kind of a pause, as text.
#[cfg(any(feature = "a2a", feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn kind(pause: &Pause) -> Value {
    serde_json::to_value(pause.ask.kind).unwrap_or_default()
}

fn verdict(payload: &Value) -> Option<Answer> {
    let approved = payload
        .as_bool()
        .or_else(|| payload["approved"].as_bool())?;
    if !approved {
        return Some(Answer::deny(
            payload["reason"].as_str().unwrap_or("the user said no"),
        ));
    }
    let args = Some(&payload["editedArgs"])
        .filter(|args| !args.is_null())
        .map(|args| args.to_string().into());
    Some(Answer::Approve {
        args,
        for_run: payload["forRun"] == true,
    })
}

/// A text as it is, anything else as JSON.
fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
