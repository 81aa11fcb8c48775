//! Answers of somebody outside: the forms that they may have. A misspelt field may be the one that says what was shown.

use adjutant_agent::{Answered, Digest, PauseId};
use adjutant_tool::Answer;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::Arc;

use super::ResumeRequest;

/// The answers that there are, each with the fields that it may have.
const ANSWERS: [(&str, &[&str]); 7] = [
    ("approve", &["args", "for_run"]),
    ("deny", &["reason"]),
    ("give", &["value"]),
    ("return", &["result"]),
    ("extend", &["by", "message"]),
    ("decline", &["message"]),
    ("expired", &[]),
];

/// A request as it comes: answers, or one of them.
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

/// An answer without a field that is not its own.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct GivenValue(Answer);

/// Answers, as they come.
pub(super) fn answers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Answered>, D::Error> {
    let given = Vec::<GivenAnswer>::deserialize(from)?;
    Ok(given.into_iter().map(|it| it.answered()).collect())
}

impl GivenAnswer {
    fn answered(self) -> Answered {
        Answered { pause: self.pause, answer: self.answer.0, shown: self.shown }
    }
}

impl TryFrom<Value> for GivenValue {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let name = value.get("answer").and_then(Value::as_str).unwrap_or_default();
        let known = ANSWERS.iter().find(|(known, _)| *known == name);
        let Some((_, fields)) = known else {
            return Err(format!("there is no such answer: {:?}", name.chars().take(40).collect::<String>()));
        };
        let mut keys = value.as_object().into_iter().flat_map(|it| it.keys());
        if let Some(other) = keys.find(|key| *key != "answer" && !fields.contains(&key.as_str())) {
            return Err(format!("the answer {name:?} has no field {:?}", other.chars().take(40).collect::<String>()));
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
        let Given { session, answers, pause, answer, shown } = given;
        let answers = match (answers, pause, answer, shown) {
            (Some(all), None, None, None) => all.into_iter().map(GivenAnswer::answered).collect(),
            (None, Some(pause), Some(answer), shown) => vec![GivenAnswer { pause, answer, shown }.answered()],
            (Some(_), ..) => return Err("it has `answers`, and one beside them"),
            (None, ..) => return Err("it has no `answers`, nor `pause` and `answer`"),
        };
        Ok(Self { session, answers })
    }
}
