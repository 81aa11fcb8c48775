//! A project's description of itself: manifests and the beginning of a README. Just enough of each format, by hand.

use serde_json::Value;

use super::{evidence::Read, shapes::ListEntry};

/// The files that are read when nothing can be listed.
pub(super) const LIKELY: &[&str] = &[
    "README.md",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
];
/// The maximum number of characters of a description in an answer.
const MAX_SENTENCE: usize = 300;

/// The content of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProjectManifest {
    pub(super) path: String,
    /// The name for such a project, for example `Rust crate`.
    pub(super) kind: &'static str,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) is_workspace: bool,
}

/// The beginning of a README.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) title: Option<String>,
    pub(super) sentence: Option<String>,
}

/// The READMEs and manifests of a list that describe the directory; the ones nearest to the top first.
pub(super) fn worth_reading(entries: &[&ListEntry]) -> Vec<String> {
    let mut wanted: Vec<(usize, &str)> = Vec::new();
    for entry in entries.iter().filter(|it| !it.is_dir) {
        let depth = entry.path.matches('/').count();
        let name = name(&entry.path);
        if kind(name).is_some() || (depth == 0 && is_readme(name)) {
            wanted.push((depth, &entry.path));
        }
    }
    wanted.sort_unstable();
    wanted
        .into_iter()
        .map(|(_, path)| path.to_owned())
        .collect()
}

pub(super) fn is_readme(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.eq_ignore_ascii_case("readme")
}

/// The last part of a path.
pub(super) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn kind(name: &str) -> Option<&'static str> {
    match name {
        "Cargo.toml" => Some("Rust crate"),
        "package.json" => Some("JavaScript package"),
        "pyproject.toml" => Some("Python project"),
        "go.mod" => Some("Go module"),
        _ => None,
    }
}

impl ProjectManifest {
    /// Reads a file as a manifest; `None` if it is not one.
    pub(super) fn from_file(file: &Read) -> Option<Self> {
        let kind = kind(name(&file.path))?;
        let mut manifest = Self {
            path: file.path.clone(),
            kind,
            name: None,
            description: None,
            is_workspace: false,
        };
        match name(&file.path) {
            "package.json" => manifest.read_json(&file.text.lines.join("\n")),
            "go.mod" => {
                manifest.name = file
                    .text
                    .lines
                    .iter()
                    .find_map(|it| it.strip_prefix("module "))
                    .map(|it| it.trim().to_owned());
            }
            _ => manifest.read_toml(&file.text.lines),
        }
        manifest.description = manifest.description.map(|it| first_sentence(&it));
        Some(manifest)
    }

    /// The directory that contains the manifest; empty for the top.
    pub(super) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    fn read_json(&mut self, text: &str) {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return;
        };
        let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        self.name = field("name");
        self.description = field("description");
        self.is_workspace = value.get("workspaces").is_some();
    }

    fn read_toml(&mut self, lines: &[String]) {
        let mut section = String::new();
        let mut lines = lines.iter().map(|it| it.trim()).peekable();
        while let Some(line) = lines.next() {
            if let Some(header) = line.strip_prefix('[') {
                section = header
                    .split(']')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned();
                self.is_workspace |= section == "workspace";
                continue;
            }
            if !matches!(section.as_str(), "package" | "project" | "tool.poetry") {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let slot = match key.trim() {
                "name" => &mut self.name,
                "description" => &mut self.description,
                _ => continue,
            };
            let value = value.trim();
            let long = value
                .strip_prefix("\"\"\"")
                .or_else(|| value.strip_prefix("'''"));
            *slot = match long {
                Some("" | "\\") => lines
                    .peek()
                    .map(|it| it.trim_end_matches(['"', '\'', '\\']).trim().to_owned()),
                Some(rest) => Some(rest.trim_end_matches(['"', '\'']).trim().to_owned()),
                None => string(value),
            };
        }
    }
}

/// A string of TOML on one line.
fn string(value: &str) -> Option<String> {
    let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let mut text = String::new();
    let mut characters = value.chars().skip(1);
    while let Some(character) = characters.next() {
        match character {
            '\\' if quote == '"' => text.extend(characters.next()),
            it if it == quote => return Some(text),
            it => text.push(it),
        }
    }
    None
}

impl Opening {
    /// The first heading and the first sentence of a Markdown text; pictures, badges and markup are passed over.
    pub(super) fn from_markdown(lines: &[String]) -> Self {
        let mut opening = Self::default();
        let mut paragraph = String::new();
        let mut is_fenced = false;
        for line in lines.iter().map(|it| it.trim()) {
            is_fenced ^= line.starts_with("```");
            let is_markup = is_fenced
                || line.starts_with(['<', '|', '=', '`'])
                || line.starts_with("![")
                || line.starts_with("[!")
                || line.starts_with("---");
            if let Some(title) = line.strip_prefix('#').filter(|_| !is_fenced) {
                if !paragraph.is_empty() {
                    break;
                }
                opening
                    .title
                    .get_or_insert_with(|| title.trim_start_matches('#').trim().to_owned());
            } else if line.is_empty() || is_markup {
                if !paragraph.is_empty() {
                    break;
                }
            } else {
                let said = line.trim_start_matches('>').trim_start();
                paragraph = format!("{paragraph} {said}").trim().to_owned();
            }
        }
        opening.sentence = (!paragraph.is_empty()).then(|| first_sentence(&paragraph));
        opening
    }

    /// The first sentence of the comment that a source file begins with.
    pub(super) fn from_code(lines: &[String]) -> Self {
        let mut said: Vec<&str> = Vec::new();
        for line in lines
            .iter()
            .map(|it| it.trim())
            .skip_while(|it| it.is_empty() || it.starts_with("#!/"))
        {
            let marks = [
                "//!", "///", "//", "/**", "/*", "*/", "\"\"\"", "--", ";;", "# ", "* ",
            ];
            let comment = marks.iter().find_map(|mark| line.strip_prefix(mark));
            match comment.map(|it| it.trim_end_matches("\"\"\"").trim_end_matches("*/").trim()) {
                Some("") if said.is_empty() => {}
                Some("") | None => break,
                Some(text) => said.push(text),
            }
        }
        let sentence = (!said.is_empty()).then(|| first_sentence(&said.join(" ")));
        Self {
            title: None,
            sentence,
        }
    }
}

/// The first sentence of a text, cut where it is too long.
pub(super) fn first_sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    cut(&text[..end], MAX_SENTENCE)
}

/// The first characters of a text.
pub(super) fn cut(text: &str, max: usize) -> String {
    let mut cut: String = text.chars().take(max).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::shapes::FileText;

    fn manifest(path: &str, text: &str) -> Option<(Option<String>, Option<String>, bool)> {
        let lines = text.lines().map(str::to_owned).collect();
        let file = Read {
            path: path.to_owned(),
            text: FileText { lines, note: None },
        };
        ProjectManifest::from_file(&file).map(|it| (it.name, it.description, it.is_workspace))
    }

    fn said(
        name: &str,
        description: &str,
        is_workspace: bool,
    ) -> Option<(Option<String>, Option<String>, bool)> {
        Some((
            Some(name.to_owned()),
            Some(description.to_owned()),
            is_workspace,
        ))
    }

    #[test]
    fn of_takes_name_and_description_when_it_is_a_manifest() {
        let cargo = "[package]\nname = \"a\" # it\nversion.workspace = true\ndescription = \"Says \\\"b\\\". More.\"\n\
            [dependencies]\nname = \"no\"\n[workspace]\n";
        assert_eq!(
            manifest("x/Cargo.toml", cargo),
            said("a", "Says \"b\".", true)
        );
        let poetry = "[tool.poetry]\nname = 'p'\ndescription = \"\"\"\nLong one\n\"\"\"\n";
        assert_eq!(
            manifest("pyproject.toml", poetry),
            said("p", "Long one", false)
        );
        let npm = r#"{"name": "n", "description": "Npm", "workspaces": []}"#;
        assert_eq!(manifest("package.json", npm), said("n", "Npm", true));
        assert_eq!(
            manifest("package.json", "{cut off"),
            Some((None, None, false))
        );
        assert_eq!(
            manifest("go.mod", "module a.example/b\n"),
            Some((Some("a.example/b".into()), None, false))
        );
        assert_eq!(manifest("lib.rs", ""), None);
    }

    #[test]
    fn opening_passes_over_badges_when_a_readme_has_them() {
        let text = "[![badge](x)](y)\n```\n# no\nno\n```\n# Title\n\n<p>\n\n> Does *this*\nand that. And more.\n\n## Next\n";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let expect = Opening {
            title: Some("Title".into()),
            sentence: Some("Does *this* and that.".into()),
        };
        assert_eq!(Opening::from_markdown(&lines), expect);
        assert_eq!(Opening::from_markdown(&[]), Opening::default());
    }

    #[test]
    fn opening_takes_the_first_comment_when_it_is_code() {
        let sentence = |text: &str| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            Opening::from_code(&lines).sentence
        };
        assert_eq!(
            sentence("//! Does\n//! this. More.\n\nuse x;"),
            Some("Does this.".to_owned())
        );
        assert_eq!(
            sentence("#!/bin/sh\n# Does that\nset -e"),
            Some("Does that".to_owned())
        );
        assert_eq!(
            sentence("\"\"\"Does it.\"\"\"\nimport os"),
            Some("Does it.".to_owned())
        );
        assert_eq!(
            sentence("/**\n * Does all.\n */"),
            Some("Does all.".to_owned())
        );
        assert_eq!(sentence("#[derive(Debug)]\nstruct A;"), None);
    }
}
