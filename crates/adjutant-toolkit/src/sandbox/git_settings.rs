//! git's settings as text, and the program that reads them.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Returns a setting as git writes it.
pub(crate) fn line(name: &str, value: &str) -> Option<String> {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let value = escape(value).replace('\n', "\\n");
    let (section, rest) = name.split_once('.')?;
    Some(match rest.rsplit_once('.') {
        Some((sub, key)) => format!("[{section} \"{}\"]\n\t{key} = \"{value}\"\n", escape(sub)),
        None => format!("[{section}]\n\t{rest} = \"{value}\"\n"),
    })
}

/// Returns the program git, unless it is where the commands may write.
pub(crate) fn program(root: &Path) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .filter(|folder| folder.is_absolute() && !folder.starts_with(root))
        .filter_map(|folder| folder.join("git").canonicalize().ok())
        .find(|git| git.is_file() && !git.starts_with(root))
}
