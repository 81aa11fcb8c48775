//! The Anthropic Messages wire: the model, and its authentication.

mod decode;
mod encode;
mod head;
mod usage;
mod wire;

use std::sync::Arc;

use adjutant_llm::{Error, ModelInfo};

use crate::{
    blocks::CallIdSeed,
    credentials::Key,
    driver::{Address, Auth},
    gemini::escape_segment,
    host::{Host, Remedy, Site, Wire, hosted},
};

const BASE_URL: &str = "https://api.anthropic.com";
/// Source: Anthropic's versioning page, 2026-08: the only version of the API. The default output limit for a model
/// without a known one: every model on this wire since Claude 3.5 allows it.
///
/// Source: "Models overview", platform.claude.com, 2026-11.
const UNKNOWN_OUTPUT: u64 = 8_192;
pub(crate) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// A model behind the Anthropic Messages API. Cloning is cheap.
///
/// If a paused reply is the last message, the API continues it. Any other reply in that place is left to the caller:
/// models since Opus 4.7 refuse to continue one. The `anthropic-beta` header of a request's options enables beta
/// features. Fields next to the reply (`stop_details`, `container`, `context_management`) are stored in its raw
/// usage.
#[derive(Debug, Clone)]
pub struct Anthropic {
    inner: Arc<Host<encode::Encoder>>,
}

impl Anthropic {
    /// A model at `https://api.anthropic.com`, with prompt caching.
    pub fn new(mut info: ModelInfo, key: impl Into<Key>) -> Self {
        // The wire does not support recordings.
        info.inputs.audio = false;
        // The wire requires a limit.
        if info.max_output_tokens == 0 {
            info.max_output_tokens = UNKNOWN_OUTPUT;
        }
        let info = Arc::new(info);
        let caching = encode::Caching::Marks;
        let protocol = encode::Encoder {
            info: Arc::clone(&info),
            caching,
            site: Site::Own,
            controls: encode::Controls::default(),
        };
        Self {
            inner: Host::new(info, protocol, BASE_URL, key.into()),
        }
    }

    /// Sets another base URL; `/v1/messages` is added. The prompt cache is marked at the vendor's own only.
    #[must_use]
    pub fn base_url(mut self, url: impl AsRef<str>) -> Self {
        let own = url.as_ref().trim().trim_end_matches('/') == BASE_URL;
        self.inner.set_base_url(url.as_ref());
        let caching = if own {
            encode::Caching::Marks
        } else {
            encode::Caching::Off
        };
        self.inner.set_protocol(|encoder| {
            encoder.caching = caching;
            encoder.controls = encode::Controls::default();
        });
        self
    }

    /// Marks the prompt cache, wherever the model is: for other hosts that know the vendor's marks.
    #[must_use]
    pub fn cache_marks(mut self) -> Self {
        self.inner
            .set_protocol(|encoder| encoder.caching = encode::Caching::Marks);
        self
    }
}

impl Anthropic {
    /// Sets where the API is served. The prompt cache is marked on each; set it after the base URL.
    ///
    /// At Vertex the base URL holds the project and the location:
    /// `https://<location>-aiplatform.googleapis.com/v1/projects/<project>/locations/<location>`.
    #[must_use]
    pub fn site(mut self, site: Site) -> Self {
        self.inner.set_protocol(|encoder| {
            encoder.site = site;
            encoder.controls = encode::Controls::default();
            if site != Site::Own {
                encoder.caching = encode::Caching::Marks;
            }
        });
        self
    }
}

hosted!(Anthropic);

impl Wire for encode::Encoder {
    type Decoder = decode::Decoder;

    /// Source: "Claude on Vertex AI", platform.claude.com, and "Use an Amazon Bedrock API key", docs.aws.amazon.com, 2026-11.
    fn address(&self, info: &ModelInfo) -> Address {
        let own = Address::new("/v1/messages").headers(&[VERSION]);
        match self.site {
            Site::Own => own.auth(Auth::Header("x-api-key")),
            Site::Bedrock => own,
            Site::Vertex => Address::new(format!(
                "/publishers/anthropic/models/{}:streamRawPredict",
                escape_segment(info.name())
            )),
        }
    }

    fn list_headers(&self, _: &ModelInfo) -> &'static [(&'static str, &'static str)] {
        if self.asks_to_drop() {
            wire::betas(self.site)
        } else {
            &[]
        }
    }

    fn remedy(&self, refusal: &Error) -> Option<Remedy> {
        encode::remedy(self, refusal)
    }

    fn decoder(&self, info: &Arc<ModelInfo>, place: CallIdSeed) -> decode::Decoder {
        decode::Decoder::new(info, place)
    }
}

#[cfg(test)]
pub(crate) mod tests;
