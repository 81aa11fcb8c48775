//! The target of requests: the address and headers, made once.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use adjutant_llm::{Error, ErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use reqwest::{Client, Url};

use super::clients::{Route, client};
use crate::{
    credentials::{Key, Secrets},
    sse::Framing,
};

/// The longest times that a model is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until a connection stands; 10 s by default.
    pub connect: Duration,
    /// From the request to the first byte of the answer's events; 120 s by default.
    pub first_byte: Duration,
    /// Between two events of the answer, whatever comments come between them; 120 s by default.
    pub idle: Duration,
}

/// The way in which a wire says who is asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `Authorization: Bearer <key>`.
    #[default]
    Bearer,
    /// The key alone, under this header.
    Header(&'static str),
}

/// The address of requests below a base URL, and what they say beside the body.
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

    /// Sets how the wire says who is asking.
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
    /// An endpoint; what is wrong with it is said when it is used.
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

    /// The client and a request with this body, these headers beside our own, and this secret instead of the key. The
    /// values of `lists` are joined with those that the endpoint and the caller have under the same names.
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
    /// Signs a request with this body, if that is wished: as it is after an observer has rewritten it.
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

/// Headers that say where a request goes and how it is framed; the client alone writes them.
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

/// Adds headers that a caller gave; they may hold secrets.
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
        // Without a slash, what is added would go on with the host.
        if !address.path.is_empty() && !address.path.starts_with('/') {
            return Err(config(format!(
                "a path begins with a slash: {:?}",
                address.path
            )));
        }
        let url = base_of(base).and_then(|_| Url::parse(&format!("{base}{}", address.path)).ok());
        // The address is not repeated: it may hold a password, or a key that was put in the wrong place.
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
    pub fn new() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
        }
    }

    /// Sets how long a connection may take.
    #[must_use]
    pub fn connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets how long the first byte of the answer's events may take.
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
