//! The way to a server at an address: streamable HTTP.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use adjutant_llm::Cause;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig};
use rustls::{ClientConfig, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::{Error, ErrorKind, HttpConfig, stdio::MAX_MESSAGE};

/// The time in which a server takes a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The transport to a server.
///
/// # Errors
/// `Invalid` if a header is none, or there is no TLS.
pub(crate) fn transport(config: &HttpConfig) -> Result<StreamableHttpClientTransport<reqwest::Client>, Error> {
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let invalid = |_| Error::new(ErrorKind::Invalid, format!("{name:?} is no header that can be sent"));
        let key = HeaderName::try_from(&**name).map_err(|error| invalid(error.to_string()))?;
        let mut value = HeaderValue::try_from(&**value).map_err(|error| invalid(error.to_string()))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    let unbuilt = |error| Error::new(ErrorKind::Invalid, "could not build the HTTP client").with_source(error);
    let options = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&config.url))
        .custom_headers(headers)
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE);
    Ok(StreamableHttpClientTransport::with_client(client().map_err(unbuilt)?, options))
}

/// A client of this connection alone: connections belong to the runtime that made them.
fn client() -> Result<reqwest::Client, Cause> {
    static TLS: OnceLock<Result<ClientConfig, Cause>> = OnceLock::new();
    let tls = || {
        // A program may have chosen another provider for all of its TLS.
        let chosen = CryptoProvider::get_default().cloned();
        let crypto = chosen.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let config = ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
        let config = config.and_then(|config| config.with_platform_verifier());
        config.map(|config| config.with_no_client_auth()).map_err(Cause::from)
    };
    reqwest::Client::builder()
        .tls_backend_preconfigured(TLS.get_or_init(tls).clone()?)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(Cause::from)
}
