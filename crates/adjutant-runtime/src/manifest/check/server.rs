//! Servers of the Model Context Protocol.

use adjutant_toolkit::Rules;

use super::{Check, form, model, place, shown, tool};
use crate::manifest::{
    AuthSpec, Manifest, ServerSpec, TOOLBOXES,
    node::At,
    path,
    problem::{Problem, quoted},
    vars,
};

/// The maximum number of servers, and of arguments, variables, headers and tools of one server.
const MAX_SERVERS: usize = 64;
const MAX_ENTRIES: usize = 128;
/// The maximum number of bytes of a name, which is the prefix of its tools.
const MAX_NAME: usize = 32;
/// Variables that the runtime sets itself.
const RESERVED: [&str; 3] = ["HOME", "TMPDIR", "LANG"];

pub(super) fn check(check: &mut Check<'_>, manifest: &mut Manifest, at: At<'_>) {
    let (at, mut servers) = (
        at.key("mcp").key("servers"),
        std::mem::take(&mut manifest.mcp.servers),
    );
    check.must(
        servers.len() <= MAX_SERVERS,
        at,
        format!("there are more than {MAX_SERVERS} servers"),
    );
    for (name, spec) in &mut servers {
        let mark = at.name_of(name);
        let taken = TOOLBOXES.contains(&&**name) || check.around.parts.toolboxes.contains(&**name);
        if !form::is_name(name) || name.len() > MAX_NAME {
            let message = format!(
                "the name of a server has 1 to {MAX_NAME} letters, digits, `_` and `-`, and not {}",
                quoted(name)
            );
            check.problems.tell(mark, message);
        } else if taken {
            let message = format!(
                "a toolbox has this name already, and agents have servers as toolboxes: {name}"
            );
            check.problems.tell(mark, message);
        }
        let prefix = spec
            .prefix
            .clone()
            .unwrap_or_else(|| format!("{name}_").into());
        if Rules::knows_prefix(&prefix) {
            let message = format!(
                "rules would take its tools for others: their names begin with {}",
                quoted(&prefix)
            );
            check
                .problems
                .push(Problem::new(mark, message).hint("give it a `prefix`, as `my_`".to_owned()));
        }
        one(check, spec, at.key(name));
        let has =
            |agent: &crate::manifest::AgentSpec| agent.toolboxes.iter().any(|it| it.name() == name);
        if !manifest.agents.iter().any(has) {
            check.warn(
                mark,
                format!(
                    "no agent has the server {} among its `toolboxes`",
                    quoted(name)
                ),
            );
        }
    }
    manifest.mcp.servers = servers;
}

fn one(check: &mut Check<'_>, spec: &mut ServerSpec, at: At<'_>) {
    let of_program = [
        ("args", !spec.args.is_empty()),
        ("env", !spec.env.is_empty()),
        ("cwd", spec.cwd.is_some()),
        ("sandbox", spec.sandbox != Default::default()),
        ("sha256", spec.sha256.is_some()),
    ];
    let of_address = [
        ("headers", !spec.headers.is_empty()),
        ("auth", spec.auth != Default::default()),
    ];
    let strays: Vec<&str> = match (&spec.command, &spec.url) {
        (Some(_), Some(_)) => {
            check.tell(
                at.key("url"),
                "a server has a `command` or a `url`, not both",
            );
            Vec::new()
        }
        (None, None) if at.is_spoiled("command") || at.is_spoiled("url") => Vec::new(),
        (None, None) => {
            check.tell(at, "a server has a `command` that starts it, or a `url`");
            Vec::new()
        }
        (Some(_), None) => of_address.iter().filter(|it| it.1).map(|it| it.0).collect(),
        (None, Some(_)) => of_program.iter().filter(|it| it.1).map(|it| it.0).collect(),
    };
    for field in strays {
        let other = if spec.url.is_some() { "command" } else { "url" };
        check.tell(
            at.key(field),
            format!("only a server with a `{other}` has `{field}`"),
        );
    }
    program(check, spec, at);
    address(check, spec, at);
    auth(check, &spec.auth, at.key("auth"));
    let lists = [
        spec.args.len(),
        spec.env.len(),
        spec.headers.len(),
        spec.tools.as_ref().map_or(0, Vec::len),
    ];
    let is_short = lists.into_iter().all(|length| length <= MAX_ENTRIES);
    check.must(
        is_short,
        at,
        format!("`args`, `env`, `headers` and `tools` have {MAX_ENTRIES} entries at most"),
    );
    if let Some(prefix) = &spec.prefix {
        let is_prefix = form::is_name(prefix) && prefix.len() <= 32;
        check.must(
            is_prefix,
            at.key("prefix"),
            "a prefix has 1 to 32 letters, digits, `_` and `-`",
        );
    }
    let has_tools = spec.tools.as_ref().is_none_or(|tools| !tools.is_empty());
    check.must(has_tools, at.key("tools"), "a server without tools is none");
    model::time(check, spec.timeout, at, "timeout");
}

/// Checks the program, with its arguments and environment.
fn program(check: &mut Check<'_>, spec: &mut ServerSpec, at: At<'_>) {
    let is_known = spec.program().is_some();
    if let Some(command) = spec.command.as_mut() {
        if is_known {
            tool::binary(check, command, at.key("command"));
        } else {
            variables(check, &command.to_string_lossy(), at.key("command"));
        }
    }
    for (n, word) in spec.args.iter().enumerate() {
        let at = at.key("args").item(n);
        check.must(
            !word.contains('\0'),
            at,
            "a word of a command holds no zero byte",
        );
        place::secret(check, word, at);
        variables(check, word, at);
    }
    for (name, value) in &spec.env {
        let (mark, at) = (at.key("env").name_of(name), at.key("env").key(name));
        if !vars::is_variable(name) {
            check
                .problems
                .tell(mark, format!("no variable can be called {}", quoted(name)));
        } else if RESERVED.contains(&name.as_str()) || name.starts_with("ADJUTANT_") {
            check
                .problems
                .tell(mark, format!("the variable {name} is set by the runtime"));
        }
        check.must(
            !value.contains('\0'),
            at,
            "the value of a variable holds no zero byte",
        );
        credential(check, vars::is_credential(name), value, at);
    }
    match spec.cwd.as_mut() {
        Some(cwd) if vars::has_any(&cwd.to_string_lossy()) => {
            variables(check, &cwd.to_string_lossy(), at.key("cwd"))
        }
        Some(cwd) => match path::reached(&at.key("cwd").mark.source.folder, cwd) {
            Ok(real) if real.is_dir() => *cwd = real,
            Ok(_) => check.tell(at.key("cwd"), format!("{}: it is no folder", shown(cwd))),
            Err(message) => check.tell(at.key("cwd"), format!("{}: {message}", shown(cwd))),
        },
        None => {}
    }
    let is_digest = spec.sha256.as_deref().is_none_or(form::is_sha256);
    check.must(
        is_digest,
        at.key("sha256"),
        "`sha256` is 64 lowercase hexadecimal digits",
    );
    let is_pinned = spec.sha256.is_none() || is_known || spec.command.is_none();
    check.must(
        is_pinned,
        at.key("sha256"),
        "a program that a variable names cannot be pinned",
    );
    tool::sandbox(check, &mut spec.sandbox, at.key("sandbox"));
}

/// Checks the address, with its headers.
fn address(check: &mut Check<'_>, spec: &ServerSpec, at: At<'_>) {
    if let Some(url) = &spec.url {
        let at = at.key("url");
        variables(check, url, at);
        let (url, is_open) = (url.trim(), vars::has_any(url));
        let rest = ["https://", "http://"]
            .into_iter()
            .find_map(|scheme| url.strip_prefix(scheme));
        let is_blank = url.contains(|c: char| c.is_whitespace() || c.is_control());
        match rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default()) {
            Some(host) if !is_blank && !host.is_empty() && !host.contains('@') => {}
            _ if is_open && rest.is_none() => {}
            Some(host) if host.contains('@') => {
                let hint = "send it in `headers`, as `Bearer ${NAME}`".to_owned();
                check.tell_hint(at, "an address holds no name and no password", hint);
            }
            _ => check.tell(
                at,
                "an address of a server is as `https://mcp.example.org/mcp`",
            ),
        }
        place::secret(check, url, at);
    }
    for (name, value) in &spec.headers {
        let at = at.key("headers").key(name);
        if !form::is_header(name) || value.contains(|c: char| c.is_control()) {
            check.tell(at, format!("no header can be {}", quoted(name)));
        }
        credential(check, form::is_secret_header(name), value, at);
    }
}

/// Checks the source of its tokens.
fn auth(check: &mut Check<'_>, auth: &AuthSpec, at: At<'_>) {
    let is_command = auth
        .token_command
        .first()
        .is_none_or(|word| !word.trim().is_empty());
    check.must(
        is_command,
        at.key("token_command"),
        "`token_command` names no program",
    );
    auth.token_command
        .iter()
        .enumerate()
        .for_each(|(n, it)| place::secret(check, it, at.key("token_command").item(n)));
    if let Some(name) = &auth.client_secret_variable {
        let message = format!("no variable can be called {}", quoted(name));
        check.must(
            vars::is_variable(name),
            at.key("client_secret_variable"),
            message,
        );
    }
    for (n, scope) in auth.scopes.iter().enumerate() {
        let is_scope = form::is_line(scope, 256) && !scope.contains(' ');
        check.must(is_scope, at.key("scopes").item(n), "a scope is one word");
    }
}

/// Requires a variable for a value with the name of a credential.
fn credential(check: &mut Check<'_>, is_secret: bool, value: &str, at: At<'_>) {
    variables(check, value, at);
    if is_secret && !vars::has_any(value) && !value.is_empty() {
        let hint = "name the variable of the environment that holds it, as `${NAME}`".to_owned();
        check.tell_hint(
            at,
            "this is a credential as its name tells, and a manifest holds none",
            hint,
        );
    } else {
        place::secret(check, value, at);
    }
}

/// Checks the syntax of variables; their values are inserted later.
fn variables(check: &mut Check<'_>, text: &str, at: At<'_>) {
    if let Err((message, hint)) = vars::names(text) {
        check
            .problems
            .push(Problem::new(at.mark, message).hint(hint));
    }
}
