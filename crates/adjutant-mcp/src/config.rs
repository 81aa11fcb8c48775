//! What is said of a server before it is reached.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use adjutant_toolkit::Sandbox;

/// What is said of a server before it is reached.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The way to it.
    pub transport: Transport,
    /// The revision of the protocol; detected by default.
    pub revision: Revision,
    /// True if what it says of its tools is believed: tools that only read are run again after a crash, and so are those that
    /// may be repeated. False by default.
    pub trusted: bool,
    /// The text before the name of each of its tools; the name of the server and `_` by default.
    pub prefix: Option<Arc<str>>,
    /// The tools that are offered, under the server's own names; all of them by default.
    pub tools: Option<Vec<Arc<str>>>,
    /// The time that it has to start; 30 s by default.
    pub start_limit: Duration,
    /// The folders that it is told of as roots; none by default.
    pub roots: Vec<PathBuf>,
}

/// The way to a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Transport {
    /// A program that is started here and speaks on its input and output.
    Stdio(StdioConfig),
    /// An address that takes requests: streamable HTTP.
    Http(HttpConfig),
}

/// A server that is a program.
#[derive(Debug, Clone)]
pub struct StdioConfig {
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<Arc<str>>,
    /// Its variables; beside them it has the usual ones of a command (`PATH`, `HOME`, `LANG`), none of this process's others.
    pub env: BTreeMap<Arc<str>, Arc<str>>,
    /// The folder that it begins in; that of this process by default.
    pub cwd: Option<PathBuf>,
    /// What holds it.
    pub sandbox: Sandbox,
    /// What it may do with the folder that it begins in.
    pub access: Access,
}

/// What a program may do with the folder that it begins in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Read it.
    #[default]
    Read,
    /// Read and change it.
    Write,
}

/// A server at an address.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The address.
    pub url: Arc<str>,
    /// Headers of every request; their values are secrets, and not shown.
    pub headers: BTreeMap<Arc<str>, Arc<str>>,
}

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Revision {
    /// Whichever the server speaks, the newest first.
    #[default]
    Detect,
    /// 2025-11-25: a handshake and a session; elicitation lives in its connection.
    V2025_11_25,
    /// 2026-07-28: requests that stand for themselves; what a call needs is asked by its result.
    V2026_07_28,
}
