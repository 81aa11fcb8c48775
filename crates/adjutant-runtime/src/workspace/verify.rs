//! Checks that the files of an agent in its workspace are unchanged.

use std::{fs, path::Path};

use super::{Prepared, TOOLS, Workspace, is_same};
use crate::{
    error::{Error, ErrorKind},
    files,
    provenance::{
        Difference, FileKind, Finding, PREPARED, PinnedFile, Provenance, digest_of, pin_program,
    },
};

impl Provenance {
    /// Reads the record of a workspace.
    ///
    /// # Errors
    /// `Missing` if the workspace is not prepared, `Storage` if it cannot be read.
    pub fn collect(workspace: &Workspace) -> Result<Self, Error> {
        workspace
            .prepared()
            .map(|prepared: Prepared| prepared.provenance)
    }

    /// Returns every difference from the record, in the order of the files; empty if there are none. The running
    /// manifest is compared with its source. Reads every file, and blocks.
    pub fn verify(&self, workspace: &Workspace) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self
            .files
            .iter()
            .filter_map(|file| file.verify(workspace))
            .collect();
        let made = files::read_json::<Prepared>(&workspace.file(PREPARED));
        let told = workspace
            .agent()
            .and_then(|agent| Ok((agent.resolved, made?.resolved)));
        if told.is_ok_and(|(agent, made)| !is_same(&agent.manifest, &made.manifest)) {
            findings.push(Finding {
                kind: FileKind::Manifest,
                path: PREPARED.into(),
                what: Difference::Changed,
            });
        }
        for folder in ["context", "skills", TOOLS] {
            self.extra(workspace, Path::new(folder), &mut findings);
        }
        findings
    }

    /// Finds files of the copies that were not recorded, or cannot be read.
    fn extra(&self, workspace: &Workspace, below: &Path, findings: &mut Vec<Finding>) {
        for entry in fs::read_dir(workspace.file("").join(below))
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = below.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.extra(workspace, &path, findings);
            } else if !self.files.iter().any(|file| file.path == path) {
                let kind = match below.components().next().map(|part| part.as_os_str()) {
                    Some(first) if first == "skills" => FileKind::Skill,
                    Some(first) if first == TOOLS => FileKind::Tool,
                    _ => FileKind::Context,
                };
                findings.push(Finding {
                    kind,
                    path,
                    what: Difference::Extra,
                });
            }
        }
    }
}

impl PinnedFile {
    fn verify(&self, workspace: &Workspace) -> Option<Finding> {
        let path = workspace.file("").join(&self.path);
        let finding = |what| {
            Some(Finding {
                kind: self.kind,
                path: self.path.clone(),
                what,
            })
        };
        let found = match self.kind {
            FileKind::Tool | FileKind::Host => {
                pin_program(self.kind, &path).map(|found| (found.sha256, found.bytes))
            }
            FileKind::Manifest
            | FileKind::Context
            | FileKind::Instructions
            | FileKind::Data
            | FileKind::Skill => digest_of(&path),
        };
        match found {
            Ok((sha256, bytes)) if sha256 == self.sha256 && bytes == self.bytes => None,
            Ok(_) => finding(Difference::Changed),
            Err(error) if error.kind() == ErrorKind::Config => finding(Difference::NotExecutable),
            Err(_) => finding(Difference::Missing),
        }
    }
}
