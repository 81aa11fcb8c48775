//! Finds the answer in a reply: in the arguments of a call, or in a text that may hold more than JSON.

use serde_json::Value;

use super::{ask::Mode, form::Form};
use crate::{
    Error, ErrorKind, FinishReason, Reply, Violation,
    json::{self, Misread},
};

/// The largest number of places of a text that are tried as the beginning of an object.
const MAX_BEGINS: usize = 64;
/// The maximum number of wrong places in a message to the model.
const MAX_LISTED: usize = 20;
/// The maximum number of characters of a place, and of the message about it.
const MAX_TEXT: usize = 300;

/// Returns the answer in a reply, or its errors.
///
/// # Errors
/// If the reply cannot be repaired.
pub(super) fn answer(
    reply: &Reply,
    mode: Mode,
    form: &Form,
) -> Result<Result<Value, Vec<Violation>>, Error> {
    let name = &form.format().name;
    match reply.stop {
        FinishReason::Refused | FinishReason::Filtered => {
            let message = format!("the model refused to answer with {name}");
            let error = Error::new(ErrorKind::Refused, message);
            return Err(match &reply.raw_stop {
                Some(word) => error.with(|it| it.code = Some(word.clone())),
                None => error,
            });
        }
        FinishReason::Length => {
            let message = format!(
                "the output limit cut off the answer {name}; hint: raise max_output_tokens"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        FinishReason::Interrupted => {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!("the answer {name} was interrupted"),
            ));
        }
        FinishReason::End | FinishReason::Sequence | FinishReason::Calls | FinishReason::Paused => {
        }
    }
    if let Some(other) = reply
        .calls()
        .find(|call| !mode.calls() || *call.name.0 != **name)
    {
        let message = format!(
            "the model called {} instead of answering with {name}",
            other.name
        );
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    Ok(find_answer(reply, form))
}

/// Returns the answer in a reply of an agent; `None` if its work continues.
pub(super) fn within(reply: &Reply, form: &Form) -> Option<Result<Value, Vec<Violation>>> {
    let answers = || {
        reply
            .calls()
            .filter(|call| *call.name.0 == *form.format().name)
    };
    let goes_on = match reply.stop {
        FinishReason::Refused
        | FinishReason::Filtered
        | FinishReason::Interrupted
        | FinishReason::Paused => true,
        FinishReason::End | FinishReason::Sequence | FinishReason::Calls | FinishReason::Length => {
            answers().next().is_none() && reply.calls().next().is_some()
        }
    };
    let read = || match find_answer(reply, form) {
        Err(_) if reply.stop == FinishReason::Length => Err(vec![whole(
            "the output limit cut it off: answer more briefly".to_owned(),
        )]),
        found => found,
    };
    (!goes_on).then(read)
}

/// The answer in the call that is meant for it, else in the text.
fn find_answer(reply: &Reply, form: &Form) -> Result<Value, Vec<Violation>> {
    let name = &form.format().name;
    let mut calls = reply.calls().filter(|call| *call.name.0 == **name);
    match (calls.next(), calls.next()) {
        (None, _) => text(&reply.text()).and_then(|found| form.accept(found)),
        (Some(call), None) => arguments(&call.args).and_then(|found| form.accept(found)),
        (Some(_), Some(_)) => Err(vec![whole(format!("{name} was called more than once"))]),
    }
}

/// Returns the message that lists the errors of an answer.
pub(super) fn misfit(wrong: &[Violation]) -> String {
    format!("The answer does not fit its schema:\n{}", list(wrong))
}

/// Returns the violation of an answer as a whole.
pub(super) fn whole(message: String) -> Violation {
    Violation {
        path: String::new(),
        message,
    }
}

/// One line for each wrong place.
pub(super) fn list(wrong: &[Violation]) -> String {
    let line = |it: &Violation| {
        let place = if it.path.is_empty() {
            "the whole"
        } else {
            cut(&it.path)
        };
        format!("- {place}: {}", cut(&it.message))
    };
    let mut lines: Vec<String> = wrong.iter().take(MAX_LISTED).map(line).collect();
    if wrong.len() > MAX_LISTED {
        lines.push(format!("- and {} more", wrong.len() - MAX_LISTED));
    }
    lines.join("\n")
}

fn cut(text: &str) -> &str {
    text.char_indices()
        .nth(MAX_TEXT)
        .map_or(text, |(end, _)| &text[..end])
}

fn arguments(args: &str) -> Result<Value, Vec<Violation>> {
    json::from_str(args).map_err(|error| match error {
        Misread::Twice { path } => vec![twice(path)],
        Misread::NotJson(error) => vec![whole(format!("not JSON: {error}"))],
    })
}

fn twice(path: String) -> Violation {
    Violation {
        path,
        message: "the key appears twice".to_owned(),
    }
}

/// The JSON in a text: all of it, else the first fenced part that is JSON, else the first object.
fn text(text: &str) -> Result<Value, Vec<Violation>> {
    let error = match json::from_str(text.trim()) {
        Ok(value) => return Ok(value),
        Err(Misread::Twice { path }) => return Err(vec![twice(path)]),
        Err(Misread::NotJson(error)) => error,
    };
    parse_fenced(text)
        .or_else(|| embedded(text))
        .ok_or_else(|| vec![whole(format!("no JSON in the answer: {error}"))])
}

fn parse_fenced(text: &str) -> Option<Value> {
    text.split("```")
        .skip(1)
        .step_by(2)
        .take(MAX_BEGINS)
        .find_map(|part| {
            let body = part.split_once('\n').map_or(part, |(_, body)| body);
            json::from_str(body.trim()).ok()
        })
}

fn embedded(text: &str) -> Option<Value> {
    text.match_indices('{')
        .take(MAX_BEGINS)
        .find_map(|(at, _)| {
            let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            values.next()?.ok()
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(said: &str, expect: Option<Value>) {
        assert_eq!(text(said).ok(), expect, "{said}");
    }

    #[test]
    fn text_finds_json_when_it_is_plain_fenced_or_embedded() {
        check(" {\"a\": 1}\n", Some(json!({"a": 1})));
        check(
            "Here:\n```json\n{\"a\": [\"`\"]}\n```\nDone.",
            Some(json!({"a": ["`"]})),
        );
        check("```\nnot this\n```\n```json\n[1]\n```", Some(json!([1])));
        check(
            "It is {not this} but {\"a\": {\"b\": \"}\"}}, I think.",
            Some(json!({"a": {"b": "}"}})),
        );
        check("no", None);
        check("{\"a\": 1", None);
        check("```json\n{\"a\": 1", None);
    }

    #[test]
    fn list_is_bounded_when_much_is_wrong() {
        let wrong: Vec<Violation> = (0..22)
            .map(|n| Violation {
                path: format!("/{n}"),
                message: "x".repeat(400),
            })
            .collect();
        let listed = list(&wrong);
        assert_eq!(listed.lines().count(), 21);
        assert_eq!(
            listed.lines().next(),
            Some(&*format!("- /0: {}", "x".repeat(300)))
        );
        assert!(listed.ends_with("- and 2 more"), "{listed}");
        let far = [Violation {
            path: format!("/{}", "ä".repeat(400)),
            message: "no".to_owned(),
        }];
        assert_eq!(list(&far), format!("- /{}: no", "ä".repeat(299)));
    }
}
