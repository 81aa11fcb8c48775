//! The programs in a manifest, of tools and servers.

use std::{path::PathBuf, sync::Arc};

use super::{Manifest, SandboxSpec};

/// A program in a manifest.
pub(crate) struct ProgramMut<'a> {
    /// Its owner, for example `the tool count`.
    pub(crate) whose: String,
    /// The field that names it.
    pub(crate) field: String,
    /// The name of its directory in an export.
    pub(crate) folder: String,
    pub(crate) path: &'a mut PathBuf,
    pub(crate) args: &'a [Arc<str>],
    pub(crate) sandbox: &'a SandboxSpec,
    pub(crate) sha256: &'a mut Option<Arc<str>>,
}

impl Manifest {
    /// Returns each program, unless its name contains a variable.
    pub(crate) fn programs_mut(&mut self) -> impl Iterator<Item = ProgramMut<'_>> {
        let tools = self.process_tools.iter_mut().map(|tool| ProgramMut {
            whose: format!("the tool {}", tool.name),
            field: format!("process_tools.{}.binary", tool.name),
            folder: tool.name.to_string(),
            path: &mut tool.binary,
            args: &tool.args,
            sandbox: &tool.sandbox,
            sha256: &mut tool.sha256,
        });
        let servers = self
            .mcp
            .servers
            .iter_mut()
            .filter(|(_, spec)| spec.program().is_some());
        let servers = servers.filter_map(|(name, spec)| {
            Some(ProgramMut {
                whose: format!("the server {name}"),
                field: format!("mcp.servers.{name}.command"),
                // Names of tools have no dot, so there is no conflict.
                folder: format!("mcp.{name}"),
                path: spec.command.as_mut()?,
                args: &spec.args,
                sandbox: &spec.sandbox,
                sha256: &mut spec.sha256,
            })
        });
        tools.chain(servers)
    }
}
