//! The models of a manifest: chosen by name, each created once, with its decorators.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    Credentials, Error, ErrorKind, Manifest,
    manifest::{ModelChoice, ModelSpec},
};
use adjutant_llm::{
    Fallback, Limiter, Model, PerMinute, RateLimit, Retry, RetryPolicy, Timeout, TimeoutLimits,
    World,
};
use adjutant_providers::{Chooser, Chosen, Origin, Provider};
use serde_json::json;

/// The default number of retries of a failed call.
const RETRIES: u32 = 2;

/// A model's name, and its limits of requests and input tokens per minute.
type ModelLimits = (Arc<str>, Option<u32>, Option<u64>);

/// Creates models; equal choices share one model.
pub struct Models {
    chooser: Chooser,
    /// Models from the application, which replace models with these names.
    given: BTreeMap<Arc<str>, Arc<dyn Model>>,
    /// Created models without decorators.
    bare: BTreeMap<Arc<str>, Arc<dyn Model>>,
    /// Created models with decorators.
    made: Vec<(ModelSpec, Arc<dyn Model>)>,
    /// Rate limiters, shared by all agents with the same settings for a model.
    limiters: BTreeMap<ModelLimits, Limiter>,
    world: Arc<dyn World>,
}

impl Models {
    /// Creates models with this chooser; retries use the clock of this world.
    pub fn new(chooser: Chooser, world: impl World + 'static) -> Self {
        let (given, bare, limiters) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            chooser,
            given,
            bare,
            made: Vec::new(),
            limiters,
            world: Arc::new(world),
        }
    }

    /// Creates the models of a manifest with these credentials; `origin` is the source of trust in its addresses.
    ///
    /// # Errors
    /// `Config` if a provider or a model of the manifest is inconsistent.
    pub(super) fn from_manifest(
        manifest: &Manifest,
        credentials: &Credentials,
        providers: Vec<Provider>,
        world: Arc<dyn World>,
        origin: Origin,
    ) -> Result<Self, Error> {
        let credentials = credentials.clone();
        let chooser = Chooser::new(move |name| credentials.get(name).map(str::to_owned));
        let own = json!({ "providers": manifest.providers, "models": manifest.models });
        let chooser = chooser
            .user_cache()
            .configuration_of(origin, &own.to_string())
            .map_err(|error| {
                Error::new(
                    ErrorKind::Config,
                    format!("the providers and models of the manifest are wrong: {error}"),
                )
                .with_source(error)
            })?;
        Ok(Self::new(
            providers.into_iter().fold(chooser, Chooser::provider),
            world,
        ))
    }

    /// Uses these models instead of models with their names.
    pub(super) fn given(self, given: BTreeMap<Arc<str>, Arc<dyn Model>>) -> Self {
        Self { given, ..self }
    }

    /// Uses this model for this choice, unchanged.
    pub fn put(&mut self, choice: &ModelChoice, model: Arc<dyn Model>) {
        self.made.insert(0, (choice.spec(), model));
    }

    /// Queries the servers for the limits of the chosen models that the catalogue does not list; see
    /// [`Chooser::resolve`].
    ///
    /// # Errors
    /// Like [`Models::chosen`].
    pub async fn resolve(&mut self, choice: &ModelChoice) -> Result<(), Error> {
        let spec = choice.spec();
        if self.made.iter().any(|(made, _)| *made == spec) {
            return Ok(());
        }
        for name in choice.names() {
            if self.given.contains_key(name) || self.bare.contains_key(name) {
                continue;
            }
            let model = self.chooser.resolve(name).await;
            let model = model.map_err(|error| wrong(&format!("the model {name}"), error))?;
            self.bare.insert(name.into(), model);
        }
        Ok(())
    }

    /// Returns the chosen model with its decorators.
    ///
    /// # Errors
    /// `Model` if there is no model with that name, or no key for it; the source contains the details.
    pub fn chosen(&mut self, choice: &ModelChoice) -> Result<Arc<dyn Model>, Error> {
        self.made(&choice.spec())
    }

    /// Returns the model from the environment if none is named, and how it was chosen, without decorators.
    ///
    /// # Errors
    /// `Model` if the model from a variable is not available; the source contains the reason.
    pub async fn offered(&mut self) -> Result<Chosen, Error> {
        let chosen = self.chooser.choose(None).await;
        let chosen =
            chosen.map_err(|error| wrong("the model that the environment offers", error))?;
        let name = chosen.model.info().id.as_str().into();
        self.bare
            .entry(name)
            .or_insert_with(|| Arc::clone(&chosen.model));
        Ok(chosen)
    }

    /// Returns the chooser of models.
    pub fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    /// In `Timeout(Fallback(Retry(RateLimit(model)), …))` each attempt waits for the rate limit, a model is retried
    /// before the next one is used, and the total time is limited.
    fn made(&mut self, spec: &ModelSpec) -> Result<Arc<dyn Model>, Error> {
        if let Some((_, made)) = self.made.iter().find(|(known, _)| known == spec) {
            return Ok(Arc::clone(made));
        }
        let mut model = self.tried(spec, &spec.name)?;
        if !spec.fallbacks.is_empty() {
            let mut chain = Fallback {
                retract: true,
                ..Fallback::new(model)
            };
            for name in &spec.fallbacks {
                chain = chain.or(self.tried(spec, name)?);
            }
            model = Arc::new(chain);
        }
        if let Some(limit) = spec.timeout {
            model = Arc::new(Timeout::new(
                model,
                TimeoutLimits {
                    total: Some(limit.0),
                    ..TimeoutLimits::default()
                },
            ));
        }
        self.made.push((spec.clone(), Arc::clone(&model)));
        Ok(model)
    }

    /// Returns one model of a chain, with rate limit and retries.
    fn tried(&mut self, spec: &ModelSpec, name: &Arc<str>) -> Result<Arc<dyn Model>, Error> {
        let mut model = self.bare_within(spec, name)?;
        if spec.requests_per_minute.is_some() || spec.input_tokens_per_minute.is_some() {
            let key = (
                Arc::clone(name),
                spec.requests_per_minute,
                spec.input_tokens_per_minute,
            );
            let limiter = self
                .limiters
                .entry(key)
                .or_insert_with(|| Limiter::new(per_minute(spec)));
            model = Arc::new(RateLimit::new(model, limiter.clone()));
        }
        let policy = RetryPolicy {
            max_retries: spec.retries.unwrap_or(RETRIES),
            ..RetryPolicy::default()
        };
        Ok(Arc::new(Retry {
            policy,
            retract: true,
            world: Arc::clone(&self.world),
            ..Retry::new(model)
        }))
    }

    /// Returns the model with the timeouts of this choice, if it sets any.
    fn bare_within(&mut self, spec: &ModelSpec, name: &Arc<str>) -> Result<Arc<dyn Model>, Error> {
        if spec.timeouts == Default::default() || self.given.contains_key(name) {
            return self.bare(name);
        }
        self.chooser
            .model_within(name, spec.timeouts.into())
            .map_err(|error| wrong(&format!("the model {name}"), error))
    }

    fn bare(&mut self, name: &Arc<str>) -> Result<Arc<dyn Model>, Error> {
        if let Some(known) = self.given.get(name).or_else(|| self.bare.get(name)) {
            return Ok(Arc::clone(known));
        }
        let model = self
            .chooser
            .model(name)
            .map_err(|error| wrong(&format!("the model {name}"), error))?;
        self.bare.insert(Arc::clone(name), Arc::clone(&model));
        Ok(model)
    }
}

impl ModelChoice {
    fn spec(&self) -> ModelSpec {
        match self {
            Self::Name(name) => ModelSpec::new(Arc::clone(name)),
            Self::Spec(spec) => spec.clone(),
        }
    }
}

fn per_minute(spec: &ModelSpec) -> PerMinute {
    let mut limits = PerMinute::default();
    if let Some(requests) = spec.requests_per_minute {
        limits.requests = Some(requests.into());
    }
    if let Some(tokens) = spec.input_tokens_per_minute {
        limits.input_tokens = Some(tokens);
    }
    limits
}

fn wrong(what: &str, error: adjutant_llm::Error) -> Error {
    Error::new(ErrorKind::Model, format!("{what} cannot be had: {error}")).with_source(error)
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("made", &self.bare.keys())
            .finish_non_exhaustive()
    }
}
