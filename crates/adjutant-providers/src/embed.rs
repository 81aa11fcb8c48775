//! Embedders behind the embedding endpoints of OpenAI and Gemini.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{
    Embedder, EmbedderInfo, Embeddings, Error, ErrorKind, Estimate, ModelInfo, Purpose, TokenCounter, Usage,
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

/// An embedder behind an `/embeddings` endpoint in the form of OpenAI's.
///
/// Source: OpenAI's API reference, "create embeddings", 2026-11: at most 2,048 texts in a request.
#[derive(Debug, Clone)]
pub struct OpenAiEmbedder {
    host: Host,
    cut: bool,
}

/// An embedder behind the `batchEmbedContents` method of the Gemini API.
///
/// Source: reference of `models.batchEmbedContents`, 2026-11: at most 100 texts in a request.
#[derive(Debug, Clone)]
pub struct GeminiEmbedder {
    host: Host,
    cut: bool,
}

/// Where requests go, and for whom.
#[derive(Debug, Clone)]
struct Host {
    info: EmbedderInfo,
    /// As errors name it.
    model: ModelInfo,
    endpoint: Endpoint,
}

impl OpenAiEmbedder {
    /// An embedder at `https://api.openai.com/v1`; `Key::none()` is for servers that ask for no key.
    pub fn new(info: EmbedderInfo, key: impl Into<Key>) -> Self {
        let address = Address { path: "/embeddings".to_owned(), auth: Auth::Bearer, headers: HEADERS };
        Self { host: Host::new(info, "https://api.openai.com/v1", address, key.into()), cut: false }
    }

    /// Sets another base URL, `/v1` included; `/embeddings` is added.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        self.host.endpoint = self.host.endpoint.to(url.as_ref());
        self
    }

    /// Asks for vectors of [`EmbedderInfo::dimensions`], where the model could make longer ones.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// Sets how long an answer is waited for; only `connect` and `first_byte` count, and the latter for the whole answer.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.host.endpoint.set_timeouts(timeouts);
        self
    }
}

impl GeminiEmbedder {
    /// An embedder at `https://generativelanguage.googleapis.com`.
    pub fn new(info: EmbedderInfo, key: impl Into<Key>) -> Self {
        let name = ModelInfo::new(info.id.clone()).name().to_owned();
        let name: String = name.chars().filter(|it| it.is_ascii_alphanumeric() || "-._".contains(*it)).collect();
        let path = format!("/v1beta/models/{name}:batchEmbedContents");
        let address = Address { path, auth: Auth::Header("x-goog-api-key"), headers: HEADERS };
        Self { host: Host::new(info, "https://generativelanguage.googleapis.com", address, key.into()), cut: false }
    }

    /// Sets another base URL, without the version; `/v1beta/models/…` is added.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        self.host.endpoint = self.host.endpoint.to(url.as_ref());
        self
    }

    /// Asks for vectors of [`EmbedderInfo::dimensions`], where the model could make longer ones.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// Sets how long an answer is waited for; only `connect` and `first_byte` count, and the latter for the whole answer.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.host.endpoint.set_timeouts(timeouts);
        self
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.host.info
    }

    /// `purpose` makes no difference here.
    async fn embed(&self, texts: &[Arc<str>], _: Purpose) -> Result<Embeddings, Error> {
        #[derive(Serialize)]
        struct Asked<'a> {
            model: &'a str,
            input: &'a [Arc<str>],
            encoding_format: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            dimensions: Option<usize>,
        }
        #[derive(Deserialize)]
        struct Answer {
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
            prompt_tokens: u64,
        }
        let asked = Asked {
            model: self.host.model.name(),
            input: texts,
            encoding_format: "base64",
            dimensions: self.cut.then_some(self.host.info.dimensions),
        };
        let answer: Answer = self.host.ask(texts, &asked).await?;
        let mut data: Vec<(usize, One)> = answer.data.into_iter().enumerate().collect();
        data.sort_by_key(|(at, one)| one.index.unwrap_or(*at));
        let vectors = data.into_iter().map(|(_, one)| one.embedding.read(&self.host)).collect::<Result<_, Error>>()?;
        self.host.embeddings(texts, vectors, answer.usage.map(|it| it.prompt_tokens))
    }
}

#[async_trait]
impl Embedder for GeminiEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.host.info
    }

    async fn embed(&self, texts: &[Arc<str>], purpose: Purpose) -> Result<Embeddings, Error> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            embeddings: Vec<One>,
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
        let task = match purpose {
            Purpose::Query => "RETRIEVAL_QUERY",
            _ => "RETRIEVAL_DOCUMENT",
        };
        let model = format!("models/{}", self.host.model.name());
        let one = |text: &Arc<str>| {
            let mut request = serde_json::json!({
                "model": model, "content": {"parts": [{"text": &**text}]}, "taskType": task
            });
            if self.cut {
                request["outputDimensionality"] = self.host.info.dimensions.into();
            }
            request
        };
        let asked = serde_json::json!({ "requests": texts.iter().map(one).collect::<Vec<_>>() });
        let answer: Answer = self.host.ask(texts, &asked).await?;
        let vectors = answer.embeddings.into_iter().map(|one| one.values).collect();
        self.host.embeddings(texts, vectors, answer.usage.and_then(|it| it.prompt))
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
        let bytes = STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() % 4 == 0);
        let bytes = bytes.ok_or_else(|| host.wrong("a vector that is no base64 of numbers"))?;
        let numbers = bytes.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]]));
        Ok(numbers.collect())
    }
}

impl Host {
    fn new(info: EmbedderInfo, base_url: &str, address: Address, key: Key) -> Self {
        let model = ModelInfo::new(info.id.clone());
        Self { info, model, endpoint: Endpoint::new(base_url, address, key) }
    }

    async fn ask<T: DeserializeOwned>(&self, texts: &[Arc<str>], asked: &impl Serialize) -> Result<T, Error> {
        if texts.len() > self.info.max_inputs {
            let text =
                format!("{} takes {} texts in a request, not {}", self.info.id, self.info.max_inputs, texts.len());
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let body = serde_json::to_vec(asked).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the texts cannot be written as JSON").with_source(error)
        })?;
        post(&self.endpoint, &self.model, body.into()).await
    }

    /// The vectors, if they are what was asked for. A usage that was not told is estimated.
    fn embeddings(&self, texts: &[Arc<str>], vectors: Vec<Vec<f32>>, used: Option<u64>) -> Result<Embeddings, Error> {
        if vectors.len() != texts.len() {
            return Err(self.wrong(format!("{} vectors for {} texts", vectors.len(), texts.len())));
        }
        if vectors.iter().flatten().any(|number| !number.is_finite()) {
            return Err(self.wrong("a vector with something else than numbers"));
        }
        let estimate = || texts.iter().map(|text| Estimate.count(text)).sum();
        let usage = Usage { input_uncached: used.unwrap_or_else(estimate), ..Usage::default() };
        Ok(Embeddings { vectors, usage })
    }

    fn wrong(&self, what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Protocol, format!("{} answered with {}", self.info.id, what.into()))
    }
}
