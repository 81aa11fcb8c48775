//! A `SKILL.md` as text: the front matter between its marks, and the body.

use crate::yaml::{self, Budget, Content, Key, Node, Wrong};

/// The line that opens and closes front matter.
const MARK: &str = "---";

/// The limits of front matter.
const BUDGET: Budget = Budget {
    nodes: 2_000,
    depth: 8,
    anchors: 16,
    aliases: 16,
};

/// The fields of front matter, which begins in the second line of its file.
pub(crate) fn read(front: &str) -> Result<Vec<(Key, Node)>, Wrong> {
    // One line is prepended, so that positions match those of the file.
    let node = yaml::read(&format!("\n{front}"), BUDGET)?;
    if let Content::Map(fields) = node.content {
        Ok(fields)
    } else {
        Ok(Vec::new())
    }
}

/// Puts plain texts of top-level fields that YAML cannot read, as `Use it for: a, b`, into quotes; `None` if all
/// texts are readable.
pub(crate) fn quote_texts(yaml: &str) -> Option<String> {
    let (mut out, mut is_changed) = (String::with_capacity(yaml.len() + 16), false);
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        out.push('\n');
        let (key, text) = line.split_once(": ").unwrap_or((line, ""));
        let text = text.trim();
        let is_field = key.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_field
            || text.is_empty()
            || text.starts_with(['"', '\'', '[', '{', '|', '>', '#', '&', '*', '!'])
        {
            out.push_str(line);
            continue;
        }
        let mut whole = text.to_owned();
        while let Some(more) = lines.next_if(|next| next.starts_with([' ', '\t'])) {
            whole.push_str("\n ");
            whole.push_str(more.trim());
        }
        let is_broken = whole.contains(": ")
            || whole.lines().any(|line| line.ends_with(':'))
            || whole.starts_with(['@', '`', '%']);
        out.push_str(key);
        out.push_str(": ");
        match is_broken {
            true => out.push_str(&format!("'{}'", whole.replace('\'', "''"))),
            false => out.push_str(&whole),
        }
        is_changed |= is_broken;
    }
    is_changed.then(|| out.get(1..).unwrap_or_default().to_owned())
}

/// A file, in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Split<'a> {
    /// There is no front matter: the whole file is the body.
    None(&'a str),
    /// The front matter has no end: the whole file is the body.
    Unclosed(&'a str),
    /// The YAML, which begins in line 2, and the body.
    Front(&'a str, &'a str),
}

/// Takes a file apart; a mark of byte order is dropped.
pub(crate) fn split(text: &str) -> Split<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !is_mark(first) {
        return Split::None(text);
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let end = at + line.len();
        if is_mark(line) {
            return Split::Front(
                rest.get(..at).unwrap_or_default(),
                rest.get(end..).unwrap_or_default(),
            );
        }
        at = end;
    }
    Split::Unclosed(text)
}

/// The body in the form for the model: lines end with a line feed, without blank lines at the start and end.
pub(crate) fn body(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.trim_matches(|c: char| c == '\n' || c == '\r')
        .trim_end()
        .to_owned()
}

fn is_mark(line: &str) -> bool {
    line.trim_end() == MARK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_finds_the_marks_when_lines_end_in_any_way() {
        let cases = [
            (
                "---\nname: a\n---\nBody\n",
                Split::Front("name: a\n", "Body\n"),
            ),
            (
                "---\r\nname: a\r\n---\r\nBody",
                Split::Front("name: a\r\n", "Body"),
            ),
            ("\u{feff}---\n---", Split::Front("", "")),
            ("--- \nname: a\n---  \n", Split::Front("name: a\n", "")),
            ("---\nname: a\nBody", Split::Unclosed("---\nname: a\nBody")),
            ("---", Split::Unclosed("---")),
            (" ---\nname: a\n---\n", Split::None(" ---\nname: a\n---\n")),
            ("----\n---\n", Split::None("----\n---\n")),
            ("", Split::None("")),
        ];
        for (text, expect) in cases {
            assert_eq!(split(text), expect, "{text:?}");
        }
    }

    #[test]
    fn body_has_line_feeds_alone_when_it_had_carriage_returns() {
        assert_eq!(body("\r\n\r\n  a\r\nb\r\n\r\n"), "  a\nb");
    }
}
