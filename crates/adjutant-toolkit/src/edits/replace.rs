//! Finds the text to replace: first exactly, then without trailing blanks, then without leading and trailing blanks of
//! each line.

use std::ops::Range;

/// The maximum number of places that an error names.
const MAX_NAMED: usize = 5;
/// The maximum number of lines of the most similar region in an error.
const MAX_NEAREST: usize = 20;

/// The maximum number of lines that are compared to find that region.
const MAX_COMPARED: usize = 40;

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
    Err(missing(content, &lines, &wanted))
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
        return "old_text is not in the file, and nothing like it; read the file again".to_owned();
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
