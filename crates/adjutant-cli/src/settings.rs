//! The settings of the user and of a directory: `settings.yaml`.

use std::{
    env,
    path::{Path, PathBuf},
};

use adjutant::{
    skills::yaml::{self, Budget, Content, Node},
    toolkit::{CommandLimits, Network, Sandbox},
};

use crate::{
    args::{How, SandboxKind, limit, network},
    exit::Exit,
    file, plain,
    problem::Problem,
};

/// The settings of a directory.
const PROJECT: &str = ".adjutant/settings.yaml";
/// The fields of `sandbox`.
const FIELDS: &str = "network, read, write, env and limits";

/// The permissions of commands beyond the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SandboxSettings {
    /// The kind of the sandbox.
    pub(crate) kind: SandboxKind,
    /// The network; `None` if it is not set.
    pub(crate) network: Option<Network>,
    /// Files and directories that commands may read.
    pub(crate) read: Vec<PathBuf>,
    /// Files and directories that commands may change.
    pub(crate) write: Vec<PathBuf>,
    /// Names of variables that are passed to commands.
    pub(crate) env: Vec<String>,
    /// Ports of commands that are opened on this machine; only the command line names them.
    pub(crate) publish: Vec<u16>,
    /// Limits of each command as `NAME=VALUE`; earlier ones take precedence.
    pub(crate) limits: Vec<String>,
    /// Warnings, one line each.
    pub(crate) told: Vec<String>,
}

impl SandboxSettings {
    /// Returns the settings of the command line, the user and the directory. An untrusted directory can only restrict
    /// them.
    ///
    /// # Errors
    /// `Usage` if a file is invalid, or names a file that does not exist.
    pub(crate) fn find(how: &How, root: &Path) -> Result<Self, Problem> {
        let mut all = Self {
            kind: how.sandbox.kind,
            network: how.sandbox.network.clone(),
            read: how.sandbox.allow_read.clone(),
            write: how.sandbox.allow_write.clone(),
            env: how.sandbox.env.clone(),
            publish: how.sandbox.publish.clone(),
            // The last option counts.
            limits: how.sandbox.limit.iter().rev().cloned().collect(),
            told: Vec::new(),
        };
        let user = folder().map(|folder| folder.join("settings.yaml"));
        if let Some(file) = user.filter(|file| file.is_file()) {
            let own = read(&file)?;
            all.network = all.network.or(own.network);
            all.read.extend(own.read);
            all.write.extend(own.write);
            all.env.extend(own.env);
            all.limits.extend(own.limits);
        }
        let file = root.join(PROJECT);
        if file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            let theirs = read(&file)?;
            if how.taught.trust {
                all.network = all.network.or(theirs.network);
                all.read.extend(theirs.read);
                all.write.extend(theirs.write);
                all.env.extend(theirs.env);
                all.limits.extend(theirs.limits);
            } else {
                let widens = !(theirs.read.is_empty()
                    && theirs.write.is_empty()
                    && theirs.env.is_empty()
                    && theirs.limits.is_empty());
                match theirs.network {
                    Some(Network::None) => all.network = Some(Network::None),
                    None if !widens => {}
                    _ => all.told.push(format!(
                        "sandbox: {PROJECT}: warning: no one trusts what it allows: not used; hint: read it, then say --trust"
                    )),
                }
            }
        }
        for path in all.read.iter().chain(&all.write) {
            if !path.exists() {
                let text = format!(
                    "the sandbox cannot open what does not exist: {}",
                    path.display()
                );
                return Err(Problem::new(Exit::Usage, text));
            }
        }
        Ok(all)
    }

    /// Returns the network of commands.
    pub(crate) fn network(&self) -> Network {
        self.network.clone().unwrap_or_default()
    }

    /// Returns the sandbox with these settings.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let sandbox = self.kind.sandbox(self.network());
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let sandbox = self.read.iter().map(real).fold(sandbox, Sandbox::read);
        let mut limits = CommandLimits::default();
        for limit in self.limits.iter().rev() {
            // It was checked when it was read.
            let _ = limits.set(limit);
        }
        let sandbox = sandbox.limits(limits);
        self.write.iter().map(real).fold(sandbox, Sandbox::write)
    }
}

/// Returns the directory of the user's own settings.
pub(crate) fn folder() -> Option<PathBuf> {
    let of = |variable: &str| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let settings = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")));
    settings.map(|folder| folder.join("adjutant"))
}

/// Reads a settings file; relative paths are relative to its directory, and `~` is the home directory.
fn read(file: &Path) -> Result<SandboxSettings, Problem> {
    let text = file::text(file, "the settings")?;
    let folder = file.parent().unwrap_or(Path::new("."));
    parse(&text, folder).map_err(|why| {
        let name = plain::line(&file.to_string_lossy());
        Problem::new(Exit::Usage, format!("{name}: {why}"))
    })
}

fn parse(text: &str, folder: &Path) -> Result<SandboxSettings, String> {
    let root = yaml::read(text, BUDGET).map_err(|wrong| wrong.to_string())?;
    let mut settings = SandboxSettings::default();
    for (key, value) in fields(&root, "the settings")? {
        if key != "sandbox" {
            return Err(format!(
                "there is no field `{key}`; hint: there is `sandbox`"
            ));
        }
        for (key, value) in fields(value, "`sandbox`")? {
            let path = |text: String| {
                let home = text.strip_prefix("~/").zip(std::env::home_dir());
                match home {
                    Some((below, home)) => home.join(below),
                    None => folder.join(text),
                }
            };
            match key {
                "network" => {
                    let network = list(value, key)?.join(",");
                    settings.network = Some(self::network(&network)?);
                }
                "read" => settings.read = list(value, key)?.into_iter().map(path).collect(),
                "write" => settings.write = list(value, key)?.into_iter().map(path).collect(),
                "env" => settings.env = list(value, key)?,
                "limits" => {
                    for (name, value) in fields(value, "`limits`")? {
                        let value = list(value, name)?.join(",");
                        settings.limits.push(limit(&format!("{name}={value}"))?);
                    }
                }
                _ => {
                    return Err(format!(
                        "`sandbox` has no field `{key}`; hint: there are {FIELDS}"
                    ));
                }
            }
        }
    }
    Ok(settings)
}

/// The limits of a settings file.
const BUDGET: Budget = Budget {
    nodes: 2_000,
    depth: 8,
    anchors: 0,
    aliases: 0,
};

fn fields<'n>(node: &'n Node, what: &str) -> Result<Vec<(&'n str, &'n Node)>, String> {
    match &node.content {
        Content::Map(fields) => Ok(fields
            .iter()
            .map(|(key, value)| (key.text.as_str(), value))
            .collect()),
        _ if node.is_null() => Ok(Vec::new()),
        _ => Err(format!("{what} is no mapping")),
    }
}

/// Reads a text, or a list of texts.
fn list(node: &Node, key: &str) -> Result<Vec<String>, String> {
    let text = |node: &Node| match &node.content {
        Content::Scalar(text, _) if !node.is_null() => Ok(text.to_string()),
        _ => Err(format!("`{key}` is neither a text nor a list of texts")),
    };
    match &node.content {
        Content::List(all) => all.iter().map(text).collect(),
        _ => text(node).map(|one| vec![one]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused_with_the_field() {
        let found = parse(
            "sandbox:\n  network: none\n  read: [a, /b]\n  env: TOKEN\n  limits: {memory: 8G, cpu: none}\n",
            Path::new("/home/x"),
        );
        let expect = SandboxSettings {
            network: Some(Network::None),
            read: vec!["/home/x/a".into(), "/b".into()],
            env: vec!["TOKEN".to_owned()],
            limits: vec!["memory=8G".to_owned(), "cpu=none".to_owned()],
            ..SandboxSettings::default()
        };
        assert_eq!(found, Ok(expect));
        assert_eq!(parse("", Path::new("/")), Ok(SandboxSettings::default()));
        assert_eq!(
            parse("sandbox:\n", Path::new("/")),
            Ok(SandboxSettings::default())
        );
        for (text, expect) in [
            ("sandbx: {}", "no field `sandbx`"),
            ("sandbox: [a]", "`sandbox` is no mapping"),
            ("sandbox: {netwrk: all}", "no field `netwrk`"),
            ("sandbox: {network: {a: b}}", "`network` is neither"),
            ("sandbox: {network: [all, a.example]}", "stand alone"),
            ("sandbox: {limits: [a]}", "`limits` is no mapping"),
            ("sandbox: {limits: {swap: 1G}}", "no limit \"swap\""),
            (
                "sandbox: {limits: {memory: many}}",
                "not a value of the limit",
            ),
            ("sandbox: {read: [[a]]}", "`read` is neither"),
            ("sandbox: {read: ", ""),
        ] {
            let why = parse(text, Path::new("/")).expect_err(text);
            assert!(why.contains(expect), "{text}: {why}");
        }
    }
}
