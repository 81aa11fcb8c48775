//! Findings about skills: the problem, its location, and whether the skill is used.

use std::{fmt, sync::Arc};

/// Something that was found while skills were read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The severity of the finding.
    pub severity: Severity,
    /// The subject of the finding.
    pub kind: FindingKind,
    /// The place of the finding.
    pub place: Location,
    /// A description of the finding, lower case, without a full stop.
    pub message: Arc<str>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; the skill is read all the same.
    Warning,
    /// The skill is refused; of [`check`](crate::check), also that it breaks the specification.
    Error,
}

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// The file has no front matter.
    NoFrontMatter,
    /// The front matter has no end: the whole file is the body.
    UnclosedFrontMatter,
    /// The front matter is not YAML, or not a mapping, or passes a budget.
    Yaml,
    /// A field is of a wrong type.
    FieldType,
    /// A field that the specification does not know.
    UnknownField,
    /// There is no name.
    NameMissing,
    /// The name is not one by the specification.
    NameInvalid,
    /// The name differs from the folder's name, which takes precedence.
    NameMismatch,
    /// The folder's name is not a valid skill name.
    FolderName,
    /// There is no description.
    DescriptionMissing,
    /// A text is longer than it may be, and cut.
    TooLong,
    /// The body is empty.
    BodyEmpty,
    /// The body is longer than is advised.
    BodyLong,
    /// The file, its front matter or its body is too large.
    TooLarge,
    /// There are too many skills, folders, entries, or bytes of them together.
    TooMany,
    /// The file is not UTF-8 text.
    NotText,
    /// The file contains invisible characters: a reader sees other text than the model.
    Invisible,
    /// Something that should be a regular file is not one.
    NotAFile,
    /// A link that is not followed.
    Link,
    /// A file or folder cannot be read.
    Unreadable,
    /// There is no skill where one was named.
    Missing,
    /// A skill of the same name counts in its place.
    Shadowed,
    /// A skill of a project that is not trusted.
    Untrusted,
}

/// The place of something in a file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Location {
    /// The file or folder, as its root was named; for people, never for a model.
    pub file: Arc<str>,
    /// The line, counted from 1; 0 if it is about the whole file.
    pub line: u64,
    /// The column in characters, counted from 1; 0 if it is about the whole line.
    pub column: u64,
}

impl Finding {
    pub(crate) fn new(
        severity: Severity,
        kind: FindingKind,
        place: Location,
        message: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            severity,
            kind,
            place,
            message: message.into(),
        }
    }
}

impl FindingKind {
    /// Returns its name, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::NoFrontMatter => "no_front_matter",
            FindingKind::UnclosedFrontMatter => "unclosed_front_matter",
            FindingKind::Yaml => "yaml",
            FindingKind::FieldType => "field_type",
            FindingKind::UnknownField => "unknown_field",
            FindingKind::NameMissing => "name_missing",
            FindingKind::NameInvalid => "name_invalid",
            FindingKind::NameMismatch => "name_mismatch",
            FindingKind::FolderName => "folder_name",
            FindingKind::DescriptionMissing => "description_missing",
            FindingKind::TooLong => "too_long",
            FindingKind::BodyEmpty => "body_empty",
            FindingKind::BodyLong => "body_long",
            FindingKind::TooLarge => "too_large",
            FindingKind::TooMany => "too_many",
            FindingKind::NotText => "not_text",
            FindingKind::Invisible => "invisible",
            FindingKind::NotAFile => "not_a_file",
            FindingKind::Link => "link",
            FindingKind::Unreadable => "unreadable",
            FindingKind::Missing => "missing",
            FindingKind::Shadowed => "shadowed",
            FindingKind::Untrusted => "untrusted",
        }
    }
}

impl Severity {
    /// Returns its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Location {
    /// A whole file or folder.
    pub fn whole(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
        }
    }

    /// A place in the same file.
    #[must_use]
    pub fn at(&self, line: u64, column: u64) -> Self {
        Self {
            file: Arc::clone(&self.file),
            line,
            column,
        }
    }
}

impl fmt::Display for Finding {
    /// Shape: `file:line:column: severity: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: {}",
            self.place,
            self.severity.name(),
            self.message
        )
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match (self.line, self.column) {
            (0, _) => Ok(()),
            (line, 0) => write!(f, ":{line}"),
            (line, column) => write!(f, ":{line}:{column}"),
        }
    }
}
