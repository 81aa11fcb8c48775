//! The identity of a repository, by which sessions are found after its directory was renamed. It is read from files only,
//! because git could run programs that the repository names.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use adjutant::agent::Digest;

/// The prefix of the label of a repository.
const LABEL: &str = "repo:";
/// The maximum number of bytes that are read of a file of git.
const MAX_BYTES: u64 = 16 << 20;

/// A repository around a directory.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The directory of the worktree's own files.
    git: PathBuf,
    /// The directory of the files that all worktrees share.
    common: PathBuf,
    /// The path of the directory inside the worktree.
    below: PathBuf,
}

impl Repository {
    /// Finds the repository around a directory.
    pub(crate) fn find(directory: &Path) -> Option<Self> {
        let real = directory.canonicalize().ok()?;
        let top = real.ancestors().find(|path| path.join(".git").exists())?;
        let mut git = top.join(".git");
        if git.is_file() {
            let text = read(&git)?;
            git = top.join(text.strip_prefix("gitdir:")?.trim());
        }
        let common = read(&git.join("commondir"));
        let common = common.map_or_else(|| git.clone(), |path| git.join(path.trim()));
        let below = real.strip_prefix(top).ok()?.to_owned();
        Some(Self { git, common, below })
    }

    /// Returns the label of sessions in this directory; `None` without a commit.
    ///
    /// It contains the current commit instead of the first one, because finding that takes seconds in a long history.
    pub(crate) fn label(&self) -> Option<String> {
        Some(format!("{LABEL}{}:{}", self.head()?, self.place()))
    }

    /// True if a session with this label belongs to this directory: it was here, and the repository has its commit.
    pub(crate) fn fits(&self, label: &str) -> bool {
        let parts = label
            .strip_prefix(LABEL)
            .and_then(|rest| rest.split_once(':'));
        parts.is_some_and(|(commit, place)| place == self.place() && self.had(commit))
    }

    /// A digest of the remote and of the path of the directory in the repository.
    fn place(&self) -> String {
        let config = read(&self.common.join("config")).unwrap_or_default();
        let remote = config
            .lines()
            .skip_while(|line| !line.trim_start().starts_with("[remote "))
            .find_map(|line| line.trim().strip_prefix("url")?.trim().strip_prefix('='))
            .unwrap_or_default();
        let text = format!("{}\0{}", remote.trim(), self.below.display());
        let digest = Digest::compute(text.as_bytes()).to_string();
        digest.get(..16).unwrap_or(&digest).to_owned()
    }

    /// The current commit.
    fn head(&self) -> Option<String> {
        let head = read(&self.git.join("HEAD"))?;
        let Some(name) = head.trim().strip_prefix("ref: ") else {
            return Some(head.trim().to_owned());
        };
        let loose = read(&self.common.join(name)).map(|text| text.trim().to_owned());
        loose.or_else(|| {
            let packed = read(&self.common.join("packed-refs"))?;
            let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
            lines.find_map(|(commit, found)| (found == name).then(|| commit.to_owned()))
        })
    }

    /// True if a commit is or was the current one.
    fn had(&self, commit: &str) -> bool {
        let log = || read(&self.git.join("logs/HEAD"));
        !commit.is_empty()
            && (self.head().is_some_and(|head| head == commit)
                || log().is_some_and(|log| log.contains(commit)))
    }
}

/// True if a label identifies a repository.
pub(crate) fn is_label(label: &str) -> bool {
    label.starts_with(LABEL)
}

fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn repository_is_known_again_after_it_was_renamed_and_changed() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        write("a/sub/x", "");
        write("a/.git/HEAD", "ref: refs/heads/main\n");
        let find = |path: &str| Repository::find(&folder.path().join(path)).expect("it is there");
        assert_eq!(find("a").label(), None);
        write("a/.git/refs/heads/main", "c1\n");
        write(
            "a/.git/config",
            "[core]\n[remote \"origin\"]\n\turl = https://x.example/a\n",
        );
        let label = find("a").label().expect("it has a commit");
        assert!(label.starts_with("repo:c1:"), "{label}");
        fs::rename(folder.path().join("a"), folder.path().join("b")).expect("it is renamed");
        assert!(find("b").fits(&label) && !find("b/sub").fits(&label));
        write("b/.git/logs/HEAD", "0 c1 Ada\nc1 c2 Ada\n");
        fs::remove_file(folder.path().join("b/.git/refs/heads/main")).expect("it is removed");
        write("b/.git/packed-refs", "# pack-refs\nc2 refs/heads/main\n");
        assert!(find("b").fits(&label));
        write(
            "b/.git/config",
            "[remote \"origin\"]\n\turl = https://x.example/other\n",
        );
        assert!(!find("b").fits(&label));
        write("other/.git/HEAD", "c9\n");
        assert!(!find("other").fits(&label));
    }
}
