//! Streamable HTTP with our own client: its headers, redirects and limits, and the mapping of errors.

use std::{collections::HashMap, future::Future, iter::successors, sync::Arc, time::Duration};

use adjutant_llm::surrogates;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::{Attempt, Policy};
use rmcp::{
    model::ClientJsonRpcMessage,
    service::ServiceError,
    transport::{
        DynamicTransportError, StreamableHttpClientTransport,
        common::client_side_sse::ExponentialBackoff,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
            StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
        },
    },
};
use sse_stream::Sse;

use crate::{
    config::HttpConfig,
    error::{Error, ErrorKind, login_hint},
    reach::{address, client, may_carry_token},
    tokens::TokenOrigin,
};

/// The largest message that is read, in bytes.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The largest part of a failed answer that is read, in bytes.
const MAX_FAILURE: usize = 64 * 1024;
/// The number of redirects that are followed for one request.
const MAX_HOPS: usize = 5;
/// The number of times that a broken stream is resumed, and the longest pause before one.
const MAX_RESUMES: usize = 8;
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Headers of the protocol, which a user cannot set.
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

type SseEvents = BoxStream<'static, Result<Sse, SseError>>;
type HttpFailure = StreamableHttpError<reqwest::Error>;

/// A transport to a server.
///
/// # Errors
/// `Invalid` if the address or a header cannot be meant.
pub(crate) fn transport(
    name: &Arc<str>,
    config: &HttpConfig,
) -> Result<StreamableHttpClientTransport<Client>, Error> {
    let url = address(name, &config.url)?;
    let tokens = if config.has_own_token() {
        None
    } else {
        config.tokens.for_server(name, &config.url)
    };
    if tokens.is_some() {
        may_carry_token(name, &url)?;
    }
    let client = Client {
        http: client(&url, |it| it.redirect(Policy::custom(follow)))?,
        tokens,
    };
    let mut settings = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers(name, config)?)
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE)
        .max_error_response_size(MAX_FAILURE);
    let mut retry = ExponentialBackoff::default();
    (retry.max_times, retry.max_delay) = (Some(MAX_RESUMES), Some(MAX_PAUSE));
    settings.retry_config = Arc::new(retry);
    Ok(StreamableHttpClientTransport::with_client(client, settings))
}

/// Sends what the SDK makes, with the token of the server and no other.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    tokens: Option<TokenOrigin>,
}

impl Client {
    /// Sends a request with a token, and again with a new one after a refusal.
    async fn send<T, F>(&self, request: impl Fn(Option<String>) -> F) -> Result<T, HttpFailure>
    where
        F: Future<Output = Result<T, HttpFailure>>,
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
            if let (StreamableHttpError::InsufficientScope(needs), Some(tokens)) =
                (&failure, &self.tokens)
                && let Some(scopes) = needs
                    .required_scope
                    .as_deref()
                    .filter(|scopes| !scopes.is_empty())
            {
                tokens.wants(scopes).await.map_err(own)?;
            }
            return Err(failure);
        }
    }

    async fn token(&self, refused: Option<&str>) -> Result<Option<Arc<str>>, HttpFailure> {
        let Some(tokens) = &self.tokens else {
            return Ok(None);
        };
        tokens.token(refused).await.map_err(own)
    }
}

/// An error of ours, as one of the SDK's.
fn own(error: Error) -> HttpFailure {
    StreamableHttpError::Io(std::io::Error::other(error))
}

/// The error for the failure of a request that the user can fix.
pub(crate) fn fixable_error(name: &str, error: &DynamicTransportError) -> Option<Error> {
    let mut causes = successors(
        Some(&*error.error as &(dyn std::error::Error + 'static)),
        |error| error.source(),
    );
    causes.find_map(|cause| meaning(name, cause.downcast_ref()?))
}

/// The same of an error of the SDK's.
pub(crate) fn refusal_of(name: &str, error: &ServiceError) -> Option<Error> {
    let ServiceError::TransportSend(error) = error else {
        return None;
    };
    fixable_error(name, error)
}

fn meaning(name: &str, failure: &HttpFailure) -> Option<Error> {
    let unauthorised = |what: &str| {
        let message = format!(
            "the server `{name}` wants {what}; hint: {}",
            login_hint(name)
        );
        Error::new(ErrorKind::Unauthorised, message)
    };
    Some(match (refusal(failure), failure) {
        (Some(StatusCode::FORBIDDEN), _) => unauthorised("more scopes than its token has"),
        (Some(_), _) => unauthorised("a token that is not there"),
        (_, StreamableHttpError::Io(error)) => error.get_ref()?.downcast_ref::<Error>()?.clone(),
        (_, StreamableHttpError::Client(error)) if error.is_redirect() => {
            let why = std::error::Error::source(error)
                .map(ToString::to_string)
                .unwrap_or_default();
            let message =
                format!("the server `{name}` {why}; hint: if that is meant, give the new address");
            Error::new(ErrorKind::Protocol, message)
        }
        (_, StreamableHttpError::ResponseBodyTooLarge { max_size }) => {
            let message = format!("the server `{name}` answers with more than {max_size} bytes");
            Error::new(ErrorKind::Protocol, message)
        }
        _ => return None,
    })
}

/// The status of a refusal for want of a token, or of a better one.
fn refusal(failure: &HttpFailure) -> Option<StatusCode> {
    match failure {
        StreamableHttpError::AuthRequired(_) => Some(StatusCode::UNAUTHORIZED),
        StreamableHttpError::InsufficientScope(_) => Some(StatusCode::FORBIDDEN),
        StreamableHttpError::Client(error) => error
            .status()
            .filter(|status| *status == StatusCode::UNAUTHORIZED),
        // A server that names no way to sign in: the SDK keeps its status in a text.
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(StatusCode::UNAUTHORIZED)
        }
        _ => None,
    }
}

/// A failure without the address, which may hold a secret.
fn plain(failure: HttpFailure) -> HttpFailure {
    match failure {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

/// The events of a server with lone surrogates replaced: the SDK skips an event that it cannot read.
fn mend_events(events: SseEvents) -> SseEvents {
    let mended = |event: Result<Sse, SseError>| {
        event.map(|mut event| {
            if let Some(data) = event.data.as_deref().and_then(surrogates::mend) {
                event.data = Some(data);
            }
            event
        })
    };
    events.map(mended).boxed()
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
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let post = |token| {
            let (uri, message, session) = (Arc::clone(&uri), message.clone(), session.clone());
            self.http.post_message_with_response_limits(
                uri,
                message,
                session,
                token,
                headers.clone(),
                limits,
            )
        };
        Ok(match self.send(post).await? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(mend_events(events), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpFailure> {
        let delete = |token| {
            self.http.delete_session(
                Arc::clone(&uri),
                Arc::clone(&session),
                token,
                headers.clone(),
            )
        };
        self.send(delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<SseEvents, HttpFailure> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, MAX_MESSAGE)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<SseEvents, HttpFailure> {
        let get = |token| {
            let (uri, session, last) = (Arc::clone(&uri), session.clone(), last.clone());
            self.http.get_stream_with_max_sse_event_size(
                uri,
                session,
                last,
                token,
                headers.clone(),
                most,
            )
        };
        self.send(get).await.map(mend_events)
    }
}

/// The headers of every request.
///
/// # Errors
/// `Invalid`, with the name of a header that cannot be sent and never its value.
pub(crate) fn headers(
    name: &str,
    config: &HttpConfig,
) -> Result<HashMap<HeaderName, HeaderValue>, Error> {
    let read = |(header, value): (&Arc<str>, &Arc<str>)| {
        let invalid = |what| {
            let message = format!("the header {header:?} of the server `{name}` {what}");
            Err(Error::new(ErrorKind::Invalid, message))
        };
        let Ok(key) = HeaderName::try_from(&**header) else {
            return invalid("has a name that no header has");
        };
        if RESERVED.contains(&key.as_str()) {
            return invalid("is one that the protocol sets itself");
        }
        let Ok(mut value) = HeaderValue::try_from(&**value) else {
            return invalid("has a value that cannot be sent");
        };
        value.set_sensitive(true);
        Ok((key, value))
    };
    config.headers.iter().map(read).collect()
}

/// Follows a redirect within the origin that keeps the request as it is, and no other.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let is_same = attempt
        .previous()
        .first()
        .is_some_and(|from| from.origin() == attempt.url().origin());
    let to = attempt.url().origin().ascii_serialization();
    match (keeps, is_same) {
        // The target would get the headers, and may be a machine that only this one can reach.
        (_, false) => attempt.error(format!("redirects to {to}, which is not followed")),
        (false, true) => attempt.error("redirects in a way that would lose the request"),
        (true, true) if attempt.previous().len() > MAX_HOPS => {
            attempt.error("redirects without end")
        }
        (true, true) => attempt.follow(),
    }
}
