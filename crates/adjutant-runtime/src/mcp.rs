//! Servers of the Model Context Protocol: from what is said of one to the toolbox that agents have, and the files that other
//! programs keep them in.

mod file;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use adjutant_mcp::{
    Access, HttpConfig, LoginOptions, McpServer, Revision, ServerConfig, StartCheck, StdioConfig,
    Tokens, Transport,
};
use adjutant_providers::{KeyCommand, TokenSource};
use adjutant_tool::Toolbox;
use adjutant_toolkit::{Rules, Sandbox};
use sha2::{Digest, Sha256};

use crate::{
    Credentials, Error, ErrorKind, Workspace,
    credentials::MCP_TOKENS,
    files,
    manifest::{AuthSpec, Manifest, ProtocolRevision, ServerSpec, vars},
    process_tool::{find_program, widened},
    provenance::hex,
    trust::Pins,
};

pub use file::{FILE_NAME, McpFile};

/// What agents and others obey later that is found in a directory: beside what git does.
const OBEYED: [&str; 2] = ["AGENTS.md", FILE_NAME];
/// The time that a server has to start, if nothing is said.
const START: Duration = Duration::from_secs(30);

/// The surroundings that servers are reached from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerPlace {
    /// The directory that programs begin in, and that they are told of as a root.
    pub work: PathBuf,
    /// The directory of their homes, one for each: what they keep there is there again when they are started anew.
    pub homes: PathBuf,
    /// What holds them, as far as nothing more is said of one.
    pub sandbox: Sandbox,
    /// The directory of the tokens that `adjutant mcp login` has got; none by default.
    pub tokens: Option<PathBuf>,
    /// What they may do with the directory that they begin in, if it is not among those that they may change.
    pub access: Access,
}

/// Returns the directory that `adjutant mcp login` keeps tokens in: that of `ADJUTANT_MCP_TOKENS`, else `adjutant/mcp`
/// in `XDG_STATE_HOME`, else in `~/.local/state`.
pub fn tokens_folder(lookup: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    crate::credentials::tokens_folder(lookup).map(PathBuf::from)
}

/// Returns what is known of a client before somebody signs in to a server.
pub fn login_options(auth: &AuthSpec, lookup: impl Fn(&str) -> Option<String>) -> LoginOptions {
    let mut options = LoginOptions::default();
    options.client_id = auth.client_id.as_deref().map(str::to_owned);
    options.client_secret = auth.client_secret_variable.as_deref().and_then(lookup);
    options.scopes = auth.scopes.iter().map(|scope| scope.to_string()).collect();
    options.port = auth.port;
    options
}

impl ServerPlace {
    /// Programs begin in the first directory and keep what is theirs below the second one. What they keep is apart for
    /// each first directory: a server of the same name may be another's program elsewhere.
    ///
    /// bubblewrap holds them where it works: in a directory that they change it keeps what others obey later as it is.
    /// Nothing else can do that, so with another sandbox they only read the directory, unless they are given it to
    /// change.
    pub fn new(work: impl Into<PathBuf>, homes: impl Into<PathBuf>) -> Self {
        let bwrap = Sandbox::bwrap();
        Self::held(
            work,
            homes,
            if bwrap.refuses().is_none() {
                bwrap
            } else {
                Sandbox::new()
            },
        )
    }

    /// The same in a sandbox of one's own.
    pub fn held(work: impl Into<PathBuf>, homes: impl Into<PathBuf>, sandbox: Sandbox) -> Self {
        let work = work.into();
        let digest = hex(&Sha256::digest(work.as_os_str().as_encoded_bytes()));
        let access = if sandbox.report().by == "bwrap" {
            Access::Write
        } else {
            Access::Read
        };
        Self {
            homes: homes.into().join(&digest[..16]),
            work,
            sandbox,
            tokens: None,
            access,
        }
    }

    /// True if a server can only read the directory that it begins in.
    pub fn reads_only(&self, spec: &ServerSpec) -> bool {
        let folder = spec.cwd.as_ref().unwrap_or(&self.work);
        let changes = spec
            .sandbox
            .write
            .iter()
            .any(|path| folder.starts_with(path));
        self.access == Access::Read && !changes && !spec.sandbox.danger_without_any
    }

    /// A server as it is reached from here. It is not started yet.
    ///
    /// `lookup` gives the values of its variables. It reads a program that is pinned, and blocks for that.
    ///
    /// # Errors
    /// `Config` if a variable is not set, a program is missing or not what was pinned, or if its tools would be taken for others.
    pub fn server(
        &self,
        name: &str,
        spec: &ServerSpec,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<McpServer, Error> {
        let prefix = spec
            .prefix
            .clone()
            .unwrap_or_else(|| format!("{name}_").into());
        if Rules::knows_prefix(&prefix) {
            let hint = "hint: give it a `prefix`, as `my_`";
            return Err(wrong(
                name,
                format!(
                    "rules would take its tools for others: they begin with {prefix:?}; {hint}"
                ),
            ));
        }
        let config = self.config(name, spec, lookup)?;
        McpServer::new(name, config)
            .map_err(|error| wrong(name, error.to_string()).with_source(error))
    }

    /// Returns what is said of a server, with its variables put in.
    ///
    /// # Errors
    /// `Config` as [`server`](Self::server).
    pub fn config(
        &self,
        name: &str,
        spec: &ServerSpec,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<ServerConfig, Error> {
        let fill = |text: &str| {
            vars::filled(text, &lookup).map_err(|(message, hint)| {
                let hint = hint
                    .map(|hint| format!("; hint: {hint}"))
                    .unwrap_or_default();
                wrong(name, format!("{message}{hint}"))
            })
        };
        let filled = |map: &BTreeMap<String, String>| {
            let each = map
                .iter()
                .map(|(key, value)| Ok((key.as_str().into(), fill(value)?.into())));
            each.collect::<Result<BTreeMap<Arc<str>, Arc<str>>, Error>>()
        };
        let path = |path: &Path| fill(&path.to_string_lossy()).map(PathBuf::from);
        let transport = match (&spec.command, &spec.url) {
            (Some(command), _) => {
                let program = find_program(&path(command)?, spec.sha256.as_deref())
                    .map_err(|error| wrong(name, error.message().to_owned()))?;
                let args = spec
                    .args
                    .iter()
                    .map(|word| Ok(fill(word)?.into()))
                    .collect::<Result<Vec<Arc<str>>, Error>>()?;
                let home = self.homes.join(folder_of(name));
                files::make_folder(&home)?;
                let cwd = spec
                    .cwd
                    .as_deref()
                    .map_or_else(|| Ok(self.work.clone()), path)?;
                let sandbox = widened(self.sandbox.clone(), &program, &args, &spec.sandbox)
                    .write(home.clone());
                let mut env = filled(&spec.env)?;
                // A cache beside a script could replace it.
                let cache = home.join(".cache/python").to_string_lossy().into();
                env.insert("PYTHONPYCACHEPREFIX".into(), cache);
                env.insert("HOME".into(), home.to_string_lossy().into());
                Transport::Stdio(StdioConfig {
                    sandbox: OBEYED
                        .iter()
                        .fold(sandbox, |sandbox, name| sandbox.keep(cwd.join(name))),
                    command: program,
                    args,
                    env,
                    cwd: Some(cwd),
                    access: self.access,
                    check: start_check(name, spec, &self.work),
                })
            }
            (None, Some(url)) => {
                let mut http = HttpConfig::new(fill(url)?);
                (http.headers, http.tokens) = (filled(&spec.headers)?, self.tokens(&spec.auth));
                Transport::Http(http)
            }
            (None, None) => {
                return Err(wrong(
                    name,
                    "it has neither a `command` nor a `url`".to_owned(),
                ));
            }
        };
        let base = ServerConfig::new(transport);
        Ok(ServerConfig {
            revision: match spec.revision {
                None => Revision::Detect,
                Some(ProtocolRevision::V2025_11_25) => Revision::V2025_11_25,
                Some(ProtocolRevision::V2026_07_28) => Revision::V2026_07_28,
            },
            trusted: spec.trusted,
            prefix: spec.prefix.clone(),
            tools: spec.tools.clone(),
            start_limit: spec.timeout.map_or(START, |time| time.0),
            roots: vec![self.work.clone()],
            ..base
        })
    }

    fn tokens(&self, auth: &AuthSpec) -> Tokens {
        if auth.token_command.is_empty() {
            return self.tokens.as_ref().map(Tokens::stored).unwrap_or_default();
        }
        let command = Arc::new(KeyCommand::new(auth.token_command.iter().cloned()));
        Tokens::from_fn(move || {
            let command = Arc::clone(&command);
            async move {
                let token = command.token().await?;
                Ok((token.secret().into(), token.ttl()))
            }
        })
    }
}

/// The servers of a manifest, as toolboxes: the agents of an engine share them.
pub(crate) fn toolboxes(
    manifest: &Manifest,
    workspace: &Workspace,
    credentials: &Credentials,
    sandbox: Sandbox,
) -> Result<BTreeMap<Arc<str>, Arc<dyn Toolbox>>, Error> {
    let tokens = credentials.get(MCP_TOKENS).map(PathBuf::from);
    let (work, homes) = (workspace.work(), workspace.file("home/mcp"));
    // The directory is the agent's own.
    let place = ServerPlace {
        work,
        homes,
        sandbox,
        tokens,
        access: Access::Write,
    };
    let servers = manifest.mcp.servers.iter().map(|(name, spec)| {
        let server = place.server(name, spec, |name| credentials.get(name).map(str::to_owned))?;
        Ok((Arc::clone(name), Arc::new(server) as Arc<dyn Toolbox>))
    });
    servers.collect()
}

/// The check of a server's files before each of its starts: they are as they were when it was admitted.
fn start_check(name: &str, spec: &ServerSpec, work: &Path) -> Option<StartCheck> {
    let pins = Pins::from_server(spec, work);
    if pins.is_empty() {
        return None;
    }
    let (admitted, name) = (pins.read(), name.to_owned());
    Some(StartCheck::new(move || {
        // Too many files have no digest: they were agreed to as this session began.
        match !admitted.is_whole || pins.read() == admitted {
            true => Ok(()),
            false => Err(format!(
                "the files that the server {name} runs have changed since it was trusted; read them, then start again"
            )),
        }
    }))
}

/// A name that a directory can have: one that is none is its digest.
fn folder_of(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.chars().all(is_plain) {
        name.to_owned()
    } else {
        hex(&Sha256::digest(name))
    }
}

fn wrong(name: &str, message: String) -> Error {
    Error::new(ErrorKind::Config, format!("the server {name}: {message}"))
}
