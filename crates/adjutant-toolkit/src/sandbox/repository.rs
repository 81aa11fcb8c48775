//! The git repository that a directory belongs to, without running git: a linked worktree, a submodule, a directory below the top.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The longest file that names a directory, in bytes.
const LONGEST: u64 = 8 << 10;
/// The largest file of settings that is searched for names of files, in bytes.
const MAX_SETTINGS: u64 = 1 << 20;

/// A repository on the disk. Source: gitrepository-layout(5), gitfile in gitglossary(7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The directory that holds the entry `.git`.
    pub(crate) top: PathBuf,
    /// The directory of this working tree: `.git`, or what the file `.git` names.
    pub(crate) git: PathBuf,
    /// The directory that all working trees of the repository share.
    pub(crate) common: PathBuf,
}

impl Repository {
    /// Finds the repository of a directory, in it or above.
    ///
    /// A repository above the directory is not used if it belongs to another user or if its files include the home. A file `.git`
    /// counts only if the directory that it names refers back to it: otherwise it could name any repository of the user.
    pub(crate) fn find(directory: &Path) -> Option<Self> {
        let start = directory.canonicalize().ok()?;
        let top = start
            .ancestors()
            .find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
        let home = env::home_dir().and_then(|home| home.canonicalize().ok());
        let holds_home = home.is_some_and(|home| home.starts_with(top));
        if top != start && (holds_home || !is_owned(top)) {
            return None;
        }
        Self::at(top)
    }

    /// Returns the repository whose entry `.git` is in this directory.
    pub(crate) fn at(top: &Path) -> Option<Self> {
        let entry = top.join(".git");
        let kind = entry.symlink_metadata().ok()?.file_type();
        if kind.is_dir() {
            return is_repository(&entry).then(|| Self {
                top: top.to_owned(),
                common: entry.clone(),
                git: entry,
            });
        }
        if !kind.is_file() {
            return None;
        }
        let named = read_line(&entry)?;
        let git = top
            .join(named.strip_prefix("gitdir:")?.trim())
            .canonicalize()
            .ok()?;
        if let Some(common) = read_line(&git.join("commondir")) {
            let common = git.join(common).canonicalize().ok()?;
            let back = git.join(read_line(&git.join("gitdir"))?);
            let refers_back = back.canonicalize().ok()? == entry;
            let is_below = git.parent()? == common.join("worktrees");
            return (refers_back && is_below && is_repository(&common)).then(|| Self {
                top: top.to_owned(),
                git,
                common,
            });
        }
        // A submodule: its settings name its working tree.
        let worktree = setting(&git.join("config"), "worktree")?;
        let refers_back = git.join(worktree).canonicalize().ok()? == top;
        let is_module = git.components().any(|part| part.as_os_str() == "modules");
        (refers_back && is_module && is_repository(&git)).then(|| Self {
            top: top.to_owned(),
            common: git.clone(),
            git,
        })
    }
}

/// Returns the files below a root that the settings of a repository name, and its directory of hooks there: git reads or runs them.
///
/// Source: git-config(1), `core.hooksPath`, `include.path` and settings that name a program, November 2026.
pub(crate) fn list_named_files(git: &Path, root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut settings = vec![git.join("config")];
    let top = git.parent().unwrap_or(git);
    while let Some(file) = settings.pop() {
        let is_short = file.metadata().is_ok_and(|it| it.len() <= MAX_SETTINGS);
        let text = fs::read_to_string(&file).ok().filter(|_| is_short);
        for line in text.unwrap_or_default().lines() {
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let key = key.trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            let word = value.split_whitespace().next().unwrap_or_default();
            let bases = [file.parent().unwrap_or(top), top];
            for path in bases
                .iter()
                .filter_map(|base| base.join(word).canonicalize().ok())
            {
                let is_named = match key.as_str() {
                    "hookspath" => path.is_dir() && !root.starts_with(&path),
                    "path" => path.is_file(),
                    _ => path.is_file() && word.contains('/'),
                };
                if !is_named || !path.starts_with(root) || found.contains(&path) {
                    continue;
                }
                if key == "path" {
                    settings.push(path.clone());
                }
                found.push(path);
            }
        }
    }
    found
}

fn is_owned(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Returns true for a directory that git takes for a repository.
pub(crate) fn is_repository(directory: &Path) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| directory.join(name).symlink_metadata().is_ok())
}

fn read_line(path: &Path) -> Option<String> {
    Some(read_small(path)?.lines().next()?.trim().to_owned())
}

fn read_small(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// Returns a plain value of the section `core` of a file of settings.
fn setting(path: &Path, name: &str) -> Option<String> {
    let text = read_small(path)?;
    let mut is_core = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_core = section.eq_ignore_ascii_case("core]");
        } else if let Some((key, value)) = line.split_once('=')
            && is_core
            && key.trim().eq_ignore_ascii_case(name)
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, words: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(["-c", "protocol.file.allow=always"])
            .args(words)
            .current_dir(directory)
            .output()
            .expect("git runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
    }

    #[test]
    fn repository_is_found_from_every_kind_of_directory() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let base = place.path().canonicalize().expect("a path");
        let main = base.join("main");
        fs::create_dir_all(main.join("app/deep")).expect("a directory");
        fs::create_dir(base.join("module")).expect("a directory");
        for repository in [&main, &base.join("module")] {
            git(repository, &["init", "-q"]);
            git(repository, &["commit", "-q", "--allow-empty", "-m", "one"]);
        }
        git(&main, &["worktree", "add", "-q", "../linked"]);
        git(&main, &["submodule", "--quiet", "add", "../module", "sub"]);
        let common = main.join(".git");
        let expected = |top: &str, git: &str, common: &Path| {
            Some(Repository {
                top: base.join(top),
                git: base.join(git),
                common: common.to_owned(),
            })
        };
        let module = main.join(".git/modules/sub");
        let table = [
            ("main", expected("main", "main/.git", &common)),
            ("main/app/deep", expected("main", "main/.git", &common)),
            (
                "linked",
                expected("linked", "main/.git/worktrees/linked", &common),
            ),
            (
                "main/sub",
                expected("main/sub", "main/.git/modules/sub", &module),
            ),
        ];
        for (directory, expect) in table {
            assert_eq!(
                Repository::find(&base.join(directory)),
                expect,
                "{directory}"
            );
        }
        // A file that names the repository of another directory.
        let planted = base.join("planted");
        fs::create_dir(&planted).expect("a directory");
        for named in [
            "main/.git",
            "main/.git/worktrees/linked",
            "main/.git/modules/sub",
        ] {
            let line = format!("gitdir: {}\n", base.join(named).display());
            fs::write(planted.join(".git"), line).expect("a file");
            assert_eq!(Repository::find(&planted), None, "{named}");
        }
    }
}
