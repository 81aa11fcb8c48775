//! Parses the answers of clients, and checks that they match open pauses. Unknown fields are refused, because a
//! misspelled field could be the one with the digest.

use adjutant_agent::{Answered, Digest, Pause, PauseId};
use adjutant_tool::Answer;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::Arc;

use super::ResumeRequest;
use crate::{Error, ErrorKind};

/// The kinds of answers, each with its fields.
const ANSWERS: [(&str, &[&str]); 7] = [
    ("approve", &["args", "for_run"]),
    ("deny", &["reason"]),
    ("give", &["value"]),
    ("return", &["result"]),
    ("extend", &["by", "message"]),
    ("decline", &["message"]),
    ("expired", &[]),
];

/// The body of a request: several answers, or one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    #[serde(default)]
    session: Option<Arc<str>>,
    #[serde(default)]
    answers: Option<Vec<GivenAnswer>>,
    #[serde(default)]
    pause: Option<PauseId>,
    #[serde(default)]
    answer: Option<GivenValue>,
    #[serde(default)]
    shown: Option<Digest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenAnswer {
    pause: PauseId,
    answer: GivenValue,
    #[serde(default)]
    shown: Option<Digest>,
}

/// An answer without unknown fields.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct GivenValue(Answer);

/// Checks that these are answers to a run's pauses; `posted` are the unprocessed ones.
///
/// # Errors
/// `Invalid` if an answer does not match its question, or if one pause is answered twice; `Conflict` if its pause no
/// longer waits, has changed, or has a different answer.
pub(super) fn fit(
    pauses: &[Arc<Pause>],
    posted: &[Answered],
    answers: &[Answered],
) -> Result<(), Error> {
    let invalid = |why: String| Err(Error::new(ErrorKind::Invalid, why));
    let conflict = |why: String| Err(Error::new(ErrorKind::Conflict, why));
    for (at, given) in answers.iter().enumerate() {
        let id = &given.pause;
        let Some(pause) = pauses.iter().find(|pause| pause.id == *id) else {
            return conflict(format!("{id} does not wait for an answer, or not any more"));
        };
        if let Some(why) = pause.differs(given.shown) {
            return conflict(why);
        }
        if let Err(error) = given.answer.fits(&pause.ask) {
            return invalid(format!("{id}: {error}"));
        }
        if let Answer::Approve {
            args: Some(args), ..
        } = &given.answer
            && !adjutant_llm::json::from_str(args).is_ok_and(|args| args.is_object())
        {
            return invalid(format!("{id}: the arguments of a call are a JSON object"));
        }
        if answers.iter().take(at).any(|other| other.pause == *id) {
            return invalid(format!("{id} is answered twice"));
        }
        if heard(posted, pause).is_some_and(|other| other.answer != given.answer) {
            return conflict(format!(
                "{id} was answered otherwise; whoever goes on with the run hears that"
            ));
        }
    }
    Ok(())
}

/// Returns the unprocessed answer that will be used for a pause: the first one that matches its current state.
pub(super) fn heard<'a>(posted: &'a [Answered], pause: &Pause) -> Option<&'a Answered> {
    posted.iter().find(|it| {
        it.pause == pause.id
            && pause.differs(it.shown).is_none()
            && it.answer.fits(&pause.ask).is_ok()
    })
}

/// Deserializes answers.
pub(super) fn answers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Answered>, D::Error> {
    let given = Vec::<GivenAnswer>::deserialize(from)?;
    Ok(given.into_iter().map(|it| it.answered()).collect())
}

impl GivenAnswer {
    fn answered(self) -> Answered {
        Answered {
            pause: self.pause,
            answer: self.answer.0,
            shown: self.shown,
        }
    }
}

impl TryFrom<Value> for GivenValue {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let name = value
            .get("answer")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let known = ANSWERS.iter().find(|(known, _)| *known == name);
        let Some((_, fields)) = known else {
            return Err(format!(
                "there is no such answer: {:?}",
                name.chars().take(40).collect::<String>()
            ));
        };
        let mut keys = value.as_object().into_iter().flat_map(|it| it.keys());
        if let Some(other) = keys.find(|key| *key != "answer" && !fields.contains(&key.as_str())) {
            return Err(format!(
                "the answer {name:?} has no field {:?}",
                other.chars().take(40).collect::<String>()
            ));
        }
        let name = name.to_owned();
        serde_json::from_value(value)
            .map(Self)
            .map_err(|_| format!("a field of the answer {name:?} is missing or wrong"))
    }
}

impl TryFrom<Given> for ResumeRequest {
    type Error = &'static str;

    fn try_from(given: Given) -> Result<Self, &'static str> {
        let Given {
            session,
            answers,
            pause,
            answer,
            shown,
        } = given;
        let answers = match (answers, pause, answer, shown) {
            (Some(all), None, None, None) => all.into_iter().map(GivenAnswer::answered).collect(),
            (None, Some(pause), Some(answer), shown) => vec![
                GivenAnswer {
                    pause,
                    answer,
                    shown,
                }
                .answered(),
            ],
            (Some(_), ..) => return Err("it has `answers`, and one beside them"),
            (None, ..) => return Err("it has no `answers`, nor `pause` and `answer`"),
        };
        Ok(Self { session, answers })
    }
}
