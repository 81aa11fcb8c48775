//! The project around a working directory, and the plugins that the project and the user have.

use std::{
    env,
    path::{Path, PathBuf},
};

use adjutant::{agent::Digest, runtime::mcp::Plugin};

use crate::{plain, store};

/// The directories whose configuration counts in a working directory.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// The root of the repository, or the working directory outside of a repository.
    pub(crate) root: PathBuf,
    /// The working directory, then each directory above it up to the root.
    pub(crate) directories: Vec<PathBuf>,
}

impl Project {
    /// Finds the repository around a directory. The user's home is not part of a project below it.
    pub(crate) fn find(directory: &Path) -> Self {
        let home = home().and_then(|home| home.canonicalize().ok());
        let real = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let above: Vec<&Path> = real
            .ancestors()
            .take_while(|path| *path == real || Some(*path) != home.as_deref())
            .collect();
        let root = above.iter().position(|path| path.join(".git").exists());
        match root {
            // Paths are displayed as the user wrote them where nothing above counts.
            None | Some(0) => Self {
                root: directory.to_owned(),
                directories: vec![directory.to_owned()],
            },
            Some(root) => Self {
                root: above[root].to_owned(),
                directories: above[..=root]
                    .iter()
                    .map(|path| path.to_path_buf())
                    .collect(),
            },
        }
    }

    /// Reads the plugins of the project and of the user: each with its scope, and the problems, one line each.
    pub(crate) fn plugins(&self) -> (Vec<(&'static str, Plugin)>, Vec<String>) {
        let data = |root: &Path| {
            let name = Digest::compute(root.as_os_str().as_encoded_bytes()).to_string();
            let place = store::place().unwrap_or_else(|_| env::temp_dir());
            place.join("plugins").join(name.get(..32).unwrap_or(&name))
        };
        let (mut plugins, mut told) = (Vec::<(_, Plugin)>::new(), Vec::new());
        let project = self
            .directories
            .iter()
            .map(|path| ("project", path.clone(), Some(&*self.root)));
        let user = home().map(|home| ("user", home, None));
        // In the home itself, everything is the user's.
        for (scope, directory, within) in user.into_iter().chain(project) {
            let (found, problems) = Plugin::find(&directory, within, data);
            told.extend(
                problems
                    .iter()
                    .map(|line| format!("plugins: warning: {}", plain::line(line))),
            );
            for plugin in found {
                let is_known = plugins.iter().any(|(_, known)| known.root == plugin.root);
                let place = plain::line(&plugin.root.to_string_lossy());
                let problems = plugin.findings.iter().filter(|_| !is_known);
                told.extend(
                    problems
                        .map(|line| format!("plugins: {place}: warning: {}", plain::line(line))),
                );
                if !is_known {
                    plugins.push((scope, plugin));
                }
            }
        }
        (plugins, told)
    }
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
