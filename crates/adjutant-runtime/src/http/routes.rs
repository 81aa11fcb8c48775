//! The routes. They pass each request to the prompt API.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    extract::{FromRequestParts, Path, Query, RawPathParams, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, Uri, header, request::Parts},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    MAX_REQUEST_BYTES, OPENAPI,
    error::{Problem, too_long},
    forms::{self, RequestForm},
    guard::{self, Keys},
    news,
    report::AgentReport,
    sse, streams,
};
use crate::{
    Error, ErrorKind, Prompter, Status,
    prompt::{
        self, EventStream, LocalPrompter, Look, MessagePage, MessagesRequest, PausePage,
        PausesRequest, PromptReply, SessionPage, SessionsRequest, Undone,
    },
};

/// The maximum number of active prompts: less than the number of connections, so that status and stop requests still
/// work.
const MAX_PROMPTS: usize = 192;
/// The timeout for the body of a request.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The state that the routes share.
pub(super) struct Site {
    pub(super) prompter: LocalPrompter,
    pub(super) agent: Arc<str>,
    pub(super) phase: watch::Sender<Phase>,
    /// Cancelled by a request to stop the agent.
    pub(super) stop: CancellationToken,
    /// The handler for A2A clients.
    pub(super) a2a: adjutant_protocols::a2a::Handler,
    prompts: Arc<Semaphore>,
}

/// The phase that the server is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    Stopping,
    Stopped,
}

/// Finds the agent for a request.
pub(crate) trait Plane: Send + Sync + 'static {
    /// Returns the agent with this name; `None` selects the only one.
    fn prompter(
        &self,
        agent: Option<&str>,
    ) -> impl Future<Output = Result<Arc<dyn Prompter>, Error>> + Send;

    /// Returns the permits of active prompts.
    fn prompts(&self) -> &Arc<Semaphore>;
}

/// The agent that a request is for.
pub(crate) struct Whom {
    pub(crate) prompter: Arc<dyn Prompter>,
    prompts: Arc<Semaphore>,
}

impl<P: Plane> FromRequestParts<Arc<P>> for Whom {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, plane: &Arc<P>) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, plane).await;
        let params = params
            .map_err(|_| Error::new(ErrorKind::Invalid, "the path of the request is no text"))?;
        let agent = params
            .iter()
            .find(|(name, _)| *name == "agent")
            .map(|(_, agent)| agent);
        Ok(Self {
            prompter: plane.prompter(agent).await?,
            prompts: Arc::clone(plane.prompts()),
        })
    }
}

impl Whom {
    /// Acquires a permit for an active prompt.
    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        place(&self.prompts)
    }
}

/// Acquires a permit for an active prompt.
pub(super) fn place(prompts: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    Arc::clone(prompts).try_acquire_owned().map_err(|_| {
        let message = format!("{MAX_PROMPTS} prompts are at work; hint: ask again later");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Busy, &message)
    })
}

impl Plane for Site {
    async fn prompter(&self, _: Option<&str>) -> Result<Arc<dyn Prompter>, Error> {
        Ok(Arc::new(self.prompter.clone()))
    }

    fn prompts(&self) -> &Arc<Semaphore> {
        &self.prompts
    }
}

/// Returns the permits of all active prompts.
pub(crate) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_PROMPTS))
}

impl Site {
    pub(super) fn new(
        prompter: LocalPrompter,
        agent: Arc<str>,
        a2a: adjutant_protocols::a2a::Handler,
    ) -> Self {
        let phase = watch::Sender::new(Phase::Serving);
        Self {
            prompter,
            agent,
            phase,
            stop: CancellationToken::new(),
            a2a,
            prompts: places(),
        }
    }

    pub(super) fn go_to(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Returns the current report.
    pub(super) fn report(&self) -> AgentReport {
        let (phase, runs) = (*self.phase.borrow(), *self.prompter.runs().borrow());
        let status = match phase {
            Phase::Stopped => Status::Stopped,
            Phase::Serving | Phase::Stopping if runs > 0 => Status::Working,
            Phase::Serving | Phase::Stopping => Status::Ready,
        };
        AgentReport::new(
            status,
            Arc::clone(&self.agent),
            runs,
            self.prompter.session_of(None),
        )
    }
}

/// Builds the router of a host, including the routes for other protocols.
pub(super) fn router(site: &Arc<Site>, keys: Keys, others: Router<Arc<Site>>) -> Router {
    let router = others
        .route("/v1/ready", get(ready))
        .route("/v1/status", get(status))
        .route("/v1/stop", post(stop));
    guarded(add_agent_routes(router, "/v1"), keys).with_state(Arc::clone(site))
}

/// Adds the routes of one agent below a path.
pub(crate) fn add_agent_routes<P: Plane>(router: Router<Arc<P>>, below: &str) -> Router<Arc<P>> {
    let at = |path: &str| format!("{below}{path}");
    router
        .route(&at("/prompt"), post(prompt))
        .route(&at("/prompt/stream"), post(stream))
        .route(&at("/resume"), post(resume))
        .route(&at("/object"), post(object))
        .route(&at("/pauses"), get(pauses))
        .route(&at("/control"), post(control))
        .route(&at("/events"), get(events))
        .route(&at("/fork"), post(fork))
        .route(&at("/tree"), get(tree))
        .route(&at("/diff"), get(diff))
        .route(&at("/explain"), get(explain))
        .route(&at("/run"), get(run))
        .route(&at("/request"), get(request))
        .route(&at("/context"), get(context))
        .route(&at("/fleet"), get(fleet))
        .route(&at("/undo"), post(undo))
        .route(&at("/sessions"), get(sessions).delete(delete))
        .route(&at("/sessions/{name}/messages"), get(messages_of))
        .route(&at("/messages"), get(messages))
        .route(&at("/ag-ui"), post(streams::ag_ui))
        .route(&at("/ag-ui/connect"), post(streams::ag_ui_again))
        .route(&at("/ai-sdk"), post(streams::ai_sdk))
        .route(&at("/ai-sdk/{name}/stream"), get(streams::ai_sdk_again))
}

/// Adds the parts that every server has: the OpenAPI description, the guard, errors in JSON.
pub(crate) fn guarded<P: Plane>(router: Router<Arc<P>>, keys: Keys) -> Router<Arc<P>> {
    router
        .route("/v1/openapi.json", get(openapi))
        .fallback(async |uri: Uri| {
            let version = uri
                .path()
                .strip_prefix("/v")
                .and_then(|path| path.split('/').next());
            let is_other = version.is_some_and(|it| it != "1" && it.parse::<u32>().is_ok());
            let why = if is_other {
                ": this program speaks version 1, below /v1"
            } else {
                ""
            };
            Problem::new(
                StatusCode::NOT_FOUND,
                ErrorKind::Missing,
                &format!("there is no such route{why}"),
            )
        })
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                ErrorKind::Invalid,
                "the route does not take this method",
            )
        })
        .layer(middleware::from_fn_with_state(Arc::new(keys), guard::guard))
}

async fn ready(State(site): State<Arc<Site>>) -> Response {
    let is_ready = *site.phase.borrow() == Phase::Serving;
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(json!({ "ready": is_ready }))).into_response()
}

async fn status(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if accept.contains("text/event-stream") {
        return sse::respond(news::follow(site));
    }
    Json(site.report()).into_response()
}

async fn prompt(whom: Whom, headers: HeaderMap, body: Body) -> Result<Json<PromptReply>, Problem> {
    let _place = whom.place()?;
    Ok(Json(
        whom.prompter.prompt(read(&headers, body).await?).await?,
    ))
}

impl RequestForm for EventsQuery {
    const FORM: &'static str = "?events=all or ?events=simple";
}

impl RequestForm for Page {
    const FORM: &'static str =
        "?limit=1 to 1000&before=MARK OF A PAGE, each of which may be left out";
}

/// The query for the format of a run's events.
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
    /// Sends the events of a run in this format; the permit is held until they end.
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
    whom: Whom,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let detail = asked(query)?.events;
    let place = whom.place()?;
    let events = whom.prompter.stream(read(&headers, body).await?).await?;
    Ok(detail.respond(events, place))
}

async fn resume(
    whom: Whom,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let detail = asked(query)?.events;
    let place = whom.place()?;
    let events = whom.prompter.resume(read(&headers, body).await?).await?;
    Ok(detail.respond(events, place))
}

async fn object(whom: Whom, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let _place = whom.place()?;
    Ok(Json(whom.prompter.object(read(&headers, body).await?).await?).into_response())
}

async fn pauses(
    whom: Whom,
    query: Result<Query<PausesRequest>, QueryRejection>,
) -> Result<Json<PausePage>, Problem> {
    Ok(Json(whom.prompter.pauses(asked(query)?).await?))
}

async fn sessions(
    whom: Whom,
    query: Result<Query<SessionsRequest>, QueryRejection>,
) -> Result<Json<SessionPage>, Problem> {
    Ok(Json(whom.prompter.sessions(asked(query)?).await?))
}

async fn messages(
    whom: Whom,
    query: Result<Query<MessagesRequest>, QueryRejection>,
) -> Result<Json<MessagePage>, Problem> {
    Ok(Json(whom.prompter.messages(asked(query)?).await?))
}

/// The query for a page of a session whose name is in the path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    before: Option<u64>,
}

/// The session that a path names.
#[derive(Debug, Deserialize)]
pub(super) struct OfSession {
    pub(super) name: Arc<str>,
}

async fn messages_of(
    whom: Whom,
    Path(OfSession { name }): Path<OfSession>,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<MessagePage>, Problem> {
    let Page { limit, before } = asked(query)?;
    let request = MessagesRequest {
        session: Some(name),
        limit,
        before,
    };
    Ok(Json(whom.prompter.messages(request).await?))
}

/// The session that a query names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InSession {
    #[serde(default)]
    pub(crate) session: Option<Arc<str>>,
}

impl RequestForm for InSession {
    const FORM: &'static str = "?session=NAME, which may be left out";
}

/// The query for the events of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Events {
    #[serde(default)]
    session: Option<Arc<str>>,
    /// The last event that the client has received.
    #[serde(default)]
    after: Option<u64>,
    /// True if the stream continues after the end of a run.
    #[serde(default)]
    follow: bool,
}

impl RequestForm for Events {
    const FORM: &'static str = "?session=NAME&after=NUMBER&follow=true, each of which may be left out; `follow` needs `after`";
}

/// The query of an inspection; each route uses some of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LookedFor {
    #[serde(default)]
    session: Option<Arc<str>>,
    #[serde(default)]
    with: Option<Arc<str>>,
    #[serde(default)]
    seq: Option<u64>,
    #[serde(default)]
    after: Option<u64>,
    #[serde(default)]
    limit: Option<u32>,
    /// A list of ids, as JSON.
    #[serde(default)]
    messages: Option<Arc<str>>,
}

impl RequestForm for LookedFor {
    const FORM: &'static str = "?session=NAME, for `diff` &with=NAME, for `request` &seq=NUMBER, for `context` &after=NUMBER&limit=1 to 1000, for `run` &messages=[ID, …] AS JSON";
}

type LookQuery = Result<Query<LookedFor>, QueryRejection>;

/// Inspects a session; `None` if the query is incomplete.
async fn looked(
    whom: Whom,
    query: LookQuery,
    of: fn(&LookedFor) -> Option<Look>,
) -> Result<Json<Value>, Problem> {
    let query = asked(query)?;
    let look = of(&query).ok_or_else(|| {
        Error::new(
            ErrorKind::Invalid,
            forms::explain::<LookedFor>(None, "the query fits nothing that is shown".to_owned()),
        )
    })?;
    Ok(Json(
        whom.prompter.look(query.session.as_deref(), look).await?,
    ))
}

async fn tree(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    looked(whom, query, |_| Some(Look::Tree)).await
}

async fn diff(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    looked(whom, query, |query| {
        Some(Look::Diff {
            with: query.with.clone()?,
        })
    })
    .await
}

async fn explain(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    looked(whom, query, |_| Some(Look::Explain)).await
}

async fn run(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    let look = |query: &LookedFor| match &query.messages {
        Some(messages) => Some(Look::Heard {
            messages: serde_json::from_str(messages).ok()?,
        }),
        None => Some(Look::Run),
    };
    looked(whom, query, look).await
}

async fn request(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    looked(whom, query, |query| Some(Look::Request { seq: query.seq? })).await
}

async fn context(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    let look = |query: &LookedFor| {
        Some(Look::Context {
            after: query.after.unwrap_or_default(),
            limit: query.limit,
        })
    };
    looked(whom, query, look).await
}

async fn fleet(whom: Whom, query: LookQuery) -> Result<Json<Value>, Problem> {
    looked(whom, query, |_| Some(Look::Fleet)).await
}

async fn undo(
    whom: Whom,
    query: Result<Query<InSession>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Undone>, Problem> {
    let session = asked(query)?.session;
    Ok(Json(
        whom.prompter
            .undo(session.as_deref(), read(&headers, body).await?)
            .await?,
    ))
}

async fn control(
    whom: Whom,
    query: Result<Query<InSession>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let session = asked(query)?.session;
    whom.prompter
        .control(session.as_deref(), read(&headers, body).await?)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "heard": true }))).into_response())
}

async fn events(
    whom: Whom,
    query: Result<Query<Events>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Events {
        session,
        after,
        follow,
    } = asked(query)?;
    let last = headers
        .get("last-event-id")
        .map(|id| id.to_str().ok().and_then(|id| id.parse().ok()));
    let after = match last {
        Some(None) => {
            return Err(Error::new(
                ErrorKind::Invalid,
                "Last-Event-ID is the id of an event: a number",
            )
            .into());
        }
        Some(last) => last,
        None => after,
    };
    let events = whom.prompter.attach(session.as_deref(), after).await?;
    let events = match after {
        Some(after) if follow => prompt::follow(whom.prompter, session, (events, after)),
        None if follow => {
            return Err(Error::new(
                ErrorKind::Invalid,
                forms::explain::<Events>(None, "`follow` needs `after`".to_owned()),
            )
            .into());
        }
        _ => events,
    };
    Ok(sse::respond(sse::all(events)))
}

async fn fork(
    whom: Whom,
    query: Result<Query<InSession>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let session = asked(query)?.session;
    let made = whom
        .prompter
        .fork(session.as_deref(), read(&headers, body).await?)
        .await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

async fn delete(
    whom: Whom,
    query: Result<Query<InSession>, QueryRejection>,
) -> Result<Response, Problem> {
    let Some(session) = asked(query)?.session else {
        return Err(Error::new(
            ErrorKind::Invalid,
            "a session that is deleted is named: ?session=NAME",
        )
        .into());
    };
    whom.prompter.delete(&session).await?;
    Ok(Json(json!({ "deleted": session })).into_response())
}

async fn stop(State(site): State<Arc<Site>>) -> Response {
    site.stop.cancel();
    (StatusCode::ACCEPTED, Json(json!({ "stopping": true }))).into_response()
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

pub(crate) fn asked<T: RequestForm>(query: Result<Query<T>, QueryRejection>) -> Result<T, Error> {
    let wrong = |rejection: QueryRejection| {
        let why = std::error::Error::source(&rejection)
            .map_or_else(|| rejection.body_text(), ToString::to_string);
        Error::new(
            ErrorKind::Invalid,
            forms::explain::<T>(None, why.replace("unknown field", "nothing is named")),
        )
    };
    Ok(query.map_err(wrong)?.0)
}

/// Reads the body of a request as JSON.
pub(super) async fn read<T: DeserializeOwned + RequestForm>(
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Problem> {
    check_media(headers)?;
    let bytes = match timeout(BODY_TIMEOUT, collect(body)).await {
        Ok(bytes) => bytes?,
        Err(_) => {
            let message = "the request took too long to arrive";
            return Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                ErrorKind::TimedOut,
                message,
            ));
        }
    };
    // Some fields contain any JSON, in which a type would not detect duplicate keys.
    let value = adjutant_llm::json::from_slice(&bytes).map_err(|error| {
        let message = format!("the request is no JSON: {error}; hint: it is {}", T::FORM);
        Error::new(ErrorKind::Invalid, message)
    })?;
    // A struct would also deserialize from a list.
    let read = if value.is_object() {
        T::deserialize(&value).map_err(|error| error.to_string())
    } else {
        Err("it is no object".to_owned())
    };
    read.map_err(|error| {
        Error::new(ErrorKind::Invalid, forms::explain::<T>(Some(&value), error)).into()
    })
}

/// A web page of another origin can make a browser send any text, but JSON only with permission.
pub(super) fn check_media(headers: &HeaderMap) -> Result<(), Problem> {
    let media = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("application/json")
    {
        return Ok(());
    }
    let message = "the request must be application/json";
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorKind::Invalid,
        message,
    ))
}

async fn collect(body: Body) -> Result<Bytes, Error> {
    let (mut body, mut bytes) = (body.into_data_stream(), BytesMut::new());
    while let Some(part) = body.next().await {
        let part = part.map_err(|error| {
            Error::new(ErrorKind::Invalid, "the request broke off").with_source(error)
        })?;
        if bytes.len() + part.len() > MAX_REQUEST_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}
