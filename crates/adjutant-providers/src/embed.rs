//! Embedders behind the embedding endpoints of OpenAI and Gemini.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use adjutant_llm::{
    Embedder, EmbedderInfo, Embeddings, Error, ErrorKind, Estimate, ModelInfo, Price, Purpose,
    Usage,
};
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    credentials::Key,
    driver::{Address, Auth, Endpoint, Timeouts, post},
};

/// The answer is one JSON text, not a stream.
const HEADERS: &[(&str, &str)] = &[("accept", "application/json")];
/// The largest number of texts that a request to OpenAI may hold.
///
/// Source: OpenAI's API reference, "create embeddings", 2026-11.
const OPENAI_INPUTS: usize = 2_048;
/// The largest number of tokens that the texts of a request to OpenAI may have together: 300,000 by the vendor's count,
/// of which a third is left for what estimates miss.
///
/// Source: OpenAI's API reference, "create embeddings", 2026-11.
const OPENAI_TOKENS: u64 = 200_000;
/// The largest number of texts that a request to Gemini may hold.
///
/// Source: reference of `models.batchEmbedContents`, 2026-11.
const GEMINI_INPUTS: usize = 100;
/// This model family reads the purpose of a text from the text: the field for it has no effect.
///
/// Source: ai.google.dev, "embeddings", task types with Gemini Embedding 2, 2026-11; measured in
/// embeddings-benchmark/mteb#4851, 2026-06.
const TOLD_IN_WORDS: &str = "gemini-embedding-2";

/// An embedder behind an `/embeddings` endpoint in the form of OpenAI's.
#[derive(Debug, Clone)]
pub struct OpenAiEmbedder {
    host: Host,
    cut: bool,
}

/// An embedder behind the `batchEmbedContents` method of the Gemini API.
///
/// The purpose of the texts is sent as `taskType`. For Gemini Embedding 2 it is a prefix of the text.
#[derive(Debug, Clone)]
pub struct GeminiEmbedder {
    host: Host,
    /// The model name in the path and the body.
    name: String,
    cut: bool,
}

/// The place that requests go to, and the embedder that they are for.
#[derive(Debug, Clone)]
struct Host {
    info: EmbedderInfo,
    /// As errors name it.
    model: ModelInfo,
    endpoint: Endpoint,
}

impl OpenAiEmbedder {
    /// Creates an embedder at `https://api.openai.com/v1`. Use `Key::none()` for servers without keys.
    pub fn new(info: EmbedderInfo, key: impl Into<Key>) -> Self {
        let address = Address::new("/embeddings").headers(HEADERS);
        Self {
            host: Host::new(info, "https://api.openai.com/v1", address, key.into()),
            cut: false,
        }
    }

    /// OpenAI's `text-embedding-3-small`: 1,536 dimensions, 8,192 tokens, $0.02 for a million.
    ///
    /// Source: OpenAI's reference and model pages, 2026-11.
    pub fn small(key: impl Into<Key>) -> Self {
        Self::own("openai/text-embedding-3-small", 1_536, 0.02, key.into())
    }

    /// OpenAI's `text-embedding-3-large`: 3,072 dimensions, 8,192 tokens, $0.13 for a million.
    ///
    /// Source: OpenAI's reference and model pages, 2026-11.
    pub fn large(key: impl Into<Key>) -> Self {
        Self::own("openai/text-embedding-3-large", 3_072, 0.13, key.into())
    }

    fn own(id: &str, dimensions: usize, dollars: f64, key: Key) -> Self {
        let info = EmbedderInfo {
            max_inputs: OPENAI_INPUTS,
            max_request_tokens: OPENAI_TOKENS,
            ..EmbedderInfo::new(id, dimensions)
        };
        Self::new(
            EmbedderInfo {
                price: Some(Price::dollars(dollars, 0.0, 0.0, 0.0)),
                ..info
            },
            key,
        )
    }

    /// Requests vectors of this length, if the model could return longer ones.
    #[must_use]
    pub fn cut(mut self, dimensions: usize) -> Self {
        self.host.info.dimensions = dimensions;
        self.cut = true;
        self
    }
}

impl GeminiEmbedder {
    /// An embedder at `https://generativelanguage.googleapis.com`.
    pub fn new(info: EmbedderInfo, key: impl Into<Key>) -> Self {
        let name = info
            .id
            .as_str()
            .split_once('/')
            .map_or(info.id.as_str(), |(_, name)| name);
        let name = name.strip_prefix("models/").unwrap_or(name);
        let name: String = name
            .chars()
            .filter(|it| it.is_ascii_alphanumeric() || "-._".contains(*it))
            .collect();
        let path = format!("/v1beta/models/{name}:batchEmbedContents");
        let address = Address::new(path)
            .auth(Auth::Header("x-goog-api-key"))
            .headers(HEADERS);
        let host = Host::new(
            info,
            "https://generativelanguage.googleapis.com",
            address,
            key.into(),
        );
        Self {
            host,
            name,
            cut: false,
        }
    }

    /// Google's `gemini-embedding-001`: 3,072 dimensions, 2,048 tokens, $0.15 for a million.
    ///
    /// Source: developers.googleblog.com, "Gemini Embedding available in the Gemini API", 2025-07.
    pub fn v1(key: impl Into<Key>) -> Self {
        let info = EmbedderInfo {
            max_inputs: GEMINI_INPUTS,
            ..EmbedderInfo::new("gemini/gemini-embedding-001", 3_072)
        };
        let price = Some(Price::dollars(0.15, 0.0, 0.0, 0.0));
        Self::new(
            EmbedderInfo {
                max_input_tokens: 2_048,
                price,
                ..info
            },
            key,
        )
    }

    /// Google's `gemini-embedding-2`: 3,072 dimensions, 8,192 tokens. Its vectors are not compatible with `v1`.
    ///
    /// Source: docs.cloud.google.com, "Gemini Embedding 2", 2026-11.
    pub fn v2(key: impl Into<Key>) -> Self {
        let info = EmbedderInfo {
            max_inputs: GEMINI_INPUTS,
            ..EmbedderInfo::new("gemini/gemini-embedding-2", 3_072)
        };
        Self::new(
            EmbedderInfo {
                max_input_tokens: 8_192,
                ..info
            },
            key,
        )
    }

    /// Requests vectors of this length, if the model could return longer ones. They are normalized to length 1.
    ///
    /// Source: ai.google.dev, "embeddings", 2026-11: vectors of `gemini-embedding-001` that were cut are not scaled.
    #[must_use]
    pub fn cut(mut self, dimensions: usize) -> Self {
        self.host.info.dimensions = dimensions;
        self.cut = true;
        self
    }
}

/// Gives an embedder the setters that both have. The type holds `host: Host`.
macro_rules! hosted {
    ($name:ident, $base_url:literal) => {
        impl $name {
            #[doc = $base_url]
            #[must_use]
            pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
                self.host.endpoint = self.host.endpoint.to(url.as_ref());
                self
            }

            /// Sets headers of every request, by name.
            #[must_use]
            pub fn headers(mut self, headers: BTreeMap<String, String>) -> Self {
                self.host.endpoint.set_headers(headers);
                self
            }

            /// Sets how long an answer is waited for; only `connect` and `first_byte` count, and the latter for the whole
            /// answer.
            #[must_use]
            pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
                self.host.endpoint.set_timeouts(timeouts);
                self
            }
        }
    };
}

hosted!(
    OpenAiEmbedder,
    "Sets another base URL, `/v1` included; `/embeddings` is added."
);
hosted!(
    GeminiEmbedder,
    "Sets another base URL, without the version; `/v1beta/models/…` is added."
);

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.host.info
    }

    /// `purpose` makes no difference here.
    async fn embed(&self, texts: &[Arc<str>], _: Purpose) -> Result<Embeddings, Error> {
        #[derive(Serialize)]
        struct EmbedRequest<'a> {
            model: &'a str,
            input: &'a [Arc<str>],
            encoding_format: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            dimensions: Option<usize>,
        }
        #[derive(Deserialize)]
        struct EmbedResponse {
            data: Vec<One>,
            #[serde(default)]
            usage: Option<Used>,
        }
        #[derive(Deserialize)]
        struct One {
            #[serde(default)]
            index: Option<usize>,
            embedding: Vector,
        }
        #[derive(Deserialize)]
        struct Used {
            #[serde(default)]
            prompt_tokens: Option<u64>,
        }
        let asked = EmbedRequest {
            model: self.host.model.name(),
            input: texts,
            encoding_format: "base64",
            dimensions: self.cut.then_some(self.host.info.dimensions),
        };
        let Some(answer) = self.host.ask::<EmbedResponse>(texts, &asked).await? else {
            return Ok(Embeddings::default());
        };
        let mut data: Vec<(usize, One)> = answer.data.into_iter().enumerate().collect();
        data.sort_by_key(|(at, one)| one.index.unwrap_or(*at));
        if data
            .iter()
            .enumerate()
            .any(|(at, (_, one))| one.index.is_some_and(|index| index != at))
        {
            return Err(self
                .host
                .wrong("vectors whose numbers are not those of the texts"));
        }
        let vectors = data
            .into_iter()
            .map(|(_, one)| one.embedding.read(&self.host))
            .collect::<Result<_, Error>>()?;
        self.host
            .embeddings(texts, vectors, answer.usage.and_then(|it| it.prompt_tokens))
    }
}

#[async_trait]
impl Embedder for GeminiEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.host.info
    }

    async fn embed(&self, texts: &[Arc<str>], purpose: Purpose) -> Result<Embeddings, Error> {
        #[derive(Deserialize)]
        struct EmbedResponse {
            embeddings: Vec<One>,
            /// Source: `EmbeddingUsageMetadata` in the reference of `models.batchEmbedContents`, 2026-11.
            #[serde(default, rename = "usageMetadata")]
            usage: Option<Used>,
        }
        #[derive(Deserialize)]
        struct One {
            #[serde(default)]
            values: Vec<f32>,
        }
        #[derive(Deserialize)]
        struct Used {
            #[serde(default, rename = "promptTokenCount")]
            prompt: Option<u64>,
        }
        let one = |text: &Arc<str>| self.request(text, purpose);
        let asked = serde_json::json!({ "requests": texts.iter().map(one).collect::<Vec<_>>() });
        let Some(answer) = self.host.ask::<EmbedResponse>(texts, &asked).await? else {
            return Ok(Embeddings::default());
        };
        let mut vectors: Vec<Vec<f32>> = answer
            .embeddings
            .into_iter()
            .map(|one| one.values)
            .collect();
        if self.cut {
            vectors.iter_mut().for_each(|vector| scale(vector));
        }
        self.host
            .embeddings(texts, vectors, answer.usage.and_then(|it| it.prompt))
    }
}

impl GeminiEmbedder {
    /// The request for one text.
    ///
    /// Source: ai.google.dev, "embeddings", 2026-11: the task types, and the prefixes for Gemini Embedding 2.
    fn request(&self, text: &str, purpose: Purpose) -> serde_json::Value {
        let (task, words) = match purpose {
            Purpose::Query => ("RETRIEVAL_QUERY", "task: search result | query: "),
            _ => ("RETRIEVAL_DOCUMENT", "title: none | text: "),
        };
        let in_words = self.name.starts_with(TOLD_IN_WORDS);
        let text: Cow<'_, str> = if in_words {
            format!("{words}{text}").into()
        } else {
            text.into()
        };
        let mut request = serde_json::json!({
            "model": format!("models/{}", self.name), "content": {"parts": [{"text": text}]}
        });
        if !in_words {
            request["taskType"] = task.into();
        }
        if self.cut {
            request["outputDimensionality"] = self.host.info.dimensions.into();
        }
        request
    }
}

/// Scales a vector to length 1, unless it has that length already or is zero.
fn scale(vector: &mut [f32]) {
    let length = vector
        .iter()
        .map(|it| f64::from(*it) * f64::from(*it))
        .sum::<f64>()
        .sqrt();
    if length.is_finite() && length > 0.0 && (length - 1.0).abs() > 1e-3 {
        vector
            .iter_mut()
            .for_each(|it| *it = (f64::from(*it) / length) as f32);
    }
}

/// A vector as numbers, or as base64 of little-endian numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f32>),
    Bytes(String),
}

impl Vector {
    fn read(self, host: &Host) -> Result<Vec<f32>, Error> {
        let text = match self {
            Vector::Numbers(numbers) => return Ok(numbers),
            Vector::Bytes(text) => text,
        };
        let bytes = STANDARD
            .decode(text.trim())
            .ok()
            .filter(|bytes| bytes.len() % 4 == 0);
        let bytes = bytes.ok_or_else(|| host.wrong("a vector that is no base64 of numbers"))?;
        let numbers = bytes
            .chunks_exact(4)
            .map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]]));
        Ok(numbers.collect())
    }
}

impl Host {
    fn new(info: EmbedderInfo, base_url: &str, address: Address, key: Key) -> Self {
        let model = ModelInfo::new(info.id.clone());
        Self {
            info,
            model,
            endpoint: Endpoint::new(base_url, address, key),
        }
    }

    /// The answer; none to nothing.
    async fn ask<T: DeserializeOwned>(
        &self,
        texts: &[Arc<str>],
        asked: &impl Serialize,
    ) -> Result<Option<T>, Error> {
        if texts.is_empty() {
            return Ok(None);
        }
        if texts.len() > self.info.max_inputs {
            let text = format!(
                "{} takes {} texts in a request, not {}",
                self.info.id,
                self.info.max_inputs,
                texts.len()
            );
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let body = serde_json::to_vec(asked).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the texts cannot be serialized").with_source(error)
        })?;
        post(&self.endpoint, &self.model, body.into())
            .await
            .map(Some)
    }

    /// Returns the vectors, if their number and size match the request. A missing usage is estimated.
    fn embeddings(
        &self,
        texts: &[Arc<str>],
        vectors: Vec<Vec<f32>>,
        used: Option<u64>,
    ) -> Result<Embeddings, Error> {
        if vectors.len() != texts.len() {
            return Err(self.wrong(format!(
                "{} vectors for {} texts",
                vectors.len(),
                texts.len()
            )));
        }
        if let Some(vector) = vectors
            .iter()
            .find(|vector| vector.len() != self.info.dimensions)
        {
            let text = format!(
                "a vector of {} numbers instead of {}",
                vector.len(),
                self.info.dimensions
            );
            return Err(self.wrong(text));
        }
        if vectors.iter().flatten().any(|number| !number.is_finite()) {
            return Err(self.wrong("a vector with something else than numbers"));
        }
        let estimate = || texts.iter().map(|text| Estimate.count(text)).sum();
        let usage = Usage {
            input_uncached: used.unwrap_or_else(estimate),
            ..Usage::default()
        };
        Ok(Embeddings { vectors, usage })
    }

    fn wrong(&self, what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(
            ErrorKind::Protocol,
            format!("{} answered with {}", self.info.id, what.into()),
        )
    }
}
