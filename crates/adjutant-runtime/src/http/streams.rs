//! The surface in the protocols of other people's pages: a request begins a run or answers it, and the run goes on whoever follows.

use std::{convert::Infallible, sync::Arc, time::Duration};

use adjutant_agent::{EventKind, Pause};
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
use tokio::time::{sleep, timeout};

use super::{
    error::Problem,
    routes::{OfSession, Whom, read},
};
use crate::{
    Error, ErrorKind, Prompter,
    prompt::{self, Control, EventStream, Look, PausesRequest, SessionState},
};

/// The interval at which a comment is sent when nothing else is.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often, and at which interval, a session is asked for that is not free yet.
const TRIES: u32 = 25;
const INTERVAL: Duration = Duration::from_millis(20);

/// How a session stands, as [`Look::Run`] tells it.
#[derive(Deserialize)]
struct Stand {
    state: SessionState,
    head: u64,
    #[serde(default)]
    began: u64,
}

pub(super) async fn ag_ui(whom: Whom, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let input: ag_ui::RunAgentInput = read(&headers, body).await?;
    let events = begin(whom.prompter, &input.thread_id, |pauses| input.wish(pauses)).await?;
    Ok(respond(ag_ui::HEADERS, ag_ui::tell(events, &input)))
}

/// The newest run once more, from its beginning on.
pub(super) async fn ag_ui_again(whom: Whom, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let input: ag_ui::RunAgentInput = read(&headers, body).await?;
    let stand = stand(&whom.prompter, &input.thread_id).await?;
    let events = again(whom.prompter, &input.thread_id, &stand).await?;
    Ok(respond(ag_ui::HEADERS, ag_ui::tell(events, &input)))
}

pub(super) async fn ai_sdk(whom: Whom, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let input: ai_sdk::ChatRequest = read(&headers, body).await?;
    let events = begin(whom.prompter, &input.id, |pauses| input.wish(pauses)).await?;
    Ok(respond(ai_sdk::HEADERS, ai_sdk::tell(events, &input)))
}

/// The run that is at work or waits, from its beginning on; 204 if there is none, as `resumeStream` of a chat wants it.
pub(super) async fn ai_sdk_again(whom: Whom, Path(OfSession { name }): Path<OfSession>) -> Result<Response, Problem> {
    let stand = match stand(&whom.prompter, &name).await {
        Err(error) if error.kind() == ErrorKind::Missing => return Ok(StatusCode::NO_CONTENT.into_response()),
        stand => stand?,
    };
    if !matches!(stand.state, SessionState::Working | SessionState::Waiting) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let events = again(whom.prompter, &name, &stand).await?;
    Ok(respond(ai_sdk::HEADERS, ai_sdk::tell(events, &ai_sdk::ChatRequest::new(&*name))))
}

async fn stand(prompter: &Arc<dyn Prompter>, session: &str) -> Result<Stand, Error> {
    let told = prompter.look(Some(session), Look::Run).await?;
    serde_json::from_value(told)
        .map_err(|error| Error::new(ErrorKind::Connection, "the agent told nothing of its run").with_source(error))
}

/// Begins a run, or answers the one that waits; its events until it ends or waits, whoever performs it.
async fn begin(
    prompter: Arc<dyn Prompter>,
    session: &str,
    wish: impl FnOnce(&[Arc<Pause>]) -> Result<PageWish, protocols::Error>,
) -> Result<EventStream, Error> {
    let at_work = "a run of the session is at work; hint: follow it, or wait for its end";
    let (mut head, mut pauses) = (0, Vec::new());
    match stand(&prompter, session).await {
        Ok(Stand { state: SessionState::Working, .. }) => return Err(Error::new(ErrorKind::Conflict, at_work)),
        Ok(stand) => {
            head = stand.head;
            let page = when_free(|| prompter.pauses(PausesRequest::new().session(session))).await?;
            pauses.extend(page.pauses.into_iter().map(|waiting| waiting.pause));
            // Somebody will go on with it, where nobody is asked whether.
            if stand.state == SessionState::Open && pauses.is_empty() {
                return Err(Error::new(ErrorKind::Conflict, at_work));
            }
        }
        // A session begins with its first prompt.
        Err(error) if error.kind() == ErrorKind::Missing => {}
        Err(error) => return Err(error),
    }
    let control = match wish(&pauses).map_err(refused)? {
        PageWish::Prompt(_) if !pauses.is_empty() => {
            return Err(Error::new(ErrorKind::Conflict, "a run of the session waits for an answer"));
        }
        PageWish::Prompt(said) => Control::Prompt { text: text(&said)? },
        PageWish::Answers(answers) => Control::Answer { answers },
    };
    when_free(|| prompter.control(Some(session), control.clone())).await?;
    let events = prompter.attach(Some(session), Some(head)).await?;
    Ok(prompt::until_end(prompt::follow(prompter, Some(session.into()), (events, head))))
}

/// Asks again for a moment: a run keeps its session until shortly after its end was told, and a page may be faster.
async fn when_free<'a, T>(ask: impl Fn() -> BoxFuture<'a, Result<T, Error>>) -> Result<T, Error> {
    for _ in 0..TRIES {
        match ask().await {
            Err(error) if error.kind() == ErrorKind::Conflict => sleep(INTERVAL).await,
            told => return told,
        }
    }
    ask().await
}

/// The newest run from its beginning on, until it ends or waits. Where it waited before and was answered, it is told as one.
async fn again(prompter: Arc<dyn Prompter>, session: &str, stand: &Stand) -> Result<EventStream, Error> {
    let events = prompter.attach(Some(session), Some(stand.began.saturating_sub(1))).await?;
    let events = stream::unfold(Some((events, None)), |state| async move {
        let (mut events, mut waits) = state?;
        loop {
            match events.next().await {
                Some(Ok(event)) if event.who.depth == 0 && matches!(event.kind, EventKind::RunPaused { .. }) => {
                    waits = Some(event);
                }
                Some(next) => return Some((next, Some((events, None)))),
                // Those of a store end here, and are not asked again.
                None => return Some((Ok(waits?), None)),
            }
        }
    });
    Ok(Box::pin(events))
}

/// The text of messages: the surface takes no other prompt.
fn text(said: &[UserMessage]) -> Result<Arc<str>, Error> {
    let is_text = |message: &UserMessage| message.content.iter().all(|it| it.as_text().is_some());
    if !said.iter().all(is_text) {
        return Err(Error::new(
            ErrorKind::Invalid,
            "a prompt over this route is text: pictures and files are not taken",
        ));
    }
    Ok(said.iter().map(UserMessage::to_text).collect::<Vec<_>>().join("\n\n").into())
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
        let text = timeout(KEEP_ALIVE, texts.next()).await.unwrap_or_else(|_| Some(":\n\n".to_owned()))?;
        Some((Ok::<_, Infallible>(text), texts))
    });
    (headers, Body::from_stream(kept)).into_response()
}
