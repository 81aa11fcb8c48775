//! Providers: which wire each speaks, where it is, and what it wants to know. Data, with a constructor of models.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_llm::{Error, ErrorKind, Model, ModelInfo};
use serde::{Deserialize, Serialize};

use crate::{
    anthropic::Anthropic,
    catalogue::Catalogue,
    chat::Chat,
    credentials::Key,
    dialect::{Dialect, DialectPatch},
    driver::{Address, Auth, Endpoint},
    gemini::Gemini,
    openai::OpenAi,
};

/// A provider of models: one that is known, or one of your own.
///
/// # Example
/// ```
/// use adjutant_providers::{Chooser, Provider};
///
/// let json = r#"{"name": "acme", "base_url": "https://llm.acme.example/v1", "key_variables": ["ACME_KEY"], "like": "vllm"}"#;
/// let acme: Provider = serde_json::from_str(json).expect("a provider");
/// let chooser = Chooser::new(|name| (name == "ACME_KEY").then(|| "secret".to_owned())).provider(acme);
/// assert_eq!(chooser.model("acme/large")?.info().id.as_str(), "acme/large");
/// # Ok::<(), adjutant_llm::Error>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Provider {
    /// The part before the slash of a model's name.
    pub name: String,
    /// The wire that it speaks; Chat Completions if nothing is said.
    #[serde(default)]
    pub wire: WireKind,
    /// Its address, in the form that the wire's model takes; empty if it must come from the variable.
    #[serde(default)]
    pub base_url: String,
    /// The environment variable that holds another address; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url_variable: String,
    /// The environment variables that may hold the key, best first; none if no key is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_variables: Vec<String>,
    /// True if it can do without a key, as servers of one's own often can.
    #[serde(default)]
    pub key_optional: bool,
    /// Headers of every request. They may hold secrets: never printed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The known provider whose dialect of Chat Completions it speaks; by its own name if nothing is said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub like: String,
    /// The differences from that dialect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: DialectPatch,
    /// True if it takes names that no catalogue lists.
    #[serde(default = "yes")]
    pub any_model: bool,
    /// The source that names its address: never read from serialized data.
    #[serde(skip)]
    pub origin: Origin,
}

/// A wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WireKind {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// Google Gemini.
    Gemini,
    /// OpenAI Chat Completions, in one of its dialects.
    #[default]
    Chat,
}

/// The source that names a provider's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The application, or this library.
    #[default]
    Code,
    /// The user: a variable of the environment, or a file that one names.
    Environment,
    /// A file that came from anywhere, as a manifest does. Keys of known vendors go to their own hosts alone.
    File,
}

/// Providers that host the models of many others, or whatever their user has put there.
const HOSTS: [&str; 8] = ["azure", "openrouter", "together", "fireworks", "groq", "huggingface", "nvidia", "github"];
/// Servers that people run themselves.
const LOCAL: [&str; 4] = ["llama-server", "lmstudio", "ollama", "vllm"];
/// The vendors that have a wire of their own: name, wire, address, its variable, the variables of the key.
///
/// Source: the environment variables of the vendors' own clients, 2026-11.
const VENDORS: [(&str, WireKind, &str, &str, &[&str]); 3] = [
    ("anthropic", WireKind::Messages, "https://api.anthropic.com", "ANTHROPIC_BASE_URL", &["ANTHROPIC_API_KEY"]),
    ("openai", WireKind::Responses, "https://api.openai.com/v1", "OPENAI_BASE_URL", &["OPENAI_API_KEY"]),
    (
        "gemini",
        WireKind::Gemini,
        "https://generativelanguage.googleapis.com",
        "GEMINI_BASE_URL",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
];

impl Provider {
    /// A provider of Chat Completions at this address, without a key, that takes any name.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wire: WireKind::Chat,
            base_url: base_url.into(),
            base_url_variable: String::new(),
            key_variables: Vec::new(),
            key_optional: false,
            headers: BTreeMap::new(),
            like: String::new(),
            dialect: DialectPatch::default(),
            any_model: true,
            origin: Origin::Code,
        }
    }

    /// Those that are known: the three vendors with a wire of their own, then the dialects of Chat Completions.
    pub fn known() -> impl Iterator<Item = Provider> {
        let vendors = VENDORS.into_iter().map(|(name, wire, base_url, base_url_variable, keys)| Provider {
            wire,
            base_url_variable: base_url_variable.to_owned(),
            key_variables: keys.iter().map(|&it| it.to_owned()).collect(),
            any_model: false,
            ..Self::new(name, base_url)
        });
        vendors.chain(Dialect::known().map(Self::of_dialect))
    }

    /// Sets the wire.
    #[must_use]
    pub fn wire(mut self, wire: WireKind) -> Self {
        self.wire = wire;
        self
    }

    /// Adds an environment variable that may hold the key.
    #[must_use]
    pub fn key_variable(mut self, variable: impl Into<String>) -> Self {
        self.key_variables.push(variable.into());
        self
    }

    /// Sets the known provider whose dialect it speaks.
    #[must_use]
    pub fn like(mut self, provider: impl Into<String>) -> Self {
        self.like = provider.into();
        self
    }

    /// Sets what is different about that dialect.
    #[must_use]
    pub fn dialect(mut self, patch: DialectPatch) -> Self {
        self.dialect = patch;
        self
    }

    /// Sets who says where it is.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Adds a header of every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// A model of this provider; a blank `base_url` means its own.
    ///
    /// # Errors
    /// `Config` if it has no address, or its dialect is like that of a provider that is not known.
    pub fn model(&self, info: ModelInfo, key: impl Into<Key>, base_url: &str) -> Result<Arc<dyn Model>, Error> {
        let url = [base_url, &self.base_url].into_iter().map(str::trim).find(|url| !url.is_empty());
        let Some(url) = url else {
            let variable = &self.base_url_variable;
            let hint = if variable.is_empty() { String::new() } else { format!("; hint: set {variable}") };
            return Err(config(format!("{} has no address of its own{hint}", self.name)));
        };
        let headers = self.headers.clone();
        Ok(match self.wire {
            WireKind::Messages => Arc::new(Anthropic::new(info, key).base_url(url).headers(headers)),
            WireKind::Responses => Arc::new(OpenAi::new(info, key).base_url(url).headers(headers)),
            WireKind::Gemini => Arc::new(Gemini::new(info, key).base_url(url).headers(headers)),
            WireKind::Chat => {
                let chat = Chat::new(info, key).dialect(self.spoken()?).base_url(url);
                Arc::new(chat.headers(headers))
            }
        })
    }

    /// Checks that a provider of a configuration does not contradict itself.
    ///
    /// # Errors
    /// `Config`, with its name and the field.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_name = |it: &str| !it.is_empty() && !it.contains(char::is_whitespace);
        if !is_name(&self.name) || self.name.contains('/') || self.name == "offline" {
            return Err(config(format!("no provider can be called {:?}", self.name)));
        }
        let fail = |field: &str, why: String| Err(config(format!("provider {}: {field}: {why}", self.name)));
        let address = Address { path: String::new(), auth: Auth::Bearer, headers: &[] };
        let is_address = || !Endpoint::new(&self.base_url, address, Key::none()).host().is_empty();
        if !self.base_url.is_empty() && !is_address() {
            // The address is not repeated: it may hold a password.
            return fail("base_url", "it does not have the form https://host/path".to_owned());
        }
        if !self.base_url_variable.is_empty() && !is_name(&self.base_url_variable) {
            return fail("base_url_variable", format!("no variable can be called {:?}", self.base_url_variable));
        }
        if let Some(name) = self.key_variables.iter().find(|it| !is_name(it)) {
            return fail("key_variables", format!("no variable can be called {name:?}"));
        }
        self.spoken().map(|_| ())
    }

    /// Returns the known data of a model with this name, which does not hold the provider's name.
    pub(crate) fn info(&self, name: &str, catalogue: &Catalogue) -> Option<ModelInfo> {
        let id = format!("{}/{name}", self.name);
        // The same models behind the vendor's older wire.
        let twin = || catalogue.find(&format!("openai/{name}")).filter(|_| self.name == "openai-chat");
        let mut info = catalogue.find(&id).or_else(twin)?.clone();
        info.id = id.into();
        Some(info)
    }

    /// True if the name of a model may be one that the catalogue does not list.
    pub(crate) fn takes_any(&self, catalogue: &Catalogue) -> bool {
        self.any_model || self.name != "openai-chat" && !catalogue.models().any(|it| it.provider() == self.name)
    }

    fn of_dialect(dialect: &'static Dialect) -> Self {
        let name = if dialect.name == "openai" { "openai-chat" } else { &*dialect.name };
        Provider {
            base_url_variable: dialect.base_url_variable.clone().into_owned(),
            key_variables: dialect.key_variables.iter().map(|it| it.clone().into_owned()).collect(),
            key_optional: LOCAL.contains(&name),
            any_model: LOCAL.contains(&name) || HOSTS.contains(&name),
            ..Self::new(name, dialect.base_url.clone())
        }
    }

    fn spoken(&self) -> Result<Dialect, Error> {
        let like = if self.like.is_empty() { &self.name } else { &self.like };
        let dialect = Dialect::of(like);
        if !self.like.is_empty() && dialect.name == "generic" && like != "generic" {
            return Err(config(format!("provider {}: like: no known dialect is called {like:?}", self.name)));
        }
        Ok(dialect.clone().patched(self.dialect.clone()))
    }
}

fn yes() -> bool {
    true
}

fn is_default(patch: &DialectPatch) -> bool {
    *patch == DialectPatch::default()
}

fn config(text: String) -> Error {
    Error::new(ErrorKind::Config, text)
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("key_variables", &self.key_variables)
            .field("headers", &self.headers.keys())
            .field("like", &self.like)
            .finish_non_exhaustive()
    }
}
