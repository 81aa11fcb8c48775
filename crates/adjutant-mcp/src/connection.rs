//! A connection to a server: how it begins, and the requests on it.

use std::{borrow::Cow, future::pending, pin::pin, sync::Arc};

use adjutant_tool::CallContext;
use async_trait::async_trait;
use rmcp::{
    model::{
        ClientCapabilities, ClientConfig, ClientRequest, ElicitationCapability,
        FormElicitationCapability, Implementation, JsonObject, JsonRpcMessage, NumberOrString,
        ProtocolVersion, RootsCapabilities, SamplingCapability, ServerResult, TASKS_EXTENSION_ID,
        UrlElicitationCapability,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions,
        RequestHandle, RoleClient, RunningService, RxJsonRpcMessage, ServiceError,
        TxJsonRpcMessage,
    },
    transport::{Transport as SdkTransport, async_rw::AsyncRwTransport},
};
use tokio::time::{Instant, sleep_until};

use crate::{
    config::{Revision, Transport},
    content::floor,
    error::{Error, ErrorKind},
    handler::{Desk, Handler},
    http,
    plan::Plan,
    stdio::{self, Bounded, Child, MAX_MESSAGE, Trace},
};

/// The message for a connection that ended without a reason.
const CLOSED: &str = "it closed the connection";

/// Provides the connection to a server.
#[async_trait]
pub(crate) trait Connect: Send + Sync {
    fn plan(&self) -> &Plan;

    /// The connection to the server; waits for it.
    ///
    /// # Errors
    /// The reason why there is no connection.
    async fn connection(self: Arc<Self>) -> Result<Connection, Error>;
}

/// A connection to a server, for senders of requests; cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) is_legacy: bool,
    desk: Arc<Desk>,
    trace: Arc<Trace>,
}

/// The resources of a connection; dropping them closes it.
pub(crate) struct Backing {
    pub(crate) running: RunningService<RoleClient, Handler>,
    pub(crate) child: Option<Child>,
}

/// Begins a connection.
///
/// # Errors
/// `Unavailable` if the server cannot be reached, `Unauthorised` if it requires a token, `Protocol` if it does not
/// speak the protocol, and the errors of its transport.
pub(crate) async fn begin(
    plan: &Arc<Plan>,
    desk: Desk,
    revision: Revision,
    trace: &Arc<Trace>,
) -> Result<(Connection, Backing), Error> {
    let desk = Arc::new(desk);
    let handler = Handler {
        desk: Arc::clone(&desk),
        info: info(plan),
    };
    let mode = mode(revision);
    let (running, mut child) = match &plan.config.transport {
        Transport::Stdio(config) => {
            let (child, output, input) = stdio::start(config, trace).await?;
            let transport =
                AsyncRwTransport::new(output, input).with_max_line_length(MAX_MESSAGE + 1);
            (
                handler
                    .serve_with_lifecycle(Exact::new(transport, trace), mode)
                    .await,
                Some(child),
            )
        }
        Transport::Http(config) => {
            let transport = Exact::new(http::transport(&plan.name, config)?, trace);
            (handler.serve_with_lifecycle(transport, mode).await, None)
        }
        Transport::Stream(config) => {
            let (output, input) = tokio::io::split((config.0)());
            let transport = AsyncRwTransport::new(Bounded::new(output, trace), input)
                .with_max_line_length(MAX_MESSAGE + 1);
            (
                handler
                    .serve_with_lifecycle(Exact::new(transport, trace), mode)
                    .await,
                None,
            )
        }
    };
    let running = match running {
        Ok(running) => running,
        Err(error) => {
            if let (ClientInitializeError::ConnectionClosed(_), Some(child)) = (&error, &mut child)
            {
                child.wait_for_exit().await;
            }
            return Err(handshake_error(&error, trace, plan));
        }
    };
    let version = running
        .peer()
        .peer_info()
        .map(|info| info.protocol_version.clone());
    if !version
        .as_ref()
        .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(version))
    {
        let spoken = version.map_or("none".to_owned(), |version| version.to_string());
        let message = format!(
            "it speaks revision {}, which is not known here",
            floor(&spoken, 64)
        );
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    let is_legacy = version.is_some_and(|version| version.has_initialize());
    let peer = running.peer().clone();
    Ok((
        Connection {
            peer,
            is_legacy,
            desk,
            trace: Arc::clone(trace),
        },
        Backing { running, child },
    ))
}

fn mode(revision: Revision) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match revision {
        Revision::Detect => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Revision::V2025_11_25 => ClientLifecycleMode::Initialize,
        Revision::V2026_07_28 => ClientLifecycleMode::Discover { preferred_versions },
    }
}

fn info(plan: &Plan) -> ClientConfig {
    let mut can = ClientCapabilities::default();
    let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::new());
    can.elicitation = Some(elicitation.with_url(UrlElicitationCapability::new()));
    can.sampling = Some(SamplingCapability::default());
    can.roots = (!plan.config.roots.is_empty()).then(RootsCapabilities::default);
    can.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())].into());
    ClientConfig::new(
        can,
        Implementation::new("adjutant", env!("CARGO_PKG_VERSION")),
    )
    .with_protocol_version(ProtocolVersion::V_2025_11_25)
}

/// The error for a failed handshake.
fn handshake_error(error: &ClientInitializeError, trace: &Trace, plan: &Plan) -> Error {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            let why = trace.reason().unwrap_or(CLOSED);
            let kind = if trace.is_cut() {
                ErrorKind::Protocol
            } else {
                ErrorKind::Unavailable
            };
            Error::new(
                kind,
                format!("{why} before it said which revision it speaks"),
            )
        }
        ClientInitializeError::TransportError { error, .. } => {
            http::fixable_error(&plan.name, error).unwrap_or_else(|| {
                Error::new(
                    ErrorKind::Unavailable,
                    format!("it cannot be reached: {}", short(&chain(&*error.error))),
                )
            })
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            handshake_error(fallback, trace, plan)
        }
        ClientInitializeError::JsonRpcError(data) => Error::new(
            ErrorKind::Protocol,
            format!("it refused to begin: {}", short(&data.message)),
        ),
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let spoken: Vec<_> = server_supported
                .iter()
                .take(8)
                .map(ToString::to_string)
                .collect();
            Error::new(
                ErrorKind::Protocol,
                format!(
                    "it speaks none of our revisions, but {}",
                    short(&spoken.join(", "))
                ),
            )
        }
        _ => Error::new(
            ErrorKind::Protocol,
            "it answered the first message with something else than the protocol has",
        ),
    }
}

/// An error with what caused it.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// A message of a server, truncated for an error.
pub(crate) fn short(text: &str) -> &str {
    floor(text, 1_024)
}

impl Connection {
    /// Sends a request and waits for its answer; if it is dropped, the server gets a cancellation.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
    ) -> Result<ServerResult, ServiceError> {
        let handle = self
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await?;
        Sent(Some(handle)).answer().await
    }

    /// Sends the request of a call, which receives progress reports and the server's questions.
    ///
    /// # Errors
    /// `Timeout` if the server is silent for too long, and whatever becomes of the request.
    pub(crate) async fn request_for(
        &self,
        cx: &CallContext,
        request: ClientRequest,
    ) -> Result<ServerResult, ServiceError> {
        let _turn = if self.is_legacy {
            Some(self.desk.turn().await)
        } else {
            None
        };
        let sending = self.desk.sending.lock().await;
        let handle = self
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await?;
        let open = self
            .desk
            .list(handle.id.clone(), handle.progress_token.clone(), cx.clone());
        drop(sending);
        let mut answer = pin!(Sent(Some(handle)).answer());
        let limit = self.desk.plan.config.silence_limit;
        loop {
            let heard = open.last_message_at();
            let late = async {
                match heard.checked_add(limit) {
                    Some(late) => sleep_until(late).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = late => {}
            }
            if Instant::now().duration_since(open.last_message_at()) >= limit {
                return Err(ServiceError::Timeout { timeout: limit });
            }
        }
    }

    /// The reason why the connection ended, if it is known.
    pub(crate) fn reason(&self) -> &str {
        self.trace.reason().unwrap_or(CLOSED)
    }
}

/// A request that was sent.
struct Sent(Option<RequestHandle<RoleClient>>);

impl Sent {
    async fn answer(mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(handle.cancel(Some("nobody waits for it any more".to_owned())));
    }
}

/// A transport that matches an answer only by the exact id of its request. Our ids are numbers, but the SDK treats
/// the text `"7"` as 7: a connection with such an answer is closed.
struct Exact<T> {
    inner: T,
    trace: Arc<Trace>,
}

impl<T> Exact<T> {
    fn new(inner: T, trace: &Arc<Trace>) -> Self {
        Self {
            inner,
            trace: Arc::clone(trace),
        }
    }
}

impl<T: SdkTransport<RoleClient>> SdkTransport<RoleClient> for Exact<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        let id = match &message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        if let Some(NumberOrString::String(_)) = id {
            self.trace.cut("it sent an answer with a text as its id");
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
