//! The text results of tools, taken apart: lists of paths, numbered lines, places of matches. Tolerant.

/// The largest number of lines of a result that are used.
const MAX_LINES: usize = 5_000;

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListEntry {
    /// The path, without a slash at its end.
    pub(super) path: String,
    pub(super) is_dir: bool,
}

/// A place that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchHit {
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) text: String,
}

/// The text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileText {
    pub(super) lines: Vec<String>,
    /// The tool's own words about it, without brackets: how many lines, how large, whether more follows.
    pub(super) note: Option<String>,
}

/// The last line in brackets, if the tool wrote it about its result.
pub(super) fn note(text: &str) -> Option<&str> {
    text.trim_end()
        .lines()
        .next_back()?
        .trim()
        .strip_prefix('[')?
        .strip_suffix(']')
}

/// True if a tool reports that it omitted something.
pub(super) fn is_partial(text: &str) -> bool {
    let said = note(text).unwrap_or_default();
    ["left out", "read on", "stopped", "more"]
        .iter()
        .any(|word| said.contains(word))
}

/// A list: one path a line, perhaps with a size after two spaces, perhaps drawn as a tree, or an array of JSON.
pub(super) fn entries(text: &str) -> Vec<ListEntry> {
    if let Ok(paths) = serde_json::from_str::<Vec<String>>(text) {
        return paths
            .iter()
            .take(MAX_LINES)
            .filter_map(|it| entry(it))
            .collect();
    }
    text.lines().take(MAX_LINES).filter_map(entry).collect()
}

fn entry(line: &str) -> Option<ListEntry> {
    let line = line
        .trim()
        .trim_start_matches(|it: char| "│├└─ \t".contains(it));
    let line = line
        .strip_prefix("- ")
        .unwrap_or(line)
        .strip_prefix("./")
        .unwrap_or(line.trim_start_matches("- "));
    if line.is_empty() || line.starts_with(['[', '…', '`']) {
        return None;
    }
    let name = line
        .split("  ")
        .next()
        .unwrap_or(line)
        .split('\t')
        .next()
        .unwrap_or(line)
        .trim();
    let is_dir = name.ends_with('/');
    let path = name.trim_end_matches('/');
    (!path.is_empty()).then(|| ListEntry {
        path: path.to_owned(),
        is_dir,
    })
}

/// The lines of a file, without their numbers if they have them.
pub(super) fn text(result: &str) -> FileText {
    let note = note(result).map(str::to_owned);
    let mut lines: Vec<&str> = result.lines().take(MAX_LINES).collect();
    if note.is_some() {
        lines.pop();
    }
    let bare: Option<Vec<&str>> = lines.iter().map(|line| strip_line_number(line)).collect();
    let lines = bare
        .unwrap_or(lines)
        .into_iter()
        .map(str::to_owned)
        .collect();
    FileText { lines, note }
}

fn strip_line_number(line: &str) -> Option<&str> {
    let digits = line.trim_start();
    let rest = digits.trim_start_matches(|it: char| it.is_ascii_digit());
    if rest.len() == digits.len() {
        return None;
    }
    let marks = ["\t", "→", ": ", "| ", " | "];
    marks
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
        .or_else(|| rest.is_empty().then_some(rest))
}

/// The places of matches: `path:line: text`. Lines around matches, `path-line- text`, are left out.
pub(super) fn places(result: &str) -> Vec<SearchHit> {
    result
        .lines()
        .take(MAX_LINES)
        .filter(|line| !line.starts_with('['))
        .filter_map(place)
        .collect()
}

fn place(line: &str) -> Option<SearchHit> {
    for (at, _) in line.match_indices(':') {
        let (number, text) = line[at + 1..].split_once(':')?;
        if at > 0 && !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()) {
            let path = line[..at].to_owned();
            return Some(SearchHit {
                path,
                line: number.parse().ok()?,
                text: text.trim().to_owned(),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_takes_paths_when_a_list_has_sizes_or_lines() {
        let paths = |text| {
            entries(text)
                .into_iter()
                .map(|it| (it.path, it.is_dir))
                .collect::<Vec<_>>()
        };
        let expect = vec![("a".to_owned(), true), ("a/b c.rs".to_owned(), false)];
        assert_eq!(paths("a/\na/b c.rs  1.2 KB\n[1 file, 1 directory]"), expect);
        assert_eq!(paths("├── a/\n- ./a/b c.rs"), expect);
        assert_eq!(paths(r#"["a/", "a/b c.rs"]"#), expect);
        assert_eq!(paths("`.` holds nothing to show"), vec![]);
    }

    #[test]
    fn text_drops_numbers_when_every_line_has_one() {
        let expect = |lines: &[&str], note: Option<&str>| FileText {
            lines: lines.iter().map(|it| (*it).to_owned()).collect(),
            note: note.map(str::to_owned),
        };
        assert_eq!(
            text("     1\ta\n     2\t\n[lines 1-2 of 2, 3 B]"),
            expect(&["a", ""], Some("lines 1-2 of 2, 3 B"))
        );
        assert_eq!(text("1: a\n2: b"), expect(&["a", "b"], None));
        assert_eq!(
            text("1\ta\nno number"),
            expect(&["1\ta", "no number"], None)
        );
    }

    #[test]
    fn places_takes_matches_when_lines_stand_around_them() {
        let found = places("a.rs-1- x:2: y\na.rs:2: fn a() {}\n--\nb::c:7: d\n[2 matching lines]");
        let place = |path: &str, line, text: &str| SearchHit {
            path: path.into(),
            line,
            text: text.into(),
        };
        // A line around a match that itself looks like one cannot be told apart.
        let odd = place("a.rs-1- x", 2, "y");
        assert_eq!(
            found,
            [odd, place("a.rs", 2, "fn a() {}"), place("b::c", 7, "d")]
        );
    }
}
