//! Adds servers to `.mcp.json` or the user's own file, and removes them.

use std::{env, fs, path::PathBuf};

use adjutant::{
    mcp::Access,
    runtime::{
        TrustStore,
        manifest::{SandboxSpec, ServerSpec},
        mcp::{FILE_NAME, McpFile, ServerPlace},
    },
};
use serde_json::{Value, json};

use crate::{
    args::{AddServer, OfFile, RemoveServer},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    servers::{place, usual},
    trouble::runtime_problem,
};

/// Adds a server.
pub(super) fn add(args: &AddServer) -> Result<Exit, Problem> {
    let file = file(&args.place)?;
    let spec = spec(args)?;
    let was_trusted = is_trusted(&file);
    McpFile::add(&file, &args.name, &spec).map_err(|error| {
        let problem = runtime_problem(&error);
        match error.kind() {
            adjutant::runtime::ErrorKind::Exists => problem.hint(format!(
                "`adjutant mcp remove {}` first",
                plain::word(&args.name)
            )),
            _ => problem,
        }
    })?;
    let text = format!(
        "added {} to {}\n",
        plain::line(&args.name),
        plain::line(&file.to_string_lossy())
    );
    // The user who adds a server trusts it; an earlier untrusted content stays untrusted.
    let read = McpFile::read(&file).map_err(|error| runtime_problem(&error))?;
    if let (Some(read), true, false) = (&read, was_trusted, args.place.user) {
        let wants = read.wants().map_err(|error| runtime_problem(&error))?;
        TrustStore::for_user()
            .trust(&wants)
            .map_err(|error| runtime_problem(&error))?;
    }
    write(&text)?;
    if let Some((_, spec)) = read
        .iter()
        .flat_map(|read| &read.servers)
        .find(|(name, _)| **name == *args.name)
    {
        told(spec, place(&args.place.root).as_ref())
            .iter()
            .for_each(|line| tell(line));
        let made = place(&args.place.root)
            .map(|place| place.server(&args.name, spec, |name| env::var(name).ok()));
        if let Some(Err(error)) = made {
            tell(&format!(
                "warning: as it is now it cannot be used: {}",
                runtime_problem(&error).line()
            ));
        }
    }
    let asked = args
        .url
        .iter()
        .filter_map(|url| url.split_once('?'))
        .flat_map(|(_, asked)| asked.split(['&', '#']));
    let asked: Vec<_> = asked
        .filter_map(|pair| pair.split_once('='))
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    let literal = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .any(|(name, value)| is_secret(name) && !value.contains("${"))
    };
    if !args.place.user
        && [&args.env, &args.headers, &asked]
            .into_iter()
            .any(|pairs| literal(pairs))
    {
        tell(
            "warning: a credential stands in the file, which others may read; hint: '${NAME}' in its place takes it from the environment",
        );
    }
    tell(&format!(
        "`adjutant mcp test {}` tries it",
        plain::word(&args.name)
    ));
    Ok(Exit::Finished)
}

/// Removes a server.
pub(super) fn remove(args: &RemoveServer) -> Result<Exit, Problem> {
    let file = file(&args.place)?;
    let was_trusted = is_trusted(&file);
    McpFile::remove(&file, &args.name)
        .map_err(|error| runtime_problem(&error).hint("`adjutant mcp list` shows them"))?;
    if let Ok(Some(read)) = McpFile::read(&file)
        && was_trusted
    {
        let wants = read.wants().map_err(|error| runtime_problem(&error))?;
        TrustStore::for_user()
            .trust(&wants)
            .map_err(|error| runtime_problem(&error))?;
    }
    write(&format!(
        "removed {} from {}\n",
        plain::line(&args.name),
        plain::line(&file.to_string_lossy())
    ))?;
    Ok(Exit::Finished)
}

fn file(place: &OfFile) -> Result<PathBuf, Problem> {
    let none = || {
        Problem::new(
            Exit::Usage,
            "there is no place for the user's own servers: HOME is not set",
        )
    };
    let file = if place.user {
        usual().ok_or_else(none)?
    } else {
        place.root.join(FILE_NAME)
    };
    if place.user
        && let Some(folder) = file.parent()
    {
        let made = fs::create_dir_all(folder);
        made.map_err(|error| {
            Problem::new(
                Exit::Failed,
                format!("cannot make the folder {}", folder.display()),
            )
            .cause(&error)
        })?;
    }
    Ok(file)
}

/// Returns the JSON object of a server.
fn spec(args: &AddServer) -> Result<Value, Problem> {
    let mut spec = ServerSpec::default();
    let mut words = args.command.iter();
    spec.command = words.next().map(PathBuf::from);
    spec.args = words.map(|word| word.as_str().into()).collect();
    spec.url = args.url.as_deref().map(Into::into);
    (spec.env, spec.headers) = (
        args.env.iter().cloned().collect(),
        args.headers.iter().cloned().collect(),
    );
    spec.trusted = args.trusted;
    let wrong = |error| Problem::new(Exit::Usage, "the server cannot be written").cause(&error);
    let mut value = serde_json::to_value(&spec).map_err(wrong)?;
    if args.no_network || !args.read.is_empty() || !args.write.is_empty() {
        // All permissions are explicit, because a program has network access by default.
        value["sandbox"] = json!({ "read": real(&args.read)?, "write": real(&args.write)?, "network": !args.no_network });
    }
    Ok(value)
}

/// Returns the real paths of existing files and directories.
fn real(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let each = paths.iter().map(|path| {
        let wrong = |error| {
            Problem::new(Exit::Usage, format!("there is no {}", path.display())).cause(&error)
        };
        path.canonicalize().map_err(wrong)
    });
    each.collect()
}

/// Describes the permissions of a program to the user who adds it.
fn told(spec: &ServerSpec, place: Option<&ServerPlace>) -> Vec<String> {
    if spec.command.is_none() {
        return Vec::new();
    }
    let shown = |paths: &[PathBuf]| {
        paths
            .iter()
            .map(|path| plain::line(&path.to_string_lossy()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let SandboxSpec {
        read,
        write,
        network,
        ..
    } = &spec.sandbox;
    let reads = place.is_some_and(|place| place.reads_only(spec));
    let mut can = vec![
        if reads {
            "reads its directory"
        } else {
            "changes its directory"
        }
        .to_owned(),
    ];
    can.extend((!write.is_empty()).then(|| format!("changes {}", shown(write))));
    can.extend((!read.is_empty()).then(|| format!("reads {}", shown(read))));
    can.push(
        if *network {
            "has the network"
        } else {
            "has no network"
        }
        .to_owned(),
    );
    let mut told = vec![format!("in its sandbox it {}", can.join(", "))];
    if place.is_some_and(|place| place.access == Access::Read) && !spec.sandbox.danger_without_any {
        let hint = "hint: install bubblewrap (`bwrap`)";
        told.push(match reads {
            true => format!("nothing here can keep .git and AGENTS.md in a directory that it changes; {hint}, or add it with `--write .`"),
            false => format!("warning: nothing here keeps .git and AGENTS.md in a directory that it changes; {hint}"),
        });
    }
    told
}

/// True if the file does not exist yet, or its content is trusted.
fn is_trusted(file: &std::path::Path) -> bool {
    match McpFile::read(file) {
        Ok(None) => true,
        Ok(Some(read)) if read.servers.is_empty() => true,
        Ok(Some(read)) => read.wants().is_ok_and(|wants| {
            TrustStore::for_user()
                .holds(wants.digest())
                .unwrap_or_default()
        }),
        Err(_) => false,
    }
}

/// True if the name of a variable or header indicates a credential.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "AUTHORIZATION",
        "COOKIE",
    ]
    .iter()
    .any(|word| name.contains(word))
}
