//! The abilities that a server reports of a model: where each server does, and how its answer is read.

use adjutant_llm::{Effort, LimitSource, ModelInfo, RequestOption, Structured};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    credentials::Key,
    dialect::{Dialect, KeyHeader},
    driver::{Address, Auth, Endpoint, get, post},
    gemini::escape_segment,
    provider::{Provider, WireKind},
};

/// The maximum number of bytes of an answer. OpenRouter's list of 400 models has about 1 MB.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// The largest number of tokens that counts as a limit.
const MAX_TOKENS: u64 = 1_000_000_000;

/// The members that hold a window, for models that are served with it.
///
/// Source: `max_model_len` of vLLM's `/v1/models`, docs.vllm.ai; `context_length` of OpenRouter, Together and Ollama's
/// `/api/ps`; `context_window` of Groq; `max_context_length` of Mistral; `max_input_tokens` of Anthropic's Models API;
/// `inputTokenLimit` of the Gemini API; `n_ctx` of llama-server's `/props`, tools/server/README.md. All 2026-11.
const WINDOWS: [&str; 7] = [
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
    "n_ctx",
];
/// The members that hold the limit of a reply. Source: the same pages; `max_tokens` is Anthropic's.
const OUTPUTS: [&str; 4] = [
    "max_completion_tokens",
    "max_output_tokens",
    "outputTokenLimit",
    "max_tokens",
];
/// The parameters of OpenRouter's `supported_parameters`, and the options that a model without them refuses.
///
/// Source: "Models", openrouter.ai/docs, 2026-11.
const PARAMETERS: [(&str, RequestOption); 5] = [
    ("temperature", RequestOption::Temperature),
    ("top_p", RequestOption::TopP),
    ("seed", RequestOption::Seed),
    ("stop", RequestOption::Stop),
    ("tool_choice", RequestOption::ForcedCalls),
];

/// The place where a server reports its models.
pub(super) struct Listing<'a> {
    pub(super) provider: &'a Provider,
    pub(super) key: &'a Key,
    pub(super) base_url: &'a str,
}

/// Queries a server for the abilities of a model. Returns `None` if it does not report them, for whatever reason.
pub(super) async fn ask(listing: &Listing<'_>, assumed: &ModelInfo) -> Option<ModelInfo> {
    for (base_url, path) in listing.reports(assumed.name()) {
        let endpoint = listing.endpoint(&base_url, path);
        let Ok(answer) = get::<Value>(&endpoint, assumed, MAX_ANSWER).await else {
            continue;
        };
        let reported = entry(&answer, assumed.name()).and_then(|it| read(listing, it, assumed));
        if reported.is_some() {
            return reported;
        }
    }
    None
}

/// Queries Ollama whether a model accepts images. Source: "Show model details", docs.ollama.com, 2026-11.
pub(super) async fn takes_pictures(listing: &Listing<'_>, info: &ModelInfo) -> bool {
    let endpoint = listing.endpoint(listing.root(), "/api/show".to_owned());
    let body = json!({ "model": info.name() }).to_string();
    let shown: Option<Value> = post(&endpoint, info, Bytes::from(body)).await.ok();
    shown.is_some_and(|shown| has(&shown["capabilities"], "vision"))
}

impl<'a> Listing<'a> {
    /// The base URL without its version: servers report their loaded models outside the common API.
    fn root(&self) -> &'a str {
        let base_url = self.base_url.trim().trim_end_matches('/');
        base_url.strip_suffix("/v1").unwrap_or(base_url)
    }

    /// Returns the base URLs and paths of the reports about a model, best first.
    ///
    /// Clouds are not queried: their lists contain no limits, and Azure's contains no deployments.
    fn reports(&self, name: &str) -> Vec<(String, String)> {
        let name = escape_segment(name);
        let root = |path: &str| (self.root().to_owned(), path.to_owned());
        match (self.provider.alike(), &self.provider.wire) {
            ("azure" | "azure-chat" | "bedrock" | "bedrock-mantle" | "vertex", _) => Vec::new(),
            // Source: "List running models", docs.ollama.com, 2026-11: only models that are loaded.
            ("ollama", _) => vec![root("/api/ps")],
            // Source: tools/server/README.md of ggml-org/llama.cpp, 2026-11: a router has several models.
            ("llama-server", _) => vec![
                root("/props"),
                root(&format!("/props?model={name}&autoload=false")),
            ],
            // Source: "LM Studio API" and "REST API v0", lmstudio.ai/docs, 2026-11.
            ("lmstudio", _) => vec![root("/api/v1/models"), root("/api/v0/models")],
            (_, WireKind::Messages) => vec![root(&format!("/v1/models/{name}"))],
            (_, WireKind::Gemini) => {
                vec![(self.base_url.to_owned(), format!("/v1beta/models/{name}"))]
            }
            (_, WireKind::Chat | WireKind::Responses) => {
                let base_url = self.base_url.trim().trim_end_matches('/');
                let base_url = self.provider.complete_address(base_url);
                vec![(base_url.into_owned(), "/models".to_owned())]
            }
            (_, WireKind::Foreign(_)) => Vec::new(),
        }
    }

    /// The endpoint of a report, with the key and the headers of the model's own requests: it has the same host.
    fn endpoint(&self, base_url: &str, path: String) -> Endpoint {
        let address = Address::new(path);
        let address = match self.provider.wire {
            WireKind::Messages => address
                .auth(Auth::Header("x-api-key"))
                .headers(&[crate::anthropic::VERSION]),
            WireKind::Gemini => address.auth(Auth::Header("x-goog-api-key")),
            _ if Dialect::for_provider(self.provider.alike()).key_header == KeyHeader::ApiKey => {
                address.auth(Auth::Header("api-key"))
            }
            _ => address,
        };
        let mut endpoint = Endpoint::new(base_url, address, self.key.clone());
        endpoint.set_headers(self.provider.headers.clone());
        endpoint
    }
}

/// Returns the entry of a model in a list, or an answer that is not a list.
fn entry<'v>(answer: &'v Value, name: &str) -> Option<&'v Value> {
    let list = ["data", "models"]
        .into_iter()
        .find_map(|it| answer[it].as_array());
    let Some(list) = list.or_else(|| answer.as_array()) else {
        return answer.is_object().then_some(answer);
    };
    let is_name = |found: &Value| {
        let found = found.as_str().unwrap_or_default();
        found == name || found.strip_suffix(":latest") == Some(name)
    };
    list.iter().find(|entry| {
        let names = ["id", "name", "model", "key"]
            .into_iter()
            .map(|it| &entry[it]);
        let instances = entry["loaded_instances"].as_array().into_iter().flatten();
        names.chain(instances.map(|it| &it["id"])).any(is_name)
    })
}

/// Returns the assumed abilities with the values that an entry reports, or `None` if it contains no window.
fn read(listing: &Listing<'_>, entry: &Value, assumed: &ModelInfo) -> Option<ModelInfo> {
    let top = &entry["top_provider"];
    let window = match listing.provider.alike() {
        // The other windows in its lists are possible settings for loading the model.
        "lmstudio" => tokens(&entry["loaded_context_length"]).or_else(|| find_loaded_window(entry)),
        _ => first(entry, &WINDOWS)
            .or_else(|| tokens(&entry["default_generation_settings"]["n_ctx"])),
    }?;
    let window = tokens(&top["context_length"]).map_or(window, |most| window.min(most));
    let output = first(top, &OUTPUTS).or_else(|| first(entry, &OUTPUTS));
    let mut info = ModelInfo {
        context_window: window,
        max_output_tokens: output.unwrap_or(assumed.max_output_tokens).min(window),
        limits: LimitSource::Server,
        ..assumed.clone()
    };
    let modalities = [
        &entry["architecture"]["input_modalities"],
        &entry["input_modalities"],
        &entry["modalities"],
        &entry["capabilities"],
    ];
    let takes = |kinds: &[&str]| {
        let mut all = modalities
            .iter()
            .flat_map(|it| kinds.iter().map(|kind| (*it, *kind)));
        all.any(|(list, kind)| has(list, kind))
    };
    info.inputs.images |= takes(&["image", "vision", "image_input"]) || entry["type"] == "vlm";
    info.inputs.documents |= takes(&["file", "pdf_input"]);
    info.inputs.audio |= takes(&["audio"]);
    if let Some(parameters) = entry["supported_parameters"].as_array() {
        let knows = |name: &str| parameters.iter().any(|it| it == name);
        let refused = PARAMETERS.iter().filter(|(name, _)| !knows(name));
        info.refuses = refused.map(|(_, option)| *option).collect();
        info.structured = match () {
            () if knows("structured_outputs") => Structured::Native,
            () if knows("tools") && knows("tool_choice") => Structured::Tool,
            () => Structured::Prompt,
        };
        if knows("reasoning") && info.efforts.is_empty() {
            info.efforts = vec![Effort::Low, Effort::Medium, Effort::High];
        }
    }
    Some(info)
}

/// Returns the window of a loaded instance, as LM Studio lists them.
fn find_loaded_window(entry: &Value) -> Option<u64> {
    let instances = entry["loaded_instances"].as_array()?;
    instances
        .iter()
        .find_map(|it| tokens(&it["config"]["context_length"]))
}

fn first(entry: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| tokens(&entry[*name]))
}

/// Reads a limit: a number that can be one.
fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|it| (1..=MAX_TOKENS).contains(it))
}

/// True if a list contains a word, or an object has it as a member that is not off.
fn has(value: &Value, word: &str) -> bool {
    match value {
        Value::Array(list) => list.iter().any(|it| it == word),
        Value::Object(members) => members.get(word).is_some_and(|member| {
            *member == true || member.get("supported").is_some_and(|it| *it == true)
        }),
        _ => false,
    }
}
