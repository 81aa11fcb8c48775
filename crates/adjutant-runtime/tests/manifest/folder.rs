//! A folder with manifests and what they name, and texts that several tests read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use adjutant_runtime::{
    Manifest,
    manifest::{Loaded, Problems},
};
use tempfile::TempDir;

/// A manifest that says as much as it can.
pub(crate) const FULL: &str = include_str!("full.yaml");
/// The single agent in short.
pub(crate) const SHORT: &str = include_str!("short.yaml");

/// A folder that goes away.
pub(crate) struct Folder {
    folder: TempDir,
}

impl Folder {
    /// With files that manifests of these tests name.
    pub(crate) fn new() -> Self {
        let it = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        it.write("docs/style.md", "Be brief.\n");
        it.write("docs/terms.md", "A heron is a bird.\n");
        it.write("prompts/lead.md", "You lead.\n");
        it.write("data/birds.csv", "name\nheron\n");
        it.write(
            "skills/counting/SKILL.md",
            "---\nname: counting\ndescription: Counts birds.\n---\nOne, two.\n",
        );
        it.write(
            ".adjutant/agents/scout.md",
            "---\ndescription: Looks around.\ntoolboxes: [files]\n---\nYou look.\n",
        );
        it.write("bin/count", "#!/bin/sh\nwc -l\n");
        executable(&it.path("bin/count"));
        it
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Reads a manifest of this folder.
    pub(crate) fn load(&self, name: &str) -> Result<Loaded, Problems> {
        Manifest::load(self.path(name), lookup)
    }

    /// Reads a text as `adjutant.yaml` of this folder.
    pub(crate) fn read(&self, text: &str) -> Result<Loaded, Problems> {
        let path = self.write("adjutant.yaml", text);
        Manifest::load(path, lookup)
    }

    /// What is wrong with a text, one problem a line, without the folder.
    pub(crate) fn wrong(&self, text: &str) -> String {
        self.plain(&self.read(text).expect_err("it is wrong").to_string())
    }

    /// A text without the place of the folder.
    pub(crate) fn plain(&self, text: &str) -> String {
        let real = self.folder.path().canonicalize().expect("it is there");
        let text = text.replace(&format!("{}/", real.display()), "");
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// The variables of these tests.
pub(crate) fn lookup(name: &str) -> Option<String> {
    let value = match name {
        "TEAM" => "birds",
        "TURNS" => "7",
        "EMPTY" => "",
        "WORDS" => "a: [b, c]",
        "ODD" => "name: x\nagents: []",
        _ => return None,
    };
    Some(value.to_owned())
}

#[cfg(unix)]
pub(crate) fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[cfg(not(unix))]
pub(crate) fn executable(_: &Path) {}
