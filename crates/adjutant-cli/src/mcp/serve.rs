//! `adjutant mcp serve`: serves the agent of a manifest and its tools to MCP clients.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use adjutant::{
    mcp::{HttpOptions, McpHost},
    runtime::{Credentials, Engine, Lead, Overrides, TrustStore, Workspace},
};
use uuid::Uuid;

use crate::{
    agent::create::{self, MANIFEST},
    args,
    consent::{self, Consent},
    exit::Exit,
    plain,
    problem::Problem,
    screen::tell,
    store,
    trouble::runtime_problem,
};

/// The directory for the data of engines, below the user's data directory; each engine has a directory named by its
/// manifest's path.
const SERVED: &str = "served";
const OWN: &str = ".adjutant";

/// Serves a manifest until the client disconnects or this process exits.
pub(super) async fn serve(args: args::Serve) -> Result<Exit, Problem> {
    let file = args.file.as_deref().unwrap_or(Path::new(MANIFEST));
    let engine = engine(file, "mcp serve", &args.trust).await?;
    let resolved = engine.resolved();
    let (name, description) = (
        resolved.manifest.name.clone(),
        resolved.manifest.description.clone(),
    );
    let key = engine.workspace().state().join("mcp.key");
    let Lead::Agent(agent) = engine
        .lead(engine.default_session())
        .map_err(|error| runtime_problem(&error))?
    else {
        let text = "agents that hand the conversation on cannot be served as one tool";
        return Err(Problem::new(Exit::Usage, text));
    };
    let about = if description.is_empty() {
        format!("Asks the agent {name}.").into()
    } else {
        description
    };
    let failed = |error: adjutant::mcp::Error| Problem::from_error(Exit::Failed, &error);
    let host = McpHost::new(name.clone())
        .agent(name, about, agent)
        .tools(engine.tools());
    let host = host.journal(Arc::clone(engine.sessions().journal()));
    let host = host.key_file(key).map_err(failed)?;
    let Some(address) = args.http else {
        host.serve_stdio().await.map_err(failed)?;
        return Ok(Exit::Finished);
    };
    if !address.ip().is_loopback() {
        let problem = Problem::new(
            Exit::Usage,
            format!("this is no address of this machine alone: {address}"),
        );
        return Err(problem.hint("use 127.0.0.1:PORT"));
    }
    let listener = std::net::TcpListener::bind(address);
    let listener = listener.map_err(|error| {
        Problem::new(Exit::Failed, format!("cannot listen at {address}")).cause(&error)
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen").cause(&error))?;
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    tell(&format!("serves http://{address}/mcp; token: {token}"));
    host.serve_http(listener, HttpOptions::with_token(token))
        .await
        .map_err(failed)?;
    Ok(Exit::Finished)
}

/// Returns the data directory for a manifest's engine. It is not next to the manifest, because a sandbox may prevent
/// writing there.
fn kept(manifest: &Path) -> Result<PathBuf, Problem> {
    let folder = manifest
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let wrong = |error| {
        Problem::new(
            Exit::Usage,
            format!("there is no folder {}", folder.display()),
        )
        .cause(&error)
    };
    let folder = folder.canonicalize().map_err(wrong)?;
    let below: PathBuf = folder
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    Ok(store::usual()?.with_file_name(SERVED).join(below).join(OWN))
}

/// Creates the engine of a manifest for a client on standard input and output; `command` is used in hints.
///
/// # Errors
/// `Usage` if the manifest is invalid, or its permissions are not trusted.
pub(crate) async fn engine(
    file: &Path,
    command: &str,
    given: &[String],
) -> Result<Engine, Problem> {
    let resolved = create::resolve(file, Overrides::default())?;
    let command = format!(
        "adjutant {command} {}",
        plain::word(&file.to_string_lossy())
    );
    let store = TrustStore::for_user();
    // Standard input belongs to the client, so that the user cannot be asked.
    let consent = Consent {
        store: &store,
        given,
        command,
        option: "--trust",
    };
    consent.ask(&create::wants(&resolved)?)?;
    consent::warn(&resolved.manifest);
    let workspace = Workspace::at(kept(file)?);
    let credentials = Credentials::from_lookup(&resolved, |name| std::env::var(name).ok());
    let engine = Engine::builder(resolved)
        .workspace(workspace)
        .credentials(credentials)
        .trusted();
    engine
        .build()
        .await
        .map_err(|error| runtime_problem(&error))
}
