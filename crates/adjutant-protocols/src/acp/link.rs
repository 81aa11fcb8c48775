//! JSON-RPC with limits: the editor's messages, notifications to it, and requests to it.

use std::{
    collections::HashMap,
    future, io, mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use adjutant_core::chain;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    runtime::Handle,
    sync::{mpsc, oneshot},
};

/// The largest number of bytes of a line.
const MAX_LINE: usize = 16 << 20;
/// The largest number of characters of an editor's error message.
const MAX_WHY: usize = 500;

/// An error response: a code of JSON-RPC or of the protocol, and a text for people.
#[derive(Debug)]
pub(super) struct RpcFault(pub(super) i32, pub(super) String);

impl RpcFault {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const REQUEST: i32 = -32600;
    pub(super) const METHOD: i32 = -32601;
    pub(super) const PARAMS: i32 = -32602;
    pub(super) const INTERNAL: i32 = -32603;
    pub(super) const NOT_FOUND: i32 = -32002;

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self(Self::PARAMS, message.into())
    }

    /// An internal error, with its causes.
    pub(super) fn internal(error: &dyn std::error::Error) -> Self {
        Self(Self::INTERNAL, chain(error))
    }
}

/// The lines of an input.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    is_long: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_long: false,
        }
    }

    /// The next line; `None` at the end, and an error in place of a line that is too long.
    ///
    /// Cancel: nothing is lost.
    pub(super) async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, RpcFault>>> {
        loop {
            let chunk = self.input.fill_buf().await?;
            let is_over = chunk.is_empty();
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            self.is_long |= self.line.len() + part.len() > MAX_LINE;
            if self.is_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if is_over && self.line.is_empty() && !self.is_long {
                return Ok(None);
            }
            if is_over || end.is_some() {
                let line = mem::take(&mut self.line);
                let fault = || RpcFault(RpcFault::REQUEST, "a line has 16 MiB at most".to_owned());
                return Ok(Some(if mem::take(&mut self.is_long) {
                    Err(fault())
                } else {
                    Ok(line)
                }));
            }
        }
    }
}

/// Writes messages until one is `null`, or the reader is gone.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut said: mpsc::Receiver<Value>,
    mut output: W,
) -> io::Result<()> {
    while let Some(message) = said.recv().await.filter(|message| !message.is_null()) {
        output.write_all(format!("{message}\n").as_bytes()).await?;
        if said.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// The way to the editor.
#[derive(Debug)]
pub(super) struct Link {
    out: mpsc::Sender<Value>,
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, RpcFault>>>,
}

impl Link {
    pub(super) fn new(out: mpsc::Sender<Value>) -> Self {
        Self {
            out,
            asked: Mutex::default(),
        }
    }

    /// Sends a message; waits while the editor does not read.
    pub(super) async fn send(&self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        // Without a reader the senders end soon.
        let _ = self.out.send(message).await;
    }

    /// Sends what happens in a session.
    pub(super) async fn update(&self, session: &str, update: Value) {
        self.send(
            json!({"method": "session/update", "params": {"sessionId": session, "update": update}}),
        )
        .await;
    }

    /// Sends a request to the editor and returns its result or error.
    ///
    /// Cancel: its answer is passed over.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, RpcFault> {
        let (sender, answer) = oneshot::channel();
        let id = self.wait(sender);
        self.send(json!({"id": id, "method": method, "params": params}))
            .await;
        match answer.await {
            Ok(answer) => answer,
            // There will be no answer.
            Err(_) => future::pending().await,
        }
    }

    /// Sends a request without waiting for its answer, as soon as the editor reads.
    pub(super) fn call_later(&self, method: &str, params: Value) {
        let id = self.wait(oneshot::channel().0);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let unsent = self.out.try_send(message);
        if let (Err(mpsc::error::TrySendError::Full(message)), Ok(runtime)) =
            (unsent, Handle::try_current())
        {
            let out = self.out.clone();
            runtime.spawn(async move { out.send(message).await });
        }
    }

    /// The number of a request whose answer is sent here.
    fn wait(&self, sender: oneshot::Sender<Result<Value, RpcFault>>) -> u64 {
        let mut asked = self.lock_requests();
        asked.last += 1;
        // Requests of stopped runs are removed.
        asked.waiting.retain(|_, waits| !waits.is_closed());
        let id = asked.last;
        asked.waiting.insert(id, sender);
        id
    }

    /// Processes an answer; an answer without a request is ignored.
    pub(super) fn handle_response(&self, answer: &Value) {
        let sender = answer["id"]
            .as_u64()
            .and_then(|id| self.lock_requests().waiting.remove(&id));
        let fault = || {
            let (code, message) = (
                &answer["error"]["code"],
                answer["error"]["message"].as_str().unwrap_or("an error"),
            );
            let code = code
                .as_i64()
                .and_then(|code| i32::try_from(code).ok())
                .unwrap_or(RpcFault::INTERNAL);
            RpcFault(code, message.chars().take(MAX_WHY).collect())
        };
        let result = answer.get("result").cloned().ok_or_else(fault);
        if let Some(sender) = sender {
            // The sender of the request may have been stopped in the meantime.
            let _ = sender.send(result);
        }
    }

    fn lock_requests(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
