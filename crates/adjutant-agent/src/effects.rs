//! The effects that come with the agent, and how effects are made of a kind and its parameters.

mod catalogue;
mod clip;
mod cut;
mod loops;
mod mask;
mod offload;
mod progress;
mod reflect;
mod scope;
mod shrink;
mod spending;
mod stall;
mod tail;
mod time_budget;
mod token_budget;
mod trim;
mod truncate;
mod turn_notice;

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

pub use catalogue::Catalogue;
pub(crate) use catalogue::FIND_TOOLS;
pub use cut::Cut;
pub use loops::LoopDetect;
pub use mask::ObservationMask;
pub use offload::Offload;
pub use progress::ProgressNotes;
pub use reflect::Reflection;
pub use scope::ToolScope;
pub use stall::StallDetect;
pub use time_budget::TimeBudget;
pub use token_budget::TokenBudget;
pub use trim::{TrimResults, shorten_results};
pub use truncate::Truncate;
pub use turn_notice::TurnNotice;

use crate::effect::{Action, Effect, EffectContext, EffectError};

type Factory = Arc<dyn Fn(Value) -> Result<Arc<dyn Effect>, EffectError> + Send + Sync>;

/// An effect as a configuration names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectSpec {
    /// The kind of the effect.
    pub kind: Arc<str>,
    /// Its parameters; omitted ones have the kind's defaults. `null` for none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
}

/// A registry that creates effects from their kinds and parameters: the built-in effects, and the application's.
#[derive(Clone)]
pub struct EffectRegistry {
    factories: BTreeMap<Arc<str>, Factory>,
}

/// The effects that come with the agent.
impl Default for EffectRegistry {
    fn default() -> Self {
        let empty = Self {
            factories: BTreeMap::new(),
        };
        empty
            .register_type::<LoopDetect>("loop_detect")
            .register_type::<ObservationMask>("observation_mask")
            .register_type::<Offload>("offload")
            .register_type::<ProgressNotes>("progress")
            .register_type::<Reflection>("reflection")
            .register_type::<StallDetect>("stall_detect")
            .register_type::<TimeBudget>("time_budget")
            .register_type::<TokenBudget>("token_budget")
            .register_type::<ToolScope>("tool_scope")
            .register_type::<TrimResults>("trim_tool_results")
            .register_type::<Truncate>("truncate")
            .register_type::<TurnNotice>("turn_notice")
    }
}

impl EffectRegistry {
    /// Adds a kind of effect, or replaces the one of that name.
    #[must_use]
    pub fn register<F>(mut self, kind: impl Into<Arc<str>>, make: F) -> Self
    where
        F: Fn(Value) -> Result<Arc<dyn Effect>, EffectError> + Send + Sync + 'static,
    {
        self.factories.insert(kind.into(), Arc::new(make));
        self
    }

    /// Adds a kind of effect that is deserialized from its parameters, or replaces the one of that name.
    #[must_use]
    pub fn register_type<E: Effect + DeserializeOwned + 'static>(
        self,
        kind: impl Into<Arc<str>>,
    ) -> Self {
        self.register(kind, parse_effect::<E>)
    }

    /// The kinds that are known, in alphabetical order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(|kind| &**kind)
    }

    /// Makes an effect.
    ///
    /// # Errors
    /// If the kind is not known, or its parameters are wrong.
    pub fn make(&self, spec: &EffectSpec) -> Result<Arc<dyn Effect>, EffectError> {
        let kind = &spec.kind;
        let Some(factory) = self.factories.get(kind) else {
            let known: Vec<&str> = self.kinds().collect();
            return Err(EffectError::new(format!(
                "no effect is of kind {kind:?}; the kinds are: {}",
                known.join(", ")
            )));
        };
        factory(spec.params.clone()).map_err(|error| {
            EffectError::new(format!("the parameters of effect {kind:?} are wrong"))
                .with_source(error)
        })
    }
}

/// Makes an effect that comes with the agent.
///
/// # Errors
/// If the kind is not known, or its parameters are wrong.
pub fn from_spec(kind: impl Into<Arc<str>>, params: Value) -> Result<Arc<dyn Effect>, EffectError> {
    EffectRegistry::default().make(&EffectSpec {
        kind: kind.into(),
        params,
    })
}

/// Reads an effect from its parameters; none are an empty object.
fn parse_effect<E: Effect + DeserializeOwned + 'static>(
    params: Value,
) -> Result<Arc<dyn Effect>, EffectError> {
    let params = if params.is_null() {
        Value::Object(Map::new())
    } else {
        params
    };
    match serde_json::from_value::<E>(params) {
        Ok(effect) => Ok(Arc::new(effect)),
        Err(error) => Err(EffectError::new(error.to_string())),
    }
}

/// An effect made of a function.
pub fn effect_fn<F>(kind: impl Into<Arc<str>>, act: F) -> FnEffect<F>
where
    F: Fn(EffectContext<'_>) -> Result<Vec<Action>, EffectError> + Send + Sync,
{
    FnEffect {
        kind: kind.into(),
        act,
    }
}

/// An effect made of a function; see [`effect_fn`].
pub struct FnEffect<F> {
    kind: Arc<str>,
    act: F,
}

#[async_trait]
impl<F> Effect for FnEffect<F>
where
    F: Fn(EffectContext<'_>) -> Result<Vec<Action>, EffectError> + Send + Sync,
{
    fn kind(&self) -> &str {
        &self.kind
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        (self.act)(cx)
    }
}

impl fmt::Debug for EffectRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kinds()).finish()
    }
}

impl<F> fmt::Debug for FnEffect<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnEffect")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
