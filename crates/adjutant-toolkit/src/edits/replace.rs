//! Finds the text to replace: first exactly, then without trailing blanks, then without leading and trailing blanks of
//! each line.

use std::{collections::BTreeSet, ops::Range};

use adjutant_llm::hidden::is_hidden;

use super::patch::keyboard;
use crate::files::show;

/// The maximum number of places that an error names.
const MAX_NAMED: usize = 5;
/// The maximum number of lines of the most similar region in an error.
const MAX_NEAREST: usize = 20;

/// The maximum number of lines that are compared to find that region.
const MAX_COMPARED: usize = 40;

/// The maximum number of bytes of a line in an error.
const MAX_LINE: usize = 500;

/// The ways to compare two lines, in the order in which they are tried.
const WAYS: [fn(&str) -> &str; 2] = [str::trim_end, str::trim];

/// Returns the new content.
///
/// # Errors
/// The message for the model if nothing was replaced.
pub(super) fn replace(content: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    if old.is_empty() {
        return Err("old_text is empty; write_file writes whole files".to_owned());
    }
    if old == new {
        return Err("old_text and new_text are the same".to_owned());
    }
    let exact: Vec<usize> = content.match_indices(old).map(|(at, _)| at).collect();
    match exact[..] {
        [] => {}
        // Overlapping matches count separately: `aa` appears twice in `aaa`.
        [at] if !all && content[after_first(content, at)..].contains(old) => {
            let second = after_first(content, at);
            let next = content[second..].find(old).map_or(at, |it| second + it);
            return Err(several(content, [at, next].into_iter()));
        }
        [at] => return Ok(splice(content, at..at + old.len(), new)),
        _ if all => return Ok(content.replace(old, new)),
        _ => return Err(several(content, exact.iter().copied())),
    }
    let lines = line_ranges(content);
    let wanted: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    for way in WAYS {
        let found: Vec<usize> = windows(content, &lines, &wanted, way).collect();
        match found[..] {
            [] => {}
            [first] => {
                let last = &lines[first + wanted.len() - 1];
                // The line feed at the end is replaced only if the requested text ends with one.
                let with_feed = old.ends_with('\n') && content[last.end..].starts_with('\n');
                let end = last.end + usize::from(with_feed);
                return Ok(splice(content, lines[first].start..end, new));
            }
            _ => {
                return Err(several(
                    content,
                    found.iter().map(|line| lines[*line].start),
                ));
            }
        }
    }
    Err(differing(content, &lines, &wanted).unwrap_or_else(|| missing(content, &lines, &wanted)))
}

/// Returns the position after the character at this position.
fn after_first(content: &str, at: usize) -> usize {
    at + content[at..].chars().next().map_or(0, char::len_utf8)
}

/// Returns the ranges of the lines of a text, without their line feeds.
fn line_ranges(content: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let all = content.split('\n').map(|line| {
        let range = start..start + line.len();
        start = range.end + 1;
        range
    });
    all.collect()
}

/// Returns the first lines of the matching regions.
fn windows<'a>(
    content: &'a str,
    lines: &'a [Range<usize>],
    wanted: &'a [&'a str],
    way: fn(&str) -> &str,
) -> impl Iterator<Item = usize> + 'a {
    let fits = move |window: &[Range<usize>]| {
        window
            .iter()
            .zip(wanted)
            .all(|(line, wanted)| way(&content[line.clone()]) == way(wanted))
    };
    lines
        .windows(wanted.len())
        .enumerate()
        .filter(move |(_, window)| fits(window))
        .map(|(at, _)| at)
}

fn splice(content: &str, range: Range<usize>, new: &str) -> String {
    [&content[..range.start], new, &content[range.end..]].concat()
}

fn line_of(content: &str, at: usize) -> usize {
    content[..at].matches('\n').count() + 1
}

fn several(content: &str, places: impl Iterator<Item = usize>) -> String {
    let lines: Vec<String> = places.map(|at| line_of(content, at).to_string()).collect();
    let more = if lines.len() > MAX_NAMED { ", …" } else { "" };
    let named = lines
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "old_text stands {} times, in lines {named}{more}; take more lines around the one that is meant",
        lines.len()
    )
}

/// A visible character, or a run of blanks, with the part of the line that it stands for.
struct Unit<'a> {
    shape: char,
    text: &'a str,
}

/// The line as a reader sees it: quotes and dashes as on a keyboard, one blank for several, no invisible characters.
fn units(line: &str) -> Vec<Unit<'_>> {
    let (mut units, mut start) = (Vec::<Unit<'_>>::new(), 0);
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        if matches!(
            c,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
        ) {
            continue;
        }
        let shape = if c.is_whitespace() { ' ' } else { keyboard(c) };
        match units
            .last_mut()
            .filter(|last| shape == ' ' && last.shape == ' ')
        {
            Some(last) => last.text = &line[start - last.text.len()..end],
            None => units.push(Unit {
                shape,
                text: &line[start..end],
            }),
        }
        start = end;
    }
    units
}

/// The error for a text that differs from the file only in characters that look alike, or in upper and lower case.
fn differing(content: &str, lines: &[Range<usize>], wanted: &[&str]) -> Option<String> {
    let wanted: Vec<&str> = wanted.iter().map(|line| line.trim()).collect();
    let shapes = |line: &str| {
        units(line.trim())
            .iter()
            .map(|unit| unit.shape)
            .collect::<String>()
    };
    let shown: Vec<String> = wanted.iter().map(|line| shapes(line)).collect();
    if shown.iter().all(String::is_empty) {
        return None;
    }
    let last = shown.len() - 1;
    let mut fits: [Option<usize>; 2] = [None, None];
    let found: Vec<String> = lines
        .iter()
        .map(|line| shapes(&content[line.clone()]))
        .collect();
    for (at, window) in found.windows(shown.len()).enumerate() {
        let is_there = |fold: fn(&str) -> String| {
            window
                .iter()
                .zip(&shown)
                .enumerate()
                .all(|(n, (line, wanted))| {
                    let (line, wanted) = (fold(line), fold(wanted));
                    match n {
                        0 if last == 0 => line.contains(&wanted),
                        0 => line.ends_with(&wanted),
                        n if n == last => line.starts_with(&wanted),
                        _ => line == wanted,
                    }
                })
        };
        if fits[0].is_none() && is_there(str::to_owned) {
            fits[0] = Some(at);
        } else if fits[1].is_none() && is_there(str::to_lowercase) {
            fits[1] = Some(at);
        }
    }
    let first = fits[0].or(fits[1])?;
    let mut told = Vec::new();
    for (n, wanted) in wanted.iter().enumerate().take(MAX_NEAREST) {
        let line = &content[lines[first + n].clone()];
        let (line_units, wanted_units) = (units(line), units(wanted));
        let fold = |units: &[Unit<'_>]| {
            units
                .iter()
                .map(|unit| unit.shape)
                .collect::<String>()
                .to_lowercase()
        };
        // The place of the wanted units in the line.
        let place = (0..=line_units.len().saturating_sub(wanted_units.len())).find(|at| {
            let part = line_units.get(*at..*at + wanted_units.len());
            part.is_some_and(|part| fold(part) == fold(&wanted_units))
        });
        let pairs = place
            .and_then(|at| line_units.get(at..))
            .unwrap_or_default();
        let mut differences = Vec::new();
        for (there, asked) in pairs.iter().zip(&wanted_units) {
            let (there, asked) = (name(there.text), name(asked.text));
            let difference = format!("{there} where old_text has {asked}");
            if there != asked && !differences.contains(&difference) {
                differences.push(difference);
            }
        }
        differences.truncate(MAX_NAMED);
        if !differences.is_empty() && told.len() < MAX_NAMED {
            let (number, line) = (first + n + 1, shorten(line));
            let differences = differences.join(", and ");
            told.push(format!(
                "line {number} has {differences}:\n{number:>6}\t{line}"
            ));
        }
    }
    (!told.is_empty()).then(|| {
        format!(
            "old_text is not in the file; copy its characters exactly: {}",
            told.join("\n")
        )
    })
}

/// Names characters that look like others.
fn name(text: &str) -> String {
    let mut kinds: Vec<(char, usize)> = Vec::new();
    for c in text.chars() {
        match kinds.last_mut().filter(|last| last.0 == c) {
            Some(last) => last.1 += 1,
            None => kinds.push((c, 1)),
        }
    }
    let names = kinds.iter().map(|(c, count)| match (c, count) {
        (' ', 1) => "a space".to_owned(),
        (' ', count) => format!("{count} spaces"),
        ('\t', 1) => "a tab".to_owned(),
        ('\t', count) => format!("{count} tabs"),
        ('\u{a0}', _) => "a no-break space (U+00A0)".to_owned(),
        ('\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}', _) => {
            format!("the curly quote `{c}` (U+{:04X})", u32::from(*c))
        }
        (c, _) if c.is_ascii_graphic() || c.is_alphanumeric() => format!("`{c}`"),
        (c, _) if c.is_whitespace() || is_hidden(*c) => format!("U+{:04X}", u32::from(*c)),
        (c, _) => format!("`{c}` (U+{:04X})", u32::from(*c)),
    });
    names.collect::<Vec<_>>().join(" and ")
}

fn shorten(line: &str) -> &str {
    &line[..show::floor(line, MAX_LINE)]
}

/// The error for a missing text: it contains the region that shares most lines with it.
fn missing(content: &str, lines: &[Range<usize>], wanted: &[&str]) -> String {
    let size = wanted.len().min(lines.len());
    let same = |(line, wanted): &(&Range<usize>, &&str)| {
        let line = content[(*line).clone()].trim();
        line.len() > 1 && line == wanted.trim()
    };
    let score = |window: &[Range<usize>]| {
        window
            .iter()
            .zip(wanted)
            .take(MAX_COMPARED)
            .filter(same)
            .count()
    };
    let scores = lines
        .windows(size)
        .enumerate()
        .map(|(first, window)| (score(window), first));
    let (score, first) = scores.fold(
        (0, 0),
        |best, next| if next.0 > best.0 { next } else { best },
    );
    if score == 0 {
        return match similar(content, lines, wanted) {
            Some((number, line)) => format!(
                "old_text is not in the file; the line nearest to it is:\n{number:>6}\t{}",
                shorten(line)
            ),
            None => {
                "old_text is not in the file, and nothing like it; read the file again".to_owned()
            }
        };
    }
    let shown = lines
        .iter()
        .enumerate()
        .skip(first)
        .take(size.min(MAX_NEAREST));
    let shown: Vec<String> = shown
        .map(|(at, line)| format!("{:>6}\t{}", at + 1, &content[line.clone()]))
        .collect();
    format!(
        "old_text is not in the file; nearest to it is:\n{}",
        shown.join("\n")
    )
}

/// The line that has most of the words of the first wanted line, if it has half of them.
fn similar<'a>(
    content: &'a str,
    lines: &[Range<usize>],
    wanted: &[&str],
) -> Option<(usize, &'a str)> {
    let words = |line: &'a str| line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let first = wanted.iter().find(|line| !line.trim().is_empty())?;
    let asked: BTreeSet<&str> = first
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let score = |line: &'a str| {
        let found: BTreeSet<&str> = words(line).filter(|word| asked.contains(word)).collect();
        found.len()
    };
    let scored = lines.iter().enumerate().map(|(at, line)| {
        let line = &content[line.clone()];
        (score(line), at + 1, line)
    });
    let best = scored.fold(
        (0, 0, ""),
        |best, next| if next.0 > best.0 { next } else { best },
    );
    (best.0 > 0 && 2 * best.0 >= asked.len()).then_some((best.1, best.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_edit_names_the_difference_and_quotes_the_line() {
        let content = "fn main() {\n\tlet a\u{a0}= \u{201c}x\u{201d};\n    let b =\t1;\n    print(B – 1);\n    z\u{200b}ero();\n}\n";
        for (old, expect) in [
            (
                "let a = \"x\"",
                "line 2 has a no-break space (U+00A0) where old_text has a space, and the curly quote `\u{201c}` (U+201C) where old_text has `\"`, and",
            ),
            ("\u{201c}y", "nothing like it"),
            ("= \"x\"", "line 2 has the curly quote `\u{201c}`"),
            (
                "\"x\";",
                "line 2 has the curly quote `\u{201c}` (U+201C) where old_text has `\"`",
            ),
            (
                "let b = 1",
                "line 3 has a tab where old_text has a space:\n     3\t    let b",
            ),
            (
                "print(B - 1)",
                "line 4 has `–` (U+2013) where old_text has `-`",
            ),
            ("print(b – 1)", "line 4 has `B` where old_text has `b`"),
            ("zero()", "line 5 has U+200B and `e` where old_text has `e`"),
            (
                "let a = \"x\";\n    let b =  1;",
                "line 3 has a tab where old_text has 2 spaces",
            ),
            (
                "    print(B + 2);",
                "nearest to it is:\n     4\t    print(B – 1);",
            ),
        ] {
            let why = replace(content, old, "new", false).expect_err(old);
            assert!(why.contains(expect), "{old:?}: {why}");
        }
    }
}
