//! The configuration of a server.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use adjutant_toolkit::Sandbox;

use crate::tokens::Tokens;

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The way to it.
    pub transport: Transport,
    /// The revision of the protocol; detected by default.
    pub revision: Revision,
    /// True if its tool annotations are trusted: read-only and idempotent tools are then run again after a crash.
    /// False by default.
    pub trusted: bool,
    /// The text before the name of each of its tools; the name of the server and `_` by default.
    pub prefix: Option<Arc<str>>,
    /// The tools that are offered, under the server's own names; all of them by default.
    pub tools: Option<Vec<Arc<str>>>,
    /// The time that it has to start and to list its tools, and that a call waits for it; 30 s by default.
    pub start_limit: Duration,
    /// The time a call may take without any message from the server, neither an answer nor progress; 10 min by
    /// default.
    pub silence_limit: Duration,
    /// The time for which a question is answered that lives in its connection, as all of revision 2025-11-25 do; 5 min by
    /// default.
    pub answer_limit: Duration,
    /// The folders that it gets as roots; none by default.
    pub roots: Vec<PathBuf>,
}

impl ServerConfig {
    /// A server with this transport: its revision is detected, its annotations are not trusted, all of its tools are
    /// offered.
    pub fn new(transport: impl Into<Transport>) -> Self {
        Self {
            transport: transport.into(),
            revision: Revision::default(),
            trusted: false,
            prefix: None,
            tools: None,
            start_limit: Duration::from_secs(30),
            silence_limit: Duration::from_secs(600),
            answer_limit: Duration::from_secs(300),
            roots: Vec::new(),
        }
    }
}

/// The way to a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Transport {
    /// A program that is started here and speaks on its input and output.
    Stdio(StdioConfig),
    /// An address that takes requests: streamable HTTP.
    Http(HttpConfig),
    /// A stream that a function makes, for tests without a process.
    #[doc(hidden)]
    Stream(StreamConfig),
}

/// A server that is a program.
#[derive(Debug, Clone)]
pub struct StdioConfig {
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<Arc<str>>,
    /// Its variables, in addition to the usual ones of a command (`PATH`, `HOME`, `LANG`), without others of this
    /// process.
    pub env: BTreeMap<Arc<str>, Arc<str>>,
    /// Its working folder; the folder of this process by default.
    pub cwd: Option<PathBuf>,
    /// The sandbox around it.
    pub sandbox: Sandbox,
    /// Its access to the working folder.
    pub access: Access,
    /// The check before each start; none by default.
    pub check: Option<StartCheck>,
}

/// A check before each start of a program, which may block: it returns the reason why the program does not start.
#[derive(Clone)]
pub struct StartCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl StartCheck {
    /// This check.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn run(&self) -> Result<(), String> {
        (self.0)()
    }
}

impl std::fmt::Debug for StartCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StartCheck")
    }
}

impl StdioConfig {
    /// A program without arguments, which may read the folder that it begins in.
    pub fn new(command: impl Into<PathBuf>, sandbox: Sandbox) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            sandbox,
            access: Access::default(),
            check: None,
        }
    }
}

/// The access of a program to its working folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Read it.
    #[default]
    Read,
    /// Read and change it.
    Write,
}

/// A server at an address.
#[derive(Clone)]
pub struct HttpConfig {
    /// The address. Its query (`?key=…`) may be a secret and is never displayed.
    pub url: Arc<str>,
    /// Headers of every request; their values are secrets and never displayed. If there is an `Authorization` header,
    /// no tokens are used.
    pub headers: BTreeMap<Arc<str>, Arc<str>>,
    /// The source of its tokens; none by default.
    pub tokens: Tokens,
}

impl HttpConfig {
    /// The server at this address, without extra headers and tokens.
    pub fn new(url: impl Into<Arc<str>>) -> Self {
        Self {
            url: url.into(),
            headers: BTreeMap::new(),
            tokens: Tokens::default(),
        }
    }

    /// True if its headers contain a token: no other one is requested.
    pub(crate) fn has_own_token(&self) -> bool {
        self.headers
            .keys()
            .any(|header| header.eq_ignore_ascii_case("authorization"))
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = crate::reach::display_url(&self.url);
        let headers: Vec<_> = self.headers.keys().collect();
        let mut shown = f.debug_struct("HttpConfig");
        shown
            .field("url", &url)
            .field("headers", &headers)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// A server behind a stream that a function makes; for tests.
#[doc(hidden)]
#[derive(Clone)]
pub struct StreamConfig(pub Arc<dyn Fn() -> tokio::io::DuplexStream + Send + Sync>);

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Revision {
    /// Any revision that the server supports, the newest first.
    #[default]
    Detect,
    /// 2025-11-25: a handshake and a session; elicitation lives in its connection.
    V2025_11_25,
    /// 2026-07-28: stateless requests; a result requests the input that its call needs.
    V2026_07_28,
}

impl From<StdioConfig> for Transport {
    fn from(config: StdioConfig) -> Self {
        Self::Stdio(config)
    }
}

impl From<HttpConfig> for Transport {
    fn from(config: HttpConfig) -> Self {
        Self::Http(config)
    }
}

impl From<StreamConfig> for Transport {
    fn from(config: StreamConfig) -> Self {
        Self::Stream(config)
    }
}

impl fmt::Debug for StreamConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamConfig")
    }
}
