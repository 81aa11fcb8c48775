//! `adjutant trust`: lists the permissions that manifests, agents and exported agents request, and stores the user's
//! trust.

use std::{fs::File, io::Read, path::Path};

use adjutant::runtime::{
    Overrides, Wants, bundle,
    mcp::{FILE_NAME, McpFile},
};

use crate::{
    agent::{create, place::AgentFolder},
    args::Trust,
    consent::{self, Consent},
    exit::Exit,
    plain,
    problem::Problem,
    project::Project,
    screen::{tell, write},
    servers, taught,
    trouble::runtime_problem,
    up::made,
};

/// The bytes that exported agents begin with.
const BUNDLE: &[u8] = b"adjutant-agent ";

/// Lists the requested permissions, and trusts them if the user confirms.
pub(crate) fn trust(args: &Trust) -> Result<Exit, Problem> {
    let place = AgentFolder::new(
        &args.homed,
        if args.path.is_dir() {
            &args.path
        } else {
            Path::new(".")
        },
    );
    let command = place.command(&format!(
        "trust {}",
        plain::word(&args.path.to_string_lossy())
    ));
    let consent = Consent {
        store: &place.trusted,
        given: &args.yes,
        command,
        option: "--yes",
    };
    let found = found(&args.path, &place)?;
    if found.is_empty() {
        let text = format!(
            "there is no manifest here, and no agent: {}",
            args.path.display()
        );
        return Err(Problem::new(Exit::Usage, text));
    }
    for wants in &found {
        let digest = wants.digest();
        if consent
            .store
            .holds(digest)
            .map_err(|error| runtime_problem(&error))?
            && !wants.is_empty()
        {
            tell(&consent::listed(wants));
        }
        consent.ask(wants)?;
        let what = if wants.is_empty() {
            "wants nothing that must be trusted"
        } else {
            "is trusted"
        };
        write(&format!(
            "{} {what}: sha256:{digest}\n",
            plain::line(wants.name())
        ))?;
    }
    Ok(Exit::Finished)
}

/// Returns all requests at a path: of the manifests and agents of a directory, of an exported agent, or of a manifest.
fn found(path: &Path, place: &AgentFolder) -> Result<Vec<Wants>, Problem> {
    if path.is_dir() {
        let manifests = made::manifests(path)?;
        let mut all = manifests
            .iter()
            .map(|file| read_manifest_requests(file))
            .collect::<Result<Vec<_>, _>>()?;
        all.extend(read_server_requests(&path.join(FILE_NAME))?);
        all.extend(taught::project_wants(path)?);
        let project = Project::find(path);
        for (scope, plugin) in project.plugins().0 {
            if let Some(servers) = plugin.servers.filter(|_| scope == "project") {
                all.push(
                    servers
                        .wants_in(path)
                        .map_err(|error| runtime_problem(&error))?,
                );
            }
        }
        let agents = place.entries()?.all;
        for entry in &agents {
            all.push(Wants::from_agent(&entry.workspace).map_err(|error| runtime_problem(&error))?);
        }
        return Ok(all);
    }
    if path.extension().is_some_and(|end| end == "json")
        && let Some(wants) = read_server_requests(path)?
    {
        return Ok(vec![wants]);
    }
    let mut head = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BUNDLE.len() as u64).read_to_end(&mut head));
    match read {
        Ok(_) if head == BUNDLE => Ok(vec![
            bundle::inspect(path, &bundle::ImportOptions::new())
                .map_err(|error| runtime_problem(&error))?,
        ]),
        _ => Ok(vec![read_manifest_requests(path)?]),
    }
}

/// Returns the requests of the servers of a file, if it names any.
fn read_server_requests(file: &Path) -> Result<Option<Wants>, Problem> {
    let read = McpFile::read(file).map_err(|error| runtime_problem(&error))?;
    let Some(read) = read.filter(|read| !read.servers.is_empty() || !read.findings.is_empty())
    else {
        return Ok(None);
    };
    read.findings
        .iter()
        .for_each(|finding| tell(&format!("warning: {}", plain::line(finding))));
    // The user's own servers start in the current directory.
    let wants = match servers::usual().is_some_and(|usual| usual == file) {
        true => read.wants_in(Path::new(".")),
        false => read.wants(),
    };
    wants.map(Some).map_err(|error| runtime_problem(&error))
}

fn read_manifest_requests(file: &Path) -> Result<Wants, Problem> {
    create::wants(&create::resolve(file, Overrides::default())?)
}
