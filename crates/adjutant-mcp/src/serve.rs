//! An MCP server: the things that it offers, and its transports.

mod call;
mod content;
mod handler;
mod http;
mod input;
mod kept;
mod resource;
mod state;
mod told;

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Duration};

use adjutant_agent::{Agent, Journal};
use adjutant_llm::{SystemWorld, World};
use adjutant_tool::{Identity, Toolbox};
use rmcp::{
    model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig as Info},
    service::QuitReason,
    transport::async_rw::AsyncRwTransport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::broadcast,
};

use self::{handler::Handler, kept::Kept, state::Seal};
use crate::{Error, ErrorKind};

pub use http::HttpOptions;
pub use resource::ServedResource;

/// The largest message that is read, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The number of changes of resources that a slow subscriber may be behind.
const MANY_CHANGES: usize = 256;
/// The time that an answer may take, unless it is set.
const ANSWER_WITHIN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Your own server: tools, agents, prompts and resources, for every client of the protocol; cheap to clone.
///
/// It speaks revision 2026-07-28, and 2025-11-25 and older to clients that start with a handshake. Each call is a run
/// with its own log. If such a run waits for input, the client is asked: on 2026-07-28 by a result with
/// `input_required`, which can be answered days later and to another process with the same journal and key; on older
/// revisions by a request during the call.
#[derive(Clone)]
pub struct McpHost {
    pub(crate) host: Arc<Offer>,
}

/// The things that a host offers, and its state.
#[derive(Clone)]
pub(crate) struct Offer {
    name: Arc<str>,
    version: Arc<str>,
    instructions: Option<Arc<str>>,
    who: Arc<Identity>,
    world: Arc<dyn World>,
    tools: Option<Arc<dyn Toolbox>>,
    prompts: Option<Arc<dyn Toolbox>>,
    agents: BTreeMap<Arc<str>, ServedAgent>,
    resources: Vec<ServedResource>,
    changes: broadcast::Sender<Arc<str>>,
    kept: Arc<Kept>,
    seal: Seal,
    answer_within: Duration,
}

/// An agent that is offered as a tool.
#[derive(Clone)]
struct ServedAgent {
    description: Arc<str>,
    agent: Agent,
}

impl McpHost {
    /// A host without any offers, with a random key that is lost with the process, and logs in memory.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let host = Offer {
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: None,
            who: Arc::new(Identity::root("mcp".into(), "mcp", Arc::clone(&name))),
            world: Arc::new(SystemWorld),
            tools: None,
            prompts: None,
            agents: BTreeMap::new(),
            resources: Vec::new(),
            changes: broadcast::channel(MANY_CHANGES).0,
            kept: Arc::new(Kept::in_memory()),
            seal: Seal::random(),
            answer_within: ANSWER_WITHIN,
            name,
        };
        Self {
            host: Arc::new(host),
        }
    }

    /// Sets the version that clients receive; the version of this crate by default.
    #[must_use]
    pub fn version(self, version: impl Into<Arc<str>>) -> Self {
        self.with(|host| host.version = version.into())
    }

    /// Sets the instructions that clients receive.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<Arc<str>>) -> Self {
        self.with(|host| host.instructions = Some(instructions.into()))
    }

    /// Offers the tools of a toolbox, instead of those before.
    ///
    /// Approvals, questions and steps work as in every run. Questions in the body of a tool of class `Once` can be
    /// answered only on revisions before 2026-07-28, during the call.
    #[must_use]
    pub fn tools(self, tools: impl Toolbox + 'static) -> Self {
        self.with(|host| host.tools = Some(Arc::new(tools)))
    }

    /// Offers an agent as a tool with this name: it takes a `prompt`, and a `session` to continue.
    ///
    /// Its sessions are kept where the host keeps all, under ids that begin with `mcp-`; the agent's own journal and
    /// session are not used. A tool of the same name is hidden.
    #[must_use]
    pub fn agent(
        self,
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        agent: Agent,
    ) -> Self {
        let served = ServedAgent {
            description: description.into(),
            agent,
        };
        self.with(|host| {
            host.agents.insert(name.into(), served);
        })
    }

    /// Offers prompts, replacing earlier ones: each tool of the toolbox is a prompt, and the content of its result is
    /// the user's message. Their arguments are text.
    #[must_use]
    pub fn prompts(self, prompts: impl Toolbox + 'static) -> Self {
        self.with(|host| host.prompts = Some(Arc::new(prompts)))
    }

    /// Offers a resource, in addition to earlier ones.
    #[must_use]
    pub fn resource(self, resource: ServedResource) -> Self {
        self.with(|host| host.resources.push(resource))
    }

    /// Sets where the logs of all calls and sessions are kept; in memory by default, the newest 1,000 of them.
    ///
    /// Logs of calls without questions are deleted at their end, logs of agents never.
    #[must_use]
    pub fn journal(self, journal: impl Journal + 'static) -> Self {
        self.with(|host| host.kept = Arc::new(Kept::in_journal(Arc::new(journal))))
    }

    /// Sets the key that signs states for clients; hosts that accept each other's states need the same one.
    #[must_use]
    pub fn key(self, key: [u8; 32]) -> Self {
        self.with(|host| host.seal = Seal::new(&key))
    }

    /// Reads the key from a file, which is created with a new key and mode 0600 if it does not exist.
    ///
    /// # Errors
    /// `Invalid` if the file holds no key or others may read it, `Unavailable` if it cannot be read or made.
    pub fn key_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let key = state::read_key(path.as_ref())?;
        Ok(self.key(key))
    }

    /// Sets how long an answer may take on 2026-07-28; 30 days by default.
    #[must_use]
    pub fn answer_within(self, time: Duration) -> Self {
        self.with(|host| host.answer_within = time)
    }

    /// Sets clock and ids.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        self.with(|host| host.world = Arc::new(world))
    }

    /// Notifies subscribers of a changed resource.
    pub fn resource_changed(&self, uri: impl Into<Arc<str>>) {
        // There may be no subscribers.
        let _ = self.host.changes.send(uri.into());
    }

    /// Serves one client on a pair of streams until it leaves, one message a line of at most 16 MiB.
    ///
    /// Cancel: active calls are cancelled.
    ///
    /// # Errors
    /// `Protocol` if the client opens with something else, `Unavailable` if the connection failed.
    pub async fn serve_io(
        &self,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), Error> {
        let transport =
            AsyncRwTransport::new_server(read, write).with_max_line_length(MAX_MESSAGE_BYTES);
        let served = rmcp::serve_server(Handler::new(Arc::clone(&self.host)), transport).await;
        let service = match served {
            Ok(service) => service,
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => {
                let message = "the client did not open the protocol";
                return Err(Error::new(ErrorKind::Protocol, message).with_source(error));
            }
        };
        match service.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(Error::new(
                ErrorKind::Unavailable,
                "the connection to the client failed",
            )
            .with_source(error)),
            Ok(_) => Ok(()),
        }
    }

    /// Serves one client on the input and output of this process, to which nothing else may write.
    ///
    /// Cancel: active calls are cancelled.
    ///
    /// # Errors
    /// As [`McpHost::serve_io`].
    pub async fn serve_stdio(&self) -> Result<(), Error> {
        self.serve_io(tokio::io::stdin(), tokio::io::stdout()).await
    }

    fn with(mut self, change: impl FnOnce(&mut Offer)) -> Self {
        change(Arc::make_mut(&mut self.host));
        self
    }
}

impl Offer {
    fn info(&self) -> Info {
        let (tools, prompts) = (
            self.tools.is_some() || !self.agents.is_empty(),
            self.prompts.is_some(),
        );
        let mut can = ServerCapabilities::default();
        can.logging = Some(Default::default());
        can.tools = tools.then(Default::default);
        can.prompts = prompts.then(Default::default);
        can.completions = prompts.then(Default::default);
        can.resources = (!self.resources.is_empty()).then(|| {
            let mut resources = rmcp::model::ResourcesCapability::default();
            resources.subscribe = Some(true);
            resources
        });
        let mut info = Info::new(can).with_protocol_version(ProtocolVersion::V_2026_07_28);
        info.server_info = Implementation::new(&*self.name, &*self.version);
        info.instructions = self.instructions.as_deref().map(str::to_owned);
        info
    }
}

impl fmt::Debug for McpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Offer {
            name,
            agents,
            resources,
            ..
        } = &*self.host;
        let agents: Vec<_> = agents.keys().collect();
        f.debug_struct("McpHost")
            .field("name", name)
            .field("agents", &agents)
            .field("resources", resources)
            .finish_non_exhaustive()
    }
}
