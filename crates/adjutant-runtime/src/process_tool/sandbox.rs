//! The sandbox of a program, with the permissions from its manifest.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_toolkit::{Network, Sandbox};

use crate::manifest::SandboxSpec;

/// Returns the sandbox for a program with these arguments.
pub(crate) fn widened(
    sandbox: Sandbox,
    program: &Path,
    args: &[Arc<str>],
    spec: &SandboxSpec,
) -> Sandbox {
    if spec.danger_without_any {
        return Sandbox::danger_without_any();
    }
    // A program may read its file and the target of its link.
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let installations = [program, &real].into_iter().filter_map(installation);
    let installations: Vec<PathBuf> = installations.collect();
    let sandbox = installations
        .into_iter()
        .fold(sandbox, |sandbox, path| sandbox.read(path))
        .read(program)
        .read(real);
    // The script of an interpreter is treated like the program.
    let named = args
        .iter()
        .map(|word| Path::new(&**word))
        .filter(|path| path.is_absolute() && path.is_file());
    let sandbox = named.fold(sandbox, |sandbox, path| sandbox.read(path));
    let sandbox = spec
        .read
        .iter()
        .fold(sandbox, |sandbox, path| sandbox.read(path));
    let sandbox = spec
        .write
        .iter()
        .fold(sandbox, |sandbox, path| sandbox.write(path));
    sandbox.network(if spec.network {
        Network::All
    } else {
        Network::None
    })
}

/// Returns the directory into which a program was installed, for example `~/.pyenv/versions/3.11.7` for its
/// `bin/python3`, and `~/.asdf` for `shims/node`: an interpreter reads its library there.
///
/// Returns `None` for a directory with more than installed files, such as a home directory or `~/.local`.
fn installation(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let is_programs = ["bin", "shims"].iter().any(|name| folder.ends_with(name));
    let prefix = folder.parent().filter(|_| is_programs)?;
    let is_home = env::home_dir().is_some_and(|home| home.starts_with(prefix));
    let holds_more = prefix.ends_with(".local")
        || [".ssh", ".gnupg", ".config", ".bashrc", ".profile"]
            .iter()
            .any(|name| prefix.join(name).exists());
    (prefix.is_absolute() && !is_home && !holds_more).then(|| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn installation_is_the_prefix_of_a_program_but_never_a_home() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let prefix = folder.path().join("opt/python");
        fs::create_dir_all(prefix.join("bin")).expect("the directory is created");
        assert_eq!(
            installation(&prefix.join("bin/python3")),
            Some(prefix.clone())
        );
        assert_eq!(
            installation(&prefix.join("shims/node")),
            Some(prefix.clone())
        );
        assert_eq!(installation(&prefix.join("tools/node")), None);
        assert_eq!(installation(&folder.path().join(".local/bin/x")), None);
        let home = env::home_dir().expect("a home directory");
        assert_eq!(installation(&home.join("bin/x")), None);
        fs::create_dir(prefix.join(".ssh")).expect("the directory is created");
        assert_eq!(installation(&prefix.join("bin/python3")), None);
    }
}
