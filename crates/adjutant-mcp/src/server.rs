//! A server and its tools: it is started at the first request for them, restarted when it ends, and released with its
//! last handle.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use adjutant_tool::{Identity, ToolError, Toolbox, Toolset};
use async_trait::async_trait;
use futures_util::future::pending;
use rmcp::{
    model::{ServerNotification, SubscriptionFilter},
    service::{Peer, RoleClient, ServiceError},
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Duration, Instant, sleep, timeout},
};

use crate::{
    catalogue::{self, Listed},
    config::{Revision, ServerConfig},
    connection::{self, Backing, Connect, Connection},
    content::floor,
    error::{Error, ErrorKind},
    handler::Desk,
    http,
    plan::{self, Plan},
    resources,
    stdio::Trace,
};

/// The delay before a server is restarted; it doubles each time, up to the second value.
const WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The running time after which a server that ends is restarted with the first delay.
const LONG: Duration = Duration::from_secs(60);
/// The time for which a server that is not up yet counts as starting: it may be restarting, and a call that resumes
/// after a crash needs its tool.
const ABOUT: Duration = Duration::from_secs(3);
/// The shortest interval between two requests of a constantly changing list.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// The number of consecutive failed starts before readers get the error: the second one can use another revision.
const DOWN_AFTER: u32 = 2;
/// The delay before a list is requested again after a failure.
const LIST_AGAIN: Duration = Duration::from_secs(60);
/// The largest number of bytes of a name, and of a prefix.
const MAX_NAME: usize = 32;
/// The number of bytes of a failure that a warning shows: of its beginning and of its end.
const SHOWN: usize = 1_024;

/// The tools of a server, wherever it runs; cheap to clone.
///
/// It is started when its tools are first requested, and restarted when it ends, after a delay of 1 s that doubles up
/// to a minute. In the meantime its tools stay listed, and a call waits for it. A server that never came up has no
/// tools but a warning, and is retried. The same set of tools is returned until the server reports a change, or the
/// lifetime of its list is over; a list with the same content gives the identical set. When the last handle is
/// dropped, a server that is a program is killed with all processes that it started.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) shared: Arc<Shared>,
}

/// The shared state of a server's handles.
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    status: Arc<watch::Sender<ServerStatus>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// The status of a server.
#[derive(Clone, Default)]
struct ServerStatus {
    state: State,
    /// Its tools; none before it was tried for the first time.
    set: Option<Toolset>,
    /// True if the set may have changed.
    is_stale: bool,
    /// When that will be so.
    expires: Option<Instant>,
    /// The number of started requests of its list, and the last completed one.
    looks: (u64, u64),
    /// The number of beginnings that failed since it was up.
    failed: u32,
}

#[derive(Clone, Default)]
enum State {
    #[default]
    Starting,
    Up(Connection),
    Down(Arc<Error>),
}

impl McpServer {
    /// A server with this name, which is displayed to users and is the prefix of its tools' names.
    ///
    /// # Errors
    /// `Invalid` if the name is empty or longer than 32 bytes, or if the prefix has other than letters, digits, `_` and `-`.
    pub fn new(name: impl Into<Arc<str>>, config: ServerConfig) -> Result<Self, Error> {
        let name = name.into();
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return invalid(format!(
                "a server cannot be called {name:?}: hint: a name has 1 to {MAX_NAME} bytes"
            ));
        }
        let prefix = config
            .prefix
            .clone()
            .unwrap_or_else(|| format!("{}_", catalogue::plain(&name)).into());
        if prefix.len() > MAX_NAME + 1 || catalogue::plain(&prefix) != *prefix {
            let hint = format!("hint: it has at most {MAX_NAME} letters, digits, `_` and `-`");
            return invalid(format!(
                "the names of the tools of {name:?} cannot begin with {prefix:?}: {hint}"
            ));
        }
        let secrets = plan::secrets(&config);
        let plan = Arc::new(Plan {
            name,
            prefix,
            config,
            secrets,
        });
        let shared = Shared {
            plan,
            status: Arc::new(watch::Sender::default()),
            keeper: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Returns the text before the name of each of its tools.
    pub fn prefix(&self) -> &str {
        &self.shared.plan.prefix
    }

    /// Waits until the server answers, at most for the time that it has to start.
    ///
    /// # Errors
    /// Why it does not, with the end of its error output.
    pub async fn ready(&self) -> Result<(), Error> {
        Arc::clone(&self.shared).connection().await.map(|_| ())
    }

    /// The connection for readers, who do not wait for a server that repeatedly fails to start.
    pub(crate) async fn reader_connection(&self) -> Result<Connection, Error> {
        self.shared
            .wait_connected(|status| status.failed >= DOWN_AFTER)
            .await
    }
}

#[async_trait]
impl Toolbox for McpServer {
    fn name(&self) -> &str {
        &self.shared.plan.name
    }

    /// Never fails because of the server: what keeps it from giving its tools is a warning of the set.
    async fn resolve(&self, _: &Identity) -> Result<Toolset, ToolError> {
        let shared = &self.shared;
        let mut seen = shared.watch();
        shared.status.send_if_modified(|status| {
            let is_over = status
                .expires
                .is_some_and(|expires| expires <= Instant::now());
            is_over && !std::mem::replace(&mut status.is_stale, true)
        });
        let (begun, _) = shared.status.borrow().looks;
        // The list of a server that constantly reports changes is at most this old.
        let is_settled = |status: &ServerStatus| {
            let is_stale =
                status.is_stale && status.looks.1 <= begun && matches!(status.state, State::Up(_));
            status.set.is_some() && !is_stale
        };
        // Its holder gives up earlier.
        let limit = shared
            .plan
            .config
            .start_limit
            .saturating_add(LIST_EVERY * 2);
        let _ = timeout(limit, seen.wait_for(is_settled)).await;
        let set = shared.status.borrow().set.clone();
        Ok(set.unwrap_or_default())
    }
}

impl Shared {
    /// Watches how the server is, and starts it if it was not.
    fn watch(self: &Arc<Self>) -> watch::Receiver<ServerStatus> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        // A keeper ends with its runtime.
        if keeper.as_ref().is_none_or(JoinHandle::is_finished) {
            let keep = Keeper {
                server: Arc::downgrade(self),
                plan: Arc::clone(&self.plan),
                status: Arc::clone(&self.status),
            };
            *keeper = Some(tokio::spawn(keep.keep()));
        }
        self.status.subscribe()
    }

    /// Waits for the server, within its start timeout and until `is_enough` returns true for a failed one.
    async fn wait_connected(
        self: &Arc<Self>,
        is_enough: impl Fn(&ServerStatus) -> bool,
    ) -> Result<Connection, Error> {
        let mut seen = self.watch();
        let is_known = |status: &ServerStatus| match &status.state {
            State::Up(connection) => !connection.peer.is_transport_closed(),
            // Only a user can fix it, so waiting is useless.
            State::Down(error) => !error.is_retryable() || is_enough(status),
            State::Starting => false,
        };
        let limit = self.plan.config.start_limit;
        let status = match timeout(limit, seen.wait_for(is_known)).await {
            Ok(Ok(status)) => status.clone(),
            _ => self.status.borrow().clone(),
        };
        match status.state {
            State::Up(connection) => Ok(connection),
            State::Down(error) => Err((*error).clone()),
            State::Starting => Err(self.plan.error(
                ErrorKind::TimedOut,
                &format!("it did not start within {limit:?}"),
            )),
        }
    }
}

#[async_trait]
impl Connect for Shared {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    async fn connection(self: Arc<Self>) -> Result<Connection, Error> {
        self.wait_connected(|_| false).await
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let keeper = self
            .keeper
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        keeper.take().iter().for_each(JoinHandle::abort);
    }
}

/// Keeps a server running, and its list of tools true.
struct Keeper {
    server: Weak<Shared>,
    plan: Arc<Plan>,
    status: Arc<watch::Sender<ServerStatus>>,
}

impl Keeper {
    async fn keep(self) {
        let (mut wait, mut listed, first) = (WAIT.0, None, Instant::now());
        let mut revision = self.plan.config.revision;
        loop {
            let began = Instant::now();
            let trace = Arc::new(Trace::default());
            let start = timeout(
                self.plan.config.start_limit,
                self.start(revision, &trace, &mut listed),
            )
            .await;
            let late = || {
                Error::new(
                    ErrorKind::TimedOut,
                    format!("it did not start within {:?}", self.plan.config.start_limit),
                )
            };
            let error = match start.unwrap_or_else(|_| Err(late())) {
                Ok((connection, backing)) => {
                    let error = self.stay(&connection, backing, &mut listed).await;
                    wait = if began.elapsed() >= LONG {
                        WAIT.0
                    } else {
                        wait
                    };
                    error
                }
                Err(error) => error,
            };
            // Some older servers exit if the first message is unknown to them.
            let is_fallback = revision == Revision::Detect && trace.reason().is_some();
            let is_up = matches!(self.status.borrow().state, State::Up(_));
            revision = if is_fallback && !is_up {
                Revision::V2025_11_25
            } else {
                self.plan.config.revision
            };
            self.fell(
                &error,
                &trace,
                first.elapsed() >= ABOUT.min(self.plan.config.start_limit),
            );
            sleep(wait).await;
            wait = (wait * 2).min(WAIT.1);
        }
    }

    /// Starts the server and requests its tools.
    async fn start(
        &self,
        revision: Revision,
        trace: &Arc<Trace>,
        listed: &mut Option<(Listed, Toolset)>,
    ) -> Result<(Connection, Backing), Error> {
        let status = Arc::clone(&self.status);
        let changed = move || stale(&status);
        let desk = Desk::new(Arc::clone(&self.plan), changed);
        let (connection, backing) = connection::begin(&self.plan, desk, revision, trace).await?;
        self.list(&connection, listed)
            .await
            .map_err(|error| listing_error(&error, &connection, &self.plan))?;
        Ok((connection, backing))
    }

    /// Requests the tools, and publishes them and the connection.
    async fn list(
        &self,
        connection: &Connection,
        listed: &mut Option<(Listed, Toolset)>,
    ) -> Result<(), ServiceError> {
        // A change while the list is being sent may be missing in it.
        let mut look = 0;
        self.status.send_if_modified(|status| {
            status.is_stale = false;
            status.looks.0 += 1;
            look = status.looks.0;
            false
        });
        let (list, expires) = catalogue::fetch(connection).await?;
        let set = match listed.take() {
            Some((known, set)) if known == list => set,
            _ => {
                let server = self.server.clone() as Weak<dyn Connect>;
                resources::with(
                    list.toolset(&self.plan, &server),
                    connection,
                    &self.plan,
                    &server,
                )
            }
        };
        *listed = Some((list, set.clone()));
        self.status.send_modify(|status| {
            (status.state, status.set) = (State::Up(connection.clone()), Some(set));
            (status.expires, status.looks.1, status.failed) = (expires, look, 0);
        });
        Ok(())
    }

    /// Keeps the list true for as long as the connection is there; gives why it ended.
    async fn stay(
        &self,
        connection: &Connection,
        backing: Backing,
        listed: &mut Option<(Listed, Toolset)>,
    ) -> Error {
        let Backing { running, mut child } = backing;
        let hear = async {
            if !connection.is_legacy {
                self.listen(&connection.peer).await;
            }
        };
        tokio::select! {
            biased;
            _ = running.waiting() => {}
            _ = async { tokio::join!(hear, self.renew(connection, listed)) } => {}
        }
        if let Some(child) = &mut child {
            child.wait_for_exit().await;
        }
        Error::new(ErrorKind::Unavailable, connection.reason().to_owned())
    }

    /// Requests the list again when it may have changed. Never returns.
    async fn renew(&self, connection: &Connection, listed: &mut Option<(Listed, Toolset)>) {
        let mut seen = self.status.subscribe();
        loop {
            sleep(LIST_EVERY).await;
            // The sender is ours.
            let _ = seen.wait_for(|status| status.is_stale).await;
            let list = timeout(self.plan.config.start_limit, self.list(connection, listed));
            if !matches!(list.await, Ok(Ok(()))) {
                tracing::warn!(
                    server = &*self.plan.name,
                    "the list of tools could not be had again"
                );
                self.status.send_modify(|status| {
                    (status.is_stale, status.expires) = (false, Some(Instant::now() + LIST_AGAIN));
                });
            }
        }
    }

    /// Receives changes of the list on a separate stream. Never returns.
    async fn listen(&self, peer: &Peer<RoleClient>) {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut wait = WAIT.0;
        loop {
            match peer.listen(filter.clone()).await {
                Ok(mut subscription) => {
                    while let Ok(Some(told)) = subscription.next().await {
                        if let ServerNotification::ToolListChangedNotification(_) = told {
                            stale(&self.status);
                        }
                    }
                    // Changes in between may have been missed.
                    stale(&self.status);
                }
                // It sends no notifications: its list is valid for its lifetime.
                Err(ServiceError::McpError(_)) => return pending().await,
                Err(_) => {}
            }
            sleep(wait).await;
            wait = (wait * 2).min(WAIT.1);
        }
    }

    /// The server is down: waiters get the error, and if it was never up its tools are a warning.
    fn fell(&self, error: &Error, trace: &Trace, is_missed: bool) {
        let full = format!("{}{}", error.message, trace.complaints());
        let what = brief(&full);
        tracing::warn!(server = &*self.plan.name, "{what}");
        let warning = || {
            Toolset::default().warn([catalogue::warning(
                &self.plan,
                &format!("{what}; it is tried again"),
            )])
        };
        self.status.send_modify(|status| {
            let is_known = status
                .set
                .as_ref()
                .is_some_and(|set| !set.is_empty() || set.warnings().is_empty());
            if !is_known
                && (is_missed || !error.is_retryable())
                && status
                    .set
                    .as_ref()
                    .is_none_or(|set| set.warnings() != warning().warnings())
            {
                status.set = Some(warning());
            }
            let error = error.saying(self.plan.says(&full));
            status.failed += 1;
            status.state = State::Down(Arc::new(error));
        });
    }
}

/// The list may have changed.
fn stale(status: &watch::Sender<ServerStatus>) {
    status.send_if_modified(|status| !std::mem::replace(&mut status.is_stale, true));
}

fn listing_error(error: &ServiceError, connection: &Connection, plan: &Plan) -> Error {
    if let Some(refusal) = http::refusal_of(&plan.name, error) {
        return refusal;
    }
    match error {
        ServiceError::McpError(error) => Error::new(
            ErrorKind::Protocol,
            format!(
                "it refused to list its tools: {}",
                connection::short(&error.message)
            ),
        ),
        ServiceError::UnexpectedResponse => Error::new(
            ErrorKind::Protocol,
            "it answered with something that is no list of tools",
        ),
        _ => {
            let why = connection.reason();
            Error::new(
                ErrorKind::Unavailable,
                format!("{why} before it listed its tools"),
            )
        }
    }
}

/// The beginning and the end of a long text.
fn brief(text: &str) -> String {
    if text.len() <= SHOWN * 2 {
        return text.to_owned();
    }
    let end = &text[text.ceil_char_boundary(text.len() - SHOWN)..];
    format!("{} […] {end}", floor(text, SHOWN))
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.shared.plan.name)
            .field("config", &self.shared.plan.config)
            .finish()
    }
}
