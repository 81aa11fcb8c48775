//! Validates the common parts: labels, stores, stored data, files and the environment.

use std::{collections::BTreeMap, path::Path};

use adjutant_agent::LogId;
use adjutant_orchestration::reflection::Redactor;

use super::{Check, form, model, shown};
use crate::manifest::{
    Manifest, SessionSpec, StoreKind,
    node::{At, Content, Node},
    path::Kind,
    problem::quoted,
    vars,
};

/// The maximum number of labels, and of variables.
const MAX_ENTRIES: usize = 128;
/// The maximum number of characters of a label's value.
const MAX_LABEL: usize = 256;
/// The maximum number of bytes of a variable's value.
const MAX_VALUE: usize = 32 << 10;
/// The maximum number of data files.
const MAX_DATA: usize = 256;
/// The maximum number of peers.
const MAX_PEERS: usize = 64;
/// Variables that the runtime sets itself.
const RESERVED: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];

pub(super) fn check(check: &mut Check<'_>, manifest: &mut Manifest, at: At<'_>) {
    labels(check, &manifest.labels, at.key("labels"));
    sessions(check, &manifest.sessions, at.key("sessions"));
    kept(check, manifest, at);
    data(check, manifest, at.key("data"));
    peers(check, manifest, at.key("peers"));
    environment(check, &manifest.environment, at.key("environment"));
    model::budget(check, &manifest.budget, at.key("budget"));
}

fn labels(check: &mut Check<'_>, labels: &BTreeMap<String, String>, at: At<'_>) {
    check.must(
        labels.len() <= MAX_ENTRIES,
        at,
        format!("there are more than {MAX_ENTRIES} labels"),
    );
    for (key, value) in labels {
        let message = format!(
            "the key of a label has 1 to 63 letters, digits, `_`, `-`, `.` and `/`, and not {}",
            quoted(key)
        );
        if !form::is_label(key) {
            check.problems.tell(at.name_of(key), message);
        }
        let is_value = value.is_empty() || form::is_line(value, MAX_LABEL);
        check.must(
            is_value,
            at.key(key),
            format!("the value of a label is one line of {MAX_LABEL} characters at most"),
        );
        secret(check, value, at.key(key));
    }
}

fn sessions(check: &mut Check<'_>, sessions: &SessionSpec, at: At<'_>) {
    if let Some(name) = &sessions.default_session {
        let is_name = form::is_line(name, usize::MAX) && LogId::from(&**name).check().is_ok();
        check.must(
            is_name,
            at.key("default_session"),
            format!("no session can be called {}", quoted(name)),
        );
    }
    let (store, at) = (&sessions.store, at.key("store"));
    if let Some(path) = &store.path {
        match store.kind {
            StoreKind::Sqlite | StoreKind::Jsonl => check.within(path, at.key("path")),
            StoreKind::Postgres => check.tell(
                at.key("path"),
                "a PostgreSQL database has a `url_variable` and no `path`",
            ),
            StoreKind::Memory => check.tell(at.key("path"), "what is kept in memory has no `path`"),
        }
    }
    match (&store.url_variable, store.kind) {
        (None, StoreKind::Postgres) => {
            let hint = "it names the variable of the environment that holds the address".to_owned();
            check.tell_hint(
                at,
                "`url_variable` is missing: a store of kind `postgres` needs it",
                hint,
            );
        }
        (Some(name), StoreKind::Postgres) => {
            let message = format!("no variable can be called {}", quoted(name));
            check.must(vars::is_variable(name), at.key("url_variable"), message);
        }
        (Some(_), _) => check.tell(
            at.key("url_variable"),
            "only a store of kind `postgres` has a `url_variable`",
        ),
        (None, _) => {}
    }
}

/// Memories, boards, notes and reflections need a store that has more than sessions.
fn kept(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) {
    if let Some(memory) = &manifest.memory {
        let at = at.key("memory");
        check.must(
            form::is_line(&memory.owner, 128),
            at.key("owner"),
            "`owner` is one line of 1 to 128 characters",
        );
        model::at_least_one(check, memory.limit.map(u64::from), at, "limit");
    }
    for (field, name) in [
        ("board", manifest.board.as_ref().map(|it| &it.name)),
        ("notes", manifest.notes.as_ref().map(|it| &it.name)),
    ] {
        name.into_iter()
            .for_each(|name| check.name(name, at.key(field), "name"));
    }
    let reflects = |(n, agent): (usize, &crate::manifest::AgentSpec)| {
        let on_kv = agent
            .reflections
            .as_ref()
            .is_some_and(|it| it.folder.is_none());
        on_kv.then(|| at.key("agents").item(n).name_of("reflections"))
    };
    let fields = [
        ("memory", manifest.memory.is_some()),
        ("board", manifest.board.is_some()),
        ("notes", manifest.notes.is_some()),
    ];
    let mut needs: Vec<_> = fields
        .iter()
        .filter(|(_, has)| *has)
        .map(|(field, _)| (*field, at.name_of(field)))
        .collect();
    needs.extend(
        manifest
            .agents
            .iter()
            .enumerate()
            .filter_map(reflects)
            .map(|mark| ("reflections", mark)),
    );
    for (field, mark) in needs {
        match manifest.sessions.store.kind {
            StoreKind::Jsonl => {
                let message = format!(
                    "a store of kind `jsonl` keeps sessions and no {field}: `sqlite` and `postgres` do"
                );
                check.problems.tell(mark, message);
            }
            StoreKind::Memory => {
                let message = format!(
                    "`{field}` is lost when the process ends: the store is of kind `memory`"
                );
                check.warn(mark, message);
            }
            StoreKind::Sqlite | StoreKind::Postgres => {}
        }
    }
}

fn peers(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) {
    check.must(
        manifest.peers.len() <= MAX_PEERS,
        at,
        format!("there are more than {MAX_PEERS} peers"),
    );
    check.differ(
        manifest
            .peers
            .iter()
            .enumerate()
            .map(|(n, it)| (&*it.name, at.item(n).key("name"))),
        "a peer",
    );
    for (n, peer) in manifest.peers.iter().enumerate() {
        let at = at.item(n);
        check.name(&peer.name, at, "name");
        let is_told = form::is_line(&peer.description, MAX_LABEL);
        check.must(
            is_told,
            at.key("description"),
            format!("`description` is one line of 1 to {MAX_LABEL} characters"),
        );
        if let Some(agent) = &peer.agent {
            check.name(agent, at, "agent");
            check.must(
                peer.address.is_none(),
                at.key("agent"),
                "a peer has an `agent` or an `address`, not both",
            );
        }
        if let Some(url) = &peer.a2a {
            let is_alone = peer.agent.is_none() && peer.address.is_none();
            check.must(
                is_alone,
                at.key("a2a"),
                "a peer has one of `agent`, `address` and `a2a`",
            );
            let rest = ["https://", "http://"]
                .into_iter()
                .find_map(|scheme| url.strip_prefix(scheme));
            let host = rest
                .and_then(|rest| rest.split(['/', '?', '#']).next())
                .unwrap_or_default();
            let is_address = !host.is_empty()
                && !host.contains('@')
                && !url.contains(|c: char| c.is_whitespace() || c.is_control());
            check.must(
                is_address,
                at.key("a2a"),
                "an agent is at an address as `https://agent.example.org`",
            );
            secret(check, url, at.key("a2a"));
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
            let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&name);
            let is_safe = url.starts_with("https://") || is_here || peer.token_variable.is_none();
            check.must(
                is_safe,
                at.key("token_variable"),
                "a token is sent over https alone, but on this machine",
            );
            let named = peer
                .token_variable
                .iter()
                .all(|name| vars::is_variable(name));
            check.must(
                named,
                at.key("token_variable"),
                "no variable can be called so",
            );
            continue;
        }
        match (&peer.address, &peer.token_variable) {
            (Some(address), token) => {
                let message = "agents listen on this machine alone, as at `127.0.0.1:7000`";
                check.must(address.ip().is_loopback(), at.key("address"), message);
                let hint =
                    "it names the variable of the environment that holds the token".to_owned();
                match token {
                    Some(name) => {
                        let message = format!("no variable can be called {}", quoted(name));
                        check.must(vars::is_variable(name), at.key("token_variable"), message);
                    }
                    None => check.tell_hint(
                        at,
                        "`token_variable` is missing: an `address` needs it",
                        hint,
                    ),
                }
            }
            (None, Some(_)) => check.tell(
                at.key("token_variable"),
                "only a peer with an `address` has a `token_variable`",
            ),
            (None, None) => {}
        }
    }
}

fn data(check: &mut Check<'_>, manifest: &mut Manifest, at: At<'_>) {
    check.must(
        manifest.data.len() <= MAX_DATA,
        at,
        format!("there are more than {MAX_DATA} files"),
    );
    let mut places = Vec::new();
    for (n, data) in manifest.data.iter_mut().enumerate() {
        let at = at.item(n);
        match &data.to {
            Some(to) => check.within(to, at.key("to")),
            // The name from the manifest is kept even if the file is a link.
            None => data.to = data.file.file_name().map(Into::into),
        }
        check.contained(&mut data.file, at.key("file"), Kind::Data);
        if let Some(description) = &data.description {
            check.must(
                form::is_line(description, 1_024),
                at.key("description"),
                "`description` is one line",
            );
        }
        let to: std::path::PathBuf = data
            .to
            .iter()
            .flat_map(|to| to.components())
            .filter(is_named)
            .collect();
        places.push((to, at));
    }
    for (n, (to, at)) in places.iter().enumerate() {
        let clash = places
            .iter()
            .take(n)
            .find(|(other, _)| other.starts_with(to) || to.starts_with(other));
        if let Some((other, _)) = clash.filter(|_| !to.as_os_str().is_empty()) {
            let message = match other == to {
                true => format!("a file is laid at {} already", shown(to)),
                false => format!(
                    "{} and {} are laid over each other",
                    shown(other),
                    shown(to)
                ),
            };
            check.tell(*at, message);
        }
    }
}

fn is_named(component: &std::path::Component<'_>) -> bool {
    AsRef::<Path>::as_ref(component) != Path::new(".")
}

/// Checks environment variables of tools: not set by the runtime, and no credentials.
pub(super) fn environment(check: &mut Check<'_>, variables: &BTreeMap<String, String>, at: At<'_>) {
    check.must(
        variables.len() <= MAX_ENTRIES,
        at,
        format!("there are more than {MAX_ENTRIES} variables"),
    );
    for (name, value) in variables {
        let mark = at.name_of(name);
        if !vars::is_variable(name) {
            check
                .problems
                .tell(mark, format!("no variable can be called {}", quoted(name)));
        } else if RESERVED.contains(&name.as_str()) || name.starts_with("ADJUTANT_") {
            check
                .problems
                .tell(mark, format!("the variable {name} is set by the runtime"));
        } else if vars::is_credential(name) {
            let message =
                format!("tools get no credentials, and the variable {name} is called as one");
            check.problems.tell(mark, message);
        }
        let is_value = value.len() <= MAX_VALUE && !value.contains('\0');
        check.must(
            is_value,
            at.key(name),
            format!("the value of a variable has {MAX_VALUE} bytes at most and no zero byte"),
        );
        secret(check, value, at.key(name));
    }
}

/// Warns about texts that look like credentials; in prose, they may be something else.
pub(super) fn secrets(check: &mut Check<'_>, node: &Node) {
    match &node.content {
        Content::Scalar(scalar) => {
            if Redactor::new().redact(&scalar.text) != scalar.text {
                check.warn(
                    &node.mark,
                    "this looks like a credential, and a manifest is printed, copied and kept",
                );
            }
        }
        Content::List(items) => items.iter().for_each(|item| secrets(check, item)),
        Content::Map(map) => map
            .entries
            .iter()
            .for_each(|(_, value)| secrets(check, value)),
    }
}

/// Refuses a value that looks like a key or a token, because a manifest is printed, copied and stored.
pub(super) fn secret(check: &mut Check<'_>, value: &str, at: At<'_>) {
    if Redactor::new().redact(value) != value {
        let hint = "name a variable of the environment instead".to_owned();
        check.tell_hint(
            at,
            "this looks like a credential, and a manifest holds none",
            hint,
        );
    }
}
