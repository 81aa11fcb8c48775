//! The routes: what is asked, handed to the prompt surface, and what it answers.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    MAX_REQUEST_BYTES, OPENAPI,
    error::{Problem, too_long},
    forms::{self, Form},
    guard, news,
    report::AgentReport,
    sse,
};
use crate::{
    Error, ErrorKind, Prompter, Status,
    prompt::{
        EventStream, LocalPrompter, MessagePage, MessagesRequest, PausePage, PausesRequest, PromptReply, SessionPage,
        SessionsRequest,
    },
};

/// The largest number of prompts that are at work at a time: fewer than there may be connections, so that status and
/// stop are heard.
const MAX_PROMPTS: usize = 192;
/// The time that the body of a request may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The state that the routes share.
pub(super) struct Site {
    pub(super) prompter: LocalPrompter,
    pub(super) agent: Arc<str>,
    pub(super) token: Arc<str>,
    pub(super) port: u16,
    pub(super) phase: watch::Sender<Phase>,
    /// Cancelled when somebody asks the agent to stop.
    pub(super) stop: CancellationToken,
    prompts: Arc<Semaphore>,
}

/// The phase that the server is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    Stopping,
    Stopped,
}

impl Site {
    pub(super) fn new(prompter: LocalPrompter, agent: Arc<str>, token: Arc<str>, port: u16) -> Self {
        let phase = watch::Sender::new(Phase::Serving);
        let prompts = Arc::new(Semaphore::new(MAX_PROMPTS));
        Self { prompter, agent, token, port, phase, stop: CancellationToken::new(), prompts }
    }

    /// A place among the prompts at work.
    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.prompts).try_acquire_owned().map_err(|_| {
            let message = format!("{MAX_PROMPTS} prompts are at work; hint: ask again later");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Busy, &message)
        })
    }

    pub(super) fn go_to(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Returns the report that there is to tell now.
    pub(super) fn report(&self) -> AgentReport {
        let (phase, runs) = (*self.phase.borrow(), *self.prompter.runs().borrow());
        let status = match phase {
            Phase::Stopped => Status::Stopped,
            Phase::Serving | Phase::Stopping if runs > 0 => Status::Working,
            Phase::Serving | Phase::Stopping => Status::Ready,
        };
        AgentReport::new(status, Arc::clone(&self.agent), runs, self.prompter.session_of(None))
    }
}

pub(super) fn router(site: &Arc<Site>) -> Router {
    Router::new()
        .route("/v1/ready", get(ready))
        .route("/v1/status", get(status))
        .route("/v1/prompt", post(prompt))
        .route("/v1/prompt/stream", post(stream))
        .route("/v1/resume", post(resume))
        .route("/v1/object", post(object))
        .route("/v1/pauses", get(pauses))
        .route("/v1/sessions", get(sessions))
        .route("/v1/sessions/{name}/messages", get(messages_of))
        .route("/v1/messages", get(messages))
        .route("/v1/stop", post(stop))
        .route("/v1/openapi.json", get(openapi))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, ErrorKind::Missing, "there is no such route"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::Invalid, "the route does not take this method")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(site), guard::guard))
        .with_state(Arc::clone(site))
}

async fn ready(State(site): State<Arc<Site>>) -> Response {
    let is_ready = *site.phase.borrow() == Phase::Serving;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": is_ready }))).into_response()
}

async fn status(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.contains("text/event-stream") {
        return sse::respond(news::follow(site));
    }
    Json(site.report()).into_response()
}

async fn prompt(State(site): State<Arc<Site>>, headers: HeaderMap, body: Body) -> Result<Json<PromptReply>, Problem> {
    let _place = site.place()?;
    Ok(Json(site.prompter.prompt(read(&headers, body).await?).await?))
}

impl Form for EventsQuery {
    const FORM: &'static str = "?events=all or ?events=simple";
}

impl Form for Page {
    const FORM: &'static str = "?limit=1 to 1000&before=MARK OF A PAGE, each of which may be left out";
}

/// The query that chooses how the events of a run are told.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    #[serde(default)]
    events: Detail,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Detail {
    #[default]
    All,
    Simple,
}

impl Detail {
    /// The events of a run, told so; it has its place until they end.
    fn respond(self, events: EventStream, place: OwnedSemaphorePermit) -> Response {
        let events: EventStream = Box::pin(events.inspect(move |_| {
            let _ = &place;
        }));
        match self {
            Self::All => sse::respond(sse::all(events)),
            Self::Simple => sse::respond(sse::simple(events)),
        }
    }
}

async fn stream(
    State(site): State<Arc<Site>>,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let detail = asked(query)?.events;
    let place = site.place()?;
    let events = site.prompter.stream(read(&headers, body).await?).await?;
    Ok(detail.respond(events, place))
}

async fn resume(
    State(site): State<Arc<Site>>,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let detail = asked(query)?.events;
    let place = site.place()?;
    let events = site.prompter.resume(read(&headers, body).await?).await?;
    Ok(detail.respond(events, place))
}

async fn object(State(site): State<Arc<Site>>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let _place = site.place()?;
    Ok(Json(site.prompter.object(read(&headers, body).await?).await?).into_response())
}

async fn pauses(
    State(site): State<Arc<Site>>,
    query: Result<Query<PausesRequest>, QueryRejection>,
) -> Result<Json<PausePage>, Problem> {
    Ok(Json(site.prompter.pauses(asked(query)?).await?))
}

async fn sessions(
    State(site): State<Arc<Site>>,
    query: Result<Query<SessionsRequest>, QueryRejection>,
) -> Result<Json<SessionPage>, Problem> {
    Ok(Json(site.prompter.sessions(asked(query)?).await?))
}

async fn messages(
    State(site): State<Arc<Site>>,
    query: Result<Query<MessagesRequest>, QueryRejection>,
) -> Result<Json<MessagePage>, Problem> {
    Ok(Json(site.prompter.messages(asked(query)?).await?))
}

/// A page of a session whose name stands in the path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    before: Option<u64>,
}

async fn messages_of(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<MessagePage>, Problem> {
    let Page { limit, before } = asked(query)?;
    let request = MessagesRequest { session: Some(name.into()), limit, before };
    Ok(Json(site.prompter.messages(request).await?))
}

async fn stop(State(site): State<Arc<Site>>) -> Response {
    site.stop.cancel();
    (StatusCode::ACCEPTED, Json(json!({ "stopping": true }))).into_response()
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

fn asked<T: Form>(query: Result<Query<T>, QueryRejection>) -> Result<T, Error> {
    let Query(asked) = query.map_err(|_| Error::new(ErrorKind::Invalid, forms::explain::<T>(None)))?;
    Ok(asked)
}

/// Reads the content of a request, as JSON.
async fn read<T: DeserializeOwned + Form>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        let message = "the request must be application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorKind::Invalid, message));
    }
    let bytes = match timeout(BODY_TIMEOUT, collect(body)).await {
        Ok(bytes) => bytes?,
        Err(_) => {
            let message = "the request took too long to arrive";
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, ErrorKind::TimedOut, message));
        }
    };
    // Some fields hold any JSON, in which a type sees no key that stands twice.
    let value = adjutant_llm::json::from_slice(&bytes).map_err(|error| {
        let message = format!("the request is no JSON: {error}; hint: it is {}", T::FORM);
        Error::new(ErrorKind::Invalid, message)
    })?;
    T::deserialize(&value).map_err(|_| Error::new(ErrorKind::Invalid, forms::explain::<T>(Some(&value))).into())
}

async fn collect(body: Body) -> Result<Bytes, Error> {
    let (mut body, mut bytes) = (body.into_data_stream(), BytesMut::new());
    while let Some(part) = body.next().await {
        let part = part.map_err(|error| Error::new(ErrorKind::Invalid, "the request broke off").with_source(error))?;
        if bytes.len() + part.len() > MAX_REQUEST_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}
