//! From a name, or from nothing, to a model: what was asked, the environment, a server on this machine, the offline model.

mod loopback;
pub(crate) mod near;

use std::{fmt, sync::Arc};

use adjutant_llm::{Error, ErrorKind, Model, ModelInfo};

use crate::{
    anthropic::Anthropic,
    catalogue,
    chat::Chat,
    credentials::{Credential, Key, PROVIDERS, Provider},
    offline::OfflineModel,
};
use loopback::Server;

/// The variable that names a model.
const VARIABLE: &str = "ADJUTANT_MODEL";
/// The name of the offline model.
const OFFLINE: &str = "offline/planner";
/// How a lookup of a variable goes.
type Vars = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The model with this name, with keys and base URLs of the environment.
///
/// Names: `anthropic/…` and `openai/…` with a name of [`known`](catalogue::known), or any name if `ANTHROPIC_BASE_URL`
/// or `OPENAI_BASE_URL` is set; `ollama/…`, `llama-server/…` and `lmstudio/…` at their ports of this machine;
/// `offline/planner`.
///
/// # Errors
/// `Config` if there is no such provider or model, or no key for it.
pub fn model(name: &str) -> Result<Arc<dyn Model>, Error> {
    Chooser::new(|name| std::env::var(name).ok()).model(name)
}

/// Chooses models; where variables come from and where servers are looked for is injected.
pub struct Chooser {
    vars: Vars,
    servers: [Server; 3],
}

/// A model, and how it came to be chosen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chosen {
    /// The model.
    pub model: Arc<dyn Model>,
    /// How it came to be chosen.
    pub how: How,
}

/// How a model came to be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// It was asked for.
    Asked,
    /// The variable `ADJUTANT_MODEL` names it.
    Variable,
    /// It is the default of the provider whose key stands in this variable.
    Credential(&'static str),
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
    /// A chooser that reads variables by this function.
    pub fn new(vars: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { vars: Box::new(vars), servers: loopback::SERVERS }
    }

    /// Sets the port of a server on this machine: `ollama`, `llama-server` or `lmstudio`; others are ignored.
    #[must_use]
    pub fn port(mut self, server: &str, port: u16) -> Self {
        for it in self.servers.iter_mut().filter(|it| it.name == server) {
            it.port = port;
        }
        self
    }

    /// The model with this name; see [`model`](fn@model).
    ///
    /// # Errors
    /// `Config` if there is no such provider or model, or no key for it.
    pub fn model(&self, name: &str) -> Result<Arc<dyn Model>, Error> {
        let name = name.trim();
        if name == OFFLINE {
            return Ok(Arc::new(OfflineModel::new()));
        }
        let Some((provider, rest)) = name.split_once('/').filter(|(_, rest)| !rest.is_empty()) else {
            return Err(self.unknown_model(name, &self.names()));
        };
        if let Some(server) = self.servers.iter().find(|it| it.name == provider) {
            return Ok(Arc::new(server.model(rest)));
        }
        match PROVIDERS.iter().find(|it| it.name == provider) {
            Some(found) => self.hosted(found, name),
            None if provider == "offline" => Err(self.unknown_model(name, &[OFFLINE.to_owned()])),
            None => {
                let names = self.providers();
                let hint = near::list(provider, &names, names.len());
                Err(config(format!("no provider is called {provider:?}; hint: {hint}")))
            }
        }
    }

    /// Chooses a model: the one requested, that of `ADJUTANT_MODEL`, the default of the first provider with a key, the
    /// first one of a server on this machine, the offline one.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// `Config` if the model that is requested, by argument or variable, cannot be had.
    pub async fn choose(&self, requested: Option<&str>) -> Result<Chosen, Error> {
        if let Some(name) = requested.map(str::trim).filter(|name| !name.is_empty()) {
            return Ok(Chosen { model: self.model(name)?, how: How::Asked });
        }
        if let Some(name) = self.var(VARIABLE) {
            return Ok(Chosen { model: self.model(&name)?, how: How::Variable });
        }
        if let Some(provider) = PROVIDERS.iter().find(|it| self.var(it.key).is_some()) {
            let model = self.model(&format!("{}/{}", provider.name, provider.default_model))?;
            return Ok(Chosen { model, how: How::Credential(provider.key) });
        }
        if let Some((server, name)) = loopback::find(&self.servers).await {
            let how = How::Loopback { server: server.name, base_url: server.base_url() };
            return Ok(Chosen { model: Arc::new(server.model(&name)), how });
        }
        Ok(Chosen { model: Arc::new(OfflineModel::new()), how: How::Offline })
    }

    /// The providers with keys, and which keys are there, in the order in which they are looked for.
    pub fn credentials(&self) -> Vec<Credential> {
        let credential =
            |it: &Provider| Credential { provider: it.name, variable: it.key, present: self.var(it.key).is_some() };
        PROVIDERS.iter().map(credential).collect()
    }

    fn hosted(&self, provider: &Provider, name: &str) -> Result<Arc<dyn Model>, Error> {
        let base_url = self.var(provider.base_url);
        let info = match catalogue::find(name) {
            Some(info) => info,
            None if base_url.is_some() => ModelInfo::new(name),
            None => {
                let prefix = format!("{}/", provider.name);
                let names: Vec<_> = self.names().into_iter().filter(|it| it.starts_with(&prefix)).collect();
                return Err(self.unknown_model(name, &names));
            }
        };
        let Some(key) = self.var(provider.key) else {
            return Err(config(format!(
                "no key for {name}: {} is not set; hint: set it, take a model of a server on this machine \
                 (for example ollama/<model>), or use --model {OFFLINE}",
                provider.key
            )));
        };
        Ok(match (provider.name, base_url) {
            ("anthropic", None) => Arc::new(Anthropic::new(info, key)),
            ("anthropic", Some(url)) => Arc::new(Anthropic::new(info, key).base_url(url)),
            (_, None) => Arc::new(Chat::new(info, key)),
            (_, Some(url)) => Arc::new(Chat::new(info, key).base_url(url)),
        })
    }

    /// A variable; blank text counts as unset.
    fn var(&self, name: &str) -> Option<String> {
        (self.vars)(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty())
    }

    fn providers(&self) -> Vec<String> {
        let hosted = PROVIDERS.iter().map(|it| it.name);
        hosted.chain(self.servers.iter().map(|it| it.name)).chain(["offline"]).map(str::to_owned).collect()
    }

    fn names(&self) -> Vec<String> {
        catalogue::known().map(|info| info.id.to_string()).chain([OFFLINE.to_owned()]).collect()
    }

    fn unknown_model(&self, name: &str, names: &[String]) -> Error {
        let what = if name.contains('/') {
            "no model is called"
        } else {
            "a model is named provider/model, which is not the form of"
        };
        config(format!("{what} {name:?}; hint: {}", near::list(name, names, near::MOST)))
    }
}

fn config(text: String) -> Error {
    Error::new(ErrorKind::Config, text)
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chooser").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Server {
    fn model(&self, name: &str) -> Chat {
        Chat::new(ModelInfo::new(format!("{}/{name}", self.name)), Key::none()).base_url(self.base_url())
    }
}

#[cfg(test)]
mod tests;
