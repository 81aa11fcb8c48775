//! The MCP servers of a project, the user and an editor: which ones are used, and how to reach them.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant::{
    llm::private,
    mcp::{Error, ErrorKind, McpServer, ServerAbout, ServerPrompt},
    runtime::{
        manifest::ServerSpec,
        mcp::{FILE_NAME, McpFile, ServerPlace, tokens_folder},
    },
    tools::{Identity, Toolbox, Toolset},
};
use serde_json::{Map, Value, json};

use crate::{
    args::{BOARD, BOXES},
    consent::{self, Trusting},
    exit::Exit,
    plain,
    problem::Problem,
    project::Project,
    store,
    trouble::runtime_problem,
};

/// A configured server.
#[derive(Debug, Clone)]
pub(crate) struct FoundServer {
    pub(crate) name: Arc<str>,
    /// The name of its toolbox; different from its own name if a toolbox has that name already.
    pub(crate) toolbox: Arc<str>,
    pub(crate) spec: ServerSpec,
    /// Its origin: `project`, `user` or `editor`.
    pub(crate) scope: &'static str,
    /// The server; `None` if it is not trusted, or if something is missing.
    pub(crate) server: Option<McpServer>,
    /// The reason why it is not used.
    pub(crate) why: Option<String>,
}

/// The servers for a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers {
    pub(crate) all: Vec<FoundServer>,
    /// Errors and notices, one line each.
    pub(crate) told: Vec<String>,
}

impl Servers {
    /// Finds the servers for a directory, without starting any.
    ///
    /// # Errors
    /// `Failed` if the stored trust cannot be read.
    pub(crate) fn find(root: &Path, trusting: Trusting) -> Result<Self, Problem> {
        let mut found = Self::default();
        let files = [("project", Some(root.join(FILE_NAME))), ("user", usual())];
        for (scope, file) in files {
            let Some(file) = file else { continue };
            match McpFile::read(&file) {
                Ok(None) => {}
                Ok(Some(read)) => found.take(read, scope, root, trusting)?,
                Err(error) => found.told.push(format!(
                    "mcp: warning: {}; its servers are not used",
                    Problem::from_error(Exit::Usage, &error).line()
                )),
            }
        }
        let (plugins, problems) = Project::find(root).plugins();
        found.told.extend(problems);
        for (scope, plugin) in plugins {
            if let Some(file) = plugin.servers {
                found.take(file, scope, root, trusting)?;
            }
        }
        Ok(found)
    }

    fn take(
        &mut self,
        mut file: McpFile,
        scope: &'static str,
        root: &Path,
        trusting: Trusting,
    ) -> Result<(), Problem> {
        if file.data.is_some() {
            // A plugin's server starts in the plugin's directory, and works on the project.
            for (_, spec) in &mut file.servers {
                if spec.command.is_some() {
                    spec.sandbox.read.extend(root.canonicalize());
                }
            }
        }
        let shown = plain::line(&file.path.to_string_lossy());
        self.told.extend(
            file.findings
                .iter()
                .map(|it| format!("mcp: {shown}: warning: {}", plain::line(it))),
        );
        if file.servers.is_empty() {
            return Ok(());
        }
        // The user's own servers also need trust if they run files that an agent in the directory can change.
        let is_asked = scope == "project" || file.runs_files_of(root);
        let is_trusted = !is_asked
            || trusting == Trusting::Given
            || consent::is_trusted(
                &file
                    .wants_in(root)
                    .map_err(|error| runtime_problem(&error))?,
                trusting,
            )?;
        if let Some(data) = file.data.as_ref().filter(|_| is_trusted) {
            private::folder(data).map_err(|error| {
                let text = format!("cannot create the data directory {}", data.display());
                Problem::new(Exit::Failed, text).cause(&error)
            })?;
        }
        if !is_trusted {
            let count = file.servers.len();
            let hint = match scope {
                "editor" => {
                    "hint: they run files of this directory; name them in .mcp.json, and trust that"
                        .to_owned()
                }
                _ => format!(
                    "hint: `adjutant trust {}` lists what they want",
                    plain::word(&shown)
                ),
            };
            self.told.push(format!(
                "mcp: {shown}: warning: nobody trusts its servers: {count} not used; {hint}"
            ));
        }
        let place = place(root);
        for (name, spec) in file.servers {
            let is_known = self
                .all
                .iter()
                .any(|known| known.name == name && known.server.is_some());
            let made = match (&place, is_trusted) {
                (_, false) => Err("untrusted".to_owned()),
                (_, true) if is_known => {
                    let why = "hidden by another of this name";
                    if file.data.is_some() {
                        self.told
                            .push(format!("mcp: {shown}: warning: {name} is {why}"));
                    }
                    Err(why.to_owned())
                }
                (Some(place), true) => {
                    let made = place.server(&name, &spec, |name| env::var(name).ok());
                    made.map_err(|error| {
                        let why = Problem::from_error(Exit::Usage, &error).line();
                        self.told
                            .push(format!("mcp: {shown}: warning: {why}; it is not used"));
                        why
                    })
                }
                (None, true) => Err("there is no place for its home: HOME is not set".to_owned()),
            };
            let (server, why) =
                made.map_or_else(|why| (None, Some(why)), |server| (Some(server), None));
            let toolbox = match BOXES.contains(&&*name) || *name == *BOARD {
                true => format!("mcp:{name}").into(),
                false => Arc::clone(&name),
            };
            self.all.push(FoundServer {
                name,
                toolbox,
                spec,
                scope,
                server,
                why,
            });
        }
        Ok(())
    }

    /// Adds the servers of an editor, which its user configured there; returns the errors.
    ///
    /// # Errors
    /// `Usage` if there are too many.
    pub(crate) fn take_of_editor(
        &mut self,
        servers: &[Value],
        root: &Path,
    ) -> Result<Vec<String>, Problem> {
        if servers.is_empty() {
            return Ok(Vec::new());
        }
        let pairs = |list: &Value| -> Map<String, Value> {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(|it| Some((it["name"].as_str()?.to_owned(), it["value"].clone())))
                .collect()
        };
        let server = |it: &Value| match it["type"].as_str() {
            Some("http") => {
                json!({"type": "http", "url": it["url"], "headers": pairs(&it["headers"])})
            }
            _ => {
                json!({"command": it["command"], "args": it["args"].as_array().cloned().unwrap_or_default(), "env": pairs(&it["env"])})
            }
        };
        let named: Map<String, Value> = servers
            .iter()
            .map(|it| {
                (
                    it["name"].as_str().unwrap_or_default().to_owned(),
                    server(it),
                )
            })
            .collect();
        let text = json!({"mcpServers": named}).to_string();
        let file = McpFile::parse(&text, Path::new("the editor"))
            .map_err(|error| Problem::from_error(Exit::Usage, &error))?;
        let told = self.told.len();
        self.take(file, "editor", root, Trusting::Before)?;
        Ok(self.told.split_off(told))
    }

    /// Returns the servers in use, by the names of their toolboxes.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&Arc<str>, &McpServer)> {
        self.all
            .iter()
            .filter_map(|it| Some((&it.toolbox, it.server.as_ref()?)))
    }

    /// True if a tool with this name may belong to one of them.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        self.used()
            .any(|(_, server)| tool.starts_with(server.prefix()))
    }

    /// Returns a server in use, by its name.
    ///
    /// # Errors
    /// `Usage` if it does not exist, with similar names, or if it is not used, with the reason.
    pub(crate) fn one(&self, name: &str) -> Result<(&FoundServer, &McpServer), Problem> {
        if let Some(found) = self
            .all
            .iter()
            .find(|it| *it.name == *name && it.server.is_some())
        {
            return found
                .server
                .as_ref()
                .map(|server| (found, server))
                .ok_or_else(|| unknown(name, self));
        }
        match self.all.iter().find(|it| *it.name == *name) {
            Some(FoundServer { why: Some(why), .. }) if why == "untrusted" => {
                let problem =
                    Problem::new(Exit::Usage, format!("the server {name} is not trusted"));
                Err(problem.hint(format!(
                    "`adjutant trust {FILE_NAME}` lists what it wants; --trust uses it this time"
                )))
            }
            Some(FoundServer { why: Some(why), .. }) => Err(Problem::new(Exit::Usage, why.clone())),
            _ => Err(unknown(name, self)),
        }
    }
}

/// The properties of a started server.
pub(crate) struct LookedAt {
    pub(crate) about: Result<ServerAbout, Error>,
    pub(crate) tools: Toolset,
}

/// Starts a server and reads its properties.
pub(crate) async fn look(server: &McpServer) -> LookedAt {
    let about = server.about().await;
    let who = Identity::root("mcp".into(), "mcp", "adjutant");
    let tools = match &about {
        Ok(_) => server.resolve(&who).await.unwrap_or_default(),
        Err(_) => Toolset::default(),
    };
    LookedAt { about, tools }
}

impl LookedAt {
    /// Returns a word for its state.
    pub(crate) fn state(&self) -> &'static str {
        match &self.about {
            Ok(_) => "up",
            Err(error) if error.kind == ErrorKind::Unauthorised => "wants a login",
            Err(_) => "down",
        }
    }

    /// Returns its revision.
    pub(crate) fn revision(&self) -> &str {
        self.about.as_ref().map_or("-", |about| &about.revision)
    }

    /// Returns the number of its tools.
    pub(crate) fn count(&self) -> usize {
        self.tools.iter().count()
    }
}

/// Formats the usage of a prompt in a conversation.
pub(crate) fn usage(server: &str, prompt: &ServerPrompt) -> String {
    let arguments = prompt.arguments.iter().map(|(name, _, must)| {
        if *must {
            format!(" {name}=…")
        } else {
            format!(" [{name}=…]")
        }
    });
    let arguments: String = arguments.collect();
    format!(
        "/{server}:{}{arguments}  {}",
        prompt.name, prompt.description
    )
}

/// Returns the problem that a server does not exist.
fn unknown(name: &str, servers: &Servers) -> Problem {
    let problem = Problem::new(
        Exit::Usage,
        format!("no server has this name: {}", plain::line(name)),
    );
    let near = crate::near::near(name, servers.all.iter().map(|it| &*it.name));
    match near.is_empty() {
        true => problem.hint("`adjutant mcp list` shows them"),
        false => problem.hint(format!("the nearest are {}", near.join(", "))),
    }
}

/// Returns the directories for the servers of a project; `None` if there is no place for their data.
pub(crate) fn place(root: &Path) -> Option<ServerPlace> {
    let work = root.canonicalize().ok()?;
    let mut place = ServerPlace::new(work, store::usual().ok()?.with_file_name("mcp"));
    place.tokens = tokens_folder(|name| env::var(name).ok());
    Some(place)
}

/// Returns the file of the user's own servers.
pub(crate) fn usual() -> Option<PathBuf> {
    let of = |variable: &str| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let settings = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")));
    settings.map(|folder| folder.join("adjutant/mcp.json"))
}
