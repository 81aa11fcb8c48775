//! Fit: a request that would not fit the model's window is made smaller before it is sent, by the steps of the floor.

use std::sync::Arc;

use adjutant_core::{ActivityId, EffectReport, Failure, Memo, Record, Run};
use adjutant_llm::{
    Block, Entry, ErrorKind, Estimate, LimitSource, Model, ModelInfo, Overflow, Stored, Transcript,
    Warning, WarningKind,
};
use adjutant_tool::Toolset;
use serde_json::{Value, json};

use super::{
    LocalExecutor, Performed,
    engine::{Stage, TurnPlan},
    prepare::Preparing,
};
use crate::{
    effect::Phase,
    floor::{FloorMemo, KEY, room},
    points::BeforeModel,
};

/// The smallest number of bytes of a token, as estimates go: emoji have them.
const LEAST_BYTES: u64 = 2;
/// The number of times that the last step may act in one turn: an estimate is corrected by a count, so the first
/// attempt may be insufficient.
const MAX_TRIES: usize = 3;

impl LocalExecutor {
    /// True if the next request may not fit, or if the floor has acted before: it needs a closer check then.
    ///
    /// This is all that a turn without pressure pays: a few numbers that are known are compared.
    pub(super) fn is_tight(&self, run: &Run) -> bool {
        if !self.setup.floor.is_on() {
            return false;
        }
        let (request, setup) = (run.request(), &self.setup);
        if request.has_overflowed() || run.memos().contains_key(KEY) {
            return true;
        }
        let tools = self
            .tools
            .as_ref()
            .unwrap_or_else(|| setup.tools.toolset())
            .tokens()
            + setup.goal.as_ref().map_or(0, |goal| goal.tokens());
        let model = self.model_of(run);
        let info = model.info();
        if request.is_suspect() && info.cuts_silently {
            return true;
        }
        let room = room(info.window(), info, &setup.options);
        let system = setup.system.len() as u64 / LEAST_BYTES + 1;
        request.most(system + tools) > room
            && request.most(Estimate.count(&setup.system) + tools) > room
    }

    /// The turn is prepared again: messages were placed since, and with them the request may not fit.
    #[cold]
    pub(super) fn outgrown(&self, run: &Run) -> Performed {
        let turn = run.turn();
        let limit = self.model_of(run).info().window();
        let overflow = Overflow { used: None, limit };
        Performed::new(ActivityId::Ask(turn), Record::Overflowed { turn, overflow })
    }
}

/// A request that cannot be made to fit.
#[derive(Debug)]
pub(crate) struct TooLarge {
    size: u64,
    window: u64,
    overhead: u64,
}

impl Preparing {
    /// Makes the request fit, if it does not; what fails the run if it cannot.
    pub(super) async fn fit(&self, plan: &mut TurnPlan, stage: Stage<'_>) -> Result<(), Record> {
        let mut memo = FloorMemo::read(&self.sight.memos);
        memo.learn(self.model.info(), self.sight.overflow, self.cut());
        let fitted = stage.fit(plan, memo).await;
        fitted.map_err(|too_large| Record::Broke {
            act: ActivityId::Prepare(self.turn),
            failure: too_large.failure(),
        })
    }

    /// Returns the window that the provider showed if it cut off the latest request.
    fn cut(&self) -> Option<u64> {
        let (info, items) = (self.model.info(), self.sight.view.items());
        let counted = self.sight.undercount().filter(|_| info.cuts_silently)?;
        // A hook may have removed a part of the view.
        if self.feed.setup.hooks.hears::<BeforeModel>() {
            return None;
        }
        // The latest reply and what follows it were not in that request.
        let later = items.iter().rev().position(is_turn)? + 1;
        Asked::new(items, items.len() - later, &self.feed.setup.system).window(info, counted)
    }
}

/// A request whose size is compared with the provider's count.
pub(super) struct Asked<'a> {
    items: &'a Transcript,
    /// The number of items that it held.
    len: usize,
    system: &'a str,
}

impl<'a> Asked<'a> {
    pub(super) fn new(items: &'a Transcript, len: usize, system: &'a str) -> Self {
        Self { items, len, system }
    }

    /// Returns the most tokens that the request may hold, without its tools. This reads no entry.
    pub(super) fn most(&self) -> u64 {
        self.items.tokens() + Estimate.count(self.system)
    }

    /// Returns the window that the provider revealed if this count shows that it truncated the request.
    #[cold]
    pub(super) fn window(&self, info: &ModelInfo, counted: u64) -> Option<u64> {
        let entries = || self.items.iter().take(self.len);
        let all = estimate_entries(entries()) + Estimate.count(self.system);
        if !Estimate::is_undercounted(all, counted) {
            return None;
        }
        // Some servers count only uncached input: about the new part since the previous request.
        let before = self.items.iter().take(self.len);
        let before = before.enumerate().filter(|(_, stored)| is_turn(stored));
        if let Some((last, _)) = before.last() {
            let new = estimate_entries(self.items.iter_from(last).take(self.len - last));
            if (new / 4 * 3..=new / 2 * 3).contains(&counted) {
                return None;
            }
        }
        // Ollama fills only half of the window when it cuts: earlier counts were larger.
        let earlier = entries().filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) if turn.reply().model == info.id => Some(turn.reply().usage.input()),
            _ => None,
        });
        earlier.chain([counted]).max()
    }
}

fn is_turn(stored: &Arc<Stored>) -> bool {
    matches!(stored.entry, Entry::Turn(_))
}

/// Returns the warning that a provider cut off a request.
#[cold]
pub(super) fn warn_of_cut(info: &ModelInfo, counted: u64, window: u64) -> Warning {
    let message = format!(
        "{} counted {counted} tokens of a request that held far more: the server silently cuts off what does not fit its \
         context window. Requests stay within {window} tokens from now on; a larger window on the server would avoid that",
        info.id
    );
    Warning {
        kind: WarningKind::Degraded,
        message: message.into(),
    }
}

impl Stage<'_> {
    /// Makes the request of a plan fit, if it does not, and remembers how.
    ///
    /// # Errors
    /// If everything removable is gone, and the request still exceeds the window in the model's data.
    pub(crate) async fn fit(
        mut self,
        plan: &mut TurnPlan,
        mut memo: FloorMemo,
    ) -> Result<(), TooLarge> {
        if !self.setup.floor.is_on() || (plan.stop.is_some() && !self.sight.last) {
            return Ok(());
        }
        if memo.offers {
            self.keep_offered(plan);
        }
        let (info, options) = (self.model.info(), &self.setup.options);
        let (window, first) = (memo.window(info), self.size(plan));
        self.room = room(window, info, options);
        self.window = window.unwrap_or_default();
        if self
            .sight
            .overflow
            .is_some_and(|overflow| overflow.limit.is_none())
        {
            // The limit is unknown, only that this size exceeds it.
            self.room = self.room.min(
                self.sight
                    .most(self.sight.view.items().tokens(), self.overhead(plan))
                    / 4
                    * 3,
            );
        }
        let before = FloorMemo::read(&self.sight.memos);
        if first > self.room {
            memo.offers |= self.take_steps(plan).await;
        }
        plan.keep_once();
        if self.size(plan) > self.room {
            // Content that a hook adds to this request only cannot be shrunk.
            plan.once.clear();
        }
        let size = self.size(plan);
        if memo.learned != before.learned || first > self.room {
            let data =
                json!({ "before": first, "after": size, "room": self.room, "window": window });
            plan.reports.push(EffectReport {
                by: KEY.into(),
                data,
            });
        }
        if memo != before {
            let value = serde_json::to_value(&memo).unwrap_or(Value::Null);
            plan.memos.push(Memo {
                key: KEY.into(),
                value,
            });
        }
        // A window that was learned or assumed is a guess: the provider has the last word.
        let certain = info
            .window()
            .filter(|_| info.limits != LimitSource::Assumed);
        match certain {
            Some(window) if size > window => Err(TooLarge {
                size,
                window,
                overhead: self.overhead(plan),
            }),
            _ => Ok(()),
        }
    }

    /// Runs the steps in order, until the request fits; returns whether one removed content that a tool can restore.
    async fn take_steps(&mut self, plan: &mut TurnPlan) -> bool {
        let steps = &self.setup.floor.steps;
        let again = std::iter::repeat_n(steps.len().saturating_sub(1), MAX_TRIES - 1);
        let mut offers = false;
        for (place, step) in (0..steps.len())
            .chain(again)
            .filter_map(|place| Some((place, steps.get(place)?)))
        {
            let size = self.size(plan);
            if size <= self.room {
                break;
            }
            let needs = step.needs();
            // A tool of that name that is there already brings nothing back.
            if needs
                .as_ref()
                .is_some_and(|needs| overlap(self.tools, needs))
            {
                continue;
            }
            self.phase = Phase::Overflow(Overflow {
                used: Some(size),
                limit: Some(self.room),
            });
            self.falls_back = place + 1 < steps.len();
            let (edits, offered) = (plan.edits.len(), plan.offered.len());
            if let Err(why) = self.step(plan, &**step, place).await {
                // The next step makes room.
                plan.reports.push(EffectReport {
                    by: step.kind().into(),
                    data: json!({ "failed": why }),
                });
            }
            if plan.edits.len() == edits {
                plan.offered.truncate(offered);
            } else {
                offers |= needs.is_some();
            }
        }
        offers
    }

    /// Offers the tools that bring back what steps took out, in this turn or before.
    pub(crate) fn keep_offered(&self, plan: &mut TurnPlan) {
        for needs in self
            .setup
            .floor
            .steps
            .iter()
            .filter_map(|step| step.needs())
        {
            if !overlap(self.tools, &needs)
                && !plan.offered.iter().any(|offered| overlap(offered, &needs))
            {
                plan.offered.push(needs);
            }
        }
    }
}

/// True if both have a tool of one name.
fn overlap(one: &Toolset, other: &Toolset) -> bool {
    other
        .iter()
        .any(|tool| one.get(tool.spec().name().as_str()).is_some())
}

impl TooLarge {
    #[cold]
    fn failure(self) -> Failure {
        let Self {
            size,
            window,
            overhead,
        } = self;
        let message = format!(
            "the request does not fit the model's context window, and nothing more can be left out: it holds about \
             {size} tokens, {overhead} of them system prompt and tools, and the window has {window}"
        );
        let overflow = Overflow {
            used: Some(size),
            limit: Some(window),
        };
        let error = adjutant_llm::Error::new(ErrorKind::Overflow, message)
            .with(|it| it.overflow = Some(overflow));
        Failure::Model { error }
    }
}

/// Returns the estimated size of what every provider is sent of these entries: texts, calls and results.
fn estimate_entries<'a>(items: impl Iterator<Item = &'a Arc<Stored>>) -> u64 {
    items.map(|stored| estimate_entry(&stored.entry)).sum()
}

fn estimate_entry(entry: &Entry) -> u64 {
    match entry {
        Entry::User(message) => message
            .content
            .iter()
            .filter_map(|it| it.as_text())
            .map(|it| Estimate.count(it))
            .sum(),
        Entry::Summary(summary) => Estimate.count(&summary.text),
        Entry::Turn(turn) => {
            let said = turn.reply().blocks.iter().map(|block| match &**block {
                Block::Text(said) => Estimate.count(&said.text),
                Block::Call(call) => Estimate.count(&call.args),
                _ => 0,
            });
            let results = turn
                .results()
                .iter()
                .flat_map(|result| &result.content)
                .filter_map(|it| it.as_text());
            said.chain(results.map(|it| Estimate.count(it)))
                .sum::<u64>()
        }
        _ => 0,
    }
}
