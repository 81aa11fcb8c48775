//! The target of requests: the address and headers, made once.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use adjutant_llm::{Error, ErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};

use super::clients::{Route, client};
use crate::{
    credentials::{Key, Secrets},
    sse::Framing,
};

/// The longest times that a model is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until a connection is established; 10 s by default.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body, which may be a comment; 10 min by default.
    pub first_byte: Duration,
    /// Between two pieces of the answer, whatever they hold; 5 min by default. Comments, keep-alive events and empty data
    /// show that the server is alive.
    pub idle: Duration,
    /// Without content: text, thinking, a call or usage, whatever else keeps the connection alive; 30 min by default.
    pub silence: Duration,
    /// From the request to the end of the answer; no limit by default.
    pub total: Option<Duration>,
}

/// Times of [`Timeouts`] that are set to something else.
///
/// Shape: `{"first_byte": "10m", "idle": 90}`: seconds, or texts such as `1h30m` and `1.5s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TimeoutsPatch {
    /// [`Timeouts::connect`].
    #[serde(with = "length", skip_serializing_if = "Option::is_none")]
    pub connect: Option<Duration>,
    /// [`Timeouts::first_byte`].
    #[serde(with = "length", skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Duration>,
    /// [`Timeouts::idle`].
    #[serde(with = "length", skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// [`Timeouts::silence`].
    #[serde(with = "length", skip_serializing_if = "Option::is_none")]
    pub silence: Option<Duration>,
    /// [`Timeouts::total`].
    #[serde(with = "length", skip_serializing_if = "Option::is_none")]
    pub total: Option<Duration>,
}

/// A length of time in JSON.
mod length {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    use crate::limits::go_duration;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Length {
        Seconds(f64),
        Text(String),
    }

    pub(super) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(length.unwrap_or_default().as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let length = match Length::deserialize(deserializer)? {
            Length::Seconds(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            Length::Text(text) => go_duration(&text),
        };
        let wrong =
            || D::Error::custom("a time must be seconds or a text such as \"10m\", above zero");
        length
            .filter(|it| !it.is_zero())
            .map(Some)
            .ok_or_else(wrong)
    }
}

impl TimeoutsPatch {
    /// The same with the times that another one sets.
    #[must_use]
    pub fn merge(self, by: Self) -> Self {
        Self {
            connect: by.connect.or(self.connect),
            first_byte: by.first_byte.or(self.first_byte),
            idle: by.idle.or(self.idle),
            silence: by.silence.or(self.silence),
            total: by.total.or(self.total),
        }
    }
}

/// The way in which a wire sends the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `Authorization: Bearer <key>`.
    #[default]
    Bearer,
    /// The key alone, under this header.
    Header(&'static str),
}

/// The address of requests below a base URL, and their fixed headers and framing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) path: String,
    auth: Auth,
    headers: &'static [(&'static str, &'static str)],
    framing: Framing,
}

/// The place that the requests of a model go to.
#[derive(Clone)]
pub(crate) struct Endpoint {
    base_url: Arc<str>,
    address: Address,
    key: Key,
    headers: BTreeMap<String, String>,
    timeouts: Timeouts,
    target: Result<RequestTarget, Error>,
    secrets: Secrets,
}

#[derive(Clone)]
struct RequestTarget {
    url: Url,
    headers: HeaderMap,
    host: Arc<str>,
    route: Route,
}

impl Address {
    /// The address with this path and query, which are added to the base URL; a path begins with a slash.
    ///
    /// A key goes as a bearer, and the answer is an event stream, unless something else is set.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            auth: Auth::Bearer,
            headers: &[],
            framing: Framing::Events,
        }
    }

    /// Sets the way in which the wire sends the key.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets the headers that every request has.
    #[must_use]
    pub fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Sets the form of the answer.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }
}

impl Endpoint {
    /// Creates an endpoint. Errors in its configuration are returned when it is used.
    pub(crate) fn new(base_url: &str, address: Address, key: Key) -> Self {
        let (headers, timeouts) = (BTreeMap::new(), Timeouts::default());
        let target = RequestTarget::new(base_url, &address, &key, &headers);
        let mut secrets = Secrets::default();
        secrets.add(key.expose().map_or("", |key| key));
        #[cfg(feature = "sigv4")]
        key.signer()
            .into_iter()
            .flat_map(|it| it.secrets())
            .for_each(|secret| secrets.add(&secret));
        Self {
            base_url: base_url.into(),
            address,
            key,
            headers,
            timeouts,
            target,
            secrets,
        }
    }

    /// The same at another base URL.
    pub(crate) fn at(&self, base_url: &str, address: Address) -> Self {
        let mut moved = Self {
            base_url: base_url.into(),
            ..self.clone()
        };
        moved.set_address(address);
        moved
    }

    /// The same at another base URL, below which nothing changes.
    pub(crate) fn to(&self, base_url: &str) -> Self {
        self.at(base_url, self.address.clone())
    }

    pub(crate) fn set_address(&mut self, address: Address) {
        self.address = address;
        self.target = RequestTarget::new(&self.base_url, &self.address, &self.key, &self.headers);
    }

    pub(crate) fn set_headers(&mut self, headers: BTreeMap<String, String>) {
        self.secrets.add_headers(&headers);
        self.headers = headers;
        self.target = RequestTarget::new(&self.base_url, &self.address, &self.key, &self.headers);
    }

    pub(crate) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn framing(&self) -> Framing {
        self.address.framing
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the secrets that may not be seen of any request.
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    /// The host and port, for messages.
    pub(crate) fn host(&self) -> &str {
        self.target.as_ref().map_or("", |target| &target.host)
    }

    /// The address of requests without its query, for messages.
    pub(crate) fn url(&self) -> &str {
        let url = self.target.as_ref().map_or("", |it| it.url.as_str());
        url.split('?').next().unwrap_or_default()
    }

    /// Returns the client and a request with this body, these additional headers, and this secret instead of the key.
    /// The values of `lists` are joined with the values that the endpoint and the caller set under the same names.
    ///
    /// # Errors
    /// `Config` if the address, the key or a header cannot be used.
    pub(crate) fn request(
        &self,
        lists: &[(&'static str, &'static str)],
        extra: &BTreeMap<String, String>,
        secret: Option<&str>,
        body: reqwest::Body,
    ) -> Result<(Client, reqwest::Request), Error> {
        let target = self.target.as_ref().map_err(Clone::clone)?;
        let mut request = reqwest::Request::new(Method::POST, target.url.clone());
        *request.headers_mut() = target.headers.clone();
        if let Some(secret) = secret {
            let auth = if self.key.is_token() {
                Auth::Bearer
            } else {
                self.address.auth
            };
            let (name, value) = auth.header(secret)?;
            request.headers_mut().insert(name, value);
        }
        let headers = request.headers_mut();
        let fixed: Vec<_> = lists
            .iter()
            .map(|(name, _)| headers.get(*name).cloned())
            .collect();
        insert(extra, headers)?;
        for ((name, value), fixed) in lists.iter().zip(fixed) {
            join(headers, name, value, fixed)?;
        }
        *request.body_mut() = Some(body);
        Ok((client(self.timeouts.connect, target.route)?, request))
    }
}

#[cfg(feature = "sigv4")]
impl Endpoint {
    /// Signs a request with this body, if its key is a signing key, after an observer has rewritten it.
    ///
    /// # Errors
    /// `Config` if the keys or a header cannot be used.
    pub(crate) fn sign(
        &self,
        request: &mut reqwest::Request,
        body: impl Iterator<Item = bytes::Bytes>,
    ) -> Result<(), Error> {
        let Some(signer) = self.key.signer() else {
            return Ok(());
        };
        let rewritten = request
            .body()
            .and_then(reqwest::Body::as_bytes)
            .map(bytes::Bytes::copy_from_slice);
        let now = std::time::SystemTime::now();
        match rewritten {
            Some(bytes) => signer.sign(request, std::iter::once(bytes), now),
            None => signer.sign(request, body, now),
        }
    }
}

impl Auth {
    /// The header that holds this secret.
    fn header(self, secret: &str) -> Result<(HeaderName, HeaderValue), Error> {
        let (name, text) = match self {
            Auth::Header(name) => (own_name(name)?, secret.to_owned()),
            Auth::Bearer => (header::AUTHORIZATION, format!("Bearer {secret}")),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| {
            Error::new(
                ErrorKind::Config,
                "the key holds characters that no header can carry",
            )
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

/// The name of a header of a wire's own.
fn own_name(name: &str) -> Result<HeaderName, Error> {
    HeaderName::try_from(name).map_err(|_| unsendable(name))
}

fn unsendable(name: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!("the header {name:?} cannot be sent"),
    )
}

/// Headers for routing and framing; only the client writes them.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Adds the caller's headers, which can contain secrets.
fn insert(from: &BTreeMap<String, String>, into: &mut HeaderMap) -> Result<(), Error> {
    for (name, value) in from {
        let header = HeaderName::try_from(name.as_str())
            .ok()
            .zip(HeaderValue::try_from(value.as_str()).ok());
        let header = header.filter(|(name, _)| {
            !FRAMING.contains(&name.as_str()) && !name.as_str().starts_with("proxy-")
        });
        let Some((name, mut value)) = header else {
            return Err(unsendable(name));
        };
        value.set_sensitive(true);
        into.insert(name, value);
    }
    Ok(())
}

/// Sets a header to the list of the values of the wire, the endpoint and the caller, each value once.
fn join(
    headers: &mut HeaderMap,
    name: &'static str,
    value: &str,
    fixed: Option<HeaderValue>,
) -> Result<(), Error> {
    let given = headers.get(name).cloned();
    let texts = fixed.iter().chain(&given).map(HeaderValue::to_str);
    let texts: Vec<&str> = texts
        .collect::<Result<_, _>>()
        .map_err(|_| unsendable(name))?;
    let mut values: Vec<&str> = Vec::new();
    for value in texts.iter().flat_map(|it| it.split(',')).chain([value]) {
        if !values.contains(&value.trim()) {
            values.push(value.trim());
        }
    }
    let value = HeaderValue::try_from(values.join(",")).map_err(|_| unsendable(name))?;
    headers.insert(own_name(name)?, value);
    Ok(())
}

impl RequestTarget {
    fn new(
        base_url: &str,
        address: &Address,
        key: &Key,
        extra: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let config = |text: String| Error::new(ErrorKind::Config, text);
        let base = base_url.trim().trim_end_matches('/');
        // Without a slash, the path would extend the host.
        if !address.path.is_empty() && !address.path.starts_with('/') {
            return Err(config(format!(
                "a path must begin with a slash: {:?}",
                address.path
            )));
        }
        let url = base_of(base).and_then(|_| Url::parse(&join_url(base, &address.path)).ok());
        // The address is not part of the message: it can contain a password, or a misplaced key.
        let url = url.ok_or_else(|| {
            let form = "https://host/path, without a user, a query or a fragment";
            config(format!(
                "the base URL cannot be used: it does not have the form {form}"
            ))
        })?;
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let accept = match address.framing {
            Framing::Events => "text/event-stream",
            Framing::Lines => "application/x-ndjson",
        };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("adjutant/", env!("CARGO_PKG_VERSION"))),
        );
        for (name, value) in address.headers {
            let value = HeaderValue::try_from(*value).map_err(|_| unsendable(name))?;
            headers.insert(own_name(name)?, value);
        }
        if let Some(secret) = key.expose() {
            let (name, value) = address.auth.header(secret)?;
            headers.insert(name, value);
        }
        insert(extra, &mut headers)?;
        let name = url.host_str().unwrap_or_default();
        let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        let loopback = name == "localhost" || address.is_ok_and(|address| address.is_loopback());
        let route = if loopback {
            Route::Loopback
        } else {
            Route::Outside
        };
        let host = match url.port() {
            Some(port) => format!("{name}:{port}").into(),
            None => name.into(),
        };
        Ok(Self {
            url,
            headers,
            host,
            route,
        })
    }
}

/// The operations with which base URLs are often given.
const OPERATIONS: [&str; 5] = [
    "/chat/completions",
    "/responses",
    "/messages",
    "/embeddings",
    "/models",
];

/// The address of a path below a base URL, which may end in an operation, or in the version with which the path starts.
fn join_url(base: &str, path: &str) -> String {
    let base = OPERATIONS
        .iter()
        .find_map(|it| base.strip_suffix(it))
        .unwrap_or(base);
    let last = base
        .rsplit_once('/')
        .filter(|(before, _)| !before.ends_with('/'))
        .and_then(|(_, last)| version(last));
    let (first, rest) = path
        .get(1..)
        .and_then(|it| it.split_once('/'))
        .unwrap_or_default();
    if last.is_some() && last == version(first) {
        format!("{base}/{rest}")
    } else {
        format!("{base}{path}")
    }
}

/// The number of a version such as `v1` or `v1beta`.
fn version(segment: &str) -> Option<&str> {
    let name = segment.strip_prefix('v')?;
    let number = name.trim_end_matches(|it: char| it.is_ascii_lowercase());
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    is_number.then_some(number)
}

/// A base URL that requests can be sent to.
fn base_of(base: &str) -> Option<Url> {
    let authority = base
        .strip_prefix("https://")
        .or_else(|| base.strip_prefix("http://"))?;
    let url = Url::parse(base).ok()?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    (plain && url.has_host() && !authority.starts_with(['/', '?', '#'])).then_some(url)
}

impl fmt::Debug for Endpoint {
    /// The base URL may hold a password, and the headers may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("target", &self.target)
            .field("key", &self.key)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RequestTarget {
    /// The address may hold a password, and the headers hold the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("host", &self.host)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl Timeouts {
    /// The defaults.
    ///
    /// Source: `DEFAULT_TIMEOUT` of openai-python and anthropic-sdk-python (10 min), and `stream_idle_timeout_ms` of codex
    /// (5 min), 2026-11.
    pub fn new() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            silence: Duration::from_secs(1_800),
            total: None,
        }
    }

    /// The same with the times that a patch sets.
    #[must_use]
    pub fn apply(self, patch: TimeoutsPatch) -> Self {
        Self {
            connect: patch.connect.unwrap_or(self.connect),
            first_byte: patch.first_byte.unwrap_or(self.first_byte),
            idle: patch.idle.unwrap_or(self.idle),
            silence: patch.silence.unwrap_or(self.silence),
            total: patch.total.or(self.total),
        }
    }

    /// Sets how long a connection may take.
    #[must_use]
    pub fn connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets how long the first byte of the answer's body may take.
    #[must_use]
    pub fn first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = limit;
        self
    }

    /// Sets how long the answer may pause.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// Sets how long the answer may go without content.
    #[must_use]
    pub fn silence(mut self, limit: Duration) -> Self {
        self.silence = limit;
        self
    }

    /// Sets how long the whole answer may take.
    #[must_use]
    pub fn total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base_url: &str, host: &str, route: Route) {
        let address = Address::new("/p");
        let endpoint = Endpoint::new(base_url, address, Key::none());
        let target = endpoint.target.as_ref().expect("a target");
        assert_eq!((endpoint.host(), target.route), (host, route), "{base_url}");
    }

    #[test]
    fn proxy_is_out_of_the_way_when_a_server_is_on_this_machine() {
        check(
            "http://127.0.0.1:8080/v1",
            "127.0.0.1:8080",
            Route::Loopback,
        );
        check("http://127.7.7.7", "127.7.7.7", Route::Loopback);
        check("http://[::1]:80/v1/", "[::1]", Route::Loopback);
        check("http://LOCALHOST:1234", "localhost:1234", Route::Loopback);
        check(
            "https://localhost.example",
            "localhost.example",
            Route::Outside,
        );
        check(
            "https://api.openai.com/v1",
            "api.openai.com",
            Route::Outside,
        );
        check("http://10.0.0.1", "10.0.0.1", Route::Outside);
    }

    #[test]
    fn address_is_whole_when_the_base_holds_a_version_or_an_operation() {
        let (chat, messages) = ("/chat/completions", "/v1/messages");
        let gemini = "/v1beta/models/m:streamGenerateContent?alt=sse";
        for (base, path, expect) in [
            ("https://a.example/v1", chat, "/v1/chat/completions"),
            ("https://a.example/v1/", chat, "/v1/chat/completions"),
            (
                "https://a.example/v1/chat/completions",
                chat,
                "/v1/chat/completions",
            ),
            (
                "https://a.example/v1/responses",
                chat,
                "/v1/chat/completions",
            ),
            (
                "https://a.example/openai/v1",
                "/v1/chat/completions",
                "/openai/v1/chat/completions",
            ),
            ("https://a.example", messages, "/v1/messages"),
            ("https://a.example/v1", messages, "/v1/messages"),
            ("https://a.example/v1/messages/", messages, "/v1/messages"),
            (
                "https://a.example/anthropic/v1",
                messages,
                "/anthropic/v1/messages",
            ),
            (
                "https://a.example/team/v2",
                messages,
                "/team/v2/v1/messages",
            ),
            (
                "https://a.example",
                gemini,
                "/v1beta/models/m:streamGenerateContent",
            ),
            (
                "https://a.example/v1beta",
                gemini,
                "/v1beta/models/m:streamGenerateContent",
            ),
            (
                "https://a.example/v1beta/models",
                gemini,
                "/v1beta/models/m:streamGenerateContent",
            ),
            (
                "https://a.example/v1",
                gemini,
                "/v1/models/m:streamGenerateContent",
            ),
            ("https://v1", messages, "/v1/messages"),
        ] {
            let endpoint = Endpoint::new(base, Address::new(path), Key::none());
            let url = endpoint.url();
            let (_, rest) = url.split_once("://").expect("a scheme");
            let path = &rest[rest.find('/').unwrap_or(rest.len())..];
            assert_eq!(path, expect, "{base}");
        }
    }

    #[test]
    fn path_is_refused_when_it_would_go_on_with_the_host() {
        for path in ["@evil.example/v1", ".evil.example/v1", ":1/v1"] {
            let address = Address::new(path);
            assert!(
                Endpoint::new("https://api.openai.com", address, Key::none())
                    .target
                    .is_err(),
                "{path:?}"
            );
        }
    }

    #[test]
    fn headers_are_refused_when_they_say_where_a_request_goes() {
        for (name, is_sent) in [
            ("Host", false),
            ("transfer-encoding", false),
            ("Proxy-Authorization", false),
            ("x-team", true),
        ] {
            let from = BTreeMap::from([(name.to_owned(), "evil.example".to_owned())]);
            assert_eq!(
                insert(&from, &mut HeaderMap::new()).is_ok(),
                is_sent,
                "{name}"
            );
        }
    }

    #[test]
    fn list_headers_are_joined_when_endpoint_and_caller_have_values() {
        let of = |value: &str| BTreeMap::from([("Anthropic-Beta".to_owned(), value.to_owned())]);
        let cases = [
            ("", "", "wire-1"),
            ("a-1", "", "a-1,wire-1"),
            ("", "b-1, c-1", "b-1,c-1,wire-1"),
            ("a-1,b-1", "b-1,wire-1", "a-1,b-1,wire-1"),
        ];
        for (ours, theirs, expect) in cases {
            let mut endpoint = Endpoint::new("http://127.0.0.1:1", Address::new("/p"), Key::none());
            if !ours.is_empty() {
                endpoint.set_headers(of(ours));
            }
            let extra = if theirs.is_empty() {
                BTreeMap::new()
            } else {
                of(theirs)
            };
            let (_, request) = endpoint
                .request(&[("anthropic-beta", "wire-1")], &extra, None, "".into())
                .expect("a request");
            assert_eq!(
                request.headers()["anthropic-beta"],
                expect,
                "{ours} {theirs}"
            );
        }
    }
}
