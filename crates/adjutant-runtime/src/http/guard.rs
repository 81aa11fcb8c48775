//! Authenticates requests: the token or the cookie of the web UI, the host, and the origin.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adjutant_llm::secret::is_same;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    MAX_REQUEST_BYTES,
    error::{Problem, too_long},
    page,
};
use crate::ErrorKind;

/// The routes that need no token.
pub(super) const READY: &str = "/v1/ready";
pub(super) const CARD: &str = "/.well-known/agent-card.json";

/// The credentials of clients, and the port.
pub(crate) struct Keys {
    pub(crate) token: Arc<str>,
    pub(crate) port: u16,
    /// The secret in the cookie of the web UI; `None` without a web UI.
    pub(crate) visitor: Option<Arc<str>>,
}

impl Keys {
    /// Returns the name of the cookie. It contains the port, because cookies apply to all ports of a host.
    pub(super) fn cookie(&self) -> String {
        format!("adjutant-{}", self.port)
    }

    /// True if a request has the cookie of the web UI.
    fn is_visitor(&self, headers: &HeaderMap) -> bool {
        let Some(secret) = &self.visitor else {
            return false;
        };
        let cookies = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|it| it.to_str().ok());
        let name = self.cookie();
        let mut shown = cookies
            .flat_map(|it| it.split(';'))
            .filter_map(|it| it.trim().split_once('='));
        shown.any(|(key, value)| key == name && is_same(value.as_bytes(), secret.as_bytes()))
    }
}

/// The state of a connection: set when it has sent the token.
#[derive(Debug, Clone, Default)]
pub(super) struct ShownToken(Arc<AtomicBool>);

impl ShownToken {
    /// True if the connection has sent the token.
    pub(super) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The header, and its value, that the web UI must send with changes. Forms of other pages cannot send it.
const MARK: (&str, &str) = ("x-adjutant", "1");

/// Passes a request on if it is for this agent and has the token, or the cookie of the web UI.
pub(super) async fn guard(State(keys): State<Arc<Keys>>, request: Request, next: Next) -> Response {
    let mut response = checked(&keys, request, next).await;
    if keys.visitor.is_some() {
        page::protect(response.headers_mut());
    }
    response
}

async fn checked(keys: &Keys, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let refused = |why| Problem::new(StatusCode::FORBIDDEN, ErrorKind::Denied, why).into_response();
    if !is_own(headers, keys.port) {
        // A web page whose domain name resolves to this address is not a trusted client.
        return refused("the request is for another host");
    }
    if !headers
        .get_all(header::ORIGIN)
        .iter()
        .all(|origin| is_own_origin(origin, keys.port))
    {
        // The page may have the token, but is not ours.
        return refused("the request is from a page of another origin");
    }
    let path = request.uri().path();
    let is_open = path == READY || path == CARD || (keys.visitor.is_some() && page::is_file(path));
    let is_known = shows(headers, &keys.token);
    let is_visitor = !is_known && keys.is_visitor(headers);
    if is_visitor && !is_open {
        // A browser also sends the cookie with requests of other pages on this host.
        if headers
            .get("sec-fetch-site")
            .is_some_and(|site| site != "same-origin" && site != "none")
        {
            return refused("the request is from another page");
        }
        if !request.method().is_safe() && headers.get(MARK.0).is_none_or(|value| value != MARK.1) {
            return refused("the header `X-Adjutant: 1` is missing");
        }
    }
    if !is_open && !is_known && !is_visitor {
        let problem = Problem::new(
            StatusCode::UNAUTHORIZED,
            ErrorKind::Denied,
            "the token is missing or wrong",
        );
        return ([(header::WWW_AUTHENTICATE, "Bearer")], problem).into_response();
    }
    if let Some(shown) = request.extensions().get::<ShownToken>()
        && (is_known || is_visitor)
    {
        shown.0.store(true, Ordering::Relaxed);
    }
    // Checked before the body is read.
    let length = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > MAX_REQUEST_BYTES as u64) {
        return Problem::from(too_long()).into_response();
    }
    next.run(request).await
}

/// True if the host of the request is this address, by one of the names of loopback.
fn is_own(headers: &HeaderMap, port: u16) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    is_name(host.as_bytes(), port)
}

/// True if the origin of the request is this address.
fn is_own_origin(origin: &HeaderValue, port: u16) -> bool {
    origin
        .as_bytes()
        .strip_prefix(b"http://")
        .is_some_and(|host| is_name(host, port))
}

fn is_name(host: &[u8], port: u16) -> bool {
    let names = ["127.0.0.1", "localhost", "[::1]"];
    names
        .iter()
        .any(|name| host.eq_ignore_ascii_case(format!("{name}:{port}").as_bytes()))
}

fn shows(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers
        .get(header::AUTHORIZATION)
        .map(|value| value.as_bytes());
    let shown = shown.and_then(|value| value.split_at_checked("Bearer ".len()));
    shown.is_some_and(|(scheme, shown)| {
        scheme.eq_ignore_ascii_case(b"bearer ") && is_same(shown, token.as_bytes())
    })
}
