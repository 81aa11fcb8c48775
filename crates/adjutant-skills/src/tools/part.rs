//! The part of a skill's file that one call shows, bounded, with where to read on.

use adjutant_llm::CallResult;
use adjutant_tool::{ToolError, ToolErrorKind};
use serde_json::json;

use crate::{
    Skill,
    folder::{Refused, bytes},
    limits::{MAX_READ_BYTES, MAX_SHOWN_BYTES},
    name,
    skill::size,
};

/// The excerpt of a text.
struct TextExcerpt {
    shown: String,
    lines: u64,
    /// The line to read on with, if there is one.
    next: Option<u64>,
    /// True if the line is longer than its excerpt.
    is_line_cut: bool,
}

/// Shows a file of a skill from a line on.
pub(super) fn read(skill: &Skill, path: &str, first: u64) -> Result<CallResult, ToolError> {
    let quoted_path = name::quoted(path);
    let (file, total) = skill
        .folder
        .file(path.trim())
        .map_err(|refused| told(&refused, &quoted_path))?;
    let bytes = bytes(file, MAX_READ_BYTES).map_err(|error| {
        ToolError::failed(format!("cannot read {quoted_path}: {}", error.kind()))
    })?;
    let is_whole = bytes.len() as u64 >= total;
    let text = text(&bytes, is_whole).ok_or_else(|| {
        ToolError::failed(format!(
            "{quoted_path} is a binary file of {}, not text",
            size(total)
        ))
    })?;
    let first = first.max(1);
    let part = TextExcerpt::new(text, first);
    if part.lines == 0 && first > 1 {
        return Err(ToolError::failed(format!(
            "{quoted_path} has no line {first}"
        )));
    }
    let (last, lines, is_cut) = (
        first + part.lines.saturating_sub(1),
        part.lines,
        part.next.is_some() || !is_whole,
    );
    let footer = match part.next {
        Some(next) if part.is_line_cut => {
            format!(
                "[line {first} is cut: it is longer than {MAX_SHOWN_BYTES} bytes; read on with start_line={next}]"
            )
        }
        Some(next) => format!(
            "[cut after line {last}, of {}; read on with start_line={next}]",
            size(total)
        ),
        None if !is_whole => {
            format!(
                "[cut after line {last}: a file of {} is read up to {}]",
                size(total),
                size(MAX_READ_BYTES)
            )
        }
        None => format!("[end of {quoted_path}, {}]", size(total)),
    };
    let details = json!({"file": path, "of": skill.name(), "first_line": first, "lines": lines, "cut": is_cut});
    Ok(CallResult {
        details,
        ..CallResult::ok(part.shown + &footer)
    })
}

impl TextExcerpt {
    /// The lines from the first on, as many as there is room for.
    fn new(text: &str, first: u64) -> Self {
        let mut part = Self {
            shown: String::new(),
            lines: 0,
            next: None,
            is_line_cut: false,
        };
        for (at, line) in (1_u64..)
            .zip(text.split_inclusive('\n'))
            .skip_while(|(at, _)| *at < first)
        {
            if part.shown.len() + line.len() <= MAX_SHOWN_BYTES {
                part.shown.push_str(line);
                part.lines += 1;
                continue;
            }
            part.next = Some(at);
            if part.lines == 0 {
                // A single line is too long: only its beginning fits.
                part.shown.push_str(floor(line, MAX_SHOWN_BYTES));
                (part.lines, part.next, part.is_line_cut) = (1, Some(at + 1), true);
            }
            break;
        }
        if !part.shown.is_empty() && !part.shown.ends_with('\n') {
            part.shown.push('\n');
        }
        part
    }
}

/// The bytes as text; `None` if they are not text. The last character can be incomplete if the file was cut.
fn text(bytes: &[u8], is_whole: bool) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if !is_whole && error.error_len().is_none() => bytes
            .get(..error.valid_up_to())
            .and_then(|bytes| std::str::from_utf8(bytes).ok()),
        Err(_) => None,
    }
}

/// The beginning of a text, at most `most` bytes.
fn floor(text: &str, most: usize) -> &str {
    let mut at = most.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.get(..at).unwrap_or_default()
}

/// Returns the error for the model, with the requested path and without the location of the skill.
fn told(refused: &Refused, quoted_path: &str) -> ToolError {
    match refused {
        Refused::Missing => ToolError::failed(format!("the skill has no file {quoted_path}")),
        Refused::Outside => {
            let message = format!(
                "{quoted_path} is not in the skill's folder; paths are relative to it and stay inside"
            );
            ToolError::new(ToolErrorKind::Denied, message)
        }
        Refused::NotAFile => ToolError::failed(format!(
            "{quoted_path} is not a regular file, so it is not opened"
        )),
        Refused::IsFolder => {
            ToolError::failed(format!("{quoted_path} is a folder; name a file in it"))
        }
        Refused::Io(error) => {
            ToolError::failed(format!("cannot open {quoted_path}: {}", error.kind()))
        }
    }
}
