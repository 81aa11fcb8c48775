//! The engine of effects: each receives the view after the previous ones, and its changes are collected as data.

use std::{borrow::Cow, panic::AssertUnwindSafe, sync::Arc};

use adjutant_core::{
    EffectInput, EffectReport, Limit, Memo, Prefix, Record, TurnNo, chain, panic_text,
};
use adjutant_llm::{
    Edit, EditError, Entry, EntryId, Estimate, Model, ModelId, ToolName, Transcript, View,
};
use adjutant_tool::Toolset;
use futures_util::FutureExt;
use serde_json::Value;

use crate::{
    budget::{Budget, notice},
    effect::{Action, Bill, Effect, EffectContext, EffectError, Phase},
    floor::{self, FloorMemo, room},
    setup::Setup,
};

/// The context of effects: the same for the preparation of a turn and for a preview of the next one.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) sight: &'a EffectInput,
    pub(crate) tools: &'a Toolset,
    pub(crate) model: &'a Arc<dyn Model>,
    pub(crate) phase: Phase,
    /// The number of tokens that the request may hold.
    pub(crate) room: u64,
    /// The window of the model that the run knows; 0 if it is unknown.
    pub(crate) window: u64,
    /// True if the floor makes room after what acts.
    pub(crate) falls_back: bool,
    /// True for a preview of the next request.
    pub(crate) looks: bool,
    /// The budget that pays for the helpers of effects, if anything is limited.
    pub(crate) budget: Option<&'a Budget>,
}

/// The plan of a turn before its request.
#[derive(Debug)]
pub(crate) struct TurnPlan {
    /// The view that the request would show.
    pub(crate) view: View,
    /// The transcript up to that point; appended entries stand here under the ids that they will have.
    history: Transcript,
    pub(crate) edits: Vec<Edit>,
    /// The changes in this request alone.
    pub(super) once: Vec<Edit>,
    pub(crate) hidden: Vec<ToolName>,
    /// The tools without this number of hidden ones, so that they are estimated once.
    shown: Option<(usize, Toolset)>,
    pub(crate) offered: Vec<Toolset>,
    pub(crate) stop: Option<Limit>,
    reminders: Vec<Edit>,
    /// The estimated size of the reminders, in tokens.
    pending: u64,
    pub(crate) memos: Vec<Memo>,
    /// The beginning of requests from now on.
    pub(crate) prefix: Option<Arc<Prefix>>,
    pub(super) reports: Vec<EffectReport>,
    bill: Bill,
}

impl<'s> Stage<'s> {
    /// The stage of a turn in this phase; no budget pays for helpers.
    pub(crate) fn new(
        setup: &'s Setup,
        sight: &'s EffectInput,
        tools: &'s Toolset,
        model: &'s Arc<dyn Model>,
        phase: Phase,
    ) -> Self {
        let (info, falls_back) = (model.info(), setup.floor.is_on());
        let window = FloorMemo::read(&sight.memos).window(info);
        let room = room(window, info, &setup.options);
        Self {
            setup,
            sight,
            tools,
            model,
            phase,
            room,
            window: window.unwrap_or(0),
            falls_back,
            looks: phase == Phase::Preview,
            budget: None,
        }
    }

    /// Shows entries of the application that are new, then lets the effects act, in order.
    ///
    /// The usage of effects is in the plan even if this fails.
    ///
    /// Cancel: it has no effect.
    ///
    /// # Errors
    /// Names the effect that failed, panicked, or returned an edit that does not fit the view.
    pub(crate) async fn act(&self, plan: &mut TurnPlan) -> Result<(), String> {
        let acted = AssertUnwindSafe(self.act_in_order(plan))
            .catch_unwind()
            .await;
        acted.unwrap_or_else(|panic| {
            Err(format!(
                "what prepares a turn panicked: {}",
                panic_text(&*panic)
            ))
        })
    }

    async fn act_in_order(&self, plan: &mut TurnPlan) -> Result<(), String> {
        self.convert(plan)?;
        for (place, effect) in self.setup.effects.iter().enumerate() {
            self.let_act(plan, &**effect, &self.key(place, effect.kind()))
                .await?;
            if plan.stop.is_some() && !self.sight.last {
                // No request follows.
                break;
            }
        }
        plan.remind()
            .map_err(|error| format!("reminders of effects: {error}"))
    }

    /// Lets a step of the floor act.
    pub(super) async fn step(
        &self,
        plan: &mut TurnPlan,
        step: &dyn Effect,
        place: usize,
    ) -> Result<(), String> {
        let key = format!("{}/{place}/{}", floor::KEY, step.kind());
        self.let_act(plan, step, &key).await?;
        plan.remind().map_err(|error| error.to_string())
    }

    async fn let_act(
        &self,
        plan: &mut TurnPlan,
        effect: &dyn Effect,
        key: &str,
    ) -> Result<(), String> {
        let memo = self.sight.memos.get(key).unwrap_or(&Value::Null);
        let actions = match AssertUnwindSafe(effect.act(self.context(plan, memo)))
            .catch_unwind()
            .await
        {
            Ok(Ok(actions)) => actions,
            Ok(Err(error)) => return Err(format!("effect {key} failed: {}", chain(&error))),
            Err(panic) => return Err(format!("effect {key} panicked: {}", panic_text(&*panic))),
        };
        let hidden = plan.hidden.len();
        plan.take(effect, key, memo, actions)
            .map_err(|error| format!("effect {key} failed: {error}"))?;
        if plan.hidden.len() > hidden {
            plan.shown = Some((plan.hidden.len(), self.tools.hiding(&plan.hidden)));
        }
        Ok(())
    }

    /// The key of an effect's memo: its kind, and a number if it is not the first of the kind.
    ///
    /// A kind that has the name of what the agent itself remembers always has a number.
    fn key<'k>(&self, place: usize, kind: &'k str) -> Cow<'k, str> {
        let before = self
            .setup
            .effects
            .iter()
            .take(place)
            .filter(|other| other.kind() == kind)
            .count();
        if before == 0 && kind != notice::KEY {
            Cow::Borrowed(kind)
        } else {
            Cow::Owned(format!("{kind}#{}", before + 1))
        }
    }

    fn context<'a>(&'a self, plan: &'a TurnPlan, memo: &'a Value) -> EffectContext<'a> {
        EffectContext {
            phase: self.phase,
            run: self.sight.run,
            turn: self.sight.turn,
            view: &plan.view,
            history: &plan.history,
            fresh: self.sight.fresh,
            tokens: self.size(plan),
            room: self.room,
            window: self.window,
            falls_back: self.falls_back,
            looks: self.looks,
            memo,
            ledger: &self.sight.ledger,
            system: &self.setup.system,
            tools: self.tools,
            hidden: &plan.hidden,
            only: if self.sight.last {
                Some(&[])
            } else {
                self.sight.only.as_deref()
            },
            who: &self.setup.who,
            model: self.model,
            world: &self.setup.world,
            bill: &plan.bill,
            budget: self.budget,
        }
    }

    /// Returns the maximum number of tokens of the request under the current plan.
    pub(super) fn size(&self, plan: &TurnPlan) -> u64 {
        let mut shown = Cow::Borrowed(&plan.view);
        if !plan.once.is_empty() {
            // Edits that no longer fit are dropped.
            plan.once
                .iter()
                .for_each(|edit| drop(shown.to_mut().apply(edit)));
        }
        self.sight
            .most(shown.items().tokens(), self.overhead(plan))
            .saturating_add(plan.pending)
    }

    /// Returns the estimate for system prompt and tools.
    pub(super) fn overhead(&self, plan: &TurnPlan) -> u64 {
        let tools = match &plan.shown {
            _ if plan.hidden.is_empty() => self.tools.tokens(),
            Some((hidden, shown)) if *hidden == plan.hidden.len() => shown.tokens(),
            _ => self.tools.hiding(&plan.hidden).tokens(),
        };
        let offered: u64 = plan.offered.iter().map(Toolset::tokens).sum();
        let wanted = self.setup.goal.as_ref().map_or(0, |goal| goal.tokens());
        Estimate
            .count(&self.setup.system)
            .saturating_add(tools)
            .saturating_add(offered)
            .saturating_add(wanted)
    }

    /// Converts new entries of the application with the application's function.
    fn convert(&self, plan: &mut TurnPlan) -> Result<(), String> {
        let Some(convert) = &self.setup.convert else {
            return Ok(());
        };
        let fresh = plan
            .view
            .items()
            .iter()
            .rev()
            .take_while(|stored| stored.id >= self.sight.fresh);
        let shown = fresh.filter_map(|stored| match &stored.entry {
            Entry::Custom(custom) => Some(Edit::Replace {
                at: stored.id,
                with: Entry::User(convert(custom)?),
            }),
            _ => None,
        });
        let mut edits: Vec<Edit> = shown.collect();
        edits.reverse();
        plan.edit(edits).map_err(|error| error.to_string())
    }
}

impl TurnPlan {
    /// Nothing has changed yet.
    pub(crate) fn new(sight: &EffectInput) -> Self {
        Self {
            view: sight.view.clone(),
            history: sight.history.clone(),
            edits: Vec::new(),
            once: Vec::new(),
            hidden: Vec::new(),
            shown: None,
            offered: Vec::new(),
            stop: None,
            reminders: Vec::new(),
            pending: 0,
            memos: Vec::new(),
            prefix: None,
            reports: Vec::new(),
            bill: Bill::default(),
        }
    }

    /// Returns the id of the entry that is appended next.
    pub(crate) fn next_entry(&self) -> EntryId {
        self.history.next_id()
    }

    /// Changes the view.
    ///
    /// # Errors
    /// If an edit does not fit; nothing has changed then.
    pub(crate) fn edit(&mut self, edits: Vec<Edit>) -> Result<(), EditError> {
        if edits.is_empty() {
            return Ok(());
        }
        self.view.apply_all(&edits)?;
        for edit in &edits {
            if let Edit::Append { entry } = edit {
                self.history.push(entry.clone());
            }
        }
        self.edits.extend(edits);
        Ok(())
    }

    /// Changes what this request alone shows.
    ///
    /// # Errors
    /// If an edit does not fit; nothing has changed then.
    pub(crate) fn edit_once(&mut self, edits: Vec<Edit>) -> Result<(), EditError> {
        self.view.clone().apply_all(&edits)?;
        self.once = edits;
        Ok(())
    }

    /// Applies an action of an effect.
    fn take(
        &mut self,
        by: &dyn Effect,
        key: &str,
        memo: &Value,
        actions: Vec<Action>,
    ) -> Result<(), EffectError> {
        let (mut edits, mut remembered) = (Vec::new(), None);
        for action in actions {
            match action {
                Action::Edit(edit) => edits.push(edit),
                Action::Remind(text) => {
                    let edit = Action::reminder(by.kind(), text);
                    self.pending = self.pending.saturating_add(size(&edit));
                    self.reminders.push(edit);
                }
                Action::Hide(names) => self.hide(names),
                Action::Offer(tools) => self.offered.push(tools),
                Action::Remember(value) => remembered = Some(value),
                Action::Report(data) => self.reports.push(EffectReport {
                    by: by.kind().into(),
                    data,
                }),
                Action::Charge(usage) => self.bill.add(usage, None),
                Action::Stop(limit) => {
                    self.stop.get_or_insert(limit);
                }
            }
        }
        if let Some(value) = remembered.filter(|value| value != memo) {
            self.memos.push(Memo {
                key: key.into(),
                value,
            });
        }
        self.edit(edits)
            .map_err(|error| EffectError::new(error.to_string()))
    }

    /// Hides tools that are not hidden yet.
    pub(crate) fn hide(&mut self, names: Vec<ToolName>) {
        for name in names {
            if !self.hidden.contains(&name) {
                self.hidden.push(name);
            }
        }
    }

    /// Reminders go after everything else, so that no effect folds them away unread.
    fn remind(&mut self) -> Result<(), EditError> {
        self.pending = 0;
        let reminders = std::mem::take(&mut self.reminders);
        self.edit(reminders)
    }

    /// Keeps those changes of this request alone that still fit the view.
    pub(super) fn keep_once(&mut self) {
        if !self.once.is_empty() {
            let mut view = self.view.clone();
            self.once.retain(|edit| view.apply(edit).is_ok());
        }
    }

    /// True if the view became smaller than it was.
    pub(crate) fn shrank(&self, sight: &EffectInput) -> bool {
        let shrinks = |edit: &Edit| matches!(edit, Edit::Fold { .. } | Edit::Replace { .. });
        self.edits.iter().any(shrinks) && self.view.items().tokens() < sight.view.items().tokens()
    }

    /// Returns a record of the spending, if there was any, for a turn that cannot be prepared.
    pub(crate) fn bill_of(self, turn: TurnNo, model: ModelId) -> Option<Record> {
        let (spent, cost) = self.bill.total();
        let nothing = spent.total() == 0;
        let (edits, once, hidden, memos, reports) = Default::default();
        (!nothing).then_some(Record::Prepared {
            turn,
            edits,
            once,
            model,
            hidden,
            memos,
            reports,
            spent,
            cost,
            stop: None,
        })
    }

    /// The turn, prepared.
    pub(crate) fn record(self, turn: TurnNo, model: ModelId) -> Record {
        let (spent, cost) = self.bill.total();
        let TurnPlan {
            edits,
            once,
            hidden,
            memos,
            reports,
            stop,
            ..
        } = self;
        Record::Prepared {
            turn,
            edits,
            once,
            model,
            hidden,
            memos,
            reports,
            spent,
            cost,
            stop,
        }
    }
}

fn size(edit: &Edit) -> u64 {
    match edit {
        Edit::Append { entry } => Estimate::entry(entry),
        _ => 0,
    }
}
