//! The models known by name: limits, inputs, efforts, prices, and refused options.
//!
//! The list is data with its date and its sources, in two files next to this one. `models.json` is maintained by
//! hand, and `cargo xtask models` generates `published.json` from published data. For a model in both files, the
//! first one takes precedence. You can also use any other model: add it in code, read it from a file in the same
//! format, or set a base URL.

mod file;
pub(crate) mod near;

use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

use adjutant_llm::{Error, ErrorKind, ModelId, ModelInfo};

const BY_HAND: &str = include_str!("catalogue/models.json");
const PUBLISHED: &str = include_str!("catalogue/published.json");

/// Models by name. Lookups are exact.
///
/// # Example
/// ```
/// use adjutant_llm::{ModelInfo, Price};
/// use adjutant_providers::catalogue::Catalogue;
///
/// let mine = ModelInfo { context_window: 32_768, price: Some(Price::default()), ..ModelInfo::new("vllm/qwen3") };
/// let catalogue = Catalogue::builtin().with(mine);
/// assert_eq!(catalogue.model("vllm/qwen3")?.context_window, 32_768);
/// assert!(catalogue.model("vllm/qwen4").is_err());
/// # Ok::<(), adjutant_llm::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    models: Vec<ModelInfo>,
    /// The default model of each provider.
    defaults: BTreeMap<String, ModelId>,
}

/// The models of [`Catalogue::builtin`] by provider, first the ones maintained by hand, the largest first.
pub fn builtin_models() -> impl Iterator<Item = ModelInfo> {
    builtin().models().cloned()
}

/// True if the data of a model comes from published data only, and is not maintained by hand.
pub fn is_published(id: &str) -> bool {
    BUILTIN.published.contains(id)
}

/// The models of both files.
struct Builtin {
    all: Catalogue,
    /// The names of the models that only the published file contains.
    published: HashSet<String>,
}

/// A test reads the files, so that it is never empty because they cannot be read.
static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| {
    let mut all = Catalogue::read(BY_HAND).unwrap_or_default();
    let mut more = Catalogue::read(PUBLISHED).unwrap_or_default().models;
    more.retain(|it| all.find(it.id.as_str()).is_none());
    let published = more.iter().map(|it| it.id.to_string()).collect();
    all.models.append(&mut more);
    // Groups the models of one provider, in the order of the first model of each provider.
    let mut providers = BTreeMap::new();
    for info in &all.models {
        let next = providers.len();
        providers.entry(info.provider().to_owned()).or_insert(next);
    }
    all.models
        .sort_by_key(|it| providers.get(it.provider()).copied());
    Builtin { all, published }
});

fn builtin() -> &'static Catalogue {
    &BUILTIN.all
}

impl Catalogue {
    /// The models that this version of the library knows.
    pub fn builtin() -> Self {
        builtin().clone()
    }

    /// No model.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The models of a file.
    ///
    /// Shape: JSON, `{"date"?, "sources"?: […], "models": […]}`; a model is `{"id": "provider/name", "base_model"?,
    /// "context_window", "max_output_tokens", "inputs"?: ["image", "document", "audio"], "efforts"?: ["off",
    /// "minimal", "low", "medium", "high", "xhigh", "max"], "thinking"?: "level" | "budget", "structured"?: "native"
    /// | "tool" | "prompt", "thinking_binding"?: bool, "max_tools"?, "refuses"?: ["temperature", …],
    /// "tools_need_responses"?: bool, "prompt_cache"?: "retention" | "options", "price"?, "source"?, "default"?:
    /// true}`; a price is `{"input", "output", "cache_read"?, "cache_write"?, "cache_write_1h"?, "long"?: {"above",
    /// "input_percent", "output_percent"}}` in US dollars for a million tokens, with nine decimals at most. A model
    /// with `base_model` gets the data of that known model, except for the fields that are present. A missing cache
    /// price equals the input price, or the price of the shorter time.
    ///
    /// # Errors
    /// `Config` if it is not of this shape (with line and column) or contradicts itself (with model and field).
    pub fn read(json: &str) -> Result<Self, Error> {
        let file: file::File =
            serde_json::from_str(json).map_err(|error| config(format!("no catalogue: {error}")))?;
        let mut catalogue = Self::empty();
        for model in file.models {
            let (info, preferred) = model.check()?;
            if catalogue.find(info.id.as_str()).is_some() {
                return Err(config(format!("model {}: id: it is listed twice", info.id)));
            }
            if preferred
                && catalogue
                    .defaults
                    .insert(info.provider().to_owned(), info.id.clone())
                    .is_some()
            {
                return Err(config(format!(
                    "model {}: default: its provider has one already",
                    info.id
                )));
            }
            catalogue.models.push(info);
        }
        Ok(catalogue)
    }

    /// Adds a model, or replaces the one of this name.
    #[must_use]
    pub fn with(mut self, model: ModelInfo) -> Self {
        match self.models.iter_mut().find(|it| it.id == model.id) {
            Some(old) => *old = model,
            None => self.models.push(model),
        }
        self
    }

    /// Adds the models and the defaults of another catalogue; what both have is the other's.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.defaults.extend(other.defaults);
        other.models.into_iter().fold(self, Self::with)
    }

    /// The model with this name, as `provider/model`.
    pub fn find(&self, id: &str) -> Option<&ModelInfo> {
        self.models.iter().find(|it| it.id.as_str() == id)
    }

    /// The model with this name, as `provider/model`.
    ///
    /// # Errors
    /// `Config` if it does not exist; the error names the nearest one.
    pub fn model(&self, id: &str) -> Result<&ModelInfo, Error> {
        self.find(id).ok_or_else(|| {
            let hint = near::hint(id, self.models.iter().map(|it| it.id.as_str()));
            config(format!("no model is called {id:?}{hint}"))
        })
    }

    /// The default model of a provider.
    pub fn default_model(&self, provider: &str) -> Option<&ModelInfo> {
        self.find(self.defaults.get(provider)?.as_str())
    }

    /// All models, in the order in which they were added.
    pub fn models(&self) -> impl Iterator<Item = &ModelInfo> {
        self.models.iter()
    }

    /// The most similar names, at most four; empty if none is similar enough.
    pub fn near(&self, id: &str) -> Vec<&str> {
        near::nearest(id, self.models.iter().map(|it| it.id.as_str()))
    }
}

/// Returns the info of a model that no catalogue lists, by its name.
pub(crate) fn info_from_name(id: &str) -> ModelInfo {
    ModelInfo {
        thinking_binding: binds_thinking(id),
        max_tools: max_tools(id),
        ..ModelInfo::unknown(id)
    }
}

/// Returns the maximum number of tools in a request to a model, if its provider documents one.
///
/// Source: "A max of 128 functions are supported" in the API references of OpenAI, Groq and DeepSeek; "A max of 128
/// tools are supported" in the xAI reference; "Tool Use", platform.moonshot.ai: 128 functions; "Quotas and limits",
/// learn.microsoft.com: 128 tools; `Tool` in the references of the Gemini API and of Vertex AI: 512 function
/// declarations. All 2026-11.
fn max_tools(id: &str) -> Option<usize> {
    let (provider, name) = id.split_once('/').unwrap_or((id, ""));
    match provider.strip_suffix("-chat").unwrap_or(provider) {
        "openai" | "azure" | "github" | "groq" | "deepseek" | "moonshot" | "xai" => Some(128),
        "gemini" => Some(512),
        "vertex" if !name.starts_with("claude") => Some(512),
        _ => None,
    }
}

/// Returns true if a Claude model of this name binds its thinking to the conversation before it: every family does after 5.0.
///
/// Source: "Prefix checks on thinking blocks", platform.claude.com, 2026-11: Claude Fable 5.1, Opus 5.5, Sonnet 5.5, Haiku
/// 5.5, and later models. Claude Mythos 5.1 signs in the same way. A model that does not check accepts the settings.
fn binds_thinking(id: &str) -> bool {
    let Some((_, name)) = id.split_once("claude-") else {
        return false;
    };
    let mut parts = name.split(['-', '.', '@', ':']);
    // Claude 3 has its version before its family.
    let is_family = |part: &str| !part.starts_with(|first: char| first.is_ascii_digit());
    if !parts.next().is_some_and(is_family) {
        return false;
    }
    // A date is not a part of the version.
    let mut version = parts.map_while(|part| part.parse::<u32>().ok().filter(|it| *it < 100));
    (version.next(), version.next()) > (Some(5), Some(0))
}

fn config(text: String) -> Error {
    Error::new(ErrorKind::Config, text)
}

#[cfg(test)]
mod tests;
