//! The outline of a file, derived from the starts of its lines: headings, definitions, and the language by its
//! extension.

use std::collections::BTreeMap;

use super::{manifest, shapes::ListEntry};

/// The maximum number of characters of a line in an outline.
pub(super) const MAX_LINE: usize = 120;

/// Words that may precede the keyword of a definition.
const BEFORE: &[&str] = &[
    "pub",
    "pub(crate)",
    "pub(super)",
    "async",
    "unsafe",
    "export",
    "default",
    "static",
    "final",
    "abstract",
    "public",
    "private",
    "protected",
    "declare",
];
/// The keywords of definitions.
const DEFINES: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "trait",
    "union",
    "mod",
    "type",
    "const",
    "macro_rules!",
    "class",
    "interface",
    "function",
    "def",
    "func",
    "var",
    "let",
    "module",
    "object",
    "record",
];

/// Returns the name that a line defines: the one after `fn`, `class`, `def` and the like.
pub(super) fn definition_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|it| BEFORE.contains(it));
    let word = words.next()?;
    let is_const_fn = word == "const" && words.clone().next() == Some("fn");
    if is_const_fn {
        words.next();
    }
    if !DEFINES.contains(&word) {
        return None;
    }
    let name = words.next()?;
    let end = name
        .find(|it: char| !it.is_alphanumeric() && it != '_')
        .unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

/// True if a file is for reading rather than for running.
pub(super) fn is_prose(path: &str) -> bool {
    let name = manifest::name(path);
    let end = name
        .rsplit_once('.')
        .map_or("", |(_, end)| end)
        .to_ascii_lowercase();
    matches!(
        end.as_str(),
        "" | "md" | "markdown" | "txt" | "rst" | "adoc"
    )
}

/// The headings of a Markdown text, or what other text defines at its outermost level.
pub(super) fn outline(path: &str, lines: &[String]) -> Vec<String> {
    let is_markdown = path.ends_with(".md") || path.ends_with(".markdown");
    let mut fenced = false;
    let mut outline = Vec::new();
    for line in lines {
        fenced ^= is_markdown && line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_markdown && !fenced && heading.len() < line.len() && heading.starts_with(' ') {
            outline.push(heading.trim().to_owned());
        } else if !is_markdown
            && !line.starts_with(char::is_whitespace)
            && definition_name(line).is_some()
        {
            let line = line.trim_end().trim_end_matches(['{', ':', '(']).trim_end();
            outline.push(format!("`{}`", manifest::cut(line, MAX_LINE)));
        }
    }
    outline
}

/// Counts the files of each language, the most first.
pub(super) fn languages(entries: &[&ListEntry]) -> Vec<(&'static str, usize)> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for entry in entries.iter().filter(|it| !it.is_dir) {
        if let Some(language) = language(manifest::name(&entry.path)) {
            *counts.entry(language).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn language(name: &str) -> Option<&'static str> {
    Some(
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "rs" => "Rust",
            "py" | "pyi" => "Python",
            "js" | "mjs" | "cjs" | "jsx" => "JavaScript",
            "ts" | "mts" | "tsx" => "TypeScript",
            "go" => "Go",
            "java" => "Java",
            "kt" | "kts" => "Kotlin",
            "c" | "h" => "C",
            "cc" | "cpp" | "cxx" | "hpp" | "hh" => "C++",
            "cs" => "C#",
            "rb" => "Ruby",
            "php" => "PHP",
            "swift" => "Swift",
            "scala" => "Scala",
            "hs" => "Haskell",
            "ex" | "exs" => "Elixir",
            "lua" => "Lua",
            "zig" => "Zig",
            "sh" | "bash" => "Shell",
            "sql" => "SQL",
            "html" | "htm" => "HTML",
            "css" | "scss" => "CSS",
            "md" | "markdown" => "Markdown",
            "toml" => "TOML",
            "json" => "JSON",
            "yaml" | "yml" => "YAML",
            _ => return None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defined_names_what_a_line_defines_when_it_does() {
        let lines = [
            ("pub(crate) async fn run(x: u8) {", Some("run")),
            ("export default class Foo<T> {", Some("Foo")),
            ("    def bar(self):", Some("bar")),
            ("const fn baz() {}", Some("baz")),
            ("run(x)", None),
            ("fn", None),
            ("let (a, b) = c;", None),
        ];
        for (line, expect) in lines {
            assert_eq!(definition_name(line), expect, "{line}");
        }
    }
}
