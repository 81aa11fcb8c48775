//! The rules of `.gitignore` and `.ignore` files, from the root down to one directory.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::fs::Dir;
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::root::open_regular;

/// The maximum number of bytes of one ignore file that are read.
const MAX_RULE_BYTES: u64 = 262_144;

/// The rules that apply in one directory. Cheap to clone.
///
/// A file in a deeper directory takes precedence, and `.ignore` takes precedence over `.gitignore`.
#[derive(Debug, Clone, Default)]
pub(super) struct Ignored {
    ignore: Vec<Arc<IgnoreRules>>,
    gitignore: Vec<Arc<IgnoreRules>>,
}

#[derive(Debug)]
struct IgnoreRules {
    /// The directory that contains the rules, relative to the root.
    at: PathBuf,
    matcher: Gitignore,
}

impl Ignored {
    /// Returns the rules that apply at a path below the root, which is a directory without links.
    pub(super) fn above(root: &Dir, path: &Path) -> Self {
        let mut ignored = Self::default();
        let mut at = PathBuf::new();
        for part in path.components() {
            let dir = if at.as_os_str().is_empty() {
                root.try_clone()
            } else {
                root.open_dir(&at)
            };
            let Ok(dir) = dir else { break };
            ignored = ignored.enter(&dir, &at);
            at.push(part);
        }
        ignored
    }

    /// Adds the rules of a directory; an unreadable file counts as empty.
    #[must_use]
    pub(super) fn enter(&self, dir: &Dir, at: &Path) -> Self {
        let mut deeper = self.clone();
        deeper.ignore.extend(IgnoreRules::read(dir, at, ".ignore"));
        deeper
            .gitignore
            .extend(IgnoreRules::read(dir, at, ".gitignore"));
        deeper
    }

    /// True if an entry of the directory is ignored.
    pub(super) fn hides(&self, path: &Path, is_dir: bool) -> bool {
        let nearest_first = self.ignore.iter().rev().chain(self.gitignore.iter().rev());
        for rules in nearest_first {
            let Ok(relative) = path.strip_prefix(&rules.at) else {
                continue;
            };
            match rules.matcher.matched(relative, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

impl IgnoreRules {
    fn read(dir: &Dir, at: &Path, name: &str) -> Option<Arc<Self>> {
        let (file, _) = open_regular(dir, Path::new(name)).ok()??;
        let mut bytes = Vec::new();
        file.take(MAX_RULE_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut builder = GitignoreBuilder::new("");
        for line in text.trim_start_matches('\u{feff}').lines() {
            // Invalid rules are ignored, as in git.
            let _ = builder.add_line(None, line);
        }
        let matcher = builder.build().ok()?;
        (!matcher.is_empty()).then(|| {
            Arc::new(Self {
                at: at.to_owned(),
                matcher,
            })
        })
    }
}
