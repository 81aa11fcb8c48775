//! Prepare: the tools of a turn, what effects and hooks change, and the request that they make with the view.

use std::{panic::AssertUnwindSafe, sync::Arc};

use adjutant_core::{
    ActivityId, EffectInput, Failure, Prefix, Record, Run, TurnNo, chain, panic_text,
};
use adjutant_llm::{
    EditError, ErrorKind, Model, ModelInfo, Options, Request, ToolChoice, ToolDecl, ToolName,
    Transcript,
};
use adjutant_tool::Toolset;
use futures_util::FutureExt;

use super::{
    LocalExecutor, Performed,
    engine::{Stage, TurnPlan},
    fund, settle,
};
use crate::{
    budget::Budget,
    effect::Phase,
    event_sink::EventSink,
    floor::FloorMemo,
    hooks::{Point, Verdict},
    points::BeforeModel,
    setup::Setup,
    turn_position::TurnPosition,
};

/// The tools of the previous turn: from each source, from effects, and merged.
pub(crate) type KnownTools = (Vec<Toolset>, Option<Toolset>);

/// The tool declarations that the model received, and the parts they were built from.
#[derive(Debug)]
pub(crate) struct ShownTools {
    of: Arc<[ToolDecl]>,
    hidden: Vec<ToolName>,
    only: Option<Vec<ToolName>>,
    decls: Arc<[ToolDecl]>,
}

/// The parts that a turn is prepared with.
pub(super) struct Preparing {
    pub(super) feed: Arc<EventSink>,
    pub(super) place: TurnPosition,
    pub(super) turn: TurnNo,
    pub(super) sight: EffectInput,
    pub(super) model: Arc<dyn Model>,
    budget: Option<Budget>,
}

impl LocalExecutor {
    /// Prepares a turn if it needs no calls.
    pub(super) fn try_prepare(&mut self, run: &Run, turn: TurnNo) -> Option<Record> {
        if !self.setup.is_plain() || !self.setup.toolboxes.is_empty() || self.is_tight(run) {
            return None;
        }
        if self.model_of(run).info().thinking_binding {
            return None;
        }
        let model = match self.about_to_prepare(run) {
            Ok(model) => model,
            Err(broke) => return Some(*broke),
        };
        let tools = self.setup.tools.toolset().clone();
        self.feed.warn_all(self.place, &tools);
        self.tools = Some(tools);
        Some(Record::turn_prepared(
            turn,
            model.info().id.clone(),
            Vec::new(),
        ))
    }

    /// Stores the settings of the next turn's request; returns its model.
    fn about_to_prepare(&mut self, run: &Run) -> Result<Arc<dyn Model>, Box<Record>> {
        self.feed.seen.relieve(run);
        let chosen = self.setup.chosen(run.request().chosen_model());
        let broke = |error| Box::new(settle::broke(ActivityId::Prepare(run.turn()), &error));
        let model = Arc::clone(chosen.map_err(broke)?);
        self.expect(run, &model);
        Ok(model)
    }

    /// Prepares a turn.
    #[cold]
    pub(super) fn prepare(&mut self, run: &Run, turn: TurnNo) -> Option<Performed> {
        if let Some(record) = self.try_prepare(run, turn) {
            return Some(self.add_notice(run, Performed::new(ActivityId::Prepare(turn), record)));
        }
        let model = match self.about_to_prepare(run) {
            Ok(model) => model,
            Err(broke) => return Some(Performed::new(ActivityId::Prepare(turn), *broke)),
        };
        let (feed, place) = (Arc::clone(&self.feed), self.place);
        let sight = run.request().sight(self.setup.world.now_ms());
        let known = (self.sources.clone(), self.tools.clone());
        let budget = self.budget().cloned();
        let preparing = Preparing {
            feed,
            place,
            turn,
            sight,
            model,
            budget,
        };
        let (work, notice) = (preparing.perform(known), self.notice(run));
        self.perform_unless_stopped(
            ActivityId::Prepare(turn),
            work.map(|it| fund::notify(it, notice)),
        );
        None
    }

    /// The model of the open turn, which was prepared with it.
    pub(super) fn model_of(&self, run: &Run) -> &Arc<dyn Model> {
        self.setup
            .chosen(run.request().chosen_model())
            .unwrap_or(&self.setup.model)
    }

    /// The request of a turn: everything in it is shared, nothing is copied.
    pub(super) fn request(&mut self, run: &Run, turn: TurnNo, attempt: u32) -> Request {
        let mut request = compose(
            &self.setup,
            Arc::default(),
            run.request().transcript(),
            self.setup.options_of(run),
            (turn, attempt),
        );
        let prefix = run.prefix().map(|prefix| (prefix, run.extra_tools()));
        if !keep_prefix(&mut request, self.model_of(run).info(), prefix) {
            request.tools = self
                .tools
                .as_ref()
                .map_or(request.tools, |tools| Arc::clone(tools.decls()));
            request.tools = ShownTools::decls(
                &mut self.shown,
                &request.tools,
                run.request().hidden(),
                run.request().chosen_tools(),
            );
        }
        request
    }
}

/// Gives a request the beginning that the session declared, and returns true, if the model requires it: hidden tools
/// are refused when they are called.
#[inline]
pub(crate) fn keep_prefix(
    request: &mut Request,
    info: &ModelInfo,
    prefix: Option<(&Arc<Prefix>, &Arc<[ToolDecl]>)>,
) -> bool {
    let Some((prefix, added)) = prefix.filter(|_| info.thinking_binding) else {
        return false;
    };
    request.system = Arc::clone(&prefix.system);
    request.tools = Arc::clone(&prefix.tools);
    request.added = Arc::clone(added);
    if *prefix.provider == *info.provider() && request.options.server_tools != prefix.server_tools {
        Arc::make_mut(&mut request.options)
            .server_tools
            .clone_from(&prefix.server_tools);
    }
    true
}

impl LocalExecutor {
    /// The request that an earlier drive may have made in the open turn.
    pub(super) fn request_before(&self, run: &Run) -> Request {
        let decls = self
            .tools
            .as_ref()
            .map_or_else(|| Arc::from([]), |tools| Arc::clone(tools.decls()));
        compose(
            &self.setup,
            decls,
            run.request().transcript(),
            self.setup.options_of(run),
            (run.turn(), 0),
        )
    }
}

/// A request of these parts.
pub(crate) fn compose(
    setup: &Setup,
    tools: Arc<[ToolDecl]>,
    entries: Transcript,
    options: Arc<Options>,
    (turn, attempt): (TurnNo, u32),
) -> Request {
    let system = Arc::clone(&setup.system);
    Request {
        system,
        tools,
        added: Arc::default(),
        entries,
        options,
        turn: Some(turn.0),
        attempt,
    }
}

impl Preparing {
    async fn perform(self, known: KnownTools) -> Performed {
        let act = ActivityId::Prepare(self.turn);
        let (sources, tools) = match resolve(&self.feed.setup, known.clone()).await {
            Ok(resolved) => resolved,
            Err(message) => return Performed::new(act, broke(act, message)),
        };
        let mut plan = TurnPlan::new(&self.sight);
        let stage = self.stage(&tools);
        let mut acted = match stage.act(&mut plan).await {
            Ok(()) => self.hook(&mut plan, &tools).await,
            Err(message) => Err(vec![broke(act, message)]),
        };
        if acted.is_ok() {
            acted = stage
                .announce(&mut plan)
                .map_err(|error| vec![broke(act, format!("an announcement: {error}"))]);
        }
        if acted.is_ok() {
            acted = self
                .fit(&mut plan, stage)
                .await
                .map_err(|failed| vec![failed]);
        }
        let model = self.model.info().id.clone();
        let failed = match acted {
            Ok(()) => self.unfit(&plan).map(|failed| vec![failed]),
            Err(failed) => Some(failed),
        };
        if let Some(failed) = failed {
            // The turn fails, but its usage counts.
            let records = plan
                .bill_of(self.turn, model)
                .into_iter()
                .chain(failed)
                .collect();
            return Performed {
                records,
                ..Performed::nothing(act)
            };
        }
        let (sources, tools) = offer(sources, tools, std::mem::take(&mut plan.offered), known);
        self.feed.warn_all(self.place, &tools);
        let declared = plan.prefix.take().map(|prefix| Record::Declared { prefix });
        let mut performed = Performed {
            tools: Some((sources, tools)),
            ..Performed::new(act, plan.record(self.turn, model))
        };
        if let Some(declared) = declared {
            performed.records.insert(0, declared);
        }
        performed
    }

    fn stage<'a>(&'a self, tools: &'a Toolset) -> Stage<'a> {
        let phase = self.sight.overflow.map_or(Phase::Request, Phase::Overflow);
        let stage = Stage::new(&self.feed.setup, &self.sight, tools, &self.model, phase);
        Stage {
            budget: self.budget.as_ref(),
            ..stage
        }
    }

    /// Applies the changes of the hooks before a request.
    async fn hook(&self, plan: &mut TurnPlan, tools: &Toolset) -> Result<(), Vec<Record>> {
        let hooks = &self.feed.setup.hooks;
        if !hooks.hears::<BeforeModel>() || (plan.stop.is_some() && !self.sight.last) {
            return Ok(());
        }
        let act = ActivityId::Prepare(self.turn);
        let decls = tools.with(&Toolset::merge(&plan.offered));
        let shown = ShownTools::decls(
            &mut None,
            decls.decls(),
            &plan.hidden,
            self.sight.only.as_deref(),
        );
        let point = BeforeModel::new(
            plan.view.items().clone(),
            shown,
            Vec::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
        );
        match self
            .feed
            .pass(&self.feed.hook_context(self.place), point)
            .await
        {
            Verdict::Pass(point) => {
                plan.hide(point.hidden);
                plan.offered.extend(point.offered);
                let named = |error: EditError| {
                    vec![broke(
                        act,
                        format!("a hook of {}: {error}", BeforeModel::NAME),
                    )]
                };
                plan.edit(point.edits)
                    .and_then(|()| plan.edit_once(point.once))
                    .map_err(named)
            }
            Verdict::Deny(reason) => Err(denial_records::<BeforeModel>(act, reason).into()),
        }
    }

    /// The provider reported that the request does not fit, and nothing became smaller: the run fails with that
    /// error.
    fn unfit(&self, plan: &TurnPlan) -> Option<Record> {
        let overflow = self
            .sight
            .overflow
            .filter(|_| !plan.shrank(&self.sight) && plan.stop.is_none())?;
        if self.feed.setup.floor.is_on() && overflow.used.is_none() && overflow.limit.is_some() {
            // No count shows that it is too large, and context fitting found that it fits.
            return None;
        }
        let message =
            "the request does not fit the model's context window, and nothing could be left out";
        let error = adjutant_llm::Error::new(ErrorKind::Overflow, message)
            .with(|it| it.overflow = Some(overflow));
        Some(Record::Broke {
            act: ActivityId::Prepare(self.turn),
            failure: Failure::Model { error },
        })
    }
}

/// The records of a point that a hook denied, in a way that fails the run.
pub(super) fn denial_records<P: Point>(act: ActivityId, reason: Arc<str>) -> [Record; 2] {
    let point: Arc<str> = P::NAME.into();
    let failure = Failure::Denied {
        point: Arc::clone(&point),
        reason: Arc::clone(&reason),
    };
    [
        Record::Denied {
            point,
            reason,
            call: None,
        },
        Record::Broke { act, failure },
    ]
}

fn broke(act: ActivityId, message: String) -> Record {
    Record::Broke {
        act,
        failure: Failure::Activity {
            act,
            message: message.into(),
        },
    }
}

/// Returns the tools with the offered ones; unchanged sets are not merged again.
pub(crate) fn offer(
    mut sources: Vec<Toolset>,
    tools: Toolset,
    offered: Vec<Toolset>,
    (known, merged): KnownTools,
) -> (Vec<Toolset>, Toolset) {
    let offered: Vec<Toolset> = offered.into_iter().filter(says).collect();
    let tools = match merged {
        _ if offered.is_empty() => tools,
        Some(merged) if are_same(&known, sources.iter().chain(&offered)) => merged,
        _ => Toolset::merge(std::iter::once(&tools).chain(&offered)),
    };
    sources.extend(offered);
    (sources, tools)
}

/// True if a set holds a tool or a warning.
fn says(set: &Toolset) -> bool {
    !set.is_empty() || !set.warnings().is_empty()
}

/// The parts that are needed to find the tools of a turn again that an earlier drive prepared.
pub(super) struct Restore {
    sight: EffectInput,
    model: Arc<dyn Model>,
}

impl LocalExecutor {
    /// Returns the parts needed to find the tools of the turn, unless this drive has prepared it itself.
    pub(super) fn restore(&self, run: &Run) -> Option<Box<Restore>> {
        let restore = || {
            Box::new(Restore {
                sight: run.request().sight(self.setup.world.now_ms()),
                model: Arc::clone(self.model_of(run)),
            })
        };
        self.tools.is_none().then(restore)
    }
}

impl Restore {
    /// Returns the tools. Only the offers of effects are used: their other changes are in the log.
    pub(super) async fn tools(&self, setup: &Setup) -> Result<(Vec<Toolset>, Toolset), String> {
        let (sources, tools) = resolve(setup, KnownTools::default()).await?;
        let offers = FloorMemo::read(&self.sight.memos).offers;
        if setup.effects.is_empty() && !offers {
            return Ok((sources, tools));
        }
        let mut plan = TurnPlan::new(&self.sight);
        let stage = Stage::new(setup, &self.sight, &tools, &self.model, Phase::Preview);
        stage.act(&mut plan).await?;
        if offers {
            stage.keep_offered(&mut plan);
        }
        Ok(offer(sources, tools, plan.offered, KnownTools::default()))
    }

    /// True if the request has the beginning that the session declared.
    pub(super) fn keeps_prefix(&self) -> bool {
        self.model.info().thinking_binding && self.sight.prefix.is_some()
    }

    /// The only tools that an earlier turn of the run left.
    pub(super) fn only(&self) -> Option<&[ToolName]> {
        self.sight.only.as_deref()
    }
}

/// Resolves every source of tools; unchanged sets are not merged again.
pub(crate) async fn resolve(
    setup: &Setup,
    (known, merged): KnownTools,
) -> Result<(Vec<Toolset>, Toolset), String> {
    let mut sources = vec![setup.tools.toolset().clone()];
    for toolbox in &setup.toolboxes {
        let resolved = AssertUnwindSafe(toolbox.resolve(&setup.who))
            .catch_unwind()
            .await;
        let resolved = resolved.map_err(|panic| {
            format!(
                "toolbox {:?} panicked: {}",
                toolbox.name(),
                panic_text(&*panic)
            )
        })?;
        let failed = |error| {
            format!(
                "toolbox {:?} could not be opened: {}",
                toolbox.name(),
                chain(&error)
            )
        };
        sources.push(resolved.map_err(failed)?);
    }
    sources.retain(says);
    let tools = match merged {
        Some(merged) if are_same(&known, sources.iter()) => merged,
        _ if sources.len() == 1 => sources[0].clone(),
        _ => Toolset::merge(&sources),
    };
    Ok((sources, tools))
}

fn are_same<'a>(known: &[Toolset], sources: impl Iterator<Item = &'a Toolset>) -> bool {
    known
        .iter()
        .map(Toolset::decls)
        .map(Arc::as_ptr)
        .eq(sources.map(Toolset::decls).map(Arc::as_ptr))
}

impl ShownTools {
    /// Returns the declarations of these tools for the model: the same allocation as before if the hidden tools are
    /// unchanged.
    pub(crate) fn decls(
        shown: &mut Option<Self>,
        of: &Arc<[ToolDecl]>,
        hidden: &[ToolName],
        only: Option<&[ToolName]>,
    ) -> Arc<[ToolDecl]> {
        if hidden.is_empty() && only.is_none() {
            return Arc::clone(of);
        }
        match shown {
            Some(it)
                if Arc::ptr_eq(&it.of, of) && it.hidden == hidden && it.only.as_deref() == only =>
            {
                Arc::clone(&it.decls)
            }
            _ => {
                let may = |name: &ToolName| {
                    !hidden.contains(name) && only.is_none_or(|only| only.contains(name))
                };
                let decls: Arc<[ToolDecl]> =
                    of.iter().filter(|decl| may(&decl.name)).cloned().collect();
                let (hidden, only) = (hidden.to_vec(), only.map(<[ToolName]>::to_vec));
                *shown = Some(Self {
                    of: Arc::clone(of),
                    hidden,
                    only,
                    decls: Arc::clone(&decls),
                });
                decls
            }
        }
    }
}

impl Setup {
    /// True if a turn needs no calls except to toolboxes.
    fn is_plain(&self) -> bool {
        self.effects.is_empty()
            && self.convert.is_none()
            && self.now.is_none()
            && self.goal.is_none()
            && !self.hooks.hears::<BeforeModel>()
    }

    /// Returns the options with which the model should answer in the open turn.
    pub(super) fn options_of(&self, run: &Run) -> Arc<Options> {
        let thinking = run.request().chosen_thinking();
        if thinking.is_none() && !run.request().is_last() {
            return Arc::clone(&self.options);
        }
        let mut options = Options::clone(&self.options);
        options.thinking = thinking.or(options.thinking);
        if run.request().is_last() {
            options.tool_choice = ToolChoice::None;
        }
        Arc::new(options)
    }
}

impl EventSink {
    /// Emits the warnings about the tools of a turn, once.
    fn warn_all(&self, place: TurnPosition, tools: &Toolset) {
        if !tools.warnings().is_empty() {
            let at_ms = self.setup.world.now_ms();
            tools
                .warnings()
                .iter()
                .for_each(|warning| self.warn(place, at_ms, warning));
        }
    }
}
