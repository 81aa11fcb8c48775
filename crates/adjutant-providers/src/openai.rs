//! The OpenAI Responses wire: the model, and its authentication.

mod decode;
mod encode;
mod item;
mod items;
mod wire;

use std::sync::Arc;

use adjutant_llm::ModelInfo;

use crate::{
    blocks::CallIdSeed,
    credentials::Key,
    dialect::KeyHeader,
    driver::{Address, Auth},
    host::{Host, Wire, hosted},
};

const BASE_URL: &str = "https://api.openai.com/v1";

/// A model behind an OpenAI Responses API. Cloning is cheap.
///
/// Nothing is stored at the provider: each request holds the whole conversation, and reasoning goes back encrypted.
#[derive(Debug, Clone)]
pub struct OpenAi {
    inner: Arc<Host<encode::Encoder>>,
}

impl OpenAi {
    /// A model at `https://api.openai.com/v1`, with prompt caching.
    pub fn new(mut info: ModelInfo, key: impl Into<Key>) -> Self {
        // The wire does not support recordings.
        info.inputs.audio = false;
        // It is the wire that such a model needs.
        info.tools_need_responses = false;
        let info = Arc::new(info);
        let protocol = encode::Encoder {
            info: Arc::clone(&info),
            caching: encode::Caching::Vendor,
            auth: Auth::Bearer,
            query: "".into(),
        };
        Self {
            inner: Host::new(info, protocol, BASE_URL, key.into()),
        }
    }

    /// Sets another base URL, `/v1` included; `/responses` is added. The prompt cache is named at the vendor's own only.
    ///
    /// Azure has such a URL too, see [`azure`](Self::azure).
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        let own = url.as_ref().trim().trim_end_matches('/') == BASE_URL;
        self.inner.set_base_url(url.as_ref());
        let caching = if own {
            encode::Caching::Vendor
        } else {
            encode::Caching::Off
        };
        self.inner.set_protocol(|encoder| encoder.caching = caching);
        self
    }

    /// Names the conversation to the prompt cache, wherever the model is: for other hosts that know `prompt_cache_key`.
    #[must_use]
    pub fn cache_keys(mut self) -> Self {
        self.inner
            .set_protocol(|encoder| encoder.caching = encoder.caching.max(encode::Caching::Keys));
        self
    }

    /// Makes it a model on Azure with the base URL `https://<resource>.openai.azure.com/openai/v1`: the key is sent
    /// as `api-key`, and the prompt cache has the same name and settings as at OpenAI.
    #[must_use]
    pub fn azure(mut self) -> Self {
        self.inner
            .set_protocol(|encoder| encoder.caching = encode::Caching::Parameters);
        self.key_header(KeyHeader::ApiKey)
    }

    /// Sets the way in which the key is sent.
    pub(crate) fn key_header(mut self, header: KeyHeader) -> Self {
        self.inner
            .set_protocol(|encoder| encoder.auth = header.into());
        self
    }

    /// Sets a query of the address, for example `?api-version=preview`.
    pub(crate) fn query(mut self, query: &str) -> Self {
        self.inner
            .set_protocol(|encoder| encoder.query = query.into());
        self
    }
}

hosted!(OpenAi);

impl Wire for encode::Encoder {
    type Decoder = decode::Decoder;

    fn address(&self, _: &ModelInfo) -> Address {
        Address::new(format!("/responses{}", self.query)).auth(self.auth)
    }

    fn decoder(&self, info: &Arc<ModelInfo>, place: CallIdSeed) -> decode::Decoder {
        decode::Decoder::new(info, place)
    }
}

#[cfg(test)]
mod tests;
