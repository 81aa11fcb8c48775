//! An agent of a manifest with all its resolved parts, from which instances can be built at any time.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Effect, Floor, Limits, Middleware,
    effects::EffectSpec,
    sections::{BEHAVIORAL_CONSTRAINTS, SectionKind, Sections, section_text},
};
use adjutant_context::Compact;
use adjutant_llm::{Model, Options};
use adjutant_orchestration::{Profile, Reflections};
use adjutant_skills::Skills;
use adjutant_tool::{Composite, Toolbox, Tools};
use adjutant_toolkit::Rules;
use serde_json::Value;

use super::{
    access, bounds,
    hands::Hands,
    models::Models,
    sections,
    toolbox::{self, Piece},
    tooling::{Tooling, unknown},
};
use crate::{
    Error, ErrorKind,
    manifest::{AgentSpec, Compaction, ModelChoice, OptionsSpec},
};

/// An agent of a manifest with all its resolved parts.
pub(super) struct Member {
    pub(super) spec: AgentSpec,
    /// Its own model; `None` uses its caller's model.
    pub(super) model: Option<Arc<dyn Model>>,
    pub(super) options: Options,
    pub(super) instructions: Option<Arc<str>>,
    pub(super) sections: Sections,
    pub(super) tools: Option<Tools>,
    pub(super) toolboxes: Vec<Piece>,
    pub(super) skills: Skills,
    pub(super) effects: Vec<Arc<dyn Effect>>,
    pub(super) floor: Floor,
    /// Outermost first.
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
    pub(super) reflections: Option<Reflections>,
    pub(super) limits: Limits,
    /// The rules of its calls.
    pub(super) rules: Option<Rules>,
}

impl Member {
    /// # Errors
    /// `Config` if a part is missing or invalid, `Model` if its model is not available.
    pub(super) async fn new(
        spec: &AgentSpec,
        tooling: &Tooling,
        models: &mut Models,
    ) -> Result<Self, Error> {
        let within = |error: Error| {
            let message = format!("the agent {}: {}", spec.name, error.message());
            Error::new(error.kind(), message).with_source(error)
        };
        let reflections = spec
            .reflections
            .as_ref()
            .map(|spec| tooling.reflections(spec))
            .transpose()
            .map_err(within)?;
        let (mut toolboxes, mut hands) = (Vec::new(), Hands::new(tooling, spec));
        for choice in &spec.toolboxes {
            toolboxes.push(
                toolbox::piece(tooling, spec, choice, reflections.as_ref(), &mut hands).await?,
            );
        }
        let mut tools = Tools::new("process");
        for name in &spec.tools {
            tools = tools.tool(tooling.program(spec, name)?);
        }
        let mut effects = effects(spec, tooling)?;
        let mut sections = sections::told(&spec.context, &tooling.manifest.data).map_err(within)?;
        if spec.behavior {
            sections = sections.section(section_text(
                SectionKind::BehavioralConstraints,
                BEHAVIORAL_CONSTRAINTS,
            ));
        }
        if let Some(choice) = &spec.model {
            models.resolve(choice).await.map_err(within)?;
        }
        Ok(Self {
            floor: floor(spec, tooling, &mut effects)?,
            middleware: [middleware(spec, tooling)?, hands.middleware].concat(),
            model: spec
                .model
                .as_ref()
                .map(|choice| models.chosen(choice))
                .transpose()
                .map_err(within)?,
            options: options(&spec.options),
            instructions: spec
                .instructions
                .as_ref()
                .map(sections::instructions)
                .transpose()
                .map_err(within)?,
            sections,
            tools: Some(tools).filter(|_| !spec.tools.is_empty()),
            toolboxes,
            skills: tooling.skills(spec)?,
            effects,
            reflections,
            limits: bounds::limits(spec),
            rules: access::rules(spec, tooling)?,
            spec: spec.clone(),
        })
    }

    /// Enables its provider's web search if its manifest does; `usual` is the model of agents without one.
    ///
    /// # Errors
    /// `Config` if its provider is not known to support it, or its models have different providers.
    pub(super) fn search(
        &mut self,
        usual: Option<&Arc<dyn Model>>,
        models: &mut Models,
    ) -> Result<(), Error> {
        if !self.spec.options.web_search {
            return Ok(());
        }
        let mut ids = Vec::new();
        for name in self.spec.model.iter().flat_map(ModelChoice::names) {
            ids.push(
                models
                    .chosen(&ModelChoice::Name(name.into()))?
                    .info()
                    .id
                    .clone(),
            );
        }
        if ids.is_empty() {
            ids.extend(
                self.model
                    .as_ref()
                    .or(usual)
                    .map(|model| model.info().id.clone()),
            );
        }
        for id in &ids {
            let wrong = |why: &str| {
                let message = format!(
                    "the agent {} searches the web, and {id} {why}",
                    self.spec.name
                );
                let hint = "hint: leave `web_search` out; the toolbox `fetch` reads pages";
                Error::new(ErrorKind::Config, format!("{message}; {hint}"))
            };
            let search = adjutant_providers::web_search(id)
                .ok_or_else(|| wrong("is not known to have a search"))?;
            match self.options.server_tools.first() {
                None => self.options.server_tools.push(search),
                Some(first) if *first == search => {}
                Some(_) => return Err(wrong("has another search than the models before it")),
            }
        }
        Ok(())
    }

    /// Returns its own tools with its rules, for other callers; without tools that depend on its runs and sub-agents.
    pub(super) fn offered(&self) -> Arc<dyn Toolbox> {
        let mut all = Composite::new(Arc::clone(&self.spec.name));
        for piece in &self.toolboxes {
            all = match piece {
                Piece::Toolbox(toolbox) | Piece::Server(toolbox) | Piece::Board(toolbox) => {
                    all.toolbox(Arc::clone(toolbox))
                }
                Piece::Notes(notes) => all.toolbox(notes.toolbox()),
                Piece::Background(_) => all,
            };
        }
        if let Some(tools) = &self.tools {
            all = all.toolbox(tools.clone());
        }
        access::over(all, &self.spec.access, self.rules.as_ref())
    }

    /// Returns the timeout of its runs.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.spec.limits.timeout.map(|time| time.0)
    }

    /// Returns its profile, by which other agents choose it. It may delegate up to this depth.
    pub(super) fn profile(&self, depth: u16) -> Profile {
        let spec = &self.spec;
        let mut profile = Profile::new(Arc::clone(&spec.name), Arc::clone(&spec.description));
        profile.skills.clone_from(&spec.expertise);
        profile.estimated_cost = spec.estimated_cost.clone().unwrap_or_default();
        profile.max_concurrency = spec.max_concurrency;
        profile
            .max_depth(depth)
            .max_handoffs(spec.delegation.handoffs)
    }
}

fn effects(spec: &AgentSpec, tooling: &Tooling) -> Result<Vec<Arc<dyn Effect>>, Error> {
    let made = spec
        .effects
        .iter()
        .map(|effect| made(spec, tooling, &effect.kind, effect.params.clone()));
    made.collect()
}

fn made(
    spec: &AgentSpec,
    tooling: &Tooling,
    kind: &str,
    params: Value,
) -> Result<Arc<dyn Effect>, Error> {
    tooling
        .effects
        .make(&EffectSpec {
            kind: kind.into(),
            params,
        })
        .map_err(|error| {
            let message = format!(
                "the agent {} cannot have the effect {kind}: {error}",
                spec.name
            );
            Error::new(ErrorKind::Config, message).with_source(error)
        })
}

/// Returns the context fitting: compaction before anything is omitted, or no fitting; depending on the manifest,
/// compaction also runs earlier.
fn floor(
    spec: &AgentSpec,
    tooling: &Tooling,
    effects: &mut Vec<Arc<dyn Effect>>,
) -> Result<Floor, Error> {
    let is_off = spec.floor == Some(false);
    let params = match &spec.compaction {
        None | Some(Compaction::On(false)) if is_off => return Ok(Floor::off()),
        Some(Compaction::On(false)) => return Ok(Floor::default()),
        None => return Ok(Floor::default().with_step(Compact::default())),
        Some(Compaction::On(true)) => Value::Null,
        Some(Compaction::With(params)) => Value::Object(params.clone()),
    };
    let compact = made(spec, tooling, "compact", params)?;
    effects.push(Arc::clone(&compact));
    Ok(if is_off {
        Floor::off()
    } else {
        Floor::default().with_step(compact)
    })
}

fn middleware(spec: &AgentSpec, tooling: &Tooling) -> Result<Vec<Arc<dyn Middleware>>, Error> {
    let known = || {
        tooling
            .middleware
            .keys()
            .map(|name| &**name)
            .collect::<Vec<_>>()
    };
    let named = spec.middleware.iter().map(|name| {
        tooling
            .middleware
            .get(name)
            .cloned()
            .ok_or_else(|| unknown(spec, "middleware", name, &known()))
    });
    named.collect()
}

fn options(spec: &OptionsSpec) -> Options {
    Options {
        max_output_tokens: spec.max_output_tokens,
        temperature: spec.temperature,
        top_p: spec.top_p,
        seed: spec.seed,
        stop: spec.stop.clone(),
        thinking: spec.thinking,
        sequential_calls: spec.sequential_calls,
        headers: spec.headers.clone(),
        extra: spec.extra.clone(),
        ..Options::default()
    }
}
