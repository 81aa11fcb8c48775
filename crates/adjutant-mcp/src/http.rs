//! Streamable HTTP with a client of ours: what is sent along, what is followed, how much is read, and what a refusal becomes.

use std::{
    collections::HashMap,
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use adjutant_llm::Cause;
use adjutant_toolkit::is_public;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{
    ClientBuilder, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::{Attempt, Policy},
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        StreamableHttpClientTransport,
        common::client_side_sse::ExponentialBackoff,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
            StreamableHttpPostResponse, StreamableHttpResponseLimits,
        },
    },
};
use rustls::{ClientConfig, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt as _;
use sse_stream::Sse;

use crate::{
    config::HttpConfig,
    error::{Error, ErrorKind},
    oauth,
    tokens::Source,
};

/// The largest message that is read, in bytes.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The largest part of a failed answer that is read, in bytes.
const MAX_FAILURE: usize = 64 * 1024;
/// The time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// The number of redirects that are followed for one request.
const MAX_HOPS: usize = 5;
/// The number of times that a broken stream is resumed, and the longest pause before one.
const MAX_RESUMES: usize = 8;
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// What the protocol says for itself, and a user's header cannot.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

type Failure = StreamableHttpError<reqwest::Error>;

/// A transport to a server, and what the server last refused in our own words.
///
/// # Errors
/// `Invalid` if the address or a header cannot be meant.
pub(crate) fn transport(
    name: &Arc<str>,
    config: &HttpConfig,
) -> Result<(StreamableHttpClientTransport<Client>, Refusals), Error> {
    let url = address(name, &config.url)?;
    let tokens = Source::of(name, config)?;
    if tokens.is_some() {
        may_carry_token(name, &url)?;
    }
    let refusals = Refusals::default();
    let client = Client {
        name: Arc::clone(name),
        http: build(direct(builder().redirect(Policy::custom(follow)), &url))?,
        tokens,
        refusals: refusals.clone(),
    };
    let mut settings = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers(name, config)?)
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE)
        .max_error_response_size(MAX_FAILURE);
    let mut retry = ExponentialBackoff::default();
    (retry.max_times, retry.max_delay) = (Some(MAX_RESUMES), Some(MAX_PAUSE));
    settings.retry_config = Arc::new(retry);
    Ok((StreamableHttpClientTransport::with_client(client, settings), refusals))
}

/// The last failure of a transport that the user can do something about: what the SDK says of it is less.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Option<Error>>>);

impl Refusals {
    /// Gives it, once.
    pub(crate) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, error: Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// Sends what the SDK makes, with the token of the server and no other.
#[derive(Clone)]
pub(crate) struct Client {
    name: Arc<str>,
    http: reqwest::Client,
    tokens: Option<Source>,
    refusals: Refusals,
}

impl Client {
    /// Sends a request with a token, and once more with another one if that is refused.
    async fn send<T, F>(&self, request: impl Fn(Option<String>) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut token = self.token(None).await?;
        let mut is_again = false;
        loop {
            let failure = match request(token.as_deref().map(str::to_owned)).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => plain(failure),
            };
            match (refusal(&failure), &token) {
                (Some(StatusCode::UNAUTHORIZED), Some(refused)) if !is_again => {
                    let other = self.token(Some(refused)).await?;
                    if other.is_some() && other != token {
                        (token, is_again) = (other, true);
                        continue;
                    }
                }
                _ => {}
            }
            self.note(&failure).await?;
            return Err(failure);
        }
    }

    async fn token(&self, refused: Option<&str>) -> Result<Option<Arc<str>>, Failure> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        tokens.token(refused).await.map_err(|error| self.own(error))
    }

    /// Keeps what a failure means to the user.
    async fn note(&self, failure: &Failure) -> Result<(), Failure> {
        let (name, hint) = (&self.name, oauth::hint(&self.name));
        let error = match (refusal(failure), failure) {
            (Some(StatusCode::FORBIDDEN), StreamableHttpError::InsufficientScope(needs)) => {
                let scopes = needs.required_scope.as_deref().unwrap_or_default();
                if let Some(tokens) = self.tokens.as_ref().filter(|_| !scopes.is_empty()) {
                    tokens.wants(scopes).await.map_err(|error| self.own(error))?;
                }
                let message = format!("the server `{name}` wants more scopes than its token has");
                Error::new(ErrorKind::Unauthorised, format!("{message}; hint: {hint}"))
            }
            (Some(StatusCode::UNAUTHORIZED), _) => {
                let message = format!("the server `{name}` wants a token that is not there");
                Error::new(ErrorKind::Unauthorised, format!("{message}; hint: {hint}"))
            }
            (_, StreamableHttpError::Client(error)) if error.is_redirect() => {
                let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
                let message = format!("the server `{name}` {why}; hint: if that is meant, give the new address");
                Error::new(ErrorKind::Protocol, message)
            }
            (_, StreamableHttpError::ResponseBodyTooLarge { max_size }) => {
                let message = format!("the server `{name}` answers with more than {max_size} bytes");
                Error::new(ErrorKind::Protocol, message)
            }
            _ => return Ok(()),
        };
        self.refusals.put(error);
        Ok(())
    }

    /// An error of ours, as one of the SDK's.
    fn own(&self, error: Error) -> Failure {
        self.refusals.put(error.clone());
        StreamableHttpError::Io(std::io::Error::other(error))
    }
}

/// The status of a refusal for want of a token, or of a better one.
fn refusal(failure: &Failure) -> Option<StatusCode> {
    match failure {
        StreamableHttpError::AuthRequired(_) => Some(StatusCode::UNAUTHORIZED),
        StreamableHttpError::InsufficientScope(_) => Some(StatusCode::FORBIDDEN),
        StreamableHttpError::Client(error) => error.status().filter(|status| *status == StatusCode::UNAUTHORIZED),
        // A server that names no way to sign in: the SDK keeps its status in a text.
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(StatusCode::UNAUTHORIZED)
        }
        _ => None,
    }
}

/// A failure without the address, which may hold a secret.
fn plain(failure: Failure) -> Failure {
    match failure {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let post = |token| {
            let (uri, message, session) = (Arc::clone(&uri), message.clone(), session.clone());
            self.http.post_message_with_response_limits(uri, message, session, token, headers.clone(), limits)
        };
        self.send(post).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let delete = |token| self.http.delete_session(Arc::clone(&uri), Arc::clone(&session), token, headers.clone());
        self.send(delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, MAX_MESSAGE).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let get = |token| {
            let (uri, session, last) = (Arc::clone(&uri), session.clone(), last.clone());
            self.http.get_stream_with_max_sse_event_size(uri, session, last, token, headers.clone(), most)
        };
        self.send(get).await
    }
}

/// The address of a server.
///
/// # Errors
/// `Invalid` if it is none of the web's, or holds credentials.
pub(crate) fn address(name: &str, url: &str) -> Result<Url, Error> {
    let invalid = |what: &str| {
        let message = format!("the address of the server `{name}` {what}; hint: it begins with https:// or http://");
        Err(Error::new(ErrorKind::Invalid, message))
    };
    match Url::parse(url) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => invalid("is none of the web's"),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            invalid("holds credentials, which belong into its headers")
        }
        Ok(url) => Ok(url),
        Err(error) => invalid(&format!("cannot be read ({error})")),
    }
}

/// Fails where a token could be read on its way.
pub(crate) fn may_carry_token(name: &str, url: &Url) -> Result<(), Error> {
    if url.scheme() == "https" || oauth::is_local(url) {
        return Ok(());
    }
    let message = format!("a token is sent over https alone, and the address of the server `{name}` is http");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// An address as it is shown: without what it asks for, and without credentials.
pub(crate) fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "(no address)".to_owned(),
    }
}

/// The headers of every request.
///
/// # Errors
/// `Invalid`, with the name of a header that cannot be sent and never its value.
pub(crate) fn headers(name: &str, config: &HttpConfig) -> Result<HashMap<HeaderName, HeaderValue>, Error> {
    let read = |(header, value): (&Arc<str>, &Arc<str>)| {
        let invalid = |what| {
            let message = format!("the header {header:?} of the server `{name}` {what}");
            Err(Error::new(ErrorKind::Invalid, message))
        };
        let Ok(key) = HeaderName::try_from(&**header) else { return invalid("has a name that no header has") };
        if RESERVED.contains(&key.as_str()) {
            return invalid("is one that the protocol sets itself");
        }
        let Ok(mut value) = HeaderValue::try_from(&**value) else { return invalid("has a value that cannot be sent") };
        value.set_sensitive(true);
        Ok((key, value))
    };
    config.headers.iter().map(read).collect()
}

/// Follows a redirect within the origin that keeps the request as it is, and no other.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_same = attempt.previous().first().is_some_and(|from| from.origin() == attempt.url().origin());
    let to = attempt.url().origin().ascii_serialization();
    match (keeps, is_same) {
        // Whoever is there would get the headers, and may be a machine that only this one reaches.
        (_, false) => attempt.error(format!("redirects to {to}, which is not followed")),
        (false, true) => attempt.error("redirects in a way that would lose the request"),
        (true, true) if attempt.previous().len() > MAX_HOPS => attempt.error("redirects without end"),
        (true, true) => attempt.follow(),
    }
}

/// What every client of this crate has in common.
pub(crate) fn builder() -> ClientBuilder {
    reqwest::Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        .retry(reqwest::retry::never())
        .referer(false)
        // A server may close what it answered on without a word, and what was sent is not sent again.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
}

/// Without the environment's proxy where a server is on this machine.
pub(crate) fn direct(builder: ClientBuilder, server: &Url) -> ClientBuilder {
    let host = server.host_str().unwrap_or_default();
    let is_here = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    if is_here { builder.no_proxy() } else { builder }
}

pub(crate) fn build(builder: ClientBuilder) -> Result<reqwest::Client, Error> {
    static TLS: OnceLock<Result<ClientConfig, Cause>> = OnceLock::new();
    let tls = || {
        // A program may have chosen another provider for all of its TLS.
        let chosen = CryptoProvider::get_default().cloned();
        let crypto = chosen.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let config = ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
        let config = config.and_then(|config| config.with_platform_verifier());
        config.map(|config| config.with_no_client_auth()).map_err(Cause::from)
    };
    let unbuilt = || Error::new(ErrorKind::Unavailable, "there is no HTTP client");
    let tls = TLS.get_or_init(tls).clone().map_err(|cause| unbuilt().with_source(cause))?;
    builder.tls_backend_preconfigured(tls).build().map_err(|error| unbuilt().with_source(error))
}

/// Resolves names to addresses that everybody has, and those of the environment's proxies to any.
#[derive(Debug)]
pub(crate) struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            match found.iter().find(|found| !is_public(found.ip())) {
                // One bad address spoils the name: who gives both kinds tries out which one is taken.
                Some(at) if !is_proxy(host) => {
                    Err(format!("{host} is at {}, an address that is not public", at.ip()).into())
                }
                _ => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

fn is_proxy(host: &str) -> bool {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let hosts = names.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        let url =
            Url::parse(&value).ok().filter(Url::has_host).or_else(|| Url::parse(&format!("http://{value}")).ok())?;
        url.host_str().map(str::to_owned)
    });
    hosts.into_iter().any(|known| known.eq_ignore_ascii_case(host))
}
