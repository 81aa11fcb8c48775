//! The OpenAI Chat Completions wire, which many other servers speak too: the model, and how it says who is asking.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use adjutant_llm::{ChunkStream, Model, ModelInfo, Request, Warning};

use crate::{
    blocks::Place,
    body::Segmented,
    credentials::Key,
    driver::{self, Auth, Endpoint, Timeouts, Wire},
    segments,
};

const BASE_URL: &str = "https://api.openai.com/v1";
const PATH: &str = "/chat/completions";

/// A model behind an OpenAI Chat Completions API. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Chat {
    inner: Arc<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    info: Arc<ModelInfo>,
    endpoint: Endpoint,
    encoder: encode::Encoder,
    /// The name under which encodings of a transcript are kept.
    slot: String,
    heads: segments::Heads,
}

impl Chat {
    /// A model at `https://api.openai.com/v1`; `Key::none()` is for servers that ask for no key.
    pub fn new(info: ModelInfo, key: impl Into<Key>) -> Self {
        let info = Arc::new(info);
        let slot = format!("chat/{}", info.id);
        let encoder = encode::Encoder { info: Arc::clone(&info) };
        Self {
            inner: Arc::new(Inner {
                info,
                endpoint: endpoint(BASE_URL, key.into()),
                encoder,
                slot,
                heads: segments::Heads::default(),
            }),
        }
    }

    /// Sets another base URL, `/v1` included; `/chat/completions` is added.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        let inner = Arc::make_mut(&mut self.inner);
        let (key, timeouts) = (inner.endpoint.key().clone(), *inner.endpoint.timeouts());
        inner.endpoint = endpoint(url.as_ref(), key).with_timeouts(timeouts);
        self
    }

    /// Sets how long the model is waited for.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        let inner = Arc::make_mut(&mut self.inner);
        inner.endpoint = inner.endpoint.clone().with_timeouts(timeouts);
        self
    }
}

impl Model for Chat {
    fn info(&self) -> &ModelInfo {
        &self.inner.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        driver::stream(&self.inner, request)
    }
}

impl Wire for Inner {
    type Decoder = decode::Decoder;

    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn encode(&self, request: &Request) -> (Segmented, Vec<Warning>) {
        segments::encode(&self.slot, &self.info, &self.encoder, &self.heads, request)
    }

    fn decoder(&self, place: Place) -> decode::Decoder {
        decode::Decoder::new(self.info.id.clone(), place)
    }
}

fn endpoint(base_url: &str, key: Key) -> Endpoint {
    Endpoint::new(base_url, PATH, key, Auth::Bearer, &[])
}

#[cfg(test)]
mod tests;
