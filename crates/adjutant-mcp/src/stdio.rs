//! A server that is a program: a child process in the sandbox, and the limits of its output.

use std::{
    borrow::Cow,
    fs,
    io::{self, Error as IoError},
    mem::MaybeUninit,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use adjutant_llm::surrogates;
use adjutant_tool::Cancel;
use adjutant_toolkit::{Access as Right, CommandEnd, CommandInput, CommandJob};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{UnixStream, unix::pipe},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use crate::{
    config::{Access, StdioConfig},
    error::{Error, ErrorKind},
};

/// The largest number of bytes of a message.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;
/// The largest depth of a message: the parser fails beyond it.
const MAX_DEPTH: u32 = 127;
/// The number of bytes of error output that are kept: the last.
const MAX_ERRORS: usize = 64 << 10;
/// The time for a program that has closed its pipes to exit, until its output is complete.
const MOMENT: Duration = Duration::from_secs(1);
/// No time limit for a server.
const FOREVER: Duration = Duration::MAX;

/// Additional information about the end of a connection: the reason why it was closed by us, and the server's error
/// output.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    cut: OnceLock<&'static str>,
    errors: Mutex<Vec<u8>>,
    ended: OnceLock<String>,
}

impl Trace {
    /// Keeps the end of the error output.
    fn complain(&self, bytes: &[u8]) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.extend_from_slice(bytes);
        let beyond = errors.len().saturating_sub(MAX_ERRORS);
        errors.drain(..beyond);
    }

    /// Keeps why the connection is cut.
    pub(crate) fn cut(&self, why: &'static str) {
        // The first reason is kept.
        let _ = self.cut.set(why);
    }

    /// True if the connection was cut because of what the server sent.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.get().is_some()
    }

    /// Why the connection ended, if it is known, in a few words.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.cut
            .get()
            .copied()
            .or_else(|| self.ended.get().map(String::as_str))
    }

    /// The server's error output, as a paragraph of an error; empty if the server printed nothing.
    pub(crate) fn complaints(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&errors).trim() {
            "" => String::new(),
            text => format!("\nits error output ends with:\n{text}"),
        }
    }
}

/// A program that runs; dropped, it is killed with everything that it started.
#[derive(Debug)]
pub(crate) struct Child {
    stop: Cancel,
    run: JoinHandle<()>,
}

impl Child {
    /// Waits briefly for the exit of a program that has closed its pipes, so that its error output is complete.
    pub(crate) async fn wait_for_exit(&mut self) {
        let _ = timeout(MOMENT, &mut self.run).await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts a program; returns its handle, its output and its input.
///
/// # Errors
/// `Invalid` if nothing can hold it, `Unavailable` if it cannot be started.
pub(crate) async fn start(
    config: &StdioConfig,
    trace: &Arc<Trace>,
) -> Result<
    (
        Child,
        Bounded<pipe::Receiver>,
        Box<dyn AsyncWrite + Send + Unpin>,
    ),
    Error,
> {
    let unavailable = |what: &str, error: IoError| {
        Error::new(ErrorKind::Unavailable, what.to_owned()).with_source(error)
    };
    let cwd = match &config.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir()
            .map_err(|error| unavailable("the current folder is not available", error))?,
    };
    if let Some(check) = config.check.clone() {
        let refused = tokio::task::spawn_blocking(move || check.run())
            .await
            .map_err(|_| Error::new(ErrorKind::Unavailable, "the check before the start failed"))?;
        refused.map_err(|why| Error::new(ErrorKind::Invalid, why))?;
    }
    let (pipes, handed) = oneshot::channel();
    let job = job(config, &cwd, pipes)
        .map_err(|error| unavailable("there is no temporary folder", error))?;
    let stop = Cancel::new();
    let sink = {
        let trace = Arc::clone(trace);
        Box::new(move |_, bytes: &[u8]| trace.complain(bytes))
    };
    let (failed, failure) = oneshot::channel();
    let (sandbox, wish, told) = (config.sandbox.clone(), stop.clone(), Arc::clone(trace));
    let run = tokio::spawn(async move {
        match sandbox.run(job, sink, &wish).await {
            Ok(CommandEnd::Exited(status)) => {
                let _ = told.ended.set(format!("the program ended: {status}"));
            }
            Ok(CommandEnd::Limited(limit)) => {
                let _ = told.ended.set(format!("the program was killed: {limit}"));
            }
            Ok(_) => {}
            Err(error) => {
                // The caller may be gone.
                let _ = failed.send(error);
            }
        }
    });
    let child = Child { stop, run };
    let pipes = match handed.await {
        Ok(pipes) => pipes,
        Err(_) => {
            let error = failure
                .await
                .map_err(|_| Error::new(ErrorKind::Unavailable, "the program did not start"))?;
            return Err(
                Error::new(ErrorKind::Invalid, error.message.as_ref().to_owned())
                    .with_source(error),
            );
        }
    };
    let broken = |error| unavailable("the pipes of the program are broken", error);
    let output = pipe::Receiver::from_owned_fd(pipes.output).map_err(broken)?;
    let input: Box<dyn AsyncWrite + Send + Unpin> = match config.sandbox.has_hosts() {
        false => Box::new(pipe::Sender::from_owned_fd(pipes.input).map_err(broken)?),
        true => {
            let socket = std::os::unix::net::UnixStream::from(pipes.input);
            let socket = socket
                .set_nonblocking(true)
                .and_then(|()| UnixStream::from_std(socket));
            Box::new(socket.map_err(broken)?)
        }
    };
    Ok((child, Bounded::new(output, trace), input))
}

fn job(
    config: &StdioConfig,
    cwd: &Path,
    pipes: oneshot::Sender<adjutant_toolkit::CommandPipes>,
) -> io::Result<CommandJob> {
    let folder = tempfile::Builder::new().prefix("adjutant-mcp-").tempdir()?;
    let home = folder.path().join("home");
    fs::create_dir(&home)?;
    let program = [config.command.as_os_str().to_owned()];
    Ok(CommandJob {
        words: program
            .into_iter()
            .chain(config.args.iter().map(|arg| (&**arg).into()))
            .collect(),
        root: cwd.to_owned(),
        access: match config.access {
            Access::Read => Right::Read,
            Access::Write => Right::Write,
        },
        cwd: cwd.to_owned(),
        home,
        tmp: folder.path().to_owned(),
        folder: Some(folder),
        session: None,
        writes: Vec::new(),
        environment: config
            .env
            .iter()
            .map(|(name, value)| ((&**name).into(), (&**value).into()))
            .collect(),
        has_usual: true,
        input: CommandInput::Streamed(pipes),
        is_split: true,
        limit: FOREVER,
    })
}

/// Lines of JSON within limits and in valid Unicode.
///
/// The SDK skips a line that it cannot read, and the request that it answers would never end. So reading stops at a line
/// beyond a limit, and the trace gives the reason; invalid UTF-8 and lone surrogates become U+FFFD.
pub(crate) struct Bounded<R> {
    inner: R,
    trace: Arc<Trace>,
    /// Bytes that were read and not yet passed on.
    buffer: Vec<u8>,
    /// The number of bytes of `buffer` that can be passed on: complete lines, or all at the end.
    ready: usize,
    is_at_end: bool,
    length: usize,
    depth: u32,
    in_text: bool,
    is_escaped: bool,
}

impl<R> Bounded<R> {
    pub(crate) fn new(inner: R, trace: &Arc<Trace>) -> Self {
        Self {
            inner,
            trace: Arc::clone(trace),
            buffer: Vec::new(),
            ready: 0,
            is_at_end: false,
            length: 0,
            depth: 0,
            in_text: false,
            is_escaped: false,
        }
    }

    /// Takes the next bytes of the program; none are its end.
    ///
    /// # Errors
    /// The violated limit.
    fn push(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.follow(bytes)?;
        self.buffer.extend_from_slice(bytes);
        self.is_at_end = bytes.is_empty();
        let end = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => self.buffer.len() - bytes.len() + newline + 1,
            None if self.is_at_end => self.buffer.len(),
            None => return Ok(()),
        };
        let rest = self.buffer.split_off(end);
        if let Cow::Owned(text) = String::from_utf8_lossy(&self.buffer) {
            self.buffer = text.into_bytes();
        }
        if let Ok(text) = str::from_utf8(&self.buffer)
            && let Some(text) = surrogates::mend(text)
        {
            self.buffer = text.into_bytes();
        }
        self.ready = self.buffer.len();
        self.buffer.extend(rest);
        Ok(())
    }

    /// Tracks the bytes read; returns the violated limit.
    fn follow(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        for byte in bytes {
            self.length += 1;
            match byte {
                b'\n' => {
                    (self.length, self.depth, self.in_text, self.is_escaped) = (0, 0, false, false)
                }
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_text,
                b'"' => self.in_text = !self.in_text,
                b'{' | b'[' if !self.in_text => self.depth += 1,
                b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth > MAX_DEPTH {
                return Err("it sent a message that is nested deeper than 127 levels");
            }
        }
        if self.length > MAX_MESSAGE {
            Err("it sent a message of more than 16 MiB")
        } else {
            Ok(())
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.ready == 0 && !this.is_at_end {
            let mut chunk = [MaybeUninit::uninit(); 8 << 10];
            let mut chunk = ReadBuf::uninit(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            if let Err(why) = this.push(chunk.filled()) {
                this.trace.cut(why);
                return Poll::Ready(Err(IoError::other(why)));
            }
        }
        let count = this.ready.min(buf.remaining());
        buf.put_slice(&this.buffer[..count]);
        this.buffer.drain(..count);
        this.ready -= count;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn lines_are_valid_unicode_however_they_arrive() {
        let table: [(&[u8], &str); 6] = [
            (b"{\"a\":1}\n{\"b\":2}\n", "{\"a\":1}\n{\"b\":2}\n"),
            (br#""x\ud83d\ude00""#, r#""x\ud83d\ude00""#),
            (
                b"\"x\\ud83d\"\n\"\\ude00\"\n",
                "\"x\\ufffd\"\n\"\\ufffd\"\n",
            ),
            (b"\"caf\xe9\"\n\"b\"\n", "\"caf\u{fffd}\"\n\"b\"\n"),
            ("\"é😀\"\n".as_bytes(), "\"é😀\"\n"),
            (b"", ""),
        ];
        for (sent, expect) in table {
            for size in 1..=sent.len().max(1) {
                let (mut program, output) = tokio::io::duplex(size);
                let write = async move { program.write_all(sent).await };
                let mut lines = Bounded::new(output, &Arc::default());
                let mut text = String::new();
                let (written, read) = tokio::join!(write, lines.read_to_string(&mut text));
                written.and(read.map(drop)).expect("a pipe");
                assert_eq!(text, expect, "in pieces of {size}");
            }
        }
    }
}
