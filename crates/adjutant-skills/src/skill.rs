//! One skill, read whole.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::Estimate;

use crate::{Location, Scope, folder::Folder, manifest::SkillManifest, name};

/// A skill: its front matter, its body, and its files.
#[derive(Debug, Clone)]
pub struct Skill {
    pub(crate) manifest: Arc<SkillManifest>,
    pub(crate) scope: Scope,
    pub(crate) status: Status,
    pub(crate) place: Location,
    /// The folder relative to its root, with slashes.
    pub(crate) path: Arc<str>,
    pub(crate) folder: Folder,
    pub(crate) files: Arc<SkillListing>,
}

/// The status of a skill: used, or the reason why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It is.
    Used,
    /// It belongs to a project that is not trusted.
    Untrusted,
    /// Another of its name counts.
    Shadowed,
    /// There was no space for it next to the others.
    LeftOut,
}

/// The files next to a `SKILL.md`.
#[derive(Debug, Default)]
pub(crate) struct SkillListing {
    pub(crate) files: Vec<SkillFile>,
    /// True if there are more.
    pub(crate) is_cut: bool,
}

/// A file next to a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// Relative to the skill, with slashes.
    pub path: Arc<str>,
    /// In bytes.
    pub size: u64,
}

impl Skill {
    /// The name, which is the folder's name.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Returns its purpose and when to use it; a skill without a description is always in the context.
    pub fn description(&self) -> Option<&str> {
        self.manifest.description.as_deref()
    }

    /// True if it is always at hand, because it has no description to choose it by.
    pub fn is_inline(&self) -> bool {
        self.manifest.description.is_none()
    }

    /// The licence, as declared.
    pub fn license(&self) -> Option<&str> {
        self.manifest.license.as_deref()
    }

    /// Returns its requirements, which are reported but not checked.
    pub fn compatibility(&self) -> Option<&str> {
        self.manifest.compatibility.as_deref()
    }

    /// Returns the other fields of its front matter.
    pub fn metadata(&self) -> &BTreeMap<Arc<str>, Arc<str>> {
        &self.manifest.metadata
    }

    /// The tools that it requests to use without approval. The request has no effect: the application decides about
    /// permissions.
    pub fn allowed_tools(&self) -> &[Arc<str>] {
        &self.manifest.allowed_tools
    }

    /// Returns its instructions, in Markdown.
    pub fn body(&self) -> &str {
        &self.manifest.body
    }

    /// Its owner.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns its status, which includes whether it is used.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Its `SKILL.md`, as its root was named; for people, never for a model.
    pub fn place(&self) -> &Location {
        &self.place
    }

    /// Its directory, as its root was named.
    pub fn directory(&self) -> PathBuf {
        let file = Path::new(&*self.place.file);
        file.parent().unwrap_or(file).to_owned()
    }

    /// The files next to its `SKILL.md`, sorted and bounded.
    pub fn files(&self) -> &[SkillFile] {
        &self.files.files
    }

    /// About how many tokens it takes when it is at hand or loaded.
    pub fn body_tokens(&self) -> u64 {
        self.body_tokens_by(&|text| Estimate.count(text))
    }

    /// The estimated number of tokens of its line in the list; 0 if it is always in the context.
    pub fn listing_tokens(&self) -> u64 {
        self.listing_tokens_by(&|text| Estimate.count(text))
    }

    pub(crate) fn body_tokens_by(&self, counter: &dyn Fn(&str) -> u64) -> u64 {
        counter(&self.text())
    }

    pub(crate) fn listing_tokens_by(&self, counter: &dyn Fn(&str) -> u64) -> u64 {
        self.listing().map_or(0, |line| counter(&line))
    }

    /// Its line in the list of skills that can be loaded.
    pub(crate) fn listing(&self) -> Option<String> {
        let description = self.manifest.description.as_deref()?;
        Some(format!("- {}: {}", self.name(), name::line(description)))
    }

    /// Its complete text for the model: the body and the list of its files.
    pub(crate) fn text(&self) -> String {
        let mut text = self.body().to_owned();
        if self.files().is_empty() {
            return text;
        }
        let names: Vec<String> = self
            .files()
            .iter()
            .map(|file| format!("{} ({})", name::line(&file.path), size(file.size)))
            .collect();
        let more = if self.files.is_cut { ", and more" } else { "" };
        let (folder, names, name) = (&self.path, names.join(", "), self.name());
        text += &format!(
            "\n\n[Files in the skill's folder {folder}: {names}{more}. Paths in this skill are relative to that folder; \
             read_skill_file with skill \"{name}\" shows them.]"
        );
        text
    }
}

impl Status {
    /// Returns its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Status::Used => "used",
            Status::Untrusted => "untrusted",
            Status::Shadowed => "shadowed",
            Status::LeftOut => "left_out",
        }
    }
}

/// A size, for example `312 B` or `1.2 KB`; a kilobyte has 1,024 bytes.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1_024 {
        format!("{bytes} B")
    } else {
        format!("{:.1} KB", bytes as f64 / 1_024.0)
    }
}
