//! The common part of all wires: one request over HTTP, its answer as events, and every way in which that fails.
//!
//! It never retries. The wire's decoder interprets the events.

mod clients;
mod endpoint;
mod failure;
mod finish;
mod joined;
mod json;
mod watch;

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use adjutant_llm::{
    Block, Chunk, ChunkStream, Error, ErrorKind, ModelInfo, Options, RateLimits, Reply, Request,
    Warning,
};
use bytes::Bytes;
use futures_core::Stream;
use http_body::Body;
use serde_json::value::RawValue;
use tokio::time::{Instant, Sleep};

pub(crate) use clients::{Route, client};
pub(crate) use endpoint::Endpoint;
pub use endpoint::{Address, Auth};
pub use endpoint::{Timeouts, TimeoutsPatch};
pub use finish::Finish;
pub(crate) use joined::Joined;
pub(crate) use json::{get, post};

pub(crate) use crate::observe::Observe;

use crate::{
    blocks::CallIdSeed,
    body::Segmented,
    credentials::{Resolving, Secrets},
    driver::{
        failure::{Limit, Refused},
        watch::Watch,
    },
    options, refused,
    segments::{Prefix, Prepared},
    sse::{Frame, Framing, Splitter},
};

/// The longest wait for further events once the reply is whole.
const REST: Duration = Duration::from_secs(2);
/// The longest wait for the usage of a whole reply, if it was requested: some servers count only after the last token.
const USAGE_REST: Duration = Duration::from_secs(5);
/// The shortest time between two reports that a server is alive but sends no content.
const PENDING: Duration = Duration::from_secs(15);
/// The longest time that the rest of a body is read after its last event, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(20);
/// The longest time that is waited for anything.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The largest number of chunks that are decoded before the reader gets them.
const BATCH: usize = 32;
/// The initial capacity for chunks: enough for a short answer.
const ROOM: usize = 8;
/// The most times that one request is changed and sent again.
const MAX_REMEDIES: usize = 2;
/// The number of turns that the connection gets for the rest of a body before a timer is set.
const MAX_YIELDS: u8 = 4;
/// The bytes of the mark with which some texts start.
const MARK_BYTES: [u8; 3] = [0xef, 0xbb, 0xbf];
/// The largest number of bytes of events that one answer may have.
const MAX_ANSWER: u64 = 512 * 1024 * 1024;

/// A model that is driven: everything that the driver wants of it.
pub(crate) trait Driven: fmt::Debug + Send + Sync + 'static {
    type Decoder: Decode;

    fn info(&self) -> &ModelInfo;

    fn endpoint(&self) -> &Endpoint;

    fn observer(&self) -> Option<&Arc<dyn Observe>> {
        None
    }

    /// Returns the headers whose values are joined with the same headers in the request's options.
    fn list_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn encode(&self, request: &Request) -> Prepared;

    /// Changes how a refused request is written, if that may help, and returns the change.
    fn remedy(&self, request: &Request, refusal: &Error) -> Option<Warning> {
        let _ = (request, refusal);
        None
    }

    fn decoder(&self, place: CallIdSeed) -> Self::Decoder;
}

/// The state of one answer: turns its frames into chunks. Pure: state and a frame give chunks.
///
/// The driver emits `Start` and the terminal chunk. In between, a decoder follows the grammar of [`Chunk`], with the
/// help of [`Blocks`].
///
/// [`Blocks`]: crate::wire::Blocks
pub trait Decode: Send + Unpin + 'static {
    /// Reads a frame.
    ///
    /// # Errors
    /// The error in the frame ([`refusal`](crate::wire::refusal)), or `Protocol` if the frame cannot be read.
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error>;

    /// True if the reply is whole, although its last frame has not come: a connection that breaks then does no harm.
    fn is_whole(&self) -> bool;

    /// Reads an answer that came as one JSON document although a stream was requested.
    ///
    /// # Errors
    /// As [`Decode::frame`].
    fn document(&mut self, json: &str, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let frame = Frame {
            event: "",
            data: json,
        };
        self.frame(frame, out).map(drop)
    }

    /// True if the usage was requested and has not come.
    fn awaits_usage(&self) -> bool {
        false
    }

    /// Emits the pending parts of an answer that breaks off here.
    fn cut(&mut self, out: &mut VecDeque<Chunk>) {
        let _ = out;
    }

    /// Closes the open blocks and returns the reply.
    ///
    /// # Errors
    /// `Protocol` if the reply is not whole.
    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error>;
}

/// The decoder's report about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More frames belong to the reply.
    More,
    /// It was the last one.
    Finished,
}

/// The stream of one request.
pub(crate) fn stream<W: Driven>(wire: &Arc<W>, request: Request) -> ChunkStream {
    let mut driver = Driver::new(Arc::clone(wire), State::New);
    driver.request = Some(request);
    Box::pin(driver)
}

struct Driver<W: Driven> {
    wire: Arc<W>,
    state: State,
    decoder: Option<Joined<W::Decoder>>,
    splitter: Splitter,
    out: VecDeque<Chunk>,
    /// The content of `Start`, until it has been emitted.
    start: Option<Start>,
    /// The request, until its answer has content.
    request: Option<Request>,
    /// The changes to the request after it was refused.
    remedies: Vec<Warning>,
    /// The digests that the thinking of the reply is bound to.
    prefix: Option<Prefix>,
    /// True if an event was read without a failure: then the attempt has started.
    read: bool,
    request_id: Option<Arc<str>>,
    /// The secret that was resolved just before the request was sent, if the key is not fixed.
    secret: Option<Arc<str>>,
    /// A copy of the request for the case that its secret is refused; only until the secret is resolved again.
    again: Option<Box<Unsent>>,
    /// The secrets of the request, which must never be printed.
    secrets: Secrets,
    /// The observer of the request, if there is one.
    watch: Option<Box<Watch>>,
    received: u64,
    /// True if the first byte shows that the answer is a stream, and not a document.
    sniffed: bool,
    /// True if events that have come whole are not decoded yet.
    more: bool,
    /// The number of turns that the connection got for the rest of the body.
    yields: u8,
    /// The time after which missing data is a timeout. The timer is reset only if it fires early.
    deadline: Instant,
    /// The times that bound the deadline, whatever keeps the connection alive.
    clock: Clock,
    timer: Option<Pin<Box<Sleep>>>,
}

enum State {
    New,
    Resolving(Resolving, Box<Unsent>),
    Sending(Sending),
    Reading(reqwest::Body),
    Refused(reqwest::Body, Box<Refused>),
    Draining(reqwest::Body, Arc<Reply>),
    Finishing(Arc<Reply>),
    Failed(Error),
    Ended,
}

type Sending =
    Pin<Box<dyn Future<Output = Result<http::Response<reqwest::Body>, reqwest::Error>> + Send>>;

/// A request that waits for its key.
#[derive(Clone)]
struct Unsent {
    options: Arc<Options>,
    body: Segmented,
}

/// The times of an answer.
struct Clock {
    /// The time from which the answer takes too long, if there is a limit.
    end: Option<Instant>,
    /// The time of the request, or of the last content.
    silent_since: Instant,
    /// The time of the last content, or of the last report that the server is alive.
    reported: Instant,
}

struct Start {
    attempt: u32,
    limits: Box<RateLimits>,
    warnings: Vec<Warning>,
}

/// The progress of a poll: the state has changed, or a waker is registered.
type StatePoll = Poll<()>;

impl<W: Driven> Driver<W> {
    fn new(wire: Arc<W>, state: State) -> Self {
        let secrets = wire.endpoint().secrets();
        let splitter = Splitter::new(wire.endpoint().framing());
        let now = Instant::now();
        Self {
            wire,
            state,
            decoder: None,
            splitter,
            out: VecDeque::with_capacity(ROOM),
            start: None,
            request: None,
            remedies: Vec::new(),
            prefix: None,
            read: false,
            request_id: None,
            secret: None,
            again: None,
            secrets,
            watch: None,
            received: 0,
            sniffed: false,
            more: false,
            yields: 0,
            deadline: now,
            clock: Clock {
                end: None,
                silent_since: now,
                reported: now,
            },
            timer: None,
        }
    }

    /// The next chunk that is there; `Start` comes before all others but `Pending`.
    fn next(&mut self) -> Option<Chunk> {
        if self.start.is_some()
            && !matches!(self.out.front(), Some(Chunk::Pending { .. }))
            && (self.read || !self.out.is_empty())
            && let Some(start) = self.start.take()
        {
            return Some(start.chunk(self.wire.info()));
        }
        self.out.pop_front()
    }

    /// The last item of the stream, once; then nothing.
    fn last(&mut self) -> Option<Result<Chunk, Error>> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Finishing(reply) => Some(Ok(Chunk::Done(reply))),
            State::Failed(error) => Some(Err(error)),
            _ => None,
        }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> StatePoll {
        match &mut self.state {
            State::New => {
                self.begin();
                Poll::Ready(())
            }
            State::Resolving(resolving, _) => match resolving.as_mut().poll(cx) {
                Poll::Ready(Ok(secret)) => self.use_secret(secret),
                Poll::Ready(Err(error)) => self.fail(error),
                Poll::Pending => self.wait(cx),
            },
            State::Sending(sending) => match sending.as_mut().poll(cx) {
                Poll::Ready(Ok(response)) => self.handle_response(response),
                Poll::Ready(Err(error)) => {
                    let error = failure::unreachable(self.wire.endpoint(), error);
                    self.fail(error)
                }
                Poll::Pending => self.wait(cx),
            },
            State::Reading(_) if self.more => self.decode_events(),
            State::Reading(body) => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => self.handle_bytes(&bytes),
                    Err(_) => Poll::Ready(()),
                },
                Poll::Ready(Some(Err(error))) => {
                    let error = failure::broken(self.wire.endpoint(), error);
                    self.cut_off(error)
                }
                Poll::Ready(None) => self.body_ended(),
                Poll::Pending => self.wait(cx),
            },
            State::Refused(body, refused) => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) if refused.take(frame.data_ref()) => {
                    self.stay_alive();
                    Poll::Ready(())
                }
                Poll::Ready(_) => self.handle_refusal(),
                Poll::Pending => self.wait(cx),
            },
            State::Draining(body, _) => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) => Poll::Ready(()),
                Poll::Ready(_) => self.finish_draining(),
                Poll::Pending => self.drain(cx),
            },
            State::Finishing(_) | State::Failed(_) | State::Ended => Poll::Ready(()),
        }
    }

    /// Checks and sends the request.
    fn begin(&mut self) {
        self.state = State::Ended;
        let Some(request) = self.request.take() else {
            return;
        };
        if tokio::runtime::Handle::try_current().is_err() {
            let error = Error::new(
                ErrorKind::Config,
                "a model of a provider was asked outside of a tokio runtime",
            );
            self.state = State::Failed(error);
            return;
        }
        if let Err(error) = options::check(self.wire.info(), &request) {
            self.state = State::Failed(error);
            return;
        }
        self.submit(request);
    }

    /// Encodes and sends the request.
    fn submit(&mut self, request: Request) {
        let endpoint = self.wire.endpoint();
        let timeouts = endpoint.timeouts();
        self.clock.silent_since = Instant::now();
        self.clock.reported = self.clock.silent_since;
        self.clock.end = timeouts.total.map(after);
        let Prepared {
            body,
            mut warnings,
            prefix,
            renamed,
        } = self.wire.encode(&request);
        warnings.extend_from_slice(&self.remedies);
        self.prefix = prefix;
        self.decoder = Some(Joined::new(
            self.wire.decoder(CallIdSeed::from_request(&request)),
            renamed,
        ));
        self.start = Some(Start {
            attempt: request.attempt,
            limits: Box::default(),
            warnings,
        });
        self.watch = self
            .wire
            .observer()
            .map(|by| Box::new(Watch::new(by, self.wire.info(), &request)));
        let unsent = Unsent {
            options: Arc::clone(&request.options),
            body,
        };
        self.request = Some(request);
        match endpoint.key().resolving(None) {
            Some(resolving) => {
                self.again = endpoint.key().is_token().then(|| Box::new(unsent.clone()));
                self.deadline = after(failure::key_wait(endpoint));
                self.state = State::Resolving(resolving, Box::new(unsent));
            }
            None => self.send(unsent),
        }
    }

    #[cold]
    fn use_secret(&mut self, secret: Option<String>) -> StatePoll {
        self.secret = secret
            .map(|it| it.trim().into())
            .filter(|it: &Arc<str>| !it.is_empty());
        self.secrets.add(self.secret.as_deref().unwrap_or_default());
        #[cfg(feature = "sigv4")]
        if let Some(signer) = self.wire.endpoint().key().signer() {
            signer.secrets().for_each(|it| self.secrets.add(&it));
        }
        if let State::Resolving(_, unsent) = std::mem::replace(&mut self.state, State::Ended) {
            self.send(*unsent);
        }
        Poll::Ready(())
    }

    fn send(&mut self, unsent: Unsent) {
        let Unsent { options, body } = unsent;
        let endpoint = self.wire.endpoint();
        let timeouts = endpoint.timeouts();
        self.deadline = self.clock.deadline(timeouts.first_byte, timeouts);
        self.secrets.add_headers(&options.headers);
        match endpoint.request(
            self.wire.list_headers(),
            &options.headers,
            self.secret.as_deref(),
            reqwest::Body::wrap(body.clone()),
        ) {
            Ok((client, mut post)) => {
                #[cfg(feature = "sigv4")]
                let sent = body.clone();
                if let Some(watch) = &mut self.watch {
                    watch.request(&mut post, body, &self.secrets);
                }
                #[cfg(feature = "sigv4")]
                if let Err(error) = endpoint.sign(&mut post, sent) {
                    return self.handle_error(error);
                }
                let response = client.execute(post);
                self.state =
                    State::Sending(Box::pin(async move { response.await.map(Into::into) }));
            }
            Err(error) => self.handle_error(error),
        }
    }

    /// Resolves another secret, if this one was refused for the first time.
    #[cold]
    fn resolve_again(&mut self) -> Option<State> {
        let unsent = self.again.take()?;
        let refused = self.secret.take()?;
        Some(State::Resolving(
            self.wire.endpoint().key().resolving(Some(refused))?,
            unsent,
        ))
    }

    fn handle_response(&mut self, response: http::Response<reqwest::Body>) -> StatePoll {
        let (parts, body) = response.into_parts();
        if let Some(watch) = &self.watch {
            watch.response(&parts, &self.secrets);
        }
        if parts.status == http::StatusCode::UNAUTHORIZED
            && let Some(state) = self.resolve_again()
        {
            self.state = state;
            return Poll::Ready(());
        }
        self.request_id = crate::limits::request_id(&parts.headers);
        if !parts.status.is_success() {
            self.state = State::Refused(body, Box::new(Refused::new(&parts)));
            self.stay_alive();
        } else {
            // Servers and proxies send events under other types: the first byte of the body decides, not its type.
            if let Some(start) = &mut self.start {
                *start.limits = crate::limits::rate_limits(&parts.headers);
            }
            self.state = State::Reading(body);
        }
        Poll::Ready(())
    }

    fn handle_bytes(&mut self, bytes: &Bytes) -> StatePoll {
        if !self.sniffed && self.sniffs_document(bytes) {
            return self.not_events(bytes);
        }
        self.received += bytes.len() as u64;
        if self.received > MAX_ANSWER {
            return self.fail(Error::new(
                ErrorKind::Protocol,
                "the answer has more than 512 MiB",
            ));
        }
        self.splitter.push(bytes);
        self.decode_events()
    }

    /// True if the body starts like a document instead of a stream. Blank lines before it keep the connection alive.
    fn sniffs_document(&mut self, bytes: &[u8]) -> bool {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || MARK_BYTES.contains(byte);
        let first = bytes.iter().find(|byte| !is_blank(byte));
        self.sniffed = first.is_some();
        match first {
            Some(b'{' | b'[') => self.wire.endpoint().framing() == Framing::Events,
            Some(b'<') => true,
            _ => false,
        }
    }

    /// Continues after a few more events.
    fn decode_events(&mut self) -> StatePoll {
        match self.decode() {
            Ok(Flow::Finished) => self.finish_reply(),
            Ok(Flow::More) => Poll::Ready(()),
            Err(error) => self.fail(error),
        }
    }

    /// Decodes a few of the events that have come whole, so that they are used while they are in the cache.
    fn decode(&mut self) -> Result<Flow, Error> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(Flow::Finished);
        };
        self.more = false;
        while let Some(frame) = self.splitter.next()? {
            if let Some(watch) = &self.watch {
                watch.frame(frame, &self.secrets);
            }
            let flow = decoder.frame(frame, &mut self.out)?;
            self.read = true;
            if flow == Flow::Finished {
                return Ok(flow);
            }
            if self.out.len() >= BATCH {
                self.more = true;
                break;
            }
        }
        let (is_silent, is_whole) = (self.out.is_empty(), decoder.is_whole());
        if is_silent && !is_whole {
            self.stay_alive();
            return Ok(Flow::More);
        }
        let awaits_usage = is_whole && decoder.awaits_usage();
        let (now, timeouts) = (Instant::now(), self.wire.endpoint().timeouts());
        if !is_silent {
            if self.request.is_some() && self.out.iter().any(is_content) {
                self.request = None;
            }
            self.clock.silent_since = now;
            self.clock.reported = now;
        }
        self.deadline = if is_whole {
            let rest = if awaits_usage { USAGE_REST } else { REST };
            let rest = now + rest.min(timeouts.idle);
            // Nothing but content extends the wait for what follows a whole reply.
            if is_silent {
                rest.min(self.deadline)
            } else {
                rest
            }
        } else {
            self.clock.deadline(timeouts.idle, timeouts)
        };
        Ok(Flow::More)
    }

    /// Extends the idle time: bytes came, but no content. Reports now and then that the server is alive.
    #[cold]
    fn stay_alive(&mut self) {
        let (now, timeouts) = (Instant::now(), self.wire.endpoint().timeouts());
        self.deadline = self.clock.deadline(timeouts.idle, timeouts);
        if now - self.clock.reported >= PENDING {
            self.clock.reported = now;
            let silent = now - self.clock.silent_since;
            self.out.push_back(Chunk::Pending { silent });
        }
    }

    /// A success whose body begins like JSON or HTML.
    #[cold]
    fn not_events(&mut self, bytes: &Bytes) -> StatePoll {
        if let State::Reading(body) = std::mem::replace(&mut self.state, State::Ended) {
            let mut refused = Refused::success(self.request_id.clone());
            refused.take(Some(bytes));
            self.state = State::Refused(body, Box::new(refused));
            self.stay_alive();
        }
        Poll::Ready(())
    }

    /// The last event was read: the reply is made, and the rest of the body is waited for shortly.
    fn finish_reply(&mut self) -> StatePoll {
        let reply = match self.reply() {
            Ok(reply) => reply,
            Err(error) => return self.fail(error),
        };
        if let Some(watch) = self.watch.take() {
            watch.finish(None);
        }
        self.deadline = Instant::now() + DRAIN;
        self.state = match std::mem::replace(&mut self.state, State::Ended) {
            State::Reading(body) => State::Draining(body, reply),
            _ => State::Finishing(reply),
        };
        Poll::Ready(())
    }

    fn reply(&mut self) -> Result<Arc<Reply>, Error> {
        let Some(decoder) = &mut self.decoder else {
            return Err(Error::new(
                ErrorKind::Protocol,
                "the stream ended without an event",
            ));
        };
        let mut reply = decoder.end(&mut self.out)?;
        self.read = true;
        let thinks = |block: &Arc<Block>| matches!(**block, Block::Thinking(_));
        if let Some(prefix) = self.prefix.filter(|_| reply.blocks.iter().any(thinks)) {
            reply.prefix_digest = Some(prefix.to_string().into());
        }
        match crate::overflow::silent(self.wire.info(), &reply) {
            Some(error) => Err(error),
            None => Ok(Arc::new(reply)),
        }
    }

    /// The body ended normally: an event without its blank line may remain.
    #[cold]
    fn body_ended(&mut self) -> StatePoll {
        if let (Some(decoder), Ok(Some(frame))) = (&mut self.decoder, self.splitter.last()) {
            let flow = decoder.frame(frame, &mut self.out);
            // An event that cannot be read is half an event: it was cut off, and does not count.
            let half = flow
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::Protocol);
            if let Some(watch) = self.watch.as_ref().filter(|_| !half) {
                watch.frame(frame, &self.secrets);
            }
            match flow {
                Err(error) if !half => return self.fail(error),
                Ok(_) | Err(_) => {}
            }
        }
        self.state = State::Ended;
        self.finish_reply()
    }

    /// The body was cut off: that is harmless if the reply is complete.
    #[cold]
    fn cut_off(&mut self, error: Error) -> StatePoll {
        if self.decoder.as_ref().is_some_and(Decode::is_whole) {
            self.state = State::Ended;
            return self.finish_reply();
        }
        self.fail(error)
    }

    #[cold]
    fn handle_refusal(&mut self) -> StatePoll {
        let State::Refused(_, refused) = std::mem::replace(&mut self.state, State::Ended) else {
            return Poll::Ready(());
        };
        if refused.is_success()
            && let Ok(body) = std::str::from_utf8(refused.body())
            && failure::find_body_error(self.wire.info(), body).is_none()
        {
            match self.document(body) {
                Ok(true) => return self.finish_reply(),
                Err(error) if error.kind() != ErrorKind::Protocol => return self.fail(error),
                Ok(false) | Err(_) => self.out.clear(),
            }
        }
        let error = refused.into_error(self.wire.info(), self.wire.endpoint(), &self.secrets);
        if self.remedies.len() < MAX_REMEDIES
            && let Some(request) = &self.request
            && let Some(remedy) = self.wire.remedy(request, &error)
            && let Some(request) = self.request.take()
        {
            if let Some(watch) = self.watch.take() {
                watch.finish(Some(&error));
            }
            self.remedies.push(remedy);
            self.submit(request);
            return Poll::Ready(());
        }
        self.fail(error)
    }

    /// Reads an answer that is one JSON document, or several: a list of Gemini, or lines. True if the reply is whole.
    fn document(&mut self, body: &str) -> Result<bool, Error> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(false);
        };
        for document in documents(body) {
            if let Some(watch) = &self.watch {
                let frame = Frame {
                    event: "",
                    data: document,
                };
                watch.frame(frame, &self.secrets);
            }
            decoder.document(document, &mut self.out)?;
        }
        self.read = decoder.is_whole();
        Ok(self.read)
    }

    fn finish_draining(&mut self) -> StatePoll {
        if let State::Draining(_, reply) = std::mem::replace(&mut self.state, State::Ended) {
            self.state = State::Finishing(reply);
        }
        Poll::Ready(())
    }

    fn fail(&mut self, error: Error) -> StatePoll {
        self.handle_error(error);
        Poll::Ready(())
    }

    #[cold]
    fn handle_error(&mut self, error: Error) {
        let error = match (&self.request_id, error.details().request_id.as_deref()) {
            (Some(id), None) => error.with(|it| it.request_id = Some(Arc::clone(id))),
            _ => error,
        };
        let request = self.request.take();
        let error = match request.filter(|_| !self.out.iter().any(is_content)) {
            // Some servers accept a request and refuse its media in the first event.
            Some(request) => {
                let body = || self.wire.encode(&request).body.to_vec();
                refused::mark(error, &request, body)
            }
            None => error,
        };
        if let Some(decoder) = self.decoder.as_mut().filter(|_| self.read) {
            decoder.cut(&mut self.out);
        }
        let error = self.secrets.scrub(error);
        if let Some(watch) = self.watch.take() {
            watch.finish(Some(&error));
        }
        self.state = State::Failed(error);
    }

    /// Waits for the rest of the body. It has usually arrived but not been delivered, so the connection is polled a
    /// few times before a timer is set: such a short timer wakes the runtime by a system call.
    fn drain(&mut self, cx: &mut Context<'_>) -> StatePoll {
        if self.yields == MAX_YIELDS {
            return self.wait(cx);
        }
        self.yields += 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Waits until the deadline. The state decides which timeout it is.
    fn wait(&mut self, cx: &mut Context<'_>) -> StatePoll {
        let deadline = self.deadline;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                return self.handle_timeout();
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    #[cold]
    fn handle_timeout(&mut self) -> StatePoll {
        match &self.state {
            State::Refused(..) => self.handle_refusal(),
            State::Draining(..) => self.finish_draining(),
            State::Resolving(..) => {
                let error = failure::keyless(self.wire.endpoint());
                self.fail(error)
            }
            _ => {
                let timeouts = self.wire.endpoint().timeouts();
                let limit = self.clock.find_limit(self.received > 0, timeouts);
                let error = failure::timeout_error(self.wire.endpoint(), limit);
                self.cut_off(error)
            }
        }
    }
}

impl<W: Driven> Stream for Driver<W> {
    type Item = Result<Chunk, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(chunk) = this.next() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if matches!(
                this.state,
                State::Finishing(_) | State::Failed(_) | State::Ended
            ) {
                return Poll::Ready(this.last());
            }
            if this.step(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Start {
    fn chunk(self, info: &ModelInfo) -> Chunk {
        Chunk::Start {
            attempt: self.attempt,
            model: info.id.clone(),
            limits: self.limits,
            warnings: self.warnings,
        }
    }
}

impl Clock {
    /// Returns the end of this time from now, at most the deadline of the silence and of the answer.
    fn deadline(&self, limit: Duration, timeouts: &Timeouts) -> Instant {
        let silence = self.silent_since + timeouts.silence.min(FOREVER);
        let deadline = after(limit).min(silence);
        self.end.map_or(deadline, |end| end.min(deadline))
    }

    /// The limit that has passed.
    fn find_limit(&self, is_answered: bool, timeouts: &Timeouts) -> Limit {
        let now = Instant::now();
        if self.end.is_some_and(|end| end <= now) {
            Limit::Total
        } else if now - self.silent_since >= timeouts.silence {
            Limit::Silence
        } else if is_answered {
            Limit::Idle
        } else {
            Limit::FirstByte
        }
    }
}

/// Returns the JSON documents of a body: one, the elements of a list, or several in a row.
fn documents(body: &str) -> Vec<&str> {
    let body = body.trim_start_matches('\u{feff}');
    if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(body) {
        return list.into_iter().map(RawValue::get).collect();
    }
    serde_json::Deserializer::from_str(body)
        .into_iter::<&RawValue>()
        .map_while(|document| document.ok().map(RawValue::get))
        .collect()
}

/// True if a chunk is a part of the reply itself.
fn is_content(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Open { .. } | Chunk::Close { .. })
}

/// A limit beyond the end of the clock is a year.
pub(crate) fn after(limit: Duration) -> Instant {
    Instant::now() + limit.min(FOREVER)
}

#[cfg(test)]
pub(crate) mod tests;
