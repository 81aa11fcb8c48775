//! The effect `stall_detect`: reminds the model when turns bring nothing new, and ends the run if that continues.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use adjutant_core::{Limit, RunNo, TurnNo};
use adjutant_llm::Turn;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tail;
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// The number of bytes of a result that are compared, besides its length.
const COMPARED_BYTES: usize = 2_000;
/// The largest number of outcomes that alternate without a new one: alternating is no progress.
const OUTCOMES: usize = 2;

/// Reminds the model when its turns repeat the same outcomes, and ends the run if that continues.
///
/// Two turns are alike if the same tools returned the same results; for successful calls, the arguments count too.
/// Similarity is the share of the latest turns with one of the two most common repeated outcomes: of six turns, five
/// are enough for 0.8. The run ends with `Stalled` if nothing has changed a whole window after the reminder; progress
/// in between, or another run, resets it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StallDetect {
    /// The number of the newest turns with calls that are compared; 6, and below 2 for never.
    pub window: usize,
    /// The minimum share of alike turns, above 0 and at most 1; 0.8, also for invalid values.
    pub similarity: f64,
}

#[derive(Serialize, Deserialize)]
struct StallMemo {
    run: RunNo,
    turn: TurnNo,
}

impl StallDetect {
    fn is_stalled(&self, cx: &EffectContext<'_>) -> bool {
        let outcomes: Vec<u64> = tail::turns(cx.history)
            .take(self.window)
            .map(|(_, turn)| outcome(turn))
            .collect();
        let similarity = if self.similarity > 0.0 && self.similarity <= 1.0 {
            self.similarity
        } else {
            0.8
        };
        outcomes.len() == self.window
            && count_repeats(&outcomes) as f64 >= similarity * self.window as f64
    }
}

impl Default for StallDetect {
    fn default() -> Self {
        Self {
            window: 6,
            similarity: 0.8,
        }
    }
}

#[async_trait]
impl Effect for StallDetect {
    fn kind(&self) -> &str {
        "stall_detect"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        if self.window < 2 || !tail::may_speak(&cx) {
            return Ok(Vec::new());
        }
        let told = cx.memo::<StallMemo>().filter(|told| told.run == cx.run);
        let window = u64::try_from(self.window).unwrap_or(u64::MAX);
        Ok(match (self.is_stalled(&cx), told) {
            (false, None) => Vec::new(),
            (false, Some(_)) => vec![Action::Remember(Value::Null)],
            (true, None) => {
                let text = format!(
                    "The last {} steps came to much the same. Step back: say what you are after, what you know by \
                     now, and what you have not tried; then do something else, or finish with what you have.",
                    self.window
                );
                let told = StallMemo {
                    run: cx.run,
                    turn: cx.turn,
                };
                vec![Action::Remember(json!(told)), Action::Remind(text.into())]
            }
            (true, Some(told)) if cx.turn.0.saturating_sub(told.turn.0) >= window => {
                // The run may be allowed to continue: the reminder is sent again before the next end.
                vec![Action::Remember(Value::Null), Action::Stop(Limit::Stalled)]
            }
            (true, Some(_)) => Vec::new(),
        })
    }
}

/// Returns the number of these turns with one of the most common outcomes; an outcome that occurs only once is new.
fn count_repeats(outcomes: &[u64]) -> usize {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    outcomes
        .iter()
        .for_each(|outcome| *counts.entry(*outcome).or_default() += 1);
    let mut counts: Vec<usize> = counts.into_values().filter(|count| *count > 1).collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts.iter().take(OUTCOMES).sum()
}

/// Returns the outcome of a turn. Not stored, so it need not be the same in another program.
fn outcome(turn: &Turn) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (call, result) in turn.pairs() {
        call.name.hash(&mut hasher);
        result.status.hash(&mut hasher);
        if !result.is_error() {
            call.args.trim().hash(&mut hasher);
        }
        for content in &result.content {
            let text = content.as_text().unwrap_or_default();
            text.len().hash(&mut hasher);
            text.as_bytes()[..text.len().min(COMPARED_BYTES)].hash(&mut hasher);
        }
    }
    hasher.finish()
}
