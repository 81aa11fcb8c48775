//! The Gemini wire of Google's Generative Language API: the model, and its authentication.

mod decode;
mod encode;
mod head;
mod schema;
mod usage;
mod wire;

use std::{fmt::Write, sync::Arc};

use adjutant_llm::ModelInfo;

use crate::{
    blocks::CallIdSeed,
    credentials::Key,
    driver::{Address, Auth},
    host::{Host, Site, Wire, hosted},
};

const BASE_URL: &str = "https://generativelanguage.googleapis.com";

/// A model behind the Gemini API. Cloning is cheap.
///
/// Extra fields of a request are added to its body. Fields in `generationConfig` and `toolConfig` are merged with the
/// generated ones and take precedence.
#[derive(Debug, Clone)]
pub struct Gemini {
    inner: Arc<Host<encode::Encoder>>,
}

impl Gemini {
    /// A model at `https://generativelanguage.googleapis.com`.
    pub fn new(info: ModelInfo, key: impl Into<Key>) -> Self {
        let info = Arc::new(info);
        let protocol = encode::Encoder {
            info: Arc::clone(&info),
            site: Site::Own,
        };
        Self {
            inner: Host::new(info, protocol, BASE_URL, key.into()),
        }
    }

    /// Sets another base URL, without a version; `/v1beta/models/<name>:streamGenerateContent` is added.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        self.inner.set_base_url(url.as_ref());
        self
    }
}

impl Gemini {
    /// Sets where the API is served. At Vertex the base URL holds the project and the location:
    /// `https://<location>-aiplatform.googleapis.com/v1beta1/projects/<project>/locations/<location>`.
    #[must_use]
    pub fn site(mut self, site: Site) -> Self {
        self.inner.set_protocol(|encoder| encoder.site = site);
        self
    }
}

hosted!(Gemini);

impl Wire for encode::Encoder {
    type Decoder = decode::Decoder;

    /// Source: reference of `models.streamGenerateContent`, v1beta, 2026-11; `alt=sse` makes a list into events.
    fn address(&self, info: &ModelInfo) -> Address {
        let call = format!(
            "models/{}:streamGenerateContent?alt=sse",
            escape_segment(info.name())
        );
        match self.site {
            Site::Vertex => Address::new(format!("/publishers/google/{call}")),
            _ => Address::new(format!("/v1beta/{call}")).auth(Auth::Header("x-goog-api-key")),
        }
    }

    fn decoder(&self, info: &Arc<ModelInfo>, place: CallIdSeed) -> decode::Decoder {
        decode::Decoder::new(info, place)
    }
}

/// A name as one segment of a path, whatever it holds.
pub(crate) fn escape_segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            // A string takes everything.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

#[cfg(test)]
mod tests;
