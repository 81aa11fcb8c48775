//! Chooses a model by name, or without one: from the request, the environment, a server on this machine, or the
//! offline model.

mod loopback;
mod server_report;
mod unlisted;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
};

use adjutant_llm::{Error, ErrorKind, Model, ModelInfo};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    binding::{self, Detour},
    catalogue::{Catalogue, near},
    credentials::{Credential, Key},
    driver::TimeoutsPatch,
    google::GoogleCredentials,
    place,
    provider::{GCLOUD, Origin, Provider},
};
#[cfg(feature = "sigv4")]
use crate::{
    provider::{AWS_KEYS, SIGNED},
    sigv4::AwsKeys,
    tokens::KeyCommand,
};
use loopback::Server;
use unlisted::{Place, Unlisted};

/// The variable that names a model.
const VARIABLE: &str = "ADJUTANT_MODEL";
/// The name of the offline model, if it is compiled in.
const OFFLINE: Option<&str> = if cfg!(feature = "offline") {
    Some("offline/planner")
} else {
    None
};
/// The header of the project that requests to Google are counted for.
const QUOTA_PROJECT: &str = "x-goog-user-project";
/// The lookup of a variable.
type Vars = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The model with this name, with keys and base URLs of the environment.
///
/// Names: `provider/model`, for each of [`Provider::all`]; `offline/planner`. A model that the catalogue does not
/// list queries its server for its limits before its first request; [`Chooser::resolve`] queries it immediately.
///
/// # Errors
/// `Config` if there is no such provider, or no key for it.
pub fn model(name: &str) -> Result<Arc<dyn Model>, Error> {
    let chooser = Chooser::new(|name| std::env::var(name).ok());
    chooser.user_cache().model(name)
}

/// The model that is used if no other is configured.
fn offline() -> Result<Arc<dyn Model>, Error> {
    #[cfg(feature = "offline")]
    return Ok(Arc::new(crate::offline::OfflineModel::new()));
    #[cfg(not(feature = "offline"))]
    Err(config(format!(
        "there is no model; hint: set {VARIABLE}, a key of a provider, or start a server on this machine"
    )))
}

/// Chooses models; where variables come from, which providers there are and where servers are looked for is injected.
pub struct Chooser {
    vars: Vars,
    providers: Vec<Provider>,
    /// The keys that the application gives, by the names of the providers.
    keys: BTreeMap<String, Key>,
    catalogue: Catalogue,
    /// The times that models are waited for, by the name of a provider or a model; the empty name is all of them.
    timeouts: BTreeMap<String, TimeoutsPatch>,
    servers: [Server; 3],
    cache: Option<PathBuf>,
}

/// A model, and how it came to be chosen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chosen {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The way in which it came to be chosen.
    pub how: How,
}

/// The way in which a model came to be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// The caller requested it.
    Asked,
    /// The variable `ADJUTANT_MODEL` names it.
    Variable,
    /// It is the default of the provider whose key is in this variable.
    Credential(String),
    /// A server on this machine lists it first.
    Loopback {
        /// The server's name among providers.
        server: &'static str,
        /// Its base URL.
        base_url: String,
    },
    /// Nothing else was found.
    Offline,
}

impl Chooser {
    /// A chooser that reads variables by this function, and knows what this version of the library knows.
    pub fn new(vars: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            vars: Box::new(vars),
            providers: Provider::all().collect(),
            keys: BTreeMap::new(),
            catalogue: Catalogue::builtin(),
            timeouts: BTreeMap::new(),
            servers: loopback::SERVERS,
            cache: None,
        }
    }

    /// Stores for 24 hours what hosted servers report of models that the catalogue does not list, in the user's cache:
    /// `adjutant/models` in `XDG_CACHE_HOME`, else in `~/.cache`.
    #[must_use]
    pub fn user_cache(mut self) -> Self {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        let cache = path("XDG_CACHE_HOME").filter(|it| it.is_absolute());
        let cache = cache.or_else(|| Some(path("HOME")?.join(".cache")));
        self.cache = cache.map(|it| it.join("adjutant").join("models"));
        self
    }

    /// Adds a provider, or replaces the one of this name.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        match self
            .providers
            .iter_mut()
            .find(|it| it.name == provider.name)
        {
            Some(old) => *old = provider,
            None => self.providers.push(provider),
        }
        self
    }

    /// Sets the key of a provider, for example the application's own [`Key::tokens`]. It overrides variables and
    /// programs, and is never sent to an address that a file sets for the provider.
    #[must_use]
    pub fn key(mut self, provider: impl Into<String>, key: Key) -> Self {
        self.keys.insert(provider.into(), key);
        self
    }

    /// Sets times that the models of a provider, or the model of this name, are waited for; an empty name is all models.
    ///
    /// The timeouts of a model override those set for its provider, and the timeouts of all models override both.
    #[must_use]
    pub fn timeouts(mut self, name: impl Into<String>, patch: TimeoutsPatch) -> Self {
        let timeouts = self.timeouts.entry(name.into()).or_default();
        *timeouts = timeouts.merge(patch);
        self
    }

    /// Adds models, or replaces models of the same names.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = self.catalogue.merge(catalogue);
        self
    }

    /// Adds the providers and models of a configuration.
    ///
    /// Shape: JSON, `{"providers"?: [Provider, …], "models"?: […], "timeouts"?: {name: TimeoutsPatch, …}}`; models as in
    /// [`Catalogue::read`], names as in [`Chooser::timeouts`].
    ///
    /// # Errors
    /// `Config` if it is not of this shape (with line and column) or contradicts itself (with name and field).
    pub fn configuration(self, json: &str) -> Result<Self, Error> {
        self.configuration_of(Origin::Code, json)
    }

    /// Adds the providers and models of a configuration that may come from outside the application.
    ///
    /// A known vendor's key does not go to an address of [`Origin::File`], unless that is at the vendor's own host.
    ///
    /// # Errors
    /// As [`Chooser::configuration`].
    pub fn configuration_of(mut self, origin: Origin, json: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            providers: Vec<Provider>,
            #[serde(default)]
            models: Vec<Value>,
            #[serde(default)]
            timeouts: BTreeMap<String, TimeoutsPatch>,
        }
        let wrong =
            |error: serde_json::Error| config(format!("the configuration cannot be read: {error}"));
        let file: File = serde_json::from_str(json).map_err(wrong)?;
        let mut names = BTreeSet::new();
        for provider in file.providers {
            provider.check()?;
            if !names.insert(provider.name.clone()) {
                return Err(config(format!(
                    "provider {}: name: it is listed twice",
                    provider.name
                )));
            }
            self = self.provider(provider.origin(origin));
        }
        for (name, patch) in file.timeouts {
            self = self.timeouts(name, patch);
        }
        let models = serde_json::json!({ "models": file.models });
        Ok(self.catalogue(Catalogue::read(&models.to_string())?))
    }

    /// Sets the port of a server on this machine: `ollama`, `llama-server` or `lmstudio`; others are ignored.
    #[must_use]
    pub fn port(mut self, server: &str, port: u16) -> Self {
        for it in self.servers.iter_mut().filter(|it| it.name == server) {
            it.port = port;
        }
        self
    }

    /// The providers, in the order in which their keys are looked for.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter()
    }

    /// The models that are known by name.
    pub fn models(&self) -> impl Iterator<Item = &ModelInfo> {
        self.catalogue.models()
    }

    /// The model with this name; see [`model`](fn@model).
    ///
    /// # Errors
    /// `Config` if there is no such provider, or no key for it.
    pub fn model(&self, name: &str) -> Result<Arc<dyn Model>, Error> {
        self.model_within(name, TimeoutsPatch::default())
    }

    /// The model with this name, which is waited for by these times before all others that are set.
    ///
    /// # Errors
    /// As [`Chooser::model`].
    pub fn model_within(
        &self,
        name: &str,
        timeouts: TimeoutsPatch,
    ) -> Result<Arc<dyn Model>, Error> {
        self.find(name, timeouts).map(Found::into_model)
    }

    /// Returns the model with this name. If the catalogue does not list it, the server is queried for its limits
    /// first, for 2 s at most. If the server does not report them, they are assumed, and the model's first reply
    /// contains a warning.
    ///
    /// The question has the same key and host as the model's requests. Its answer is stored for 24 hours if there is a
    /// [cache](Self::user_cache) and the provider is not a server that people run themselves.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// As [`Chooser::model`].
    pub async fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, Error> {
        let found = self.find(name, TimeoutsPatch::default())?;
        if let Found::Unlisted(model) = &found {
            model.ask().await;
        }
        Ok(found.into_model())
    }

    fn find(&self, name: &str, timeouts: TimeoutsPatch) -> Result<Found, Error> {
        let name = name.trim();
        if Some(name) == OFFLINE {
            return offline().map(Found::Listed);
        }
        let Some((provider, rest)) = name.split_once('/').filter(|(_, rest)| !rest.is_empty())
        else {
            return Err(self.unknown_model(name, &self.names()));
        };
        match self.providers.iter().find(|it| it.name == provider) {
            Some(found) => self.resolve_hosted(found, name, rest, timeouts),
            None if provider == "offline" => {
                Err(self.unknown_model(name, &Vec::from_iter(OFFLINE.map(str::to_owned))))
            }
            None => {
                let names = self
                    .providers
                    .iter()
                    .map(|it| it.name.as_str())
                    .chain(OFFLINE.map(|_| "offline"));
                let hint = near::hint(provider, names);
                Err(config(format!("no provider is called {provider:?}{hint}")))
            }
        }
    }

    /// Chooses a model: the requested one, the one in `ADJUTANT_MODEL`, the default of the first provider with a key,
    /// the first one of a server on this machine, the offline one.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// `Config` if the model requested by argument or variable is not available, or if no model is found and the
    /// feature `offline` is disabled.
    pub async fn choose(&self, requested: Option<&str>) -> Result<Chosen, Error> {
        if let Some(name) = requested.map(str::trim).filter(|name| !name.is_empty()) {
            return Ok(Chosen {
                model: self.resolve(name).await?,
                how: How::Asked,
            });
        }
        if let Some(name) = self.var(VARIABLE) {
            return Ok(Chosen {
                model: self.resolve(&name).await?,
                how: How::Variable,
            });
        }
        for provider in &self.providers {
            let Some(preferred) = self.catalogue.default_model(&provider.name) else {
                continue;
            };
            if let Some((variable, _)) = self.find_key(provider) {
                let how = How::Credential(variable.to_owned());
                return Ok(Chosen {
                    model: self.resolve(preferred.id.as_str()).await?,
                    how,
                });
            }
        }
        if let Some((server, name)) = loopback::find(&self.servers).await {
            let how = How::Loopback {
                server: server.name,
                base_url: server.base_url(),
            };
            return Ok(Chosen {
                model: self.resolve(&format!("{}/{name}", server.name)).await?,
                how,
            });
        }
        Ok(Chosen {
            model: offline()?,
            how: How::Offline,
        })
    }

    /// The variables that may hold keys, and which are there, in the order in which they are looked for.
    pub fn credentials(&self) -> Vec<Credential> {
        let of = |provider: &Provider, variable: &String| Credential {
            provider: provider.name.clone(),
            variable: variable.clone(),
            present: self.var(variable).is_some(),
        };
        self.providers
            .iter()
            .flat_map(|it| {
                it.key_variables
                    .iter()
                    .map(move |variable| of(it, variable))
            })
            .collect()
    }

    /// The known vendor's key that a model with this name would send to another host than the vendor's, if it does.
    pub fn detour(&self, name: &str) -> Option<Detour> {
        let (provider, _) = name.trim().split_once('/')?;
        let provider = self.providers.iter().find(|it| it.name == provider)?;
        let (variable, _) = self.find_key(provider)?;
        self.astray(provider, variable)
    }

    /// Returns the detour of a key that would go to another place than its vendor's host.
    fn astray(&self, provider: &Provider, variable: &str) -> Option<Detour> {
        let moved = self.base_url(provider);
        let placed = self.fill_base_url(provider).ok().flatten();
        let url = moved
            .as_deref()
            .or(placed.as_deref())
            .unwrap_or(&provider.base_url);
        if binding::belongs(variable, url, |name| self.var(name)) {
            return None;
        }
        let origin = match provider.origin {
            Origin::Code if moved.is_some() => Origin::Environment,
            origin => origin,
        };
        Some(Detour {
            variable: variable.to_owned(),
            host: binding::host(url),
            origin,
        })
    }

    fn resolve_hosted(
        &self,
        provider: &Provider,
        id: &str,
        name: &str,
        own: TimeoutsPatch,
    ) -> Result<Found, Error> {
        let base_url = match self.base_url(provider) {
            None if !provider.base_url.is_empty() => {
                self.fill_base_url(provider).map_err(|variable| {
                    config(format!(
                        "no address for {id}: {variable} does not say where; hint: set it"
                    ))
                })?
            }
            moved => moved,
        };
        let google = self.google(provider)?;
        let key = match self.find_key(provider) {
            _ if let Some(key) = self.keys.get(&provider.name) => match provider.origin {
                Origin::File => {
                    let why = format!(
                        "the key of the application is not sent where a file says that {} is",
                        provider.name
                    );
                    return Err(config(format!("{why}: {id}; hint: trust that file")));
                }
                _ => key.clone(),
            },
            Some((variable, key)) => match self.astray(provider, variable) {
                Some(Detour {
                    host,
                    origin: Origin::File,
                    ..
                }) => {
                    return Err(config(format!(
                        "the key in {variable} is not sent to {host}, which is not its vendor's: {id}; hint: name a \
                         variable of its own in `key_variables`, or trust the file that says where {} is",
                        provider.name
                    )));
                }
                _ => Key::new(&key),
            },
            None if let Some(google) = &google => Key::tokens(google.clone()),
            None if provider.key_command.is_some() && provider.origin == Origin::File => {
                return Err(config(format!(
                    "the program that prints the key of {id} is not run: a file named it; hint: trust that file, or set {}",
                    provider
                        .key_variables
                        .first()
                        .map_or("a variable of `key_variables`", String::as_str)
                )));
            }
            None if let Some(command) = &provider.key_command => Key::tokens(command.clone()),
            None if let Some(key) = self.aws(provider) => key,
            #[cfg(feature = "sigv4")]
            None if SIGNED.iter().any(|(name, _)| *name == provider.alike()) => {
                return Err(config(format!(
                    "no key for {id}: {} is not set, and the AWS CLI is not installed or AWS_REGION is not set; hint: set \
                     them, or install the AWS CLI and sign in with it",
                    provider.key_variables.join(" or ")
                )));
            }
            None if provider.key_optional || provider.key_variables.is_empty() => Key::none(),
            None => {
                let variables = provider.key_variables.join(" or ");
                let offline = OFFLINE
                    .map(|name| format!(", or use --model {name}"))
                    .unwrap_or_default();
                return Err(config(format!(
                    "no key for {id}: {variables} is not set; hint: set it, take a model of a server on this machine \
                     (for example ollama/<model>){offline}"
                )));
            }
        };
        let mut provider = Cow::Borrowed(provider);
        if let Some(project) = google.as_ref().and_then(GoogleCredentials::quota_project) {
            let headers = &mut provider.to_mut().headers;
            headers
                .entry(QUOTA_PROJECT.to_owned())
                .or_insert_with(|| project.to_owned());
        }
        let base_url = base_url.unwrap_or_default();
        let timeouts = [&*provider.name, id, ""]
            .iter()
            .filter_map(|name| self.timeouts.get(*name))
            .fold(TimeoutsPatch::default(), |all, it| all.merge(*it));
        let provider = provider.into_owned().timeouts(timeouts.merge(own));
        if let Some(info) = provider.info(name, &self.catalogue) {
            return provider.model(info, key, &base_url).map(Found::Listed);
        }
        let hint = self.hint(&provider, id);
        if !provider.any_model && !Provider::all().any(|it| it.name == provider.name) {
            return Err(config(format!("no model is called {id:?}{hint}")));
        }
        let info = unlisted::assume_info(&provider, name, &self.catalogue);
        let place = Place {
            provider,
            key,
            base_url,
        };
        Unlisted::new(place, info, hint, self.cache.clone()).map(Found::Unlisted)
    }

    /// Returns the listed models of a provider that may have been meant, as a hint.
    fn hint(&self, provider: &Provider, id: &str) -> String {
        let prefix = format!("{}/", provider.name);
        let is_own = |info: &&ModelInfo| {
            info.provider() == provider.name || provider.twins().contains(&info.provider())
        };
        let listed = self.catalogue.models().filter(is_own);
        let names: Vec<String> = listed.map(|info| prefix.clone() + info.name()).collect();
        near::hint(id, names.iter().map(String::as_str))
    }

    /// Returns Google's application default credentials, if a provider supports them and no variable contains a
    /// token.
    fn google(&self, provider: &Provider) -> Result<Option<GoogleCredentials>, Error> {
        let command = provider.key_command.as_ref();
        let is_given = || {
            self.find_key(provider).is_some()
                || self.keys.contains_key(&provider.name)
                || command.is_some_and(|it| it.argv != GCLOUD)
        };
        if provider.alike() != "vertex" || provider.origin == Origin::File || is_given() {
            return Ok(None);
        }
        GoogleCredentials::find(|name| self.var(name))
    }

    /// The address with its places, if it has any.
    ///
    /// # Errors
    /// The variable that is missing or invalid.
    fn fill_base_url(&self, provider: &Provider) -> Result<Option<String>, &'static str> {
        let filled = place::fill(&provider.base_url, |name| self.var(name))?;
        Ok(Some(filled.into_owned()).filter(|it| *it != provider.base_url))
    }

    /// The keys of AWS that sign requests to this provider, from variables or else from the AWS CLI, which prints keys
    /// for a profile, SSO session, role, container or instance. Nothing is signed for an address that a file names.
    #[cfg(feature = "sigv4")]
    fn aws(&self, provider: &Provider) -> Option<Key> {
        let (_, service) = SIGNED
            .iter()
            .find(|(name, _)| *name == provider.alike() && provider.origin != Origin::File)?;
        let [access, secret, session] = AWS_KEYS.map(|name| self.var(name));
        let region = place::variables("{AWS_REGION}").find_map(|name| self.var(name))?;
        let Some((access, secret)) = access.zip(secret) else {
            let export =
                ["configure", "export-credentials", "--format", "process"].map(str::to_owned);
            let argv = std::iter::once(self.program("aws")?).chain(export);
            return Some(Key::sigv4_process(KeyCommand::new(argv), region, *service));
        };
        let mut keys = AwsKeys::new(access, secret);
        if let Some(token) = session {
            keys = keys.session(token);
        }
        Some(Key::sigv4(keys, region, *service))
    }

    /// Finds a program in the directories of `PATH`.
    #[cfg(feature = "sigv4")]
    fn program(&self, name: &str) -> Option<String> {
        let path = self.var("PATH")?;
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let mut files = std::env::split_paths(&path).map(|directory| directory.join(&file));
        files
            .find(|it| it.is_file())?
            .into_os_string()
            .into_string()
            .ok()
    }

    #[cfg(not(feature = "sigv4"))]
    fn aws(&self, _: &Provider) -> Option<Key> {
        None
    }

    /// The address that is not the provider's own: of a variable, or of a server on this machine.
    fn base_url(&self, provider: &Provider) -> Option<String> {
        let variable = Some(&provider.base_url_variable).filter(|it| !it.is_empty());
        // A provider of the same name with its own address is a different provider: its key is not for that server.
        let is_known = || {
            Provider::all().any(|it| it.name == provider.name && it.base_url == provider.base_url)
        };
        let is_elsewhere = !provider.base_url.is_empty() && !is_known();
        let server = || {
            self.servers
                .iter()
                .find(|it| it.name == provider.name && !is_elsewhere)
                .map(Server::base_url)
        };
        variable.and_then(|it| self.var(it)).or_else(server)
    }

    /// The first variable that holds a key, and the key.
    fn find_key<'a>(&self, provider: &'a Provider) -> Option<(&'a str, String)> {
        provider
            .key_variables
            .iter()
            .find_map(|variable| Some((variable.as_str(), self.var(variable)?)))
    }

    /// A variable; blank text counts as unset.
    fn var(&self, name: &str) -> Option<String> {
        (self.vars)(name)
            .map(|it| it.trim().to_owned())
            .filter(|it| !it.is_empty())
    }

    fn names(&self) -> Vec<String> {
        self.catalogue
            .models()
            .map(|info| info.id.to_string())
            .chain(OFFLINE.map(str::to_owned))
            .collect()
    }

    fn unknown_model(&self, name: &str, names: &[String]) -> Error {
        let what = if name.contains('/') {
            "no model is called"
        } else {
            "a model is named provider/model, which is not the form of"
        };
        config(format!(
            "{what} {name:?}{}",
            near::hint(name, names.iter().map(String::as_str))
        ))
    }
}

/// A model that was found by its name.
enum Found {
    /// The catalogue lists it, or it is the offline model.
    Listed(Arc<dyn Model>),
    Unlisted(Unlisted),
}

impl Found {
    fn into_model(self) -> Arc<dyn Model> {
        match self {
            Self::Listed(model) => model,
            Self::Unlisted(model) => Arc::new(model),
        }
    }
}

fn config(text: String) -> Error {
    Error::new(ErrorKind::Config, text)
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chooser")
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
