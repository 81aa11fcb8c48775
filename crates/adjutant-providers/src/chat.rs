//! The OpenAI Chat Completions wire, which many other servers speak too: the model, and how it says who is asking.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use adjutant_llm::ModelInfo;

use crate::{
    blocks::Place,
    credentials::Key,
    driver::{Address, Auth},
    host::{Host, Protocol, hosted},
};

const BASE_URL: &str = "https://api.openai.com/v1";

/// A model behind an OpenAI Chat Completions API. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Chat {
    inner: Arc<Host<encode::Encoder>>,
}

impl Chat {
    /// A model at `https://api.openai.com/v1`; `Key::none()` is for servers that ask for no key.
    pub fn new(info: ModelInfo, key: impl Into<Key>) -> Self {
        let info = Arc::new(info);
        let protocol = encode::Encoder { info: Arc::clone(&info) };
        Self { inner: Host::new(info, protocol, BASE_URL, key.into()) }
    }

    /// Sets another base URL, `/v1` included; `/chat/completions` is added.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        self.inner.set_base_url(url.as_ref());
        self
    }
}

hosted!(Chat);

impl Protocol for encode::Encoder {
    type Decoder = decode::Decoder;

    fn address(&self, _: &ModelInfo) -> Address {
        Address { path: "/chat/completions".to_owned(), auth: Auth::Bearer, headers: &[] }
    }

    fn decoder(&self, info: &Arc<ModelInfo>, place: Place) -> decode::Decoder {
        decode::Decoder::new(info.id.clone(), place)
    }
}

#[cfg(test)]
mod tests;
