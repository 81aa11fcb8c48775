//! The effect `loop_detect`: reminds the model when it repeats the same call.

use adjutant_core::RunNo;
use adjutant_llm::{Call, EntryId};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tail;
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Reminds the model when it makes the same call several times in a row, and again with each further time.
///
/// Calls are the same if they call the same tool with the same JSON value. Another call in between resets the count,
/// and so does another run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopDetect {
    /// The number of same calls in a row that are a loop; 3. It never speaks at 0, and 1 counts as 2.
    pub threshold: usize,
    /// The number of the newest calls that are examined in a turn; 10. A longer loop is counted across turns.
    pub window: usize,
}

#[derive(Serialize, Deserialize)]
struct LoopMemo {
    run: RunNo,
    /// The latest turn when the reminder was sent.
    at: EntryId,
    count: usize,
}

impl Default for LoopDetect {
    fn default() -> Self {
        Self {
            threshold: 3,
            window: 10,
        }
    }
}

#[async_trait]
impl Effect for LoopDetect {
    fn kind(&self) -> &str {
        "loop_detect"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        if self.threshold == 0 || !tail::may_speak(&cx) {
            return Ok(Vec::new());
        }
        let threshold = self.threshold.max(2);
        let told = cx.memo::<LoopMemo>().filter(|told| told.run == cx.run);
        let newest_first = tail::turns(cx.history);
        let mut calls = newest_first.flat_map(|(id, turn)| {
            let calls: Vec<&Call> = turn.reply().calls().collect();
            calls.into_iter().rev().map(move |call| (id, call))
        });
        let Some((at, newest)) = calls.next() else {
            return Ok(Vec::new());
        };
        if told.as_ref().is_some_and(|told| told.at == at) {
            return Ok(Vec::new());
        }
        let same = calls
            .take(self.window.max(threshold) - 1)
            .take_while(|(_, call)| is_same(call, newest));
        let ids: Vec<EntryId> = std::iter::once(at).chain(same.map(|(id, _)| id)).collect();
        let count = match told {
            // The reported loop continues: it may be longer than the examined part.
            Some(told) if ids.contains(&told.at) => {
                told.count + ids.iter().filter(|id| **id > told.at).count()
            }
            _ => ids.len(),
        };
        if ids.len() < threshold {
            return Ok(Vec::new());
        }
        let text = format!(
            "You have called {} with the same arguments {count} times in a row. Nothing new comes of it: try other \
             arguments, another tool or another way, or say what is in your way.",
            newest.name
        );
        Ok(vec![
            Action::Remember(json!(LoopMemo {
                run: cx.run,
                at,
                count
            })),
            Action::Remind(text.into()),
        ])
    }
}

fn is_same(one: &Call, other: &Call) -> bool {
    one.name == other.name
        && (one.args == other.args || canonical(&one.args) == canonical(&other.args))
}

/// The arguments with keys in order and without white space; as they are, if they are no JSON.
fn canonical(args: &str) -> Value {
    serde_json::from_str(args).map_or_else(|_| Value::from(args.trim()), sorted)
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(members.into_iter().collect::<Map<String, Value>>())
        }
        other => other,
    }
}
