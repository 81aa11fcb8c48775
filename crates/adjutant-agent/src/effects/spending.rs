//! The rules of effects with a budget: a notice at a share of it, the end of the run at the whole. Never within a turn.

use adjutant_core::{Limit, RunNo};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::tail;
use crate::effect::{Action, EffectContext};

/// The share of a budget at which the model is notified.
pub(super) const WARN: f64 = 0.8;

#[derive(Serialize, Deserialize)]
struct SpendingMemo {
    run: RunNo,
    told: bool,
    /// The number of times that the budget was exhausted; each approval to continue allows the same amount again.
    used_up: u64,
}

/// Decides the action for the spent part of `max`; a `max` of 0 means no budget.
pub(super) fn judge(
    cx: &EffectContext<'_>,
    spent: u64,
    max: u64,
    warn: f64,
    limit: Limit,
    notice: impl Fn(u64) -> String,
) -> Vec<Action> {
    if max == 0 || !tail::may_speak(cx) {
        return Vec::new();
    }
    let memo = cx.memo::<SpendingMemo>().filter(|memo| memo.run == cx.run);
    let memo = memo.unwrap_or(SpendingMemo {
        run: cx.run,
        told: false,
        used_up: 0,
    });
    let allowed = max.saturating_mul(memo.used_up.saturating_add(1));
    if spent >= allowed {
        let memo = SpendingMemo {
            told: false,
            used_up: spent / max,
            ..memo
        };
        return vec![Action::Remember(json!(memo)), Action::Stop(limit)];
    }
    if memo.told || warn <= 0.0 || (spent as f64) < warn * allowed as f64 {
        return Vec::new();
    }
    let percent = u128::from(spent) * 100 / u128::from(allowed);
    let text = format!(
        "{percent} % of {}. Bring the work to an end: finish with what you have.",
        notice(allowed)
    );
    vec![
        Action::Remember(json!(SpendingMemo { told: true, ..memo })),
        Action::Remind(text.into()),
    ]
}
