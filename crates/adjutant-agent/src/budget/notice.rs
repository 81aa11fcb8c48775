//! The notice to the model when most of a budget is spent: once in a run, recorded like any other reminder.

use std::time::Duration;

use adjutant_core::{Limit, Memo, Run};
use adjutant_llm::NanoUsd;
use serde_json::json;

use super::Budget;

/// The key of the memo with the run in which the notice was sent.
pub(crate) const KEY: &str = "budget";
/// The share from which the notice is sent, in percent.
const TELL_PERCENT: u128 = 80;

/// The text of the reminder that belongs into the next request, and the memo that keeps it from coming twice.
///
/// `active_ms` is how long the run has been performed.
pub(crate) fn notice(run: &Run, budget: Option<&Budget>, active_ms: u64) -> Option<(String, Memo)> {
    let time = run
        .request()
        .caps()
        .wall_ms
        .map(|cap| (Limit::Time, active_ms, cap));
    let percent =
        |(_, spent, cap): &(Limit, u64, u64)| u128::from(*spent) * 100 / u128::from((*cap).max(1));
    let uses = budget.and_then(Budget::tightest).into_iter().chain(time);
    let (limit, spent, cap) = uses.max_by_key(percent)?;
    let share = percent(&(limit.clone(), spent, cap));
    let told = || {
        run.memos()
            .get(KEY)
            .and_then(|memo| memo.get("run")?.as_u64())
            == Some(run.run().0)
    };
    if share < TELL_PERCENT || run.request().is_last() || told() {
        return None;
    }
    let amount = |amount: u64| match limit {
        Limit::Money => NanoUsd(amount).to_string(),
        Limit::Time => format!("{:?}", Duration::from_millis(amount)),
        _ => amount.to_string(),
    };
    let text = format!(
        "{share} % of the limit of {limit} is used: {} of {}. Finish what matters most and answer with what you have.",
        amount(spent),
        amount(cap),
    );
    let memo = Memo {
        key: KEY.into(),
        value: json!({ "run": run.run().0 }),
    };
    Some((text, memo))
}
