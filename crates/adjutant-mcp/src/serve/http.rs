//! A host over streamable HTTP, for callers on this machine that hold the token.

use std::{fmt, io, net::TcpListener, sync::Arc};

use adjutant_llm::secret::is_same;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};

use super::{MAX_MESSAGE_BYTES, McpHost, handler::Handler};
use crate::{Error, ErrorKind};

/// The number of clients with a session, on revisions before 2026-07-28; a session ends after 5 idle minutes.
const MANY_SESSIONS: usize = 1_000;
/// The hosts that a request may be for, unless others are added.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The permitted clients of a host over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    token: Option<Arc<str>>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// The checks before each request.
struct Gate {
    token: Option<Arc<str>>,
    sessions: Arc<LocalSessionManager>,
}

impl HttpOptions {
    /// Callers that show this token, as `Authorization: Bearer …`, under a name of this machine.
    pub fn with_token(token: impl Into<Arc<str>>) -> Self {
        Self {
            token: Some(token.into()),
            ..Self::open()
        }
    }

    /// Every caller of this machine, under one of its names; a page is a caller only if it comes from the very host and port that it
    /// calls, or from an origin that is added.
    pub fn open() -> Self {
        let origin = |host: &str| {
            if host.contains(':') {
                format!("http://[{host}]:*")
            } else {
                format!("http://{host}:*")
            }
        };
        Self {
            token: None,
            hosts: LOOPBACK.map(str::to_owned).to_vec(),
            origins: LOOPBACK.map(origin).to_vec(),
        }
    }

    /// Adds a host that requests may be for, as `example.org` or `example.org:8080`.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Permits an origin whose pages can be clients, such as `https://example.org:443`.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }
}

impl McpHost {
    /// The routes of the host: everything is at `/mcp`.
    ///
    /// Requests are limited to 16 MiB. The address that you bind decides who can reach the host: bind loopback.
    pub fn router(&self, options: HttpOptions) -> Router {
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(options.hosts)
            .with_allowed_origins(options.origins)
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES);
        let host = Arc::clone(&self.host);
        let make = move || Ok(Handler::new(Arc::clone(&host)));
        let service = StreamableHttpService::new(make, Arc::clone(&sessions), config);
        let gate = Arc::new(Gate {
            token: options.token,
            sessions,
        });
        Router::new()
            .route_service("/mcp", service)
            .layer(middleware::from_fn_with_state(gate, enter))
    }
}

impl McpHost {
    /// Serves all connections of a listener, like [`McpHost::router`], until it is dropped.
    ///
    /// Cancel: active calls are cancelled.
    ///
    /// # Errors
    /// `Unavailable` if the listener cannot be used.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
    ) -> Result<(), Error> {
        let failed = |error: io::Error| {
            Error::new(
                ErrorKind::Unavailable,
                "the listener of the server cannot be used",
            )
            .with_source(error)
        };
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        axum::serve(listener, self.router(options))
            .await
            .map_err(failed)
    }
}

/// Lets a request through if its caller holds the token, and there is room for a session that it may begin.
async fn enter(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if gate
        .token
        .as_ref()
        .is_some_and(|token| !shows(headers, token))
    {
        let why = "the token is missing or wrong";
        return (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer")],
            why,
        )
            .into_response();
    }
    if !is_own(headers) {
        let why = "pages of another origin are not served";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    let may_begin = request.method() == Method::POST && !headers.contains_key("mcp-session-id");
    let is_stateless = headers
        .get("mcp-protocol-version")
        .is_some_and(|it| it.as_bytes() >= b"2026-07-28".as_slice());
    if may_begin && !is_stateless && gate.sessions.sessions.read().await.len() >= MANY_SESSIONS {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "too many clients have a session",
        )
            .into_response();
    }
    next.run(request).await
}

/// False if the request comes from a page of another port of this machine: each program has its own origin. The list decides about
/// other origins.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &header::HeaderValue| value.to_str().ok())
    };
    let Some(origin) = text(header::ORIGIN) else {
        return !headers.contains_key(header::ORIGIN);
    };
    let authority = origin
        .split_once("://")
        .map_or("", |(_, authority)| authority);
    let port = authority
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|it| it.is_ascii_digit()));
    let host = port
        .map_or(authority, |(host, _)| host)
        .trim_matches(['[', ']']);
    let is_loopback = LOOPBACK.iter().any(|own| own.eq_ignore_ascii_case(host));
    // Neither writes the usual port of HTTP.
    let plain = |authority: &str| {
        authority
            .strip_suffix(":80")
            .unwrap_or(authority)
            .to_ascii_lowercase()
    };
    !is_loopback
        || text(header::HOST)
            .is_some_and(|host| origin.starts_with("http://") && plain(authority) == plain(host))
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

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            token,
            hosts,
            origins,
        } = self;
        let has_token = token.is_some();
        f.debug_struct("HttpOptions")
            .field("has_token", &has_token)
            .field("hosts", hosts)
            .field("origins", origins)
            .finish()
    }
}
