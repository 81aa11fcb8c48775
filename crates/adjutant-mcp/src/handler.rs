//! Notifications and requests of a server: changed tools, progress of a call, and on 2025-11-25 requests for input.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use adjutant_tool::{CallContext, Cancel, Progress};
use rmcp::{
    ErrorData,
    model::{
        ClientConfig, ClientResult, ErrorCode, InputRequest, NumberOrString,
        ProgressNotificationParam, ProgressToken, ServerNotification, ServerRequest,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient, Service},
};
use serde_json::Value;
use tokio::{
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore},
    time::{Duration, Instant},
};

use crate::{content, input, plan::Plan};

/// The most questions of a server that wait at a time.
const MAX_ASKED: usize = 16;
/// The shortest time between two reports of a call's progress; those in between are passed over.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The number of bytes of a progress report that are kept.
const MAX_PROGRESS: usize = 1_024;

/// The calls that are open on a connection, as the handler of that connection sees them.
pub(crate) struct Desk {
    pub(crate) plan: Arc<Plan>,
    open: Mutex<Vec<OpenCall>>,
    /// Held while a request is sent, until the call is listed: a question may come before the number of its request is known.
    pub(crate) sending: tokio::sync::Mutex<()>,
    /// True after the server has sent a request that could belong to more than one call: its calls then run
    /// sequentially.
    is_one_by_one: AtomicBool,
    turns: RwLock<()>,
    asked: Semaphore,
    /// Called when the list of tools has changed.
    changed: Box<dyn Fn() + Send + Sync>,
}

/// A call that waits for its answer.
#[derive(Clone)]
struct OpenCall {
    id: NumberOrString,
    token: ProgressToken,
    cx: CallContext,
    over: Cancel,
    /// The times of the last message from the server and of its last reported progress.
    heard: Arc<Mutex<(Instant, Instant)>>,
    /// The number of questions of this call.
    asked: Arc<AtomicUsize>,
}

/// A place among the open calls; dropped, the call is over.
pub(crate) struct OpenGuard<'a> {
    desk: &'a Desk,
    id: NumberOrString,
    over: Cancel,
    heard: Arc<Mutex<(Instant, Instant)>>,
}

/// The turn of a call: with others or alone.
pub(crate) enum CallTurn<'a> {
    Shared { _held: RwLockReadGuard<'a, ()> },
    Alone { _held: RwLockWriteGuard<'a, ()> },
}

impl Desk {
    pub(crate) fn new(plan: Arc<Plan>, changed: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            plan,
            open: Mutex::default(),
            sending: tokio::sync::Mutex::default(),
            is_one_by_one: AtomicBool::new(false),
            turns: RwLock::default(),
            asked: Semaphore::new(MAX_ASKED),
            changed: Box::new(changed),
        }
    }

    /// Waits for the turn of a call.
    pub(crate) async fn turn(&self) -> CallTurn<'_> {
        if self.is_one_by_one.load(Ordering::Relaxed) {
            return CallTurn::Alone {
                _held: self.turns.write().await,
            };
        }
        CallTurn::Shared {
            _held: self.turns.read().await,
        }
    }

    /// Registers a call whose request was sent.
    pub(crate) fn list(
        &self,
        id: NumberOrString,
        token: ProgressToken,
        cx: CallContext,
    ) -> OpenGuard<'_> {
        let (over, now) = (Cancel::new(), Instant::now());
        let heard = Arc::new(Mutex::new((now, now - PROGRESS_EVERY)));
        let guard = OpenGuard {
            desk: self,
            id: id.clone(),
            over: over.clone(),
            heard: Arc::clone(&heard),
        };
        self.open().push(OpenCall {
            id,
            token,
            cx,
            over,
            heard,
            asked: Arc::default(),
        });
        guard
    }

    fn open(&self) -> MutexGuard<'_, Vec<OpenCall>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call that a question is about.
    ///
    /// # Errors
    /// The call is ambiguous. No other call may get the question: calls of other runs and users share the connection.
    async fn asking(&self, context: &RequestContext<RoleClient>) -> Result<OpenCall, ErrorData> {
        let _sending = self.sending.lock().await;
        let open = self.open();
        let found = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => {
                open.iter().find(|call| call.id == *id)
            }
            // Many servers of the older revision send requests on a stream without a related request.
            Some(InboundStreamOrigin::Unassociated) | None => match &open[..] {
                [only] => Some(only),
                [] => None,
                [first, others @ ..] => {
                    self.is_one_by_one.store(true, Ordering::Relaxed);
                    let thread = &first.cx.who.thread;
                    Some(first).filter(|_| others.iter().all(|call| call.cx.who.thread == *thread))
                }
            },
        };
        found.cloned().ok_or_else(|| {
            ErrorData::invalid_request("no open call is known to be what this is about", None)
        })
    }

    /// Shows how far a call is.
    fn progress(&self, params: ProgressNotificationParam) {
        let call = self
            .open()
            .iter()
            .find(|call| call.token == params.progress_token)
            .cloned();
        let Some(call) = call.filter(OpenCall::reports) else {
            return;
        };
        let so_far = match params.total {
            Some(total) => format!("{} of {total}", params.progress),
            None => params.progress.to_string(),
        };
        let text = match params.message {
            Some(message) => format!("{} ({so_far})", content::floor(&message, MAX_PROGRESS)),
            None => so_far,
        };
        call.cx.progress(Progress::text(text));
    }

    /// Answers a question in place, within its limit and for as long as its call is open.
    async fn answer(
        &self,
        request: InputRequest,
        context: &RequestContext<RoleClient>,
    ) -> Result<Value, ErrorData> {
        let refused = |why: String| ErrorData::invalid_request(why, None);
        let _asked = self
            .asked
            .try_acquire()
            .map_err(|_| refused("too many questions wait already".to_owned()))?;
        let call = self.asking(context).await?;
        let key = format!("in-place-{}", call.asked.fetch_add(1, Ordering::Relaxed));
        let limit = Some(self.plan.config.answer_limit);
        let answered = tokio::select! {
            biased;
            () = call.over.cancelled() => return Err(refused("the call is over".to_owned())),
            () = context.ct.cancelled() => return Err(refused("it was taken back".to_owned())),
            answered = input::answer(&call.cx, &key, &request, &self.plan, limit) => answered,
        };
        // A call that waits for a person is not silent.
        call.hear();
        answered.map_err(|error| refused(error.message.to_string()))
    }
}

impl OpenCall {
    fn hear(&self) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).0 = Instant::now();
    }

    /// True if progress is reported now: reports that arrive too fast are dropped.
    fn reports(&self) -> bool {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.0 = Instant::now();
        let is_due = heard.0.duration_since(heard.1) >= PROGRESS_EVERY;
        if is_due {
            heard.1 = heard.0;
        }
        is_due
    }
}

impl OpenGuard<'_> {
    /// The time of the server's last message for this call.
    pub(crate) fn last_message_at(&self) -> Instant {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.over.cancel();
        self.desk.open().retain(|call| call.id != self.id);
    }
}

/// The handler of a connection.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) desk: Arc<Desk>,
    pub(crate) info: ClientConfig,
}

impl Service<RoleClient> for Handler {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let unfit = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let answer = match request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => {
                let roots = serde_json::from_value(input::roots(&self.desk.plan)).map_err(unfit)?;
                return Ok(ClientResult::ListRootsResult(roots));
            }
            ServerRequest::CustomRequest(request) => {
                return Err(ErrorData::new(
                    ErrorCode::METHOD_NOT_FOUND,
                    request.method,
                    None,
                ));
            }
            ServerRequest::CreateMessageRequest(request) => InputRequest::CreateMessage(request),
            ServerRequest::ElicitRequest(request) => InputRequest::Elicitation(request),
            _ => {
                return Err(ErrorData::new(
                    ErrorCode::METHOD_NOT_FOUND,
                    "not known here",
                    None,
                ));
            }
        };
        let is_model = matches!(answer, InputRequest::CreateMessage(_));
        let value = self.desk.answer(answer, &context).await?;
        Ok(match is_model {
            true => {
                ClientResult::CreateMessageResult(serde_json::from_value(value).map_err(unfit)?)
            }
            false => ClientResult::ElicitResult(serde_json::from_value(value).map_err(unfit)?),
        })
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        match notification {
            ServerNotification::ProgressNotification(notification) => {
                self.desk.progress(notification.params)
            }
            ServerNotification::ToolListChangedNotification(_) => (self.desk.changed)(),
            _ => {}
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }
}
