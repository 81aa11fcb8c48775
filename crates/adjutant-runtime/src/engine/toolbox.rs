//! The toolboxes of an agent by name, with the changes of a manifest.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::ThreadId;
use adjutant_orchestration::{Notes, Reflections, board::BoardTools};
use adjutant_tool::{Identity, Toolbox};

use super::{
    hands::Hands,
    pattern::any_fits,
    reflecting,
    tooling::{Tooling, unknown},
};
use crate::{
    Error, ErrorKind,
    manifest::{AgentSpec, TOOLBOXES, ToolboxChoice, ToolboxSpec},
};

/// The parts that a toolbox adds to an agent.
#[derive(Clone)]
pub(super) enum Piece {
    /// Its tools.
    Toolbox(Arc<dyn Toolbox>),
    /// Tools that an agent finds with another tool if there are too many.
    Server(Arc<dyn Toolbox>),
    /// The tools of the board, which the coordinator of a team keeps.
    Board(Arc<dyn Toolbox>),
    /// Tools, and texts about them in the context.
    Notes(Notes),
    /// Tools that are created together with the agents that they start.
    Background(ToolboxSpec),
}

/// Returns a toolbox that an agent names.
///
/// # Errors
/// `Config` if it does not exist, if a requirement is missing, or if a pattern matches nothing.
pub(super) async fn piece(
    tooling: &Tooling,
    agent: &AgentSpec,
    choice: &ToolboxChoice,
    reflections: Option<&Reflections>,
    hands: &mut Hands<'_>,
) -> Result<Piece, Error> {
    let spec = match choice {
        ToolboxChoice::Name(name) => named(name),
        ToolboxChoice::Spec(spec) => spec.clone(),
    };
    if spec.root.is_some() && &*spec.name != "files" {
        let message = format!(
            "the agent {} gives the toolbox {} a `root`, which only `files` has",
            agent.name, spec.name
        );
        return Err(Error::new(ErrorKind::Config, message));
    }
    let lacks = |what: &str| {
        let message = format!(
            "the agent {} has the toolbox {}, and the manifest has no {what}",
            agent.name, spec.name
        );
        Error::new(ErrorKind::Config, message)
    };
    let toolbox: Arc<dyn Toolbox> = match (tooling.toolboxes.get(&spec.name), &*spec.name) {
        (Some(given), _) => Arc::clone(given),
        (None, "files") => Arc::new(hands.files()?.toolbox()),
        (None, "board") => {
            let board = tooling.board.as_ref().ok_or_else(|| lacks("`board`"))?;
            let tools: Arc<dyn Toolbox> = Arc::new(board.tools(BoardTools::new()));
            return Ok(Piece::Board(changed(agent, &spec, tools).await?));
        }
        (None, "notes") => {
            let notes = tooling.notes.as_ref().ok_or_else(|| lacks("`notes`"))?;
            if is_plain(&spec) {
                return Ok(Piece::Notes(notes.clone()));
            }
            Arc::new(notes.toolbox())
        }
        (None, "memory") => Arc::new(
            tooling
                .memories
                .as_ref()
                .ok_or_else(|| lacks("`memory`"))?
                .toolbox(),
        ),
        (None, "reflections") => Arc::new(match reflections {
            Some(own) => reflecting::toolbox(own),
            None => reflecting::toolbox(
                &tooling.reflections(&crate::manifest::ReflectionSpec::default())?,
            ),
        }),
        (None, "peers") => Arc::clone(tooling.peers.as_ref().ok_or_else(|| lacks("`peers`"))?),
        (None, "background") => return Ok(Piece::Background(spec)),
        // A server is not started only to check patterns against its tools.
        (None, name) if tooling.servers.contains_key(name) => {
            return Ok(Piece::Server(wrap(
                &spec,
                Arc::clone(&tooling.servers[name]),
            )));
        }
        (None, name) => match hands.toolbox(name)? {
            Some(toolbox) => toolbox,
            None => {
                let known = TOOLBOXES
                    .into_iter()
                    .chain(tooling.servers.keys().map(|name| &**name));
                let known: Vec<&str> = known
                    .chain(tooling.toolboxes.keys().map(|name| &**name))
                    .collect();
                return Err(unknown(agent, "toolbox", &spec.name, &known));
            }
        },
    };
    let toolbox = changed(agent, &spec, toolbox).await?;
    Ok(if tooling.many.contains(&spec.name) {
        Piece::Server(toolbox)
    } else {
        Piece::Toolbox(toolbox)
    })
}

/// Applies the changes of a manifest to a toolbox, if they match any of its tools.
async fn changed(
    agent: &AgentSpec,
    spec: &ToolboxSpec,
    toolbox: Arc<dyn Toolbox>,
) -> Result<Arc<dyn Toolbox>, Error> {
    let patterns = || spec.only.iter().flatten().chain(&spec.except);
    if patterns().next().is_some() {
        let who = Identity::root(ThreadId("".into()), "", Arc::clone(&agent.name));
        // A source that cannot answer now may answer when it is needed.
        if let Ok(set) = toolbox.resolve(&who).await {
            let names: Vec<&str> = set.iter().map(|tool| tool.spec().name().as_str()).collect();
            let fits_none =
                |pattern: &&Arc<str>| !names.iter().any(|name| super::pattern::fits(pattern, name));
            if let Some(wrong) = patterns().find(fits_none) {
                return Err(unknown(
                    agent,
                    &format!("tool of the toolbox {}", spec.name),
                    wrong,
                    &names,
                ));
            }
        }
    }
    Ok(wrap(spec, toolbox))
}

/// Applies the changes of a manifest: first the selection of tools, then their options, last their names.
pub(super) fn wrap(spec: &ToolboxSpec, toolbox: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
    let mut toolbox = toolbox;
    if spec.only.is_some() || !spec.except.is_empty() {
        let (only, except) = (spec.only.clone(), spec.except.clone());
        toolbox = Arc::new(toolbox.filter(move |_, tool| {
            let name = tool.name().as_str();
            only.as_ref().is_none_or(|only| any_fits(only, name)) && !any_fits(&except, name)
        }));
    }
    if let Some(limit) = spec.timeout {
        toolbox = Arc::new(toolbox.time_out(limit.0));
    }
    if let Some(size) = spec.max_output {
        toolbox = Arc::new(toolbox.limit_output(usize::try_from(size.0).unwrap_or(usize::MAX)));
    }
    match &spec.prefix {
        Some(prefix) => Arc::new(toolbox.prefix(Arc::clone(prefix))),
        None => toolbox,
    }
}

/// True if a manifest changes nothing about a toolbox.
pub(super) fn is_plain(spec: &ToolboxSpec) -> bool {
    *spec == named(&spec.name)
}

fn named(name: &Arc<str>) -> ToolboxSpec {
    ToolboxSpec {
        name: Arc::clone(name),
        only: None,
        except: Vec::new(),
        prefix: None,
        timeout: None,
        max_output: None,
        root: None,
    }
}

/// Returns the directory of an agent's files.
pub(super) fn root(tooling: &Tooling, agent: &AgentSpec) -> PathBuf {
    let of_files = |choice: &ToolboxChoice| match choice {
        ToolboxChoice::Spec(spec) if &*spec.name == "files" => spec.root.clone(),
        _ => None,
    };
    agent
        .toolboxes
        .iter()
        .find_map(of_files)
        .unwrap_or_else(|| tooling.workspace.work())
}

/// True if a directory is in the working directory; or in the workspace, if its files give no access to an agent.
pub(super) fn is_own(tooling: &Tooling, root: &Path) -> bool {
    let own = if is_made(tooling) {
        tooling.workspace.work()
    } else {
        tooling.workspace.root().to_owned()
    };
    let real = |path: &Path| path.canonicalize().ok();
    real(root)
        .zip(real(&own))
        .is_some_and(|(root, own)| root.starts_with(own))
}

/// True if a backend created the workspace, in a directory of agents.
fn is_made(tooling: &Tooling) -> bool {
    tooling.workspace.file("agent.json").is_file()
}

/// Returns the directory of this and all other agents. A program that can read it can call each of them.
pub(super) fn kept(tooling: &Tooling) -> &Path {
    let own = tooling.workspace.root();
    match own.parent() {
        Some(home) if is_made(tooling) => home,
        _ => own,
    }
}
