//! Shows results of earlier turns shorter, many at a time: between two steps every request begins with the one before.

use std::sync::Arc;

use adjutant_llm::{
    Call, CallResult, Content, Edit, Entry, EntryId, Estimate, Status, Stored, Transcript, Turn,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::effect::{Action, EffectContext, Phase};

/// The minimum gain of a step, as a share of the tokens that the provider must read again for it.
pub(super) const MIN_GAIN: f64 = 0.3;
/// Entries whose change gains too little are skipped permanently once there are this many: later steps gain more
/// without them, and turns do not examine many entries without effect.
const MAX_IDLE: usize = 64;
/// The effect after which others may shorten a result again.
pub(super) const TRIM: &str = "trim_tool_results";
/// The field of a shortened result with the effect that shortened it, for the application only.
const MARK: &str = "shown_by";

/// The part of the view that a step does not touch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spared {
    /// The newest entries.
    Entries(usize),
    /// The latest turns with results, and everything after them.
    Turns(usize),
}

/// A step: its condition, and its gain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShrinkStep {
    pub(super) kind: &'static str,
    /// The share of the window that must be full; `None` whatever it holds.
    pub(super) threshold: Option<f64>,
    /// The least gain, as a share of everything from the first change on.
    pub(super) min_gain: f64,
    pub(super) spared: Spared,
}

#[derive(Default, Deserialize)]
struct ShrinkMemo {
    /// The entries up to this one have had their turn.
    upto: Option<EntryId>,
}

impl ShrinkStep {
    /// Returns the actions of the effect; `shorten` returns the shortened form of a successful result, if it is
    /// smaller.
    pub(super) fn act(
        &self,
        cx: &EffectContext<'_>,
        shorten: impl Fn(&Call, &CallResult) -> Option<Vec<Content>>,
    ) -> Vec<Action> {
        let overflows = matches!(cx.phase, Phase::Overflow(_));
        if !overflows && self.threshold.is_some_and(|threshold| !cx.fills(threshold)) {
            return Vec::new();
        }
        let items = cx.view.items();
        // A result that was passed over counts again when something must go.
        let upto = cx
            .memo::<ShrinkMemo>()
            .unwrap_or_default()
            .upto
            .filter(|_| !overflows);
        let new = |stored: &&Arc<Stored>| upto.is_none_or(|upto| stored.id > upto);
        let old = (0..self.spared.end(items))
            .rev()
            .map_while(|at| items.get(at).filter(new));
        let old: Vec<&Arc<Stored>> = old.collect();
        let (mut edits, mut gain, mut first) = (Vec::new(), 0, None);
        for stored in old.iter().rev() {
            if let Some((edit, less)) = shorten_turn(stored, self.kind, &shorten) {
                edits.push(Action::Edit(edit));
                gain += less;
                first.get_or_insert(stored.id);
            }
        }
        let anew = items
            .iter()
            .rev()
            .take_while(|stored| first.is_some_and(|first| stored.id >= first));
        let share = if overflows { 0.0 } else { self.min_gain };
        let enough = is_worth(gain, share, anew.map(|stored| stored.tokens).sum());
        let last = old.first().map(|stored| json!({ "upto": stored.id }));
        match last {
            Some(last) if enough => {
                edits.push(Action::Report(
                    json!({ "turns": edits.len(), "tokens": gain }),
                ));
                edits.push(Action::Remember(last));
                edits
            }
            Some(last) if old.len() >= MAX_IDLE => vec![Action::Remember(last)],
            _ => Vec::new(),
        }
    }
}

impl Spared {
    /// The place of the first entry that is spared.
    fn end(self, items: &Transcript) -> usize {
        let turns = match self {
            Spared::Entries(entries) => return items.len().saturating_sub(entries),
            Spared::Turns(0) => return items.len(),
            Spared::Turns(turns) => turns,
        };
        let has_results = |at: &usize| match items.get(*at).map(|stored| &stored.entry) {
            Some(Entry::Turn(turn)) => !turn.results().is_empty(),
            _ => false,
        };
        (0..items.len())
            .rev()
            .filter(has_results)
            .nth(turns - 1)
            .unwrap_or(0)
    }
}

/// True if a gain is at least this share of a whole.
fn is_worth(gain: u64, share: f64, of: u64) -> bool {
    gain > 0 && gain as f64 >= share * of as f64
}

/// The edit that shows a turn with shorter results, and how many tokens that saves.
pub(super) fn shorten_turn(
    stored: &Stored,
    kind: &str,
    shorten: impl Fn(&Call, &CallResult) -> Option<Vec<Content>>,
) -> Option<(Edit, u64)> {
    let Entry::Turn(turn) = &stored.entry else {
        return None;
    };
    let (mut open, mut changed) = (Turn::open(Arc::clone(turn.reply())), false);
    for (call, result) in turn.pairs() {
        let content = if may_shorten(result, kind) {
            shorten(call, result)
        } else {
            None
        };
        changed |= content.is_some();
        let shown = match content {
            Some(content) => {
                let details = json!({ MARK: kind });
                Arc::new(CallResult {
                    content,
                    details,
                    ..CallResult::clone(result)
                })
            }
            None => Arc::clone(result),
        };
        open.put(call.id, shown).ok()?;
    }
    let with = Entry::Turn(open.close().ok().filter(|_| changed)?);
    let gain = stored
        .tokens
        .checked_sub(Estimate::entry(&with))
        .filter(|gain| *gain > 0)?;
    Some((
        Edit::Replace {
            at: stored.id,
            with,
        },
        gain,
    ))
}

/// Returns the content of a result with its text replaced by this one.
pub(super) fn with_text(result: &CallResult, text: String) -> Vec<Content> {
    let mut text = Some(text);
    let one = |content: &Content| match content.as_text() {
        Some(_) => text.take().map(Content::text),
        None => Some(content.clone()),
    };
    result.content.iter().filter_map(one).collect()
}

/// Errors and pinned results stay; so do shortened results, unless they were merely trimmed.
fn may_shorten(result: &CallResult, kind: &str) -> bool {
    let by = result.details.get(MARK).and_then(Value::as_str);
    let is_open = by.is_none_or(|by| by == TRIM && by != kind);
    result.status == Status::Ok && !result.pinned && is_open
}
