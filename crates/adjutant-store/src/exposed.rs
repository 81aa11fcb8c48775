//! Paths of a store that other users can access: paths that the store creates are private, existing ones may not be.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Files and folders of a store that other users can access. Its text contains the command that fixes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    paths: Vec<PathBuf>,
}

impl Exposed {
    /// The paths among these that are open to other users, for a warning.
    pub(crate) fn among(paths: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let paths: Vec<PathBuf> = paths.into_iter().filter(|path| is_open(path)).collect();
        let exposed = (!paths.is_empty()).then_some(Self { paths })?;
        tracing::warn!("{exposed}");
        Some(exposed)
    }
}

#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("others on this machine may enter the store of sessions:")?;
        self.paths
            .iter()
            .try_for_each(|path| write!(f, " {}", path.display()))?;
        f.write_str("; hint: chmod -R go=")?;
        // As a shell reads it, whatever the name is.
        let quoted = |path: &PathBuf| path.display().to_string().replace('\'', r"'\''");
        self.paths
            .iter()
            .try_for_each(|path| write!(f, " '{}'", quoted(path)))
    }
}
