//! The front matter of a skill, parsed leniently: errors are reported, and valid fields are used.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    FindingKind, Location, Severity,
    findings::{Findings, Strictness},
    front::{Split, body, quote_texts, read, split},
    limits::{
        ADVISED_LINES, MAX_ALLOWED_TOOLS, MAX_BODY_BYTES, MAX_COMPATIBILITY_CHARS,
        MAX_DESCRIPTION_CHARS, MAX_FRONT_BYTES, MAX_LICENSE_CHARS, MAX_METADATA,
        MAX_METADATA_CHARS,
    },
    name,
    yaml::{Content, Form, Key, Node, Position, Wrong, is_null},
};

/// The largest number of characters of a parser message in a report.
const MAX_SAID: usize = 300;

type Field = (Key, Node);

/// A `SKILL.md`, read.
#[derive(Debug, Default)]
pub(crate) struct SkillManifest {
    pub(crate) name: Arc<str>,
    pub(crate) description: Option<Arc<str>>,
    pub(crate) license: Option<Arc<str>>,
    pub(crate) compatibility: Option<Arc<str>>,
    pub(crate) metadata: BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) allowed_tools: Vec<Arc<str>>,
    pub(crate) body: Arc<str>,
}

/// The reader of a skill: it holds what the file is called, what its folder is, and where findings go.
pub(crate) struct SkillReader<'a> {
    pub(crate) file: &'a Location,
    pub(crate) folder: &'a str,
    pub(crate) findings: &'a mut Findings,
}

impl SkillReader<'_> {
    /// Reads a file; `None` if it is refused, which is reported.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Option<SkillManifest> {
        let text = self.text(bytes)?;
        let (yaml, rest) = match split(text) {
            Split::Front(yaml, rest) => (Some(yaml), rest),
            Split::None(rest) => {
                self.strict(
                    FindingKind::NoFrontMatter,
                    "there is no front matter: the file must begin with a line ---",
                );
                (None, rest)
            }
            Split::Unclosed(rest) => {
                self.told(
                    FindingKind::UnclosedFrontMatter,
                    (1, 1),
                    "the front matter has no end: a line --- is missing, so the whole file is the body",
                );
                (None, rest)
            }
        };
        let mut manifest = SkillManifest::default();
        let mut declared = None;
        if let Some(yaml) = yaml {
            declared = self.fields(yaml, &mut manifest)?;
        }
        manifest.name = self.named(declared, yaml.is_some())?;
        if yaml.is_some() && manifest.description.is_none() {
            self.strict(FindingKind::DescriptionMissing, "there is no description");
        }
        manifest.body = self.body(rest)?;
        Some(manifest)
    }

    fn text<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b str> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let line = 1 + bytes
                    .iter()
                    .take(error.valid_up_to())
                    .filter(|byte| **byte == b'\n')
                    .count() as u64;
                self.refused(
                    FindingKind::NotText,
                    (line, 0),
                    "the file is not UTF-8 text",
                );
                return None;
            }
        };
        if let Some(at) = text.find('\0') {
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count() as u64;
            self.refused(
                FindingKind::NotText,
                (line, 0),
                "the file holds a NUL, so it is no text",
            );
            return None;
        }
        if let Some(at) = text.find(name::is_invisible) {
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count() as u64;
            let message =
                "the file holds characters that do not show; look at its bytes before you trust it";
            self.findings
                .warn(FindingKind::Invisible, self.file.at(line, 0), message);
        }
        Some(text)
    }

    /// Reads the fields; the name that is declared, and where.
    fn fields(
        &mut self,
        yaml: &str,
        manifest: &mut SkillManifest,
    ) -> Option<Option<(String, (u64, u64))>> {
        if yaml.len() > MAX_FRONT_BYTES {
            let message = format!("the front matter is larger than {MAX_FRONT_BYTES} bytes");
            self.refused(FindingKind::TooLarge, (2, 0), message);
            return None;
        }
        let fields = match read(yaml).or_else(|wrong| self.retry(yaml, wrong)) {
            Ok(fields) => fields,
            Err(wrong) => {
                let said: String = wrong
                    .message
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(MAX_SAID)
                    .collect();
                let message = format!("the front matter is not YAML: {said}");
                self.refused(FindingKind::Yaml, place(wrong.at), message);
                return None;
            }
        };
        let mut declared = None;
        for field in &fields {
            let (key, node) = field;
            match key.text.as_str() {
                "name" => {
                    declared = self
                        .short(field, usize::MAX)
                        .map(|name| (name.to_string(), place(node.at)))
                }
                "description" => manifest.description = self.short(field, MAX_DESCRIPTION_CHARS),
                "license" => manifest.license = self.short(field, MAX_LICENSE_CHARS),
                "compatibility" => {
                    manifest.compatibility = self.short(field, MAX_COMPATIBILITY_CHARS)
                }
                "metadata" => manifest.metadata = self.metadata(field),
                "allowed-tools" => manifest.allowed_tools = self.tools(field),
                other => {
                    let message =
                        format!("the specification knows no field {}", name::quoted(other));
                    self.told(FindingKind::UnknownField, place(key.at), message);
                }
            }
        }
        Some(declared)
    }

    /// Reads front matter again with quotes around texts that contain a colon, as most clients accept them.
    ///
    /// Source: agentskills.io, guide for clients ("Lenient validation"), November 2026.
    fn retry(&mut self, yaml: &str, wrong: Wrong) -> Result<Vec<Field>, Wrong> {
        if self.findings.rules() == Strictness::Strict {
            return Err(wrong);
        }
        let Some(fields) = quote_texts(yaml).and_then(|yaml| read(&yaml).ok()) else {
            return Err(wrong);
        };
        let message = "a text with a colon needs quotes in YAML; it is read as if it had them";
        self.told(FindingKind::Yaml, place(wrong.at), message);
        Ok(fields)
    }

    /// A text; `None` if it is blank or has another type, which is reported.
    fn short(&mut self, field: &Field, most: usize) -> Option<Arc<str>> {
        let (key, node) = field;
        let Some(text) = text(node) else {
            if !node.is_null() {
                self.told(
                    FindingKind::FieldType,
                    place(node.at),
                    format!("{} must be a text", key.text),
                );
            }
            return None;
        };
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if text.chars().count() <= most {
            return Some(text.into());
        }
        let message = format!(
            "{} is longer than {most} characters, so it is cut",
            key.text
        );
        self.told(FindingKind::TooLong, place(node.at), message);
        Some(text.chars().take(most).collect::<String>().into())
    }

    fn metadata(&mut self, field: &Field) -> BTreeMap<Arc<str>, Arc<str>> {
        let mut metadata = BTreeMap::new();
        let fields = match &field.1.content {
            Content::Map(fields) => fields,
            _ if field.1.is_null() => return metadata,
            _ => {
                self.told(
                    FindingKind::FieldType,
                    place(field.1.at),
                    "metadata must be a mapping of texts",
                );
                return metadata;
            }
        };
        for (named, node) in fields {
            let key: String = named.text.chars().take(MAX_METADATA_CHARS).collect();
            match text(node) {
                Some(text) if metadata.len() < MAX_METADATA => {
                    let text: String = text.chars().take(MAX_METADATA_CHARS).collect();
                    metadata.insert(key.into(), text.into());
                }
                Some(_) => {
                    let message = format!(
                        "metadata has more than {MAX_METADATA} entries; the rest is left out"
                    );
                    self.told(FindingKind::TooLong, place(named.at), message);
                    break;
                }
                None if node.is_null() => drop(metadata.insert(key.into(), "".into())),
                None => {
                    let message = format!(
                        "metadata {} is not text, so it is omitted",
                        name::quoted(&key)
                    );
                    self.told(FindingKind::FieldType, place(node.at), message);
                }
            }
        }
        metadata
    }

    /// The tools that are named: separated by white space outside of parentheses, or a list.
    fn tools(&mut self, field: &Field) -> Vec<Arc<str>> {
        let at = place(field.1.at);
        let mut tools: Vec<Arc<str>> = match &field.1.content {
            _ if field.1.is_null() => Vec::new(),
            Content::Scalar(text, _) => words(text),
            Content::List(items) if items.iter().all(|item| text(item).is_some()) => {
                let message =
                    "allowed-tools is a list; the specification knows one text with spaces between";
                self.told(FindingKind::FieldType, at, message);
                let texts = items.iter().filter_map(text);
                texts
                    .map(|text| Arc::from(text.trim()))
                    .filter(|text: &Arc<str>| !text.is_empty())
                    .collect()
            }
            _ => {
                self.told(FindingKind::FieldType, at, "allowed-tools must be a text");
                Vec::new()
            }
        };
        if tools.len() > MAX_ALLOWED_TOOLS {
            let message =
                format!("allowed-tools names more than {MAX_ALLOWED_TOOLS}; the rest is left out");
            self.told(FindingKind::TooLong, at, message);
            tools.truncate(MAX_ALLOWED_TOOLS);
        }
        tools
    }

    /// The effective name: the folder's name, if it is valid.
    fn named(
        &mut self,
        declared: Option<(String, (u64, u64))>,
        has_front: bool,
    ) -> Option<Arc<str>> {
        if !name::is_tolerable(self.folder) {
            let message = format!(
                "the folder's name cannot be that of a skill: {}",
                name::quoted(self.folder)
            );
            self.refused(FindingKind::FolderName, (0, 0), message);
            return None;
        }
        match declared {
            Some((declared, at)) if let Err(why) = name::check(&declared) => {
                let message = format!(
                    "not a name: {} ({why}); the folder's counts: {}",
                    name::quoted(&declared),
                    self.folder
                );
                self.told(FindingKind::NameInvalid, at, message);
            }
            Some((declared, at)) if declared != self.folder => {
                let message = format!(
                    "the name is {declared}, but the folder's counts: {}",
                    self.folder
                );
                self.told(FindingKind::NameMismatch, at, message);
            }
            Some(_) => {}
            None if has_front => self.strict(FindingKind::NameMissing, "there is no name"),
            None => {}
        }
        if let Err(why) = name::check(self.folder) {
            let message = format!("the folder's name is no name by the specification: {why}");
            self.told(FindingKind::FolderName, (0, 0), message);
        }
        Some(self.folder.into())
    }

    fn body(&mut self, text: &str) -> Option<Arc<str>> {
        let body = body(text);
        if body.len() > MAX_BODY_BYTES {
            self.refused(
                FindingKind::TooLarge,
                (0, 0),
                format!("the body is larger than {MAX_BODY_BYTES} bytes"),
            );
            return None;
        }
        if body.is_empty() {
            self.warned(FindingKind::BodyEmpty, "the body is empty");
        }
        let lines = body.lines().count();
        if lines > ADVISED_LINES && self.findings.rules() == Strictness::Strict {
            let message =
                format!("the body has {lines} lines; at most {ADVISED_LINES} are advised");
            self.warned(FindingKind::BodyLong, message);
        }
        Some(body.into())
    }

    /// Breaks the specification, but is read.
    fn told(&mut self, kind: FindingKind, at: (u64, u64), message: impl Into<Arc<str>>) {
        let severity = self.findings.rules().severity();
        self.findings
            .push(severity, kind, self.file.at(at.0, at.1), message);
    }

    /// A violation of the specification that is accepted here: reported only in strict mode.
    fn strict(&mut self, kind: FindingKind, message: impl Into<Arc<str>>) {
        if self.findings.rules() == Strictness::Strict {
            self.findings
                .push(Severity::Error, kind, self.file.at(1, 0), message);
        }
    }

    fn warned(&mut self, kind: FindingKind, message: impl Into<Arc<str>>) {
        self.findings
            .push(Severity::Warning, kind, self.file.clone(), message);
    }

    fn refused(&mut self, kind: FindingKind, at: (u64, u64), message: impl Into<Arc<str>>) {
        self.findings
            .push(Severity::Error, kind, self.file.at(at.0, at.1), message);
    }
}

/// The text of a value, unless it is nothing or holds others.
fn text(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(text, form) => (*form != Form::Plain || !is_null(text)).then_some(text),
        Content::List(_) | Content::Map(_) => None,
    }
}

fn place(at: Position) -> (u64, u64) {
    (at.line.into(), at.column.into())
}

/// The words of a text; white space within parentheses is part of a word.
fn words(text: &str) -> Vec<Arc<str>> {
    let (mut words, mut word, mut open) = (Vec::new(), String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        if !(open == 0 && c.is_whitespace()) {
            word.push(c);
        } else if !word.is_empty() {
            words.push(Arc::from(std::mem::take(&mut word)));
        }
    }
    words.extend((!word.is_empty()).then(|| Arc::from(word)));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_parentheses_together_when_they_hold_spaces() {
        let expect: Vec<Arc<str>> = ["Bash(git add:*)", "Read", "Open("].map(Arc::from).into();
        assert_eq!(words("  Bash(git add:*)\tRead\n Open("), expect);
    }
}
