//! Files that other programs read automatically: a change makes an editor, a shell or a build tool run something later.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Their paths, relative to any directory. A `*` at the end of a name matches any rest of it; a directory includes
/// everything below it.
pub(crate) const OBEYED: [&str; 30] = [
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
    ".tool-versions",
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
    let parts: Vec<String> = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().to_ascii_lowercase())
        .collect();
    let fits = |part: &String, name: &str| match name.strip_suffix('*') {
        Some(start) => part.starts_with(start),
        None => part == name,
    };
    OBEYED.iter().any(|path| {
        let path = path.to_ascii_lowercase();
        let names: Vec<&str> = path.split('/').collect();
        parts.windows(names.len()).any(|window| {
            window
                .iter()
                .zip(&names)
                .all(|(part, name)| fits(part, name))
        })
    })
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
