//! Servers of the Model Context Protocol: creates toolboxes from their specifications, and reads `.mcp.json` files.

mod file;
mod plugin;

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
pub use plugin::Plugin;

/// Files that agents and other programs read automatically, in addition to the files of git.
const OBEYED: [&str; 2] = ["AGENTS.md", FILE_NAME];
/// The default time for a server to start.
const START: Duration = Duration::from_secs(30);

/// The directories and the sandbox of servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerPlace {
    /// The working directory of programs, which is also their MCP root.
    pub work: PathBuf,
    /// The directory of their homes, one for each server, which are kept between starts.
    pub homes: PathBuf,
    /// The default sandbox.
    pub sandbox: Sandbox,
    /// The directory of the tokens from `adjutant mcp login`; `None` by default.
    pub tokens: Option<PathBuf>,
    /// The access to the working directory, if it is not listed as writable.
    pub access: Access,
}

/// Returns the directory for the tokens of `adjutant mcp login`: `ADJUTANT_MCP_TOKENS`, else `adjutant/mcp` in
/// `XDG_STATE_HOME`, else in `~/.local/state`.
pub fn tokens_folder(lookup: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    crate::credentials::tokens_folder(lookup).map(PathBuf::from)
}

/// Returns the client settings for signing in to a server.
pub fn login_options(auth: &AuthSpec, lookup: impl Fn(&str) -> Option<String>) -> LoginOptions {
    let mut options = LoginOptions::default();
    options.client_id = auth.client_id.as_deref().map(str::to_owned);
    options.client_secret = auth.client_secret_variable.as_deref().and_then(lookup);
    options.scopes = auth.scopes.iter().map(|scope| scope.to_string()).collect();
    options.port = auth.port;
    options
}

impl ServerPlace {
    /// Programs start in the first directory and store their data below the second one, separately for each first
    /// directory: a server with the same name may be another program elsewhere.
    ///
    /// Uses bubblewrap where it works: in a writable directory it protects files that other programs read
    /// automatically. No other sandbox can do that, so with another one programs can only read the directory, unless it
    /// is listed as writable.
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

    /// The same with this sandbox.
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

    /// True if a server can only read its working directory.
    pub fn reads_only(&self, spec: &ServerSpec) -> bool {
        let folder = spec.cwd.as_ref().unwrap_or(&self.work);
        let changes = spec
            .sandbox
            .write
            .iter()
            .any(|path| folder.starts_with(path));
        self.access == Access::Read && !changes && !spec.sandbox.danger_without_any
    }

    /// Creates a server, without starting it.
    ///
    /// `lookup` returns the values of its variables. Reads a pinned program, and blocks for that.
    ///
    /// # Errors
    /// `Config` if a variable is not set, a program is missing or does not match its digest, or if the names of its
    /// tools would be ambiguous.
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

    /// Returns the configuration of a server, with its variables expanded.
    ///
    /// # Errors
    /// `Config` like [`server`](Self::server).
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
                // A cache next to a script could replace the script.
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
            return self
                .tokens
                .as_ref()
                .map(Tokens::from_directory)
                .unwrap_or_default();
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

/// Creates the servers of a manifest as toolboxes, which the agents of an engine share.
pub(crate) fn toolboxes(
    manifest: &Manifest,
    workspace: &Workspace,
    credentials: &Credentials,
    sandbox: Sandbox,
) -> Result<BTreeMap<Arc<str>, Arc<dyn Toolbox>>, Error> {
    let tokens = credentials.get(MCP_TOKENS).map(PathBuf::from);
    let (work, homes) = (workspace.work(), workspace.file("home/mcp"));
    // The directory belongs to the agent.
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

/// Creates the check of a server's files before each start: they must be unchanged since the server was admitted.
fn start_check(name: &str, spec: &ServerSpec, work: &Path) -> Option<StartCheck> {
    let pins = Pins::from_server(spec, work);
    if pins.is_empty() {
        return None;
    }
    let (admitted, name) = (pins.read(), name.to_owned());
    Some(StartCheck::new(move || {
        // If there are too many files, they have no digest: they were trusted when this session began.
        match !admitted.is_whole || pins.read() == admitted {
            true => Ok(()),
            false => Err(format!(
                "the files that the server {name} runs have changed since it was trusted; read them, then start again"
            )),
        }
    }))
}

/// Returns a directory name for a server: its name if that is valid, else a digest of it.
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
