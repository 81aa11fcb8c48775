//! Providers: the wire, address and credentials of each. Data, with a constructor of models.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use adjutant_llm::{Error, ErrorKind, Model, ModelInfo};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    anthropic::Anthropic,
    catalogue::Catalogue,
    chat::Chat,
    credentials::Key,
    dialect::{AZURE_OTHERS, Dialect, DialectPatch, ON_RESPONSES},
    driver::{Address, Endpoint, Timeouts, TimeoutsPatch},
    foreign::{ForeignWire, Sending},
    gemini::Gemini,
    host::Site,
    media,
    openai::OpenAi,
    place,
    tokens::KeyCommand,
};

/// A provider of models: a known one, or your own.
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
    /// Its wire; Chat Completions by default.
    #[serde(default)]
    pub wire: WireKind,
    /// Its address, in the form that the wire's model takes; empty if it must come from the variable.
    #[serde(default)]
    pub base_url: String,
    /// The environment variable that holds another address; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url_variable: String,
    /// The environment variables that may hold the key, in order of preference; empty for servers without keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_variables: Vec<String>,
    /// The program that prints its key, if no variable holds one: for tokens that do not live long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_command: Option<KeyCommand>,
    /// True if it works without a key, as local servers often do.
    #[serde(default)]
    pub key_optional: bool,
    /// Headers of every request. They may hold secrets: never printed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The known provider whose dialect it uses, or the cloud it resembles; its own name by default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub like: String,
    /// The differences from that dialect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: DialectPatch,
    /// The times that its models are waited for, where they differ from the defaults.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub timeouts: TimeoutsPatch,
    /// True if it hosts models that no catalogue lists. Without it, a known provider accepts such a model with a warning, and a
    /// provider of a configuration refuses it.
    #[serde(default = "yes")]
    pub any_model: bool,
    /// The source that names its address: never read from serialized data.
    #[serde(skip)]
    pub origin: Origin,
}

/// A wire.
///
/// Shape: `"messages"`, `"responses"`, `"gemini"`, `"chat"`, or the name of the wire of a [registered](Provider::register)
/// provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
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
    /// A wire of the application's own.
    Foreign(ForeignWire),
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
const HOSTS: [&str; 14] = [
    "azure",
    "azure-chat",
    "bedrock",
    "bedrock-mantle",
    "cerebras",
    "perplexity",
    "vertex",
    "openrouter",
    "together",
    "fireworks",
    "groq",
    "huggingface",
    "nvidia",
    "github",
];
/// Servers that people run themselves.
const LOCAL: [&str; 4] = ["llama-server", "lmstudio", "ollama", "vllm"];
type Row = (
    &'static str,
    WireKind,
    &'static str,
    &'static str,
    &'static [&'static str],
);
/// The vendors that have a wire of their own: name, wire, address, its variable, the variables of the key.
///
/// Source: the environment variables of the vendors' own clients, 2026-11.
const VENDORS: [Row; 3] = [
    (
        "anthropic",
        WireKind::Messages,
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        &["ANTHROPIC_API_KEY"],
    ),
    (
        "openai",
        WireKind::Responses,
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        &["OPENAI_API_KEY"],
    ),
    (
        "gemini",
        WireKind::Gemini,
        "https://generativelanguage.googleapis.com",
        "GEMINI_BASE_URL",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
];
/// Vendors and clouds that serve the wires of others, in the same form.
///
/// Source: "Responses API", learn.microsoft.com, and "Best practices", docs.x.ai, where Chat Completions is deprecated, 2026-11.
const CLOUDS: [Row; 4] = [
    (
        "azure",
        WireKind::Responses,
        "",
        "AZURE_OPENAI_BASE_URL",
        &["AZURE_OPENAI_API_KEY"],
    ),
    (
        "xai",
        WireKind::Responses,
        "https://api.x.ai/v1",
        "XAI_BASE_URL",
        &["XAI_API_KEY"],
    ),
    (
        "bedrock",
        WireKind::Responses,
        "https://bedrock-runtime.{AWS_REGION}.amazonaws.com/openai/v1",
        "BEDROCK_BASE_URL",
        &["AWS_BEARER_TOKEN_BEDROCK"],
    ),
    (
        "vertex",
        WireKind::Gemini,
        "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com/v1beta1/projects/{GOOGLE_CLOUD_PROJECT}/locations/\
         {GOOGLE_CLOUD_LOCATION}",
        "VERTEX_BASE_URL",
        &["CLOUDSDK_AUTH_ACCESS_TOKEN"],
    ),
];
/// Models of a provider that use another wire: provider, prefix of the name in any case, wire, suffix of the address.
/// The first matching row counts.
///
/// Source: "Messages API" and "Responses API", docs.aws.amazon.com/bedrock; "OpenAI on Amazon Bedrock",
/// developers.openai.com; "Claude on Vertex AI", platform.claude.com; "Foundry Models", learn.microsoft.com, 2026-11.
const TURNS: [(&str, &str, WireKind, &str); 20] = [
    ("bedrock-mantle", "openai.gpt-oss", WireKind::Chat, ""),
    (
        "bedrock-mantle",
        "openai.",
        WireKind::Responses,
        "/openai/v1",
    ),
    ("azure", "codestral", WireKind::Chat, ""),
    ("azure", "cohere", WireKind::Chat, ""),
    ("azure", "deepseek", WireKind::Chat, ""),
    ("azure", "glm", WireKind::Chat, ""),
    ("azure", "gpt-oss", WireKind::Chat, ""),
    ("azure", "grok", WireKind::Chat, ""),
    ("azure", "kimi", WireKind::Chat, ""),
    ("azure", "llama", WireKind::Chat, ""),
    ("azure", "mai-", WireKind::Chat, ""),
    ("azure", "meta-llama", WireKind::Chat, ""),
    ("azure", "ministral", WireKind::Chat, ""),
    ("azure", "mistral", WireKind::Chat, ""),
    ("azure", "nemotron", WireKind::Chat, ""),
    ("azure", "phi-", WireKind::Chat, ""),
    ("azure", "qwen", WireKind::Chat, ""),
    ("azure", "minimax", WireKind::Chat, ""),
    (
        "bedrock-mantle",
        "anthropic.",
        WireKind::Messages,
        "/anthropic",
    ),
    ("vertex", "claude", WireKind::Messages, ""),
];
/// Providers that accept the model names of others, in order of preference.
const TWINS: [(&str, &[&str]); 4] = [
    ("azure", &["openai"]),
    ("azure-chat", &["azure", "openai"]),
    ("openai-chat", &["openai"]),
    ("xai-chat", &["xai"]),
];
/// Providers that take requests that are signed with keys of AWS, and the service that they sign for.
pub(crate) const SIGNED: [(&str, &str); 2] =
    [("bedrock", "bedrock"), ("bedrock-mantle", "bedrock-mantle")];
/// The variables of keys of AWS.
pub(crate) const AWS_KEYS: [&str; 3] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];
/// Variables for the credentials of the AWS CLI, in addition to keys.
///
/// Source: "Environment variables", docs.aws.amazon.com/cli, 2026.
const AWS_CLI: [&str; 9] = [
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];
/// The variables that locate the application default credentials of Google.
const GOOGLE_FILES: [&str; 2] = ["CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"];
/// The program that prints a token of Google's. Source: `gcloud auth print-access-token`, cloud.google.com/sdk, 2026.
pub(crate) const GCLOUD: [&str; 3] = ["gcloud", "auth", "print-access-token"];

/// Providers that are waited for longer than others: the seconds to the first byte, and between two pieces.
///
/// Source: "Rate Limit", api-docs.deepseek.com (a request waits up to 10 minutes before inference starts); "Timeouts" of
/// xai-sdk-python, docs.x.ai (27 minutes by default); the timeout of openai-python (10 minutes between two pieces);
/// servers on one's own machine send nothing while they load a model and read a long prompt, 2026-11.
const WAITS: [(&str, u64, u64); 8] = [
    ("azure", 600, 600),
    ("deepseek", 660, 300),
    ("llama-server", 1_800, 600),
    ("lmstudio", 1_800, 600),
    ("ollama", 1_800, 600),
    ("openai", 600, 600),
    ("vllm", 1_800, 600),
    ("xai", 1_620, 900),
];

/// The paths of providers whose users set the address, often without it.
///
/// Source: the pages of the dialects of these names.
const PATHS: [(&str, &str); 4] = [
    ("llama-server", "/v1"),
    ("lmstudio", "/v1"),
    ("ollama", "/v1"),
    ("vllm", "/v1"),
];

/// The providers that the application has registered.
static REGISTERED: RwLock<Vec<Provider>> = RwLock::new(Vec::new());

impl Provider {
    /// A provider of Chat Completions at this address, without a key, that takes any name.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wire: WireKind::Chat,
            base_url: base_url.into(),
            base_url_variable: String::new(),
            key_variables: Vec::new(),
            key_command: None,
            key_optional: false,
            headers: BTreeMap::new(),
            like: String::new(),
            dialect: DialectPatch::default(),
            timeouts: TimeoutsPatch::default(),
            any_model: true,
            origin: Origin::Code,
        }
    }

    /// Makes this one of the [known](Self::all) providers of the whole process, and its wire known by name: to
    /// [`model`](fn@crate::model), to choosers that are made from now on, and so to manifests and to a command that is built
    /// with it. It stays as long as the process lives.
    ///
    /// # Errors
    /// `Config` if it contradicts itself, or if its name or the name of its wire is in use.
    pub fn register(self) -> Result<(), Error> {
        self.check()?;
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        let taken = Self::ours().any(|it| it.name == self.name)
            || registered.iter().any(|it| it.name == self.name);
        if taken {
            return Err(config(format!(
                "a provider is called {:?} already",
                self.name
            )));
        }
        let is_taken = |it: &WireKind| it.name() == self.wire.name() && *it != self.wire;
        if WireKind::OURS
            .iter()
            .chain(registered.iter().map(|it| &it.wire))
            .any(is_taken)
        {
            return Err(config(format!(
                "provider {}: wire: one named {:?} already exists",
                self.name,
                self.wire.name()
            )));
        }
        registered.push(self);
        Ok(())
    }

    /// Returns the known providers: vendors that speak another wire than Chat Completions, its dialects, and
    /// [registered](Self::register) providers.
    pub fn all() -> impl Iterator<Item = Provider> {
        let registered = REGISTERED
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Self::ours().chain(registered)
    }

    /// Returns the providers that this library knows.
    fn ours() -> impl Iterator<Item = Provider> {
        let of_row = |(name, wire, base_url, base_url_variable, keys): Row| Provider {
            wire,
            base_url_variable: base_url_variable.to_owned(),
            key_variables: keys.iter().map(|&it| it.to_owned()).collect(),
            key_command: (name == "vertex").then(|| KeyCommand {
                ttl: 1_800,
                ..KeyCommand::new(GCLOUD)
            }),
            any_model: HOSTS.contains(&name),
            ..Self::new(name, base_url)
        };
        let (vendors, clouds) = (
            VENDORS.into_iter().map(of_row),
            CLOUDS.into_iter().map(of_row),
        );
        vendors
            .chain(Dialect::all().map(Self::from_dialect))
            .chain(clouds)
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

    /// Sets the program that prints the key, if no variable holds one.
    #[must_use]
    pub fn key_command(mut self, command: KeyCommand) -> Self {
        self.key_command = Some(command);
        self
    }

    /// Sets the known provider whose dialect it uses.
    #[must_use]
    pub fn like(mut self, provider: impl Into<String>) -> Self {
        self.like = provider.into();
        self
    }

    /// Sets the differences from that dialect.
    #[must_use]
    pub fn dialect(mut self, patch: DialectPatch) -> Self {
        self.dialect = patch;
        self
    }

    /// Sets times that its models are waited for.
    #[must_use]
    pub fn timeouts(mut self, patch: TimeoutsPatch) -> Self {
        self.timeouts = self.timeouts.merge(patch);
        self
    }

    /// Sets the origin of its address.
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
    /// `Config` if it has no address, or if its dialect refers to an unknown provider.
    pub fn model(
        &self,
        info: ModelInfo,
        key: impl Into<Key>,
        base_url: &str,
    ) -> Result<Arc<dyn Model>, Error> {
        let url = [base_url, &self.base_url]
            .into_iter()
            .map(str::trim)
            .find(|url| !url.is_empty());
        let Some(url) = url else {
            let variable = &self.base_url_variable;
            let hint = if variable.is_empty() {
                String::new()
            } else {
                format!("; hint: set {variable}")
            };
            return Err(config(format!(
                "{} has no address of its own{hint}",
                self.name
            )));
        };
        let headers = self.headers.clone();
        let timeouts = self.default_timeouts().apply(self.timeouts);
        let vendor = self.vendor();
        let turn = TURNS.iter().find(|(name, begin, ..)| {
            let start = info.base_name().get(..begin.len());
            *name == vendor && start.is_some_and(|start| start.eq_ignore_ascii_case(begin))
        });
        let (wire, added) = turn.map_or((&self.wire, ""), |(.., wire, added)| (wire, *added));
        let (url, query) = match vendor {
            "azure" => place::azure(url, *wire == WireKind::Chat),
            _ => {
                let url = self.complete_address(url.trim_end_matches('/'));
                (url.into_owned(), String::new())
            }
        };
        let url = &*format!("{url}{added}");
        let site = match self.alike() {
            "bedrock" | "bedrock-mantle" => Site::Bedrock,
            "vertex" => Site::Vertex,
            _ => Site::Own,
        };
        let limits = |provider| media::limits_of(provider, info.context_window);
        let media = info.media.or_else(|| limits(self.alike()));
        let media = media.or_else(|| limits(wire.vendor()));
        let info = ModelInfo { media, ..info };
        Ok(match wire {
            WireKind::Messages => Arc::new(
                Anthropic::new(info, key)
                    .base_url(url)
                    .site(site)
                    .timeouts(timeouts)
                    .headers(headers),
            ),
            WireKind::Responses => {
                let model = OpenAi::new(info, key)
                    .base_url(url)
                    .timeouts(timeouts)
                    .headers(headers);
                let model = match vendor {
                    "azure" => model.azure(),
                    "xai" => model.cache_keys(),
                    _ => model,
                };
                Arc::new(
                    model
                        .key_header(self.resolve_dialect()?.key_header)
                        .query(&query),
                )
            }
            WireKind::Gemini => Arc::new(
                Gemini::new(info, key)
                    .base_url(url)
                    .site(site)
                    .timeouts(timeouts)
                    .headers(headers),
            ),
            WireKind::Chat => {
                let mut dialect = match turn {
                    Some(_) if vendor == "azure" => {
                        AZURE_OTHERS.clone().patched(self.dialect.clone())
                    }
                    _ => self.resolve_dialect()?,
                };
                dialect.path.to_mut().push_str(&query);
                let chat = Chat::new(info, key).dialect(dialect).base_url(url);
                Arc::new(chat.timeouts(timeouts).headers(headers))
            }
            WireKind::Foreign(wire) => {
                wire.model(info, key.into(), url, Sending { headers, timeouts })
            }
        })
    }

    /// The times that are usual for the provider.
    fn default_timeouts(&self) -> Timeouts {
        let (mut timeouts, vendor) = (Timeouts::default(), self.vendor());
        if let Some((_, first_byte, idle)) = WAITS.iter().find(|(name, ..)| *name == vendor) {
            timeouts.first_byte = Duration::from_secs(*first_byte);
            timeouts.idle = Duration::from_secs(*idle);
        }
        timeouts
    }

    /// Adds to an address the path that the provider is known to have, if it is missing.
    pub(crate) fn complete_address<'a>(&'a self, url: &'a str) -> Cow<'a, str> {
        let is_part = self
            .base_url
            .strip_prefix(url)
            .is_some_and(|rest| rest.starts_with('/'));
        if is_part {
            return Cow::Borrowed(&self.base_url);
        }
        let is_bare = url
            .split_once("://")
            .is_some_and(|(_, it)| !it.contains('/'));
        let path = PATHS
            .iter()
            .find(|(name, _)| is_bare && *name == self.alike());
        match path {
            Some((_, path)) => Cow::Owned(format!("{url}{path}")),
            None => Cow::Borrowed(url),
        }
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
        let fail = |field: &str, why: String| {
            Err(config(format!("provider {}: {field}: {why}", self.name)))
        };
        let address = Address::new("");
        let is_address = || {
            let url = match self.vendor() {
                "azure" => place::azure(&self.base_url, false).0,
                _ => self.base_url.clone(),
            };
            !Endpoint::new(&url, address, Key::none()).host().is_empty()
        };
        if !self.base_url.is_empty() && !is_address() {
            // The address is not repeated: it may hold a password.
            return fail(
                "base_url",
                "it does not have the form https://host/path".to_owned(),
            );
        }
        if !self.base_url_variable.is_empty() && !is_name(&self.base_url_variable) {
            return fail(
                "base_url_variable",
                format!("no variable can be called {:?}", self.base_url_variable),
            );
        }
        if let Some(name) = self.key_variables.iter().find(|it| !is_name(it)) {
            return fail(
                "key_variables",
                format!("no variable can be called {name:?}"),
            );
        }
        if self
            .key_command
            .as_ref()
            .is_some_and(|it| it.argv.first().is_none_or(|it| it.trim().is_empty()))
        {
            return fail("key_command", "it names no program".to_owned());
        }
        self.resolve_dialect().map(|_| ())
    }

    /// Returns the known data of a model with this name, which does not hold the provider's name.
    pub(crate) fn info(&self, name: &str, catalogue: &Catalogue) -> Option<ModelInfo> {
        let id = format!("{}/{name}", self.name);
        let twin = || {
            let mut names = self.twins().iter();
            names.find_map(|twin| catalogue.find(&format!("{twin}/{name}")))
        };
        let mut info = catalogue.find(&id).or_else(twin)?.clone();
        info.id = id.into();
        Some(info)
    }

    /// Returns the providers whose model names it accepts too.
    pub(crate) fn twins(&self) -> &'static [&'static str] {
        let row = TWINS.iter().find(|(name, _)| *name == self.name);
        row.map_or(&[], |(_, twins)| *twins)
    }

    /// True if it is a server that people run themselves.
    pub(crate) fn is_local(&self) -> bool {
        LOCAL.contains(&self.alike())
    }

    /// True if it loads a model with the first request, and reports the model's window only then.
    pub(crate) fn loads_models(&self) -> bool {
        ["lmstudio", "ollama"].contains(&self.alike())
    }

    fn from_dialect(dialect: &'static Dialect) -> Self {
        let name = &*match ON_RESPONSES.contains(&&*dialect.name) {
            true => format!("{}-chat", dialect.name).into(),
            false => dialect.name.clone(),
        };
        Provider {
            base_url_variable: dialect.base_url_variable.clone().into_owned(),
            key_variables: dialect
                .key_variables
                .iter()
                .map(|it| it.clone().into_owned())
                .collect(),
            key_optional: LOCAL.contains(&name),
            any_model: LOCAL.contains(&name) || HOSTS.contains(&name),
            ..Self::new(name, dialect.base_url.clone())
        }
    }

    /// The environment variables that its models depend on: of its keys, of its address, and of the places in it.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let signed = SIGNED.iter().any(|(name, _)| *name == self.alike());
        let address = Some(&*self.base_url_variable).filter(|it| !it.is_empty());
        let own = self.key_variables.iter().map(String::as_str).chain(address);
        let signed = AWS_KEYS.iter().chain(&AWS_CLI).filter(move |_| signed);
        let signed = signed.map(|it| &**it);
        let is_google = self.alike() == "vertex";
        let files = GOOGLE_FILES
            .iter()
            .filter(move |_| is_google)
            .map(|it| &**it);
        own.chain(files)
            .chain(place::variables(&self.base_url).map(|it| -> &str { it }))
            .chain(signed)
    }

    /// The known provider that it is like, or its own name.
    pub(crate) fn alike(&self) -> &str {
        if self.like.is_empty() {
            &self.name
        } else {
            &self.like
        }
    }

    /// Returns the vendor that it is like, under the name that it has on every wire.
    fn vendor(&self) -> &str {
        self.alike().trim_end_matches("-chat")
    }

    fn resolve_dialect(&self) -> Result<Dialect, Error> {
        let like = self.alike();
        let dialect = Dialect::for_provider(like);
        let is_cloud = CLOUDS.iter().any(|(name, ..)| *name == like);
        if !self.like.is_empty() && dialect.name == "generic" && like != "generic" && !is_cloud {
            return Err(config(format!(
                "provider {}: like: no known dialect is called {like:?}",
                self.name
            )));
        }
        Ok(dialect.clone().patched(self.dialect.clone()))
    }
}

impl WireKind {
    /// The built-in wires.
    const OURS: [Self; 4] = [Self::Messages, Self::Responses, Self::Gemini, Self::Chat];

    /// Returns the vendor whose wire it is, if the wire is spoken by servers of that vendor only.
    fn vendor(&self) -> &str {
        match self {
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
            _ => "",
        }
    }

    /// Its name in a configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
            Self::Chat => "chat",
            Self::Foreign(wire) => wire.name(),
        }
    }
}

impl Serialize for WireKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for WireKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Self::OURS
            .iter()
            .chain(registered.iter().map(|it| &it.wire));
        all.clone()
            .find(|it| it.name() == name)
            .cloned()
            .ok_or_else(|| {
                let mut names: Vec<String> = Vec::new();
                all.by_ref()
                    .map(|it| format!("`{}`", it.name()))
                    .for_each(|it| {
                        if !names.contains(&it) {
                            names.push(it)
                        }
                    });
                D::Error::custom(format!(
                    "unknown variant `{name}`, expected one of {}",
                    names.join(", ")
                ))
            })
    }
}

fn yes() -> bool {
    true
}

fn is_unset(patch: &TimeoutsPatch) -> bool {
    *patch == TimeoutsPatch::default()
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
