//! The server: its address, its model, and its start and end. Conversations are in `connection.rs`.

mod connection;
mod dispatch;
mod shared;

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use adjutant_llm::{Model, SystemWorld, World};
use bytes::Bytes;
use tokio::{
    net::{TcpListener, TcpSocket},
    runtime,
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};

use shared::{Shared, Source};

use crate::{fault::Fault, issued::Issued, latch::Latch, oracle::Oracle, received::Received};

/// The largest number of connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;
/// The time that the server waits when a connection cannot be accepted, for example for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// A server on a free port of this machine that answers as the vendors do; it ends when it is dropped.
#[derive(Debug)]
pub struct Loopback {
    addr: SocketAddr,
    shared: Arc<Shared>,
    running: ServerTask,
}

/// The settings of a server, before it starts.
#[must_use = "a server runs once it is started"]
pub struct Setup {
    source: Source,
    faults: Vec<(Option<usize>, Fault)>,
    latch: Option<Latch>,
    delay: Duration,
    order: Order,
    keep: bool,
    strict: bool,
    binds: bool,
    pub(crate) oracle: dispatch::Own,
    world: Arc<dyn World>,
}

/// The rule that picks one of several canned bodies to answer a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Order {
    /// By its number at the server, round and round.
    #[default]
    ByRequest,
    /// By its number on its connection, round and round.
    ByConnection,
}

#[derive(Debug)]
enum ServerTask {
    Task(AbortHandle),
    Thread(Option<(oneshot::Sender<()>, thread::JoinHandle<()>)>),
}

impl Loopback {
    /// A server of this model, on the runtime of the caller, that breaks nothing.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(model: impl Model + 'static) -> io::Result<Self> {
        Self::setup(model).start().await
    }

    /// A server for this model, on a separate thread, without faults.
    ///
    /// # Errors
    /// If no port or no thread can be had.
    pub fn start_blocking(model: impl Model + 'static) -> io::Result<Self> {
        Self::setup(model).start_blocking()
    }

    /// Prepares a server of this model.
    pub fn setup(model: impl Model + 'static) -> Setup {
        Setup::new(Source::Model(Box::new(model)))
    }

    /// Prepares a server that answers every request with these bodies as event streams.
    ///
    /// Requests are read but neither checked nor decoded. The meaning of frames is unknown: `MissingFinish` and
    /// `DuplicateUsage` have no effect, and `ErrorAfter` ends the body without an error. Without a body every answer
    /// is an empty stream.
    pub fn from_bodies(bodies: impl IntoIterator<Item = Bytes>) -> Setup {
        let bodies: Vec<Bytes> = bodies.into_iter().collect();
        let answers = bodies
            .iter()
            .map(|body| connection::whole_answer(body))
            .collect();
        Setup::new(Source::Canned { bodies, answers })
    }

    /// Returns the address at which the server listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base address that an Anthropic adapter wants: `http://127.0.0.1:<port>`.
    pub fn anthropic_base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The base address that an OpenAI adapter wants, for Chat Completions, Responses and embeddings:
    /// `http://127.0.0.1:<port>/v1`.
    pub fn openai_base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The base address that a Gemini adapter wants: `http://127.0.0.1:<port>`.
    pub fn gemini_base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The address of the server itself, for wires whose paths begin there: `http://127.0.0.1:<port>`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns the number of thinking blocks that came back to a server which binds them: valid ones, and dropped ones.
    pub fn thinking_returned(&self) -> (usize, usize) {
        self.shared.issue_record().thinking()
    }

    /// The signatures and encrypted contents that were sent so far, in order, each once.
    pub fn signatures(&self) -> Vec<String> {
        self.shared.issued.seals()
    }

    /// The requests so far, in order; none if they are not kept.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock_received().clone()
    }

    /// Returns the number of requests so far, kept or not.
    pub fn request_count(&self) -> usize {
        self.shared.requests.load(Ordering::Acquire)
    }

    /// Returns the number of connections that were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        match &mut self.running {
            ServerTask::Task(task) => task.abort(),
            ServerTask::Thread(thread) => {
                if let Some((stop, thread)) = thread.take() {
                    // The thread may have ended before, by a panic of the model; there is nothing left to do then.
                    let _ = stop.send(());
                    let _ = thread.join();
                }
            }
        }
    }
}

impl Setup {
    fn new(source: Source) -> Self {
        Self {
            source,
            faults: Vec::new(),
            latch: None,
            delay: Duration::ZERO,
            order: Order::default(),
            keep: true,
            strict: false,
            binds: false,
            oracle: None,
            world: Arc::new(SystemWorld),
        }
    }

    /// Breaks the answer to one request: its number at the server, counted from 0, as in [`Loopback::requests`].
    pub fn fault(mut self, nth_request: usize, fault: Fault) -> Self {
        self.faults.push((Some(nth_request), fault));
        self
    }

    /// Breaks every answer.
    pub fn fault_all(mut self, fault: Fault) -> Self {
        self.faults.push((None, fault));
        self
    }

    /// Holds every answer at the latch before its first byte.
    pub fn latch(mut self, latch: &Latch) -> Self {
        self.latch = Some(latch.clone());
        self
    }

    /// Waits that long before the first byte of every answer.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets which canned body a request is answered with.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Keeps no requests, for benchmarks.
    pub fn forget_requests(mut self) -> Self {
        self.keep = false;
        self
    }

    /// Refuses signatures and encrypted contents in a history that this server never sent on that wire for that model.
    ///
    /// Without it any are taken, so that a test may make up a history.
    pub fn strict_signatures(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Binds thinking to system prompt, tools and messages before it, on the Messages wire: behind another prefix it is
    /// refused, or dropped if the request sets `drop_block`. Messages of the system may change the tools.
    pub fn bind_thinking(mut self) -> Self {
        self.binds = true;
        self
    }

    /// Speaks a wire of the test's own beside the four.
    pub fn oracle(mut self, oracle: impl Oracle + 'static) -> Self {
        self.oracle = Some(Arc::new(oracle));
        self
    }

    /// Sets the clock; without it, the system's.
    pub fn world(mut self, world: impl World + 'static) -> Self {
        self.world = Arc::new(world);
        self
    }

    /// Starts the server on the runtime of the caller.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(self) -> io::Result<Loopback> {
        let (listener, addr, shared) = self.bind()?;
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Loopback {
            addr,
            shared,
            running: ServerTask::Task(task.abort_handle()),
        })
    }

    /// Starts the server on a separate thread with its own runtime.
    ///
    /// # Errors
    /// If no port or no thread can be had.
    pub fn start_blocking(self) -> io::Result<Loopback> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (listener, addr, shared) = {
            let _entered = runtime.enter();
            self.bind()?
        };
        let (stop, stopped) = oneshot::channel();
        let serving = accept(listener, Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("loopback".into())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serving => {}
                        // A sender that is gone means the same as a word from it.
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Loopback {
            addr,
            shared,
            running: ServerTask::Thread(Some((stop, thread))),
        })
    }

    fn bind(self) -> io::Result<(TcpListener, SocketAddr, Arc<Shared>)> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let addr = listener.local_addr()?;
        let shared = Shared {
            issued: Arc::new(Issued::new(self.strict, self.binds)),
            setup: self,
            received: Mutex::default(),
            requests: AtomicUsize::default(),
            connections: AtomicUsize::default(),
        };
        Ok((listener, addr, Arc::new(shared)))
    }
}

/// Accepts connections for ever. Dropping it ends all of them.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    shared.connections.fetch_add(1, Ordering::AcqRel);
                    connections.spawn(connection::serve(socket, Arc::clone(&shared)));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("source", &self.source)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
