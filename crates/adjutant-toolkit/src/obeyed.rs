//! Files that other programs read automatically: a change makes an editor, a shell or a build tool run something later.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Their paths of one or two names, relative to any directory. A `*` at the end of a name matches any rest of it; a
/// directory includes everything below it.
///
/// Sources: the pages of mise (`mise.toml` reference), lefthook (config file name), Zed and opencode, 2026-11.
pub(crate) const OBEYED: [&str; 40] = [
    ".git",
    ".adjutant",
    ".envrc",
    ".mcp.json",
    ".cargo/config*",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".circleci",
    ".npmrc",
    ".yarnrc.yml",
    ".mise.toml",
    ".mise",
    "mise.toml",
    ".config/mise*",
    ".tool-versions",
    "lefthook.*",
    "lefthook-local.*",
    ".lefthook*",
    ".config/lefthook*",
    ".zed",
    ".opencode",
    "opencode.json",
    ".gitattributes",
    "sitecustomize.py",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "SKILL.md",
];

/// True if other programs read a file at this path automatically, below any directory. Case is ignored, because some
/// file systems ignore it.
pub(crate) fn is_obeyed(path: &Path) -> bool {
    let mut parent = OsStr::new("");
    path.iter().any(|name| {
        let is_obeyed = names_in(parent).any(|obeyed| fits(name, obeyed));
        parent = name;
        is_obeyed
    })
}

/// Returns the names that other programs obey in a directory of this name, for [`fits`].
pub(crate) fn names_in(parent: &OsStr) -> impl Iterator<Item = &'static str> {
    OBEYED.iter().filter_map(|row| match row.split_once('/') {
        None => Some(*row),
        Some((first, name)) => fits(parent, first).then_some(name),
    })
}

/// True if a name is this one, or begins with it before a `*`.
pub(crate) fn fits(name: &OsStr, obeyed: &str) -> bool {
    let name = name.as_encoded_bytes();
    match obeyed.strip_suffix('*') {
        Some(start) => name
            .get(..start.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(start.as_bytes())),
        None => name.eq_ignore_ascii_case(obeyed.as_bytes()),
    }
}

/// The changes of such files by the file tools of this process, so that they are not attributed to a concurrent
/// command.
static ALLOWED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Records that a file tool changes such a file.
pub(crate) fn allow(path: PathBuf) {
    if is_obeyed(&path) {
        allowed().insert(path);
    }
}

/// True for such a file, and for the directory of one.
#[cfg_attr(
    not(all(feature = "shell", target_os = "linux")),
    allow(dead_code, reason = "only a sandbox asks")
)]
pub(crate) fn is_allowed(path: &Path) -> bool {
    let first = allowed().range(path.to_owned()..).next().cloned();
    first.is_some_and(|first| first.starts_with(path))
}

/// Forgets the changes below a root: they belong to the state before the next command.
#[cfg_attr(
    not(all(feature = "shell", target_os = "linux")),
    allow(dead_code, reason = "only a sandbox asks")
)]
pub(crate) fn forget_allowed(root: &Path) {
    allowed().retain(|path| !path.starts_with(root));
}

fn allowed() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ALLOWED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_obeyed_in_every_directory() {
        for row in OBEYED {
            let name = row.replace('*', ".toml");
            for path in [
                name.clone(),
                format!("sub/{name}"),
                format!("{name}/below"),
                name.to_ascii_uppercase(),
            ] {
                assert!(is_obeyed(Path::new(&path)), "{path}");
            }
        }
        for path in [
            "src/git",
            "agents.txt",
            ".github/README.md",
            ".cargo/bin",
            "a.npmrc",
            "cargo/config.toml",
        ] {
            assert!(!is_obeyed(Path::new(path)), "{path}");
        }
    }
}
