//! The API in the protocols of web clients: a request starts or answers a run, which continues independently of its
//! clients.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use adjutant_agent::{Event, EventKind, Pause};
use adjutant_llm::UserMessage;
use adjutant_protocols::{self as protocols, ErrorKind as Wrong, PageWish, ag_ui, ai_sdk};
use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures_core::Stream;
use futures_util::{StreamExt, future::BoxFuture, stream};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use super::{
    error::Problem,
    routes::{OfSession, Whom, read},
};
use crate::{
    Error, ErrorKind, Prompter,
    prompt::{self, Control, EventStream, Look, MAX_HEARD, PausesRequest, SessionState},
};

/// The interval of comments on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The number and the interval of retries for a session that is not free yet.
const TRIES: u32 = 25;
const INTERVAL: Duration = Duration::from_millis(20);

/// The maximum number of bytes of a message id.
const MAX_ID_BYTES: usize = 128;

/// Locks by hash of the session, so that one request at a time starts a run of a session.
static BEGINS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// The processed messages of a client, with the record at the start of each run.
type HeardMessages = BTreeMap<Arc<str>, u64>;

/// The state of a session, from [`Look::Run`] and [`Look::Heard`].
#[derive(Deserialize)]
struct Stand {
    state: SessionState,
    head: u64,
    #[serde(default)]
    began: u64,
    /// True if a process runs the session, or will run it.
    #[serde(default)]
    due: bool,
    #[serde(default)]
    heard: HeardMessages,
}

pub(super) async fn ag_ui(whom: Whom, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let input: ag_ui::RunAgentInput = read(&headers, body).await?;
    let wish = |pauses: &[Arc<Pause>], heard: &HeardMessages| {
        input.wish(pauses, |id| heard.contains_key(id))
    };
    let events = begin(whom.prompter, &input.thread_id, &input.messages, wish).await?;
    Ok(respond(ag_ui::HEADERS, ag_ui::tell(events, &input)))
}

/// Returns the events of the latest run from its start.
pub(super) async fn ag_ui_again(
    whom: Whom,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let input: ag_ui::RunAgentInput = read(&headers, body).await?;
    let stand = stand(&whom.prompter, &input.thread_id, Look::Run).await?;
    let events = again(whom.prompter, &input.thread_id, &stand).await?;
    Ok(respond(ag_ui::HEADERS, ag_ui::tell(events, &input)))
}

pub(super) async fn ai_sdk(
    whom: Whom,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let input: ai_sdk::ChatRequest = read(&headers, body).await?;
    let wish = |pauses: &[Arc<Pause>], heard: &HeardMessages| {
        input.wish(pauses, |id| heard.contains_key(id))
    };
    let last = input
        .messages
        .last()
        .map(std::slice::from_ref)
        .unwrap_or_default();
    let events = begin(whom.prompter, &input.id, last, wish).await?;
    Ok(respond(ai_sdk::HEADERS, ai_sdk::tell(events, &input)))
}

/// The active or waiting run, from its start; 204 if no run is active, as `resumeStream` of a chat requires.
pub(super) async fn ai_sdk_again(
    whom: Whom,
    Path(OfSession { name }): Path<OfSession>,
) -> Result<Response, Problem> {
    let stand = match stand(&whom.prompter, &name, Look::Run).await {
        Err(error) if error.kind() == ErrorKind::Missing => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        stand => stand?,
    };
    let is_there = match stand.state {
        SessionState::Working | SessionState::Waiting => true,
        SessionState::Open => !waiting(&whom.prompter, &name).await?.is_empty(),
        _ => stand.is_queued(),
    };
    if !is_there {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let events = again(whom.prompter, &name, &stand).await?;
    Ok(respond(
        ai_sdk::HEADERS,
        ai_sdk::tell(events, &ai_sdk::ChatRequest::new(&*name)),
    ))
}

impl Stand {
    /// True if a message in the inbox waits for a run.
    fn is_queued(&self) -> bool {
        self.due
            && matches!(
                self.state,
                SessionState::New | SessionState::Done | SessionState::Failed
            )
    }
}

async fn stand(prompter: &Arc<dyn Prompter>, session: &str, look: Look) -> Result<Stand, Error> {
    let told = prompter.look(Some(session), look).await?;
    serde_json::from_value(told).map_err(|error| {
        Error::new(ErrorKind::Connection, "the agent reported no run state").with_source(error)
    })
}

/// Returns the client's ids of the user's latest messages.
fn ids(messages: &[Value]) -> Result<Vec<Arc<str>>, Error> {
    let said = messages.iter().rev().filter(|it| it["role"] == "user");
    let ids: Vec<&str> = said
        .filter_map(|it| it["id"].as_str())
        .take(MAX_HEARD)
        .collect();
    if ids.iter().any(|id| id.len() > MAX_ID_BYTES) {
        let message = format!("the id of a message has {MAX_ID_BYTES} bytes at most");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(ids.into_iter().map(Arc::from).collect())
}

/// Starts a run, or answers the waiting one; returns its events until it ends or waits, in any process. A message that
/// was processed before starts no run: its outcome is returned.
async fn begin(
    prompter: Arc<dyn Prompter>,
    session: &str,
    messages: &[Value],
    wish: impl Fn(&[Arc<Pause>], &HeardMessages) -> Result<PageWish, protocols::Error>,
) -> Result<EventStream, Error> {
    let at_work =
        "a run of the session is at work, or will be; hint: follow it, or wait for its end";
    let at_work = || Error::new(ErrorKind::Conflict, at_work);
    let ids = ids(messages)?;
    // The run of a message must be started before the same message is looked up again.
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    let _begins = match BEGINS.get(hasher.finish() as usize % BEGINS.len()) {
        Some(begins) => Some(begins.lock().await),
        None => None,
    };
    let (mut head, mut pauses, mut heard, mut is_free) =
        (0, Vec::new(), HeardMessages::new(), true);
    match stand(&prompter, session, Look::Heard { messages: ids }).await {
        Ok(stand) => {
            (head, heard) = (stand.head, stand.heard);
            let works = stand.state == SessionState::Working;
            let asked = || prompter.pauses(PausesRequest::new().session(session));
            // An approval for an interrupted run holds its log, and runs nothing.
            pauses = match if works {
                asked().await
            } else {
                when_free(asked).await
            } {
                Err(error) if works && error.kind() == ErrorKind::Conflict => Vec::new(),
                page => page?
                    .pauses
                    .into_iter()
                    .map(|waiting| waiting.pause)
                    .collect(),
            };
            // It will be continued, unless an approval is required.
            is_free = !pauses.is_empty() || !(works || stand.due);
        }
        // The first prompt creates a session.
        Err(error) if error.kind() == ErrorKind::Missing => {}
        Err(error) => return Err(error),
    }
    let control = match wish(&pauses, &heard) {
        Ok(PageWish::Heard(id)) => {
            let began = heard.get(&id).copied().unwrap_or_default();
            return told(prompter, session, began).await;
        }
        _ if !is_free => return Err(at_work()),
        Err(error) => return Err(refused(error)),
        Ok(PageWish::Prompt(_)) if !pauses.is_empty() => {
            return Err(Error::new(
                ErrorKind::Conflict,
                "a run of the session waits for an answer",
            ));
        }
        Ok(PageWish::Prompt(messages)) => Control::Prompt {
            text: text(&messages)?,
            messages: messages
                .into_iter()
                .flat_map(|message| message.ids)
                .collect(),
        },
        Ok(PageWish::Answers(answers)) => Control::Answer { answers },
    };
    when_free(|| prompter.control(Some(session), control.clone())).await?;
    if !matches!(control, Control::Prompt { .. }) {
        return next(prompter, session, head).await;
    }
    // An interrupted run ends when the next one starts; that end does not belong to this stream.
    let is_old = |event: &Result<Event, _>| {
        let begins = |event: &Event| {
            event.who.depth == 0
                && matches!(event.kind, EventKind::RunStarted | EventKind::RunResumed)
        };
        std::future::ready(event.as_ref().is_ok_and(|event| !begins(event)))
    };
    let events = after(prompter, session, head).await?;
    Ok(prompt::until_end(Box::pin(events.skip_while(is_old))))
}

/// Returns the events after a record, until a run ends or waits, in any process.
async fn next(prompter: Arc<dyn Prompter>, session: &str, head: u64) -> Result<EventStream, Error> {
    Ok(prompt::until_end(after(prompter, session, head).await?))
}

/// Returns the events after a record.
async fn after(
    prompter: Arc<dyn Prompter>,
    session: &str,
    head: u64,
) -> Result<EventStream, Error> {
    let events = prompter.attach(Some(session), Some(head)).await?;
    Ok(prompt::follow(
        prompter,
        Some(session.into()),
        (events, head),
    ))
}

/// Returns the pauses of a session.
async fn waiting(prompter: &Arc<dyn Prompter>, session: &str) -> Result<Vec<Arc<Pause>>, Error> {
    let page = when_free(|| prompter.pauses(PausesRequest::new().session(session))).await?;
    Ok(page
        .pauses
        .into_iter()
        .map(|waiting| waiting.pause)
        .collect())
}

/// Retries briefly: a run holds its session until shortly after its end was reported, and a client may be faster.
async fn when_free<'a, T>(ask: impl Fn() -> BoxFuture<'a, Result<T, Error>>) -> Result<T, Error> {
    for _ in 0..TRIES {
        match ask().await {
            Err(error) if error.kind() == ErrorKind::Conflict => sleep(INTERVAL).await,
            told => return told,
        }
    }
    ask().await
}

/// Returns the latest run of a session from its start, or the next one, which starts with the inbox.
async fn again(
    prompter: Arc<dyn Prompter>,
    session: &str,
    stand: &Stand,
) -> Result<EventStream, Error> {
    match stand.began {
        _ if stand.is_queued() => next(prompter, session, stand.head).await,
        0 => Err(Error::new(
            ErrorKind::Missing,
            format!("nothing was said in the session {session:?} yet"),
        )),
        began => told(prompter, session, began).await,
    }
}

/// Returns the events of the run that started with a record, until it ends or waits. Answered pauses are part of the
/// same stream.
async fn told(
    prompter: Arc<dyn Prompter>,
    session: &str,
    began: u64,
) -> Result<EventStream, Error> {
    let events = prompter
        .attach(Some(session), Some(began.saturating_sub(1)))
        .await?;
    let (session, newest) = (Arc::<str>::from(session), None::<Event>);
    let events = stream::unfold(Some((events, None, newest)), move |state| {
        let (prompter, session) = (Arc::clone(&prompter), Arc::clone(&session));
        async move {
            let (mut events, mut waits, mut newest) = state?;
            loop {
                match events.next().await {
                    Some(Ok(event))
                        if event.who.depth == 0
                            && matches!(event.kind, EventKind::RunPaused { .. }) =>
                    {
                        waits = Some(event);
                    }
                    Some(next) => {
                        newest = next
                            .as_ref()
                            .ok()
                            .filter(|event| event.who.depth == 0)
                            .cloned()
                            .or(newest);
                        return Some((vec![next], Some((events, None, newest))));
                    }
                    // The events of a store end here, and are not requested again.
                    None => {
                        let last = match waits {
                            Some(waits) => vec![Ok(waits)],
                            None => unended(&prompter, &session, newest?)
                                .await
                                .unwrap_or_else(|error| vec![Err(error)]),
                        };
                        return Some((last, None));
                    }
                }
            }
        }
    });
    Ok(prompt::until_end(Box::pin(events.flat_map(stream::iter))))
}

/// Handles the end of a stream without an end in the log: the run waits for an approval to continue, or no process runs
/// it.
async fn unended(
    prompter: &Arc<dyn Prompter>,
    session: &str,
    newest: Event,
) -> Result<Vec<Result<Event, Error>>, Error> {
    let pauses = waiting(prompter, session).await?;
    if pauses.is_empty() || matches!(newest.kind, EventKind::RunFinished { .. }) {
        let message = "the run has not ended, and nobody goes on with it; hint: resume or stop it, or fork the session with a prompt";
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    Ok(prompt::asks(&newest, pauses).into_iter().map(Ok).collect())
}

/// Returns the text of messages: the API accepts no other prompts.
fn text(said: &[UserMessage]) -> Result<Arc<str>, Error> {
    let is_text = |message: &UserMessage| message.content.iter().all(|it| it.as_text().is_some());
    if !said.iter().all(is_text) {
        return Err(Error::new(
            ErrorKind::Invalid,
            "a prompt over this route is text: pictures and files are not taken",
        ));
    }
    Ok(said
        .iter()
        .map(UserMessage::to_text)
        .collect::<Vec<_>>()
        .join("\n\n")
        .into())
}

fn refused(error: protocols::Error) -> Error {
    let kind = match error.kind() {
        Wrong::Stale => ErrorKind::Conflict,
        Wrong::Agent => ErrorKind::Agent,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, error.to_string()).behind(error)
}

fn respond<const N: usize>(
    headers: [(&'static str, &'static str); N],
    texts: impl Stream<Item = String> + Send + 'static,
) -> Response {
    let kept = stream::unfold(Box::pin(texts), async |mut texts| {
        let text = timeout(KEEP_ALIVE, texts.next())
            .await
            .unwrap_or_else(|_| Some(":\n\n".to_owned()))?;
        Some((Ok::<_, Infallible>(text), texts))
    });
    (headers, Body::from_stream(kept)).into_response()
}
