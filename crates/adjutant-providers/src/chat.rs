//! The OpenAI Chat Completions wire, which many other servers speak too: the model, and its authentication.

mod decode;
mod details;
mod encode;
mod wire;

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::ModelInfo;

use crate::{
    blocks::CallIdSeed,
    credentials::Key,
    dialect::Dialect,
    driver::Address,
    host::{Host, Wire, hosted},
};

/// A model behind an OpenAI Chat Completions API. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Chat {
    inner: Arc<Host<encode::Encoder>>,
}

impl Chat {
    /// Creates a model in the dialect of its provider, at its provider's address. Use `Key::none()` for servers
    /// without keys.
    ///
    /// The provider is the part of the model's id before the slash. An unknown provider has no address: set
    /// [`base_url`](Self::base_url).
    pub fn new(mut info: ModelInfo, key: impl Into<Key>) -> Self {
        let dialect = Dialect::for_provider(info.provider());
        info.cuts_silently |= dialect.silent_overflow;
        let protocol = encode::Encoder::new(&info, Cow::Borrowed(dialect));
        Self {
            inner: Host::new(Arc::new(info), protocol, &dialect.base_url, key.into()),
        }
    }

    /// Sets another base URL, the version included; `/chat/completions` is added.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        self.inner.set_base_url(url.as_ref());
        self
    }

    /// Sets another dialect. The base URL stays as it is.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        let mut info = self.inner.info().clone();
        info.cuts_silently = dialect.silent_overflow;
        self.inner.set_info(info.clone());
        self.inner
            .set_protocol(|protocol| protocol.set_dialect(&info, dialect));
        self
    }
}

hosted!(Chat);

impl Wire for encode::Encoder {
    type Decoder = decode::Decoder;

    fn address(&self, _: &ModelInfo) -> Address {
        Address::new(&*self.dialect().path).auth(self.dialect().key_header.into())
    }

    fn decoder(&self, info: &Arc<ModelInfo>, place: CallIdSeed) -> decode::Decoder {
        decode::Decoder::new(Arc::clone(info), self.dialect(), place)
    }
}

#[cfg(test)]
mod tests;
