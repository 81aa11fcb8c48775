//! The sandbox of a program, as wide as its manifest says.

use std::{path::Path, sync::Arc};

use adjutant_toolkit::{Network, Sandbox};

use crate::manifest::SandboxSpec;

/// A sandbox in which a program runs that is given these words.
pub(crate) fn widened(
    sandbox: Sandbox,
    program: &Path,
    args: &[Arc<str>],
    spec: &SandboxSpec,
) -> Sandbox {
    if spec.danger_without_any {
        return Sandbox::danger_without_any();
    }
    // A program may look at the name that it goes by, and at what that leads to.
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let sandbox = sandbox.read(program).read(real);
    // The script of a program is as good as the program.
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
