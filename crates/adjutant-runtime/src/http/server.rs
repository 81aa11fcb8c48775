//! The HTTP server of one agent: listens on loopback, and stops on request.

use std::{
    collections::VecDeque,
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use adjutant_protocols::a2a::{AgentCard, Handler, PushTargets};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    a2a,
    guard::{Keys, ShownToken},
    routes::{self, Phase, Site},
};
use crate::{Error, ErrorKind, prompt::LocalPrompter};

/// The maximum number of connections. Beyond it, a new connection replaces the oldest one that has not sent the token
/// within [`PATIENCE`]; until then, or until another connection ends, it waits.
const MAX_CONNECTIONS: usize = 256;
/// The time for which a connection without the token keeps its place. A client that sends its request immediately is
/// never disconnected.
const PATIENCE: Duration = Duration::from_secs(1);
/// The timeout for the head of a request, and of an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for clients to read their responses after the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The pause if a connection cannot be accepted, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// The options for serving an agent.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The name of the agent.
    pub agent: Arc<str>,
    /// The purpose of the agent, for A2A clients; its name by default.
    pub description: Option<Arc<str>>,
    /// The hosts that receive A2A push notifications; `None` disables them.
    pub pushes: Option<PushTargets>,
    /// The preferred port; another one is used if it is busy or 0.
    pub port: u16,
    /// The required token; `None` creates a new one.
    pub token: Option<Arc<str>>,
    /// The grace period of runs when the agent stops.
    pub grace: Duration,
}

/// A server of one agent that listens on loopback.
pub struct Server {
    door: Door,
    site: Arc<Site>,
    grace: Duration,
}

/// A listener on loopback, and its token.
pub(crate) struct Door {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) token: Arc<str>,
}

impl ServerOptions {
    /// Any port, a new token, a grace period of 10 seconds.
    pub fn new(agent: impl Into<Arc<str>>) -> Self {
        Self {
            agent: agent.into(),
            description: None,
            pushes: None,
            port: 0,
            token: None,
            grace: Duration::from_secs(10),
        }
    }

    /// Sets the preferred port.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Sets the required token.
    #[must_use]
    pub fn token(self, token: impl Into<Arc<str>>) -> Self {
        Self {
            token: Some(token.into()),
            ..self
        }
    }

    /// Sets the grace period of runs.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }
}

impl Server {
    /// Listens. Requests are answered after [`serve`](Server::serve) is called.
    ///
    /// # Errors
    /// `Init` if it cannot listen on any port.
    pub async fn bind(prompter: LocalPrompter, options: ServerOptions) -> Result<Self, Error> {
        let door = Door::bind(options.port, options.token).await?;
        let purpose = options
            .description
            .unwrap_or_else(|| Arc::clone(&options.agent));
        let url = format!("http://{}{}", door.address, a2a::PATH);
        let mut card = AgentCard::new(Arc::clone(&options.agent), purpose, url);
        (card.wants_token, card.pushes) = (true, options.pushes);
        let handler = Handler::new(prompter.clone(), &card);
        let site = Arc::new(Site::new(prompter, options.agent, handler));
        Ok(Self {
            door,
            site,
            grace: options.grace,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.door.address
    }

    /// Returns the required token.
    pub fn token(&self) -> &str {
        &self.door.token
    }

    /// Serves until `ended` completes or a stop request arrives. Then it refuses prompts, stops the runs, and returns
    /// when they have ended, at the latest after the grace period.
    pub async fn serve(self, ended: impl Future<Output = ()> + Send) {
        let Self { door, site, grace } = self;
        let router = routes::router(&site, door.keys(), a2a::routes());
        let stopped = async {
            tokio::select! {
                () = ended => {}
                () = site.stop.cancelled() => {}
            }
            site.go_to(Phase::Stopping);
            site.prompter.close(grace).await;
            site.go_to(Phase::Stopped);
        };
        door.serve(router, stopped).await;
    }
}

impl Door {
    /// Listens on this port if it is free, else on another one.
    pub(crate) async fn bind(port: u16, token: Option<Arc<str>>) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::new(ErrorKind::Init, "could not listen on 127.0.0.1").with_source(error)
        };
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => listener,
            Err(_) if port != 0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            token: token.unwrap_or_else(new_token),
        })
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys {
            token: Arc::clone(&self.token),
            port: self.address.port(),
            visitor: None,
        }
    }

    /// Serves these routes until `stopped` completes; clients can still read their responses for a moment.
    pub(crate) async fn serve(self, router: Router, stopped: impl Future<Output = ()> + Send) {
        let Self { listener, .. } = self;
        let (closing, mut connections) = (CancellationToken::new(), Connections::default());
        let mut stopped = pin!(stopped);
        loop {
            let place = connections.place();
            tokio::select! {
                () = &mut stopped => break,
                Some(_) = connections.connections.join_next() => {}
                accepted = accept(&listener, place), if place.is_some() => match accepted {
                    Ok((stream, _)) => connections.take(|shown| converse(stream, router.clone().layer(shown), closing.clone())),
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
        drop(listener);
        closing.cancel();
        let connections = &mut connections.connections;
        let drained = timeout(LAST_WORDS, async {
            while connections.join_next().await.is_some() {}
        });
        if drained.await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// Accepts a connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    place: Option<Instant>,
) -> io::Result<(TcpStream, SocketAddr)> {
    if let Some(at) = place {
        sleep_until(at).await;
    }
    listener.accept().await
}

/// The open connections.
///
/// Any user of the machine can connect, so clients without a token must not block clients with one.
#[derive(Default)]
struct Connections {
    connections: JoinSet<()>,
    /// The connections that may be open, oldest first.
    all: VecDeque<(AbortHandle, ShownToken, Instant)>,
}

impl Connections {
    /// Returns the time at which there is a place; `None` if all connections have sent the token.
    fn place(&self) -> Option<Instant> {
        if self.connections.len() < MAX_CONNECTIONS {
            return Some(Instant::now());
        }
        self.stranger().map(|(_, since)| since + PATIENCE)
    }

    /// Returns the oldest connection without the token.
    fn stranger(&self) -> Option<(&AbortHandle, Instant)> {
        let mut strangers = self
            .all
            .iter()
            .filter(|(task, shown, _)| !task.is_finished() && !shown.is_known());
        strangers.next().map(|(task, _, since)| (task, *since))
    }

    /// Serves another connection.
    fn take<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(Extension<ShownToken>) -> F,
    ) {
        if self.connections.len() >= MAX_CONNECTIONS
            && let Some((task, _)) = self.stranger()
        {
            task.abort();
        }
        self.all.retain(|(task, ..)| !task.is_finished());
        let shown = ShownToken::default();
        let task = self.connections.spawn(serve(Extension(shown.clone())));
        self.all.push_back((task, shown, Instant::now()));
    }
}

/// Answers the requests of one connection. A response is dropped when the client disconnects.
async fn converse(stream: TcpStream, router: Router, closing: CancellationToken) {
    // If it fails, small chunks are delayed, which is acceptable.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // There is no receiver for an error of a connection.
        _ = connection.as_mut() => return,
        () = closing.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Creates a token of 256 bits, 12 of which are not random.
pub(crate) fn new_token() -> Arc<str> {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()).into()
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.door.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "…");
        f.debug_struct("ServerOptions")
            .field("agent", &self.agent)
            .field("description", &self.description)
            .field("pushes", &self.pushes)
            .field("port", &self.port)
            .field("token", &token)
            .field("grace", &self.grace)
            .finish()
    }
}
