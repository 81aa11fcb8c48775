//! The parts of a program that a manifest can name like built-in ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use adjutant_agent::{Effect, Logger, Middleware, Recovery, effects::EffectRegistry};
use adjutant_llm::Model;
use adjutant_providers::Provider;
use adjutant_tool::Toolbox;
use serde::de::DeserializeOwned;

use crate::manifest::PartNames;

/// The parts of a program, by the names that a manifest may use.
///
/// A program that is both host and operator passes them to [`EngineBuilder::parts`](crate::EngineBuilder::parts) or to
/// [`host::main`](crate::host::main), and their [`names`](Self::names) to
/// [`Manifest::load_with`](crate::Manifest::load_with).
#[derive(Clone)]
pub struct Parts {
    pub(super) models: BTreeMap<Arc<str>, Arc<dyn Model>>,
    pub(super) effects: EffectRegistry,
    pub(super) toolboxes: BTreeMap<Arc<str>, Arc<dyn Toolbox>>,
    pub(super) middleware: BTreeMap<Arc<str>, Arc<dyn Middleware>>,
    pub(super) providers: Vec<Provider>,
}

impl Parts {
    /// The built-in parts: the effects of the agent crate, the middleware `logger` and `recovery`.
    pub fn new() -> Self {
        Self {
            models: BTreeMap::new(),
            effects: adjutant_context::register(EffectRegistry::default()),
            toolboxes: BTreeMap::new(),
            middleware: BTreeMap::from([
                ("logger".into(), Arc::new(Logger) as Arc<dyn Middleware>),
                ("recovery".into(), Arc::new(Recovery)),
            ]),
            providers: Vec::new(),
        }
    }

    /// Uses this model wherever a manifest uses this name.
    #[must_use]
    pub fn model(mut self, name: impl Into<Arc<str>>, model: impl Model + 'static) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Adds a kind of effect that is deserialized from its parameters, replacing one with that name.
    #[must_use]
    pub fn effect<E: Effect + DeserializeOwned + 'static>(
        mut self,
        kind: impl Into<Arc<str>>,
    ) -> Self {
        self.effects = self.effects.register_type::<E>(kind);
        self
    }

    /// Adds a toolbox, replacing one with that name.
    #[must_use]
    pub fn toolbox(mut self, name: impl Into<Arc<str>>, toolbox: impl Toolbox + 'static) -> Self {
        self.toolboxes.insert(name.into(), Arc::new(toolbox));
        self
    }

    /// Adds a middleware, replacing one with that name.
    #[must_use]
    pub fn middleware(
        mut self,
        name: impl Into<Arc<str>>,
        middleware: impl Middleware + 'static,
    ) -> Self {
        self.middleware.insert(name.into(), Arc::new(middleware));
        self
    }

    /// Adds a provider of models, replacing one with that name.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Returns the names of all parts.
    pub fn names(&self) -> PartNames {
        fn key_names<T>(map: &BTreeMap<Arc<str>, T>) -> BTreeSet<String> {
            map.keys().map(|name| name.to_string()).collect()
        }
        PartNames {
            models: key_names(&self.models),
            effects: self.effects.kinds().map(str::to_owned).collect(),
            toolboxes: key_names(&self.toolboxes),
            middleware: key_names(&self.middleware),
            providers: self
                .providers
                .iter()
                .map(|provider| provider.name.clone())
                .collect(),
        }
    }
}

impl Default for Parts {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parts").field(&self.names()).finish()
    }
}
