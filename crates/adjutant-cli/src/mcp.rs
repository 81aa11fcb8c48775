//! `adjutant mcp`: lists, adds, removes and tests MCP servers, signs in to them, and serves a manifest. `adjutant acp`
//! serves editors.

pub(crate) mod acp;
mod acp_list;
mod change;
mod serve;

use std::time::Duration;

use adjutant::{
    mcp::{ErrorKind, Transport},
    runtime::mcp::login_options,
    tools::{ToolHints, ToolSpec},
};
use serde_json::{Value, json};

use crate::{
    args,
    consent::Trusting,
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    servers::{FoundServer, LookedAt, Servers, look, place, usage},
    work::work,
};

/// The time for the servers of a list to answer, in addition to their own timeouts.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of bytes at the end of a server's error output that are printed.
const MAX_SAID: usize = 4 << 10;

/// Runs the subcommand.
pub(crate) fn mcp(command: args::Mcp) -> Result<Exit, Problem> {
    match command {
        args::Mcp::List(args) => work(list(args)),
        args::Mcp::Add(args) => change::add(&args),
        args::Mcp::Remove(args) => change::remove(&args),
        args::Mcp::Test(args) => work(test(args)),
        args::Mcp::Login(args) => work(login(args)),
        args::Mcp::Serve(args) => work(serve::serve(args)),
    }
}

fn find(whose: &args::OfServers, otherwise: Trusting) -> Result<Servers, Problem> {
    let servers = Servers::find(
        &whose.root,
        if whose.trust {
            Trusting::Given
        } else {
            otherwise
        },
    )?;
    servers.told.iter().for_each(|line| tell(line));
    Ok(servers)
}

async fn list(args: args::ListServers) -> Result<Exit, Problem> {
    let servers = find(&args.whose, Trusting::Before)?;
    if servers.all.is_empty() {
        if servers.told.is_empty() {
            tell(
                "there is no server in .mcp.json, nor in the settings of the user; `adjutant mcp add` adds one",
            );
        }
        return Ok(Exit::Finished);
    }
    let looks = servers.all.iter().map(|it| async move {
        match &it.server {
            Some(server) => tokio::time::timeout(PATIENCE, look(server)).await.ok(),
            None => None,
        }
    });
    let seen = futures_util::future::join_all(looks).await;
    let rows: Vec<[String; 6]> = servers
        .all
        .iter()
        .zip(&seen)
        .map(|(it, seen)| row(it, seen.as_ref()))
        .collect();
    let text: String = match args.json {
        true => servers
            .all
            .iter()
            .zip(&seen)
            .map(|(it, seen)| plain::json_line(json_of(it, seen.as_ref())))
            .collect(),
        false => {
            let width = |at: usize| {
                rows.iter()
                    .map(|row| row[at].chars().count())
                    .max()
                    .unwrap_or_default()
            };
            let widths: [usize; 5] = std::array::from_fn(width);
            let line = |row: &[String; 6]| {
                let cells: String = row
                    .iter()
                    .zip(widths)
                    .map(|(cell, width)| format!("{cell:<width$}  "))
                    .collect();
                format!("{cells}{}\n", row[5])
            };
            rows.iter().map(line).collect()
        }
    };
    write(&text)?;
    for (it, seen) in servers.all.iter().zip(&seen) {
        if let Some(Err(error)) = seen.as_ref().map(|seen| &seen.about) {
            tell(&format!(
                "mcp: {}: {}",
                it.name,
                plain::line(&error.message)
            ));
        }
    }
    Ok(Exit::Finished)
}

/// Returns the columns: name, owner, state, revision, tools, address.
fn row(it: &FoundServer, seen: Option<&LookedAt>) -> [String; 6] {
    let state = match (seen, &it.why) {
        (Some(seen), _) => seen.state().to_owned(),
        (None, Some(why)) if why == "untrusted" => why.clone(),
        (None, _) => "not used".to_owned(),
    };
    let (revision, tools) = match seen {
        Some(seen) if seen.about.is_ok() => (
            seen.revision().to_owned(),
            format!("{} tools", seen.count()),
        ),
        _ => ("-".to_owned(), "-".to_owned()),
    };
    [
        plain::line(&it.name),
        it.scope.to_owned(),
        state,
        revision,
        tools,
        plain::line(&way(it)),
    ]
}

/// Returns the command or the address of a server, with the names of its variables.
fn way(it: &FoundServer) -> String {
    let words = it
        .spec
        .command
        .iter()
        .map(|command| command.to_string_lossy().into_owned());
    let words: Vec<String> = words
        .chain(it.spec.args.iter().map(|word| word.to_string()))
        .collect();
    // The query of a URL may contain a key.
    let url = it
        .spec
        .url
        .as_deref()
        .map(|url| url.split(['?', '#']).next().unwrap_or_default().to_owned());
    url.unwrap_or_else(|| {
        words
            .iter()
            .map(|word| plain::word(word))
            .collect::<Vec<_>>()
            .join(" ")
    })
}

/// Format: one JSON object per line.
fn json_of(it: &FoundServer, seen: Option<&LookedAt>) -> Value {
    let [_, scope, state, ..] = row(it, seen);
    json!({
        "server": &*it.name,
        "scope": scope,
        "state": state,
        "why": it.why,
        "way": way(it),
        "revision": seen.and_then(|seen| seen.about.as_ref().ok()).map(|about| &*about.revision),
        "tools": seen.filter(|seen| seen.about.is_ok()).map(LookedAt::count),
    })
}

async fn test(args: args::TestServer) -> Result<Exit, Problem> {
    let servers = find(&args.whose, Trusting::Asked)?;
    let (found, server) = servers.one(&args.name)?;
    let seen = look(server).await;
    let about = match &seen.about {
        Ok(about) => about,
        Err(error) => {
            // The following lines contain the last output of the program.
            let problem = match error.message.split_once('\n') {
                Some((why, said)) => {
                    tell(&said[said.ceil_char_boundary(said.len().saturating_sub(MAX_SAID))..]);
                    Problem::new(Exit::Failed, why)
                }
                None => Problem::from_error(Exit::Failed, error),
            };
            return Err(match error.kind {
                ErrorKind::Unauthorised => {
                    problem.hint(format!("`adjutant mcp login {}`", plain::word(&args.name)))
                }
                _ => problem,
            });
        }
    };
    let prompts = server.prompts().await.unwrap_or_default();
    let warnings: Vec<&str> = seen
        .tools
        .warnings()
        .iter()
        .map(|warning| &*warning.message)
        .collect();
    if args.json {
        let mut value = json_of(found, Some(&seen));
        value["tools"] = seen
            .tools
            .iter()
            .map(|tool| tool_json(tool.spec()))
            .collect();
        value["prompts"] = prompts
            .iter()
            .map(|it| json!({"name": &*it.name, "description": &*it.description}))
            .collect();
        value["resources"] = about.has_resources.into();
        value["warnings"] = json!(warnings);
        write(&plain::json_line(value))?;
        return Ok(Exit::Finished);
    }
    let line = |what: &str, text: &str| format!("{what:<10}{}\n", plain::line(text));
    let mut text = line("server", &format!("{} {}", about.name, about.version));
    text += &line("revision", &about.revision);
    text += &line("way", &way(found));
    text += &line(
        "resources",
        if about.has_resources { "yes" } else { "none" },
    );
    text += &line("tools", &seen.count().to_string());
    for tool in seen.tools.iter() {
        let spec = tool.spec();
        let about = spec.decl.description.lines().next().unwrap_or_default();
        let about = about.split_once(". ").map_or(about, |(first, _)| first);
        text += &format!(
            "  {}{}: {}\n",
            spec.name(),
            hints(&spec.hints),
            plain::line(about)
        );
    }
    prompts
        .iter()
        .for_each(|it| text += &line("prompt", &usage(&found.name, it)));
    write(&text)?;
    warnings
        .iter()
        .for_each(|warning| tell(&plain::line(warning)));
    Ok(Exit::Finished)
}

/// Formats the declared hints of a tool.
fn hints(hints: &ToolHints) -> String {
    let said = [
        (hints.reads_only == Some(true), "only reads"),
        (hints.destructive == Some(true), "may destroy"),
        (hints.idempotent == Some(true), "may be repeated"),
        (hints.open_world == Some(true), "reaches the world"),
    ];
    let said: Vec<&str> = said.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    if said.is_empty() {
        String::new()
    } else {
        format!(" ({})", said.join(", "))
    }
}

fn tool_json(spec: &ToolSpec) -> Value {
    let ToolHints {
        reads_only,
        destructive,
        idempotent,
        open_world,
        ..
    } = spec.hints;
    json!({
        "name": spec.name().as_str(),
        "title": spec.title,
        "description": &*spec.decl.description,
        "reads_only": reads_only,
        "destructive": destructive,
        "idempotent": idempotent,
        "open_world": open_world,
    })
}

async fn login(args: args::Login) -> Result<Exit, Problem> {
    let servers = find(&args.whose, Trusting::Asked)?;
    let (found, _) = servers.one(&args.name)?;
    let lookup = |name: &str| std::env::var(name).ok();
    let place = place(&args.whose.root).ok_or_else(|| {
        Problem::new(Exit::Usage, "there is no place for tokens: HOME is not set")
    })?;
    let config = place
        .config(&args.name, &found.spec, lookup)
        .map_err(|error| Problem::from_error(Exit::Usage, &error))?;
    let Transport::Http(http) = config.transport else {
        let problem = Problem::new(
            Exit::Usage,
            format!("the server {} is a program", args.name),
        );
        return Err(problem.hint("only servers at an address are signed in to"));
    };
    let mut options = login_options(&found.spec.auth, lookup);
    options.scopes.extend(args.scope);
    let failed = |error: adjutant::mcp::Error| Problem::from_error(Exit::Failed, &error);
    let login = adjutant::mcp::Login::begin(&args.name, &http, options)
        .await
        .map_err(failed)?;
    tell(&format!(
        "open this address in a browser of this machine, and sign in:\n{}",
        plain::line(login.url())
    ));
    tell("waiting for the browser to come back; Ctrl-C ends it");
    login.finish().await.map_err(failed)?;
    write(&format!("signed in to {}\n", plain::line(&args.name)))?;
    Ok(Exit::Finished)
}
