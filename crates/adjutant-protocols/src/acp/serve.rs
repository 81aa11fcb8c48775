//! The server loop: reads lines, performs their requests concurrently, and writes messages.

use std::{
    collections::HashMap,
    fmt, io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use adjutant_core::LogId;
use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::sleep,
};

use super::{
    content,
    editor::{Editor, EditorSkills},
    link::{LineReader, Link, RpcFault, write},
    open::{ListWish, OpenSession, SessionPage, SessionWish},
    seat::{BETWEEN, Seat},
    terminal,
};

/// The largest number of sessions that are open at a time.
const MAX_SESSIONS: usize = 64;
/// The number of active requests at which reading of requests pauses. It is larger than the number of sessions:
/// answers are always read.
const MAX_WORK: usize = 256;
/// The number of messages that may wait to be written before senders wait.
const MAX_UNWRITTEN: usize = 64;

/// Serves an editor until it disconnects. `open` opens the requested sessions, and returns `None` for an unknown one.
/// `list` returns the existing ones, and `None` for an unknown cursor.
///
/// Each line of at most 16 MiB is a message; an invalid one gets an error response. 64 sessions can be open at a
/// time. Pauses of a run become questions in the editor. When the editor disconnects, its runs stay unchanged: they
/// continue when their sessions are loaded again.
///
/// Cancel: as when the editor leaves.
///
/// # Errors
/// The errors of `input` or `output`; an editor that closes its end is not an error.
///
/// # Panics
/// Outside a tokio runtime.
///
/// # Example
/// ```
/// use std::{convert::Infallible, io};
///
/// use adjutant_agent::{Agent, Sessions};
/// use adjutant_protocols::acp::{OpenSession, SessionPage, SessionWish, serve};
///
/// /// The program that an editor begins; the agent's journal keeps its sessions.
/// async fn edit(agent: Agent, sessions: Sessions) -> io::Result<()> {
///     let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
///     let open = async |wish: SessionWish| {
///         let Some(name) = wish.session else { return Ok(Some(OpenSession::new(agent.new_session()))) };
///         let is_known = sessions.journal().info(&name).await.is_ok();
///         Ok::<_, Infallible>(is_known.then(|| OpenSession::new(agent.session(name))))
///     };
///     serve(input, output, open, async |_| Ok(Some(SessionPage::default()))).await
/// }
/// ```
pub async fn serve<Opened, Listed, E>(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    open: impl Fn(SessionWish) -> Opened + Send + Sync,
    list: impl Fn(ListWish) -> Listed + Send + Sync,
) -> io::Result<()>
where
    Opened: Future<Output = Result<Option<OpenSession>, E>> + Send,
    Listed: Future<Output = Result<Option<SessionPage>, E>> + Send,
    E: fmt::Display,
{
    let (sender, said) = mpsc::channel(MAX_UNWRITTEN);
    let failed = |error: E| RpcFault(RpcFault::INTERNAL, error.to_string());
    let open = Box::new(move |wish| open(wish).map(move |opened| opened.map_err(failed)).boxed());
    let list = Box::new(move |wish| list(wish).map(move |listed| listed.map_err(failed)).boxed());
    let (link, sessions, met) = (
        Arc::new(Link::new(sender.clone())),
        Mutex::default(),
        Mutex::default(),
    );
    let server = Server {
        link,
        open,
        list,
        sessions,
        met,
    };
    let (mut lines, mut writing) = (LineReader::new(input), pin!(write(said, output)));
    let mut work = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            written = &mut writing => return end(written),
            Some(()) = work.next() => {}
            line = lines.next(), if work.len() < MAX_WORK => match line? {
                Some(line) => work.extend(server.hear(line)),
                None => break,
            },
        }
    }
    // Active work is left; earlier messages are written.
    drop(work);
    let (_, written) = tokio::join!(sender.send(Value::Null), writing);
    end(written)
}

fn end(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Ok(())
        } else {
            Err(error)
        }
    })
}

/// The function that answers a request.
type Answering<'a, W, T> = dyn Fn(W) -> BoxFuture<'a, Result<T, RpcFault>> + Send + Sync + 'a;

struct Server<'a> {
    link: Arc<Link>,
    open: Box<Answering<'a, SessionWish, Option<OpenSession>>>,
    list: Box<Answering<'a, ListWish, Option<SessionPage>>>,
    sessions: Mutex<HashMap<String, Arc<Seat>>>,
    /// The capabilities that the editor declared.
    met: Mutex<Option<EditorSkills>>,
}

type Work<'a> = BoxFuture<'a, Result<Value, RpcFault>>;

impl Server<'_> {
    /// The remaining work for a line; immediate work is already done.
    fn hear(&self, line: Result<Vec<u8>, RpcFault>) -> Option<BoxFuture<'_, ()>> {
        let read = line.and_then(|line| match line.trim_ascii() {
            [] => Ok(None),
            line => match serde_json::from_slice(line) {
                Ok(Value::Object(message)) => Ok(Some(Value::Object(message))),
                Ok(_) => Err(RpcFault(
                    RpcFault::REQUEST,
                    "a message is an object".to_owned(),
                )),
                Err(error) => Err(RpcFault(RpcFault::PARSE, format!("no JSON: {error}"))),
            },
        });
        let mut message = match read {
            Ok(message) => message?,
            Err(fault) => return Some(self.reply(Value::Null, Err(fault)).boxed()),
        };
        let (id, params) = (message.get("id").cloned(), message["params"].take());
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let done = self.request(method, params);
                Some(
                    async move {
                        self.reply(
                            id,
                            done.unwrap_or_else(|fault| std::future::ready(Err(fault)).boxed())
                                .await,
                        )
                        .await
                    }
                    .boxed(),
                )
            }
            (Some("session/cancel"), None) => {
                let seat = params["sessionId"]
                    .as_str()
                    .and_then(|id| self.sessions().get(id).cloned());
                seat.iter().for_each(|seat| seat.cancel());
                None
            }
            // Others may be passed over.
            (Some(_), None) => None,
            (None, Some(_))
                if message.get("result").is_some() || message.get("error").is_some() =>
            {
                self.link.handle_response(&message);
                None
            }
            _ => {
                let fault = RpcFault(
                    RpcFault::REQUEST,
                    "a message has a method, or answers".to_owned(),
                );
                Some(self.reply(Value::Null, Err(fault)).boxed())
            }
        }
    }

    async fn reply(&self, id: Value, done: Result<Value, RpcFault>) {
        self.link
            .send(match done {
                Ok(result) => json!({"id": id, "result": result}),
                Err(RpcFault(code, message)) => {
                    json!({"id": id, "error": {"code": code, "message": message}})
                }
            })
            .await;
    }

    fn request(&self, method: &str, params: Value) -> Result<Work<'_>, RpcFault> {
        if method == "initialize" {
            return self.meet(&params).map(now);
        }
        let skills = *self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let first = || RpcFault(RpcFault::REQUEST, "`initialize` comes first".to_owned());
        let skills = skills.ok_or_else(first)?;
        match method {
            "authenticate" => Ok(now(json!({}))),
            "session/new" => Ok(self.begin(params, skills).boxed()),
            "session/load" => Ok(self.load(params, skills, true).boxed()),
            "session/resume" => Ok(self.load(params, skills, false).boxed()),
            "session/list" => {
                let listed = (self.list)(ListWish::read(&params)?);
                let told =
                    |page: SessionPage| json!({"sessions": page.sessions, "nextCursor": page.next});
                let none = || RpcFault::params("unknown `cursor`");
                Ok(listed
                    .map(move |listed| listed?.map(told).ok_or_else(none))
                    .boxed())
            }
            "session/prompt" => {
                let (seat, message) = (self.seat(&params)?, content::message(&params["prompt"])?);
                let turn = seat.begin()?;
                Ok(async move { Ok(json!({"stopReason": turn.prompt(message).await?})) }.boxed())
            }
            "session/set_mode" => {
                let (seat, mode) = (self.seat(&params)?, &params["modeId"]);
                if !seat.open.modes.iter().any(|known| known["id"] == *mode) {
                    return Err(RpcFault::params(format!("unknown mode: {mode}")));
                }
                let set = (seat.open.set_mode)(mode.as_str().unwrap_or_default());
                Ok(async { set.await.map(|()| json!({})) }.boxed())
            }
            "session/close" => {
                let seat = self.seat(&params)?;
                seat.close();
                // Its log is then free for the next owner.
                Ok(async move {
                    seat.wait_unused().await;
                    self.sessions().remove(&seat.id);
                    Ok(json!({}))
                }
                .boxed())
            }
            _ => Err(RpcFault(
                RpcFault::METHOD,
                format!("unknown method: {method}"),
            )),
        }
    }

    fn meet(&self, params: &Value) -> Result<Value, RpcFault> {
        if !params["protocolVersion"].is_u64() {
            return Err(RpcFault::params("`protocolVersion` is a number"));
        }
        let skills = EditorSkills::from_capabilities(&params["clientCapabilities"]);
        *self.met.lock().unwrap_or_else(PoisonError::into_inner) = Some(skills);
        Ok(json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "adjutant", "title": "Adjutant", "version": env!("CARGO_PKG_VERSION")},
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }))
    }

    async fn begin(&self, params: Value, skills: EditorSkills) -> Result<Value, RpcFault> {
        let seat = self.open_session(&params, skills, None).await?;
        Ok(seat.open.add_modes(json!({"sessionId": seat.id})))
    }

    async fn load(
        &self,
        params: Value,
        skills: EditorSkills,
        is_told: bool,
    ) -> Result<Value, RpcFault> {
        let id = params["sessionId"]
            .as_str()
            .ok_or_else(|| RpcFault::params("a session needs its `sessionId`"))?;
        // A closing session is opened again.
        while self.sessions().get(id).is_some_and(|seat| seat.is_closed()) {
            sleep(BETWEEN).await;
        }
        let known = self.sessions().get(id).cloned();
        let seat = match known {
            Some(seat) => seat,
            None => {
                self.open_session(&params, skills, Some(LogId::from(id)))
                    .await?
            }
        };
        if let Err(fault) = seat.begin()?.load(is_told).await {
            self.sessions().remove(id);
            return Err(fault);
        }
        Ok(seat.open.add_modes(json!({})))
    }

    async fn open_session(
        &self,
        params: &Value,
        skills: EditorSkills,
        session: Option<LogId>,
    ) -> Result<Arc<Seat>, RpcFault> {
        let mut wish = SessionWish::read(session, params)?;
        let (cwd, name) = (
            wish.cwd.clone(),
            params["sessionId"].as_str().unwrap_or_default().to_owned(),
        );
        let full = || {
            RpcFault(
                RpcFault::INTERNAL,
                format!("{MAX_SESSIONS} sessions are open; close one"),
            )
        };
        if self.sessions().len() >= MAX_SESSIONS {
            return Err(full());
        }
        let named = Arc::new(OnceLock::new());
        let (link, root, session) = (Arc::clone(&self.link), cwd.clone(), Arc::clone(&named));
        let editor = Editor {
            link,
            skills,
            root,
            session,
        };
        wish.files = editor.files();
        wish.terminal = skills.has_terminals.then(|| terminal::toolbox(editor));
        let unknown = || RpcFault(RpcFault::NOT_FOUND, format!("unknown session: {name:?}"));
        let open = (self.open)(wish).await?.ok_or_else(unknown)?;
        let root = open.root.clone().unwrap_or(cwd);
        // It is given once.
        let _ = named.set((
            open.agent.session_id().to_string(),
            open.agent.identity().thread.clone(),
        ));
        let seat = Arc::new(Seat::new(open, &root, &self.link, skills.has_forms));
        let mut sessions = self.sessions();
        if sessions.len() >= MAX_SESSIONS {
            return Err(full());
        }
        Ok(Arc::clone(sessions.entry(seat.id.clone()).or_insert(seat)))
    }

    fn seat(&self, params: &Value) -> Result<Arc<Seat>, RpcFault> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let seat = self
            .sessions()
            .get(id)
            .filter(|seat| !seat.is_closed())
            .cloned();
        seat.ok_or_else(|| {
            RpcFault(
                RpcFault::NOT_FOUND,
                format!("no session of this name is open: {id:?}"),
            )
        })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Seat>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now<'a>(result: Value) -> Work<'a> {
    std::future::ready(Ok(result)).boxed()
}
