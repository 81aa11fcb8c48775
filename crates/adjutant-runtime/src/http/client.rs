//! The HTTP client of an agent: the prompt API from another process.

use std::{fmt, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use adjutant_agent::Event;
use async_trait::async_trait;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    MAX_REQUEST_BYTES,
    error::Wire,
    frames::{Frames, MAX_FRAME_BYTES},
    report::AgentReport,
    sse::{END, ERROR},
};
use crate::{
    Error, ErrorKind, Prompter,
    prompt::{
        Control, EventStream, ForkRequest, Look, MessagePage, MessagesRequest, ObjectRequest,
        PausePage, PausesRequest, PromptReply, PromptRequest, ResumeRequest, SessionInfo,
        SessionPage, SessionsRequest, UndoRequest, Undone,
    },
};

/// The timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a request that needs no model.
const QUICK: Duration = Duration::from_secs(10);
/// The timeout of a silent stream: the server sends comments four times as often.
const SILENCE: Duration = Duration::from_secs(60);
/// The time for which an idle connection is reused; the server keeps it longer.
const IDLE: Duration = Duration::from_secs(10);

/// The status of an agent: the current one, then each change; ends after `stopped`.
pub type StatusStream = ItemStream<AgentReport>;
/// The items of a route.
pub type ItemStream<T> = Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>;

/// The client for requests to an agent in another process. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    address: SocketAddr,
    token: Arc<str>,
    /// The prefix of every route.
    below: Arc<str>,
}

impl Client {
    /// Creates a client for the agent at this address. No request is sent yet.
    ///
    /// # Errors
    /// `Config` if the HTTP client cannot be created.
    pub fn new(address: SocketAddr, token: impl Into<Arc<str>>) -> Result<Self, Error> {
        // It fails if the program has installed another provider already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            // Requests never leave this machine, so the system's certificates are not loaded.
            .tls_certs_only([])
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never());
        let failed = |error| {
            Error::new(ErrorKind::Config, "could not build the HTTP client").with_source(error)
        };
        Ok(Self {
            http: builder.build().map_err(failed)?,
            address,
            token: token.into(),
            below: "/v1".into(),
        })
    }

    /// Returns a client for the routes below another path.
    pub(crate) fn below(&self, path: String) -> Self {
        Self {
            below: path.into(),
            ..self.clone()
        }
    }

    /// Returns the address of the agent.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if the agent accepts prompts. Needs no token.
    ///
    /// # Errors
    /// `Connection` if the agent cannot be reached.
    pub async fn ready(&self) -> Result<bool, Error> {
        let asked = self.http.get(self.url("/ready")?).timeout(QUICK);
        let answer = asked.send().await.map_err(unanswered)?;
        match answer.status() {
            StatusCode::OK => Ok(true),
            StatusCode::SERVICE_UNAVAILABLE => Ok(false),
            _ => Err(refused(answer).await),
        }
    }

    /// Returns the status of the agent.
    ///
    /// # Errors
    /// `Denied` if the token is wrong, `Connection` if the agent cannot be reached.
    pub async fn status(&self) -> Result<AgentReport, Error> {
        self.get("/status", &[]).await
    }

    /// Watches the status of the agent: the current one, then each change. A stream that ends before `stopped` ends
    /// with an error.
    ///
    /// # Errors
    /// Like [`status`](Client::status).
    pub async fn watch(&self) -> Result<StatusStream, Error> {
        self.follow("/status", &[]).await
    }

    /// A stream of the items of a route.
    pub(crate) async fn follow<T: DeserializeOwned + Send + 'static>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<ItemStream<T>, Error> {
        let asked = self
            .ask(Method::GET, path, query)?
            .header(header::ACCEPT, "text/event-stream")
            .send();
        let answer = timeout(SILENCE, asked)
            .await
            .map_err(|_| silent())?
            .map_err(unanswered)?;
        Ok(Box::pin(items(accepted(answer).await?)))
    }

    /// Sends the agent a stop request. The request was received when this returns; [`watch`](Client::watch) reports the
    /// end.
    ///
    /// # Errors
    /// Like [`status`](Client::status).
    pub async fn stop(&self) -> Result<(), Error> {
        let asked = self.ask(Method::POST, "/stop", &[])?.timeout(QUICK);
        accepted(asked.send().await.map_err(unanswered)?)
            .await
            .map(drop)
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Error> {
        let asked = self.ask(Method::GET, path, query)?.timeout(QUICK);
        json_of(accepted(asked.send().await.map_err(unanswered)?).await?).await
    }

    async fn post(&self, path: &str, request: &impl Serialize) -> Result<Response, Error> {
        self.post_in(path, None, request).await
    }

    /// Sends a POST request about a session.
    async fn post_in(
        &self,
        path: &str,
        session: Option<&str>,
        request: &impl Serialize,
    ) -> Result<Response, Error> {
        let unwritable = |error| {
            Error::new(ErrorKind::Invalid, "the request cannot be written").with_source(error)
        };
        let body = serde_json::to_vec(request).map_err(unwritable)?;
        if body.len() > MAX_REQUEST_BYTES {
            let message = format!(
                "the request has {} bytes; it may have {MAX_REQUEST_BYTES}",
                body.len()
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        let asked = self.ask(Method::POST, path, &in_session(session))?;
        let asked = asked
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        accepted(asked.send().await.map_err(unanswered)?).await
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<RequestBuilder, Error> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(self.http.request(method, url).bearer_auth(&self.token))
    }

    fn url(&self, path: &str) -> Result<Url, Error> {
        let wrong = |_| {
            Error::new(
                ErrorKind::Invalid,
                format!("not an address: {}", self.address),
            )
        };
        Url::parse(&format!("http://{}{}{path}", self.address, self.below)).map_err(wrong)
    }
}

fn in_session(session: Option<&str>) -> Vec<(&'static str, String)> {
    session
        .map(|name| ("session", name.to_owned()))
        .into_iter()
        .collect()
}

#[async_trait]
impl Prompter for Client {
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        json_of(self.post("/prompt", &request).await?).await
    }

    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        let answer = timeout(SILENCE, self.post("/prompt/stream", &request)).await;
        Ok(Box::pin(items::<Event>(
            answer.unwrap_or_else(|_| Err(silent()))?,
        )))
    }

    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        let answer = timeout(SILENCE, self.post("/resume", &request)).await;
        Ok(Box::pin(items::<Event>(
            answer.unwrap_or_else(|_| Err(silent()))?,
        )))
    }

    async fn pauses(&self, request: PausesRequest) -> Result<PausePage, Error> {
        let PausesRequest {
            session,
            limit,
            after,
        } = request;
        let session = session.map(|name| ("session", name.to_string()));
        let limit = limit.map(|limit| ("limit", limit.to_string()));
        let query: Vec<_> = session
            .into_iter()
            .chain(limit)
            .chain(after.map(|mark| ("after", mark.to_string())))
            .collect();
        self.get("/pauses", &query).await
    }

    async fn object(&self, request: ObjectRequest) -> Result<Value, Error> {
        json_of(self.post("/object", &request).await?).await
    }

    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        let MessagesRequest {
            session,
            limit,
            before,
        } = request;
        let session = session.map(|name| ("session", name.to_string()));
        let limit = limit.map(|limit| ("limit", limit.to_string()));
        let query: Vec<_> = session
            .into_iter()
            .chain(limit)
            .chain(before.map(|mark| ("before", mark.to_string())))
            .collect();
        self.get("/messages", &query).await
    }

    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        let limit = request.limit.map(|limit| ("limit", limit.to_string()));
        let state = request.state.and_then(|state| {
            serde_json::to_value(state)
                .ok()?
                .as_str()
                .map(str::to_owned)
        });
        let marks = [
            ("after", request.after),
            ("search", request.search),
            ("state", state),
        ];
        let marks = marks
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let query: Vec<_> = limit.into_iter().chain(marks).collect();
        self.get("/sessions", &query).await
    }

    async fn control(&self, session: Option<&str>, control: Control) -> Result<(), Error> {
        let asked = timeout(QUICK, self.post_in("/control", session, &control)).await;
        asked.unwrap_or_else(|_| Err(silent())).map(drop)
    }

    async fn attach(
        &self,
        session: Option<&str>,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        let after = after.map(|seq| ("after", seq.to_string()));
        let query: Vec<_> = in_session(session).into_iter().chain(after).collect();
        self.follow("/events", &query).await
    }

    async fn fork(
        &self,
        session: Option<&str>,
        request: ForkRequest,
    ) -> Result<SessionInfo, Error> {
        json_of(self.post_in("/fork", session, &request).await?).await
    }

    async fn delete(&self, session: &str) -> Result<(), Error> {
        let asked = self
            .ask(Method::DELETE, "/sessions", &in_session(Some(session)))?
            .timeout(QUICK);
        accepted(asked.send().await.map_err(unanswered)?)
            .await
            .map(drop)
    }

    async fn look(&self, session: Option<&str>, look: Look) -> Result<Value, Error> {
        let (route, mut query) = look.asked();
        query.extend(in_session(session));
        self.get(route, &query).await
    }

    async fn undo(&self, session: Option<&str>, request: UndoRequest) -> Result<Undone, Error> {
        json_of(self.post_in("/undo", session, &request).await?).await
    }
}

/// Returns the items in the frames of a response. The frame `end` must be the last one; `error` also ends them.
fn items<T: DeserializeOwned + Send + 'static>(
    answer: Response,
) -> impl Stream<Item = Result<T, Error>> + Send {
    let bytes = Box::pin(answer.bytes_stream());
    stream::unfold(Some((bytes, Frames::default())), |state| async move {
        let (mut bytes, mut frames) = state?;
        let frame = loop {
            if let Some(frame) = frames.next() {
                break frame;
            }
            let next = timeout(SILENCE, bytes.next()).await;
            let Ok(next) = next else {
                return Some((Err(silent()), None));
            };
            let pushed = match next {
                Some(Ok(part)) => frames.push(&part).map_err(|_| unreadable()),
                Some(Err(error)) => Err(cut_off().with_source(error.without_url())),
                None => Err(cut_off()),
            };
            if let Err(error) = pushed {
                return Some((Err(error), None));
            }
        };
        match frame.event.as_str() {
            END => None,
            ERROR => {
                let error =
                    serde_json::from_slice(&frame.data).map_or_else(|_| unreadable(), Wire::error);
                Some((Err(error), None))
            }
            _ => match serde_json::from_slice(&frame.data) {
                Ok(item) => Some((Ok(item), Some((bytes, frames)))),
                Err(error) => Some((Err(unreadable().with_source(error)), None)),
            },
        }
    })
}

async fn json_of<T: DeserializeOwned>(answer: Response) -> Result<T, Error> {
    serde_json::from_slice(&whole(answer).await?).map_err(|error| unreadable().with_source(error))
}

/// Reads the whole body of a response. The server can be any program, as for an agent at an address, so the size is
/// limited to one frame of a stream.
async fn whole(mut answer: Response) -> Result<Vec<u8>, Error> {
    let too_long = || {
        Error::new(
            ErrorKind::Full,
            format!("the answer has more than {MAX_FRAME_BYTES} bytes"),
        )
    };
    if answer
        .content_length()
        .is_some_and(|long| long > MAX_FRAME_BYTES as u64)
    {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(unanswered)? {
        if bytes.len() + part.len() > MAX_FRAME_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

async fn accepted(answer: Response) -> Result<Response, Error> {
    if answer.status().is_success() {
        Ok(answer)
    } else {
        Err(refused(answer).await)
    }
}

/// Returns the error in a response.
async fn refused(answer: Response) -> Error {
    let status = answer.status();
    let told = whole(answer)
        .await
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Wire>(&bytes).ok());
    match told {
        Some(told) => told.error(),
        None => Error::new(
            ErrorKind::Connection,
            format!("the agent answered {status} without saying why"),
        ),
    }
}

fn unanswered(error: reqwest::Error) -> Error {
    let message = if error.is_connect() {
        "could not connect to the agent"
    } else {
        "the agent did not answer"
    };
    Error::new(ErrorKind::Connection, message).with_source(error.without_url())
}

fn silent() -> Error {
    Error::new(
        ErrorKind::Connection,
        format!("the agent said nothing for {} s", SILENCE.as_secs()),
    )
}

fn cut_off() -> Error {
    Error::new(ErrorKind::Connection, "the stream of the agent was cut off")
}

fn unreadable() -> Error {
    let hint = "hint: if its program is of another version, start the agent again";
    Error::new(
        ErrorKind::Connection,
        format!("the agent answered what cannot be read; {hint}"),
    )
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
