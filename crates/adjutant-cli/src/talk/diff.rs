//! The change of a call, as a few colored lines from its arguments, so that the user can judge it in advance.

use adjutant::llm::CallResult;
use serde_json::{Map, Value};

use crate::{paper::style::Style, plain};

/// The maximum number of lines of a change outside of a question.
const MAX_LINES: usize = 24;

/// Returns the change that a call would make, as lines that contain all of its arguments; `None` if it does not change
/// a text.
pub(crate) fn call_diff(tool: &str, args: &str) -> Option<Vec<String>> {
    let args: Map<String, Value> = serde_json::from_str(args).ok()?;
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let (shown, lines) = match tool {
        "edit_file" => {
            let (old, new) = (text("old_text")?, text("new_text")?);
            // Displayed only if it changes.
            let end = if old.ends_with('\n') == new.ends_with('\n') {
                "\n"
            } else {
                ""
            };
            let signed = |sign: &str, text: &str| {
                signed(
                    sign,
                    &format!("{text}{}", if text.ends_with('\n') { "" } else { end }),
                )
            };
            (
                &["path", "old_text", "new_text"][..],
                changed(&signed("-", old), &signed("+", new)),
            )
        }
        "write_file" => (&["path", "content"][..], signed("+", text("content")?)),
        "apply_patch" => (&["patch"][..], signed("", text("patch")?)),
        _ => return None,
    };
    let rest = args
        .iter()
        .filter(|(name, _)| !shown.contains(&name.as_str()));
    let rest: String = rest
        .map(|(name, value)| format!(" {name}: {value}"))
        .collect();
    let head = format!("@ {}{rest}", text("path").unwrap_or_default());
    Some(if head == "@ " {
        lines
    } else {
        [vec![head], lines].concat()
    })
}

/// Returns the change that a call has made, from its result.
pub(crate) fn result_diff(result: &CallResult) -> Option<Vec<String>> {
    let diff = result.details.get("diff").and_then(Value::as_str)?;
    Some(signed("", diff)).filter(|_| !diff.is_empty())
}

/// Prefixes each line of a text with a sign.
fn signed(sign: &str, text: &str) -> Vec<String> {
    let whole = text.strip_suffix('\n');
    let mut lines: Vec<String> = whole
        .unwrap_or(text)
        .split('\n')
        .map(|line| format!("{sign}{line}"))
        .filter(|_| !text.is_empty())
        .collect();
    if whole.is_none() && !sign.is_empty() && !text.is_empty() {
        lines.push(format!("{sign} (no line end here)"));
    }
    lines
}

/// Returns old and new lines; common lines at the start and end appear once.
fn changed(old: &[String], new: &[String]) -> Vec<String> {
    let same = |(one, other): &(&String, &String)| one[1..] == other[1..];
    let head = old.iter().zip(new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(same)
        .count();
    let kept = |lines: &[String]| {
        lines
            .iter()
            .map(|line| format!(" {}", &line[1..]))
            .collect::<Vec<_>>()
    };
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    [
        kept(&old[..head]),
        old[head..old_end].to_vec(),
        new[head..new_end].to_vec(),
        kept(&old[old_end..]),
    ]
    .concat()
}

/// Formats the lines with colors, sanitized, each with its line end; all of them, or a limited number.
pub(crate) fn shown(lines: &[String], is_whole: bool, style: Style) -> String {
    let most = if is_whole { usize::MAX } else { MAX_LINES };
    let mut text = String::new();
    for line in lines.iter().take(most) {
        // Tabs are safe on a terminal.
        let safe: String = line
            .split('\t')
            .map(plain::whole)
            .collect::<Vec<_>>()
            .join("\t");
        let marked = match line.chars().next() {
            Some('+') => style.added(&safe),
            Some('-') => style.removed(&safe),
            Some('@' | '*') => style.bold(&safe),
            _ => safe,
        };
        text += &format!("  {marked}\n");
    }
    match lines.len().checked_sub(most).filter(|more| *more > 0) {
        Some(more) => text + &style.dim(&format!("  … {more} more lines")) + "\n",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_shows_what_changes_when_a_call_edits() {
        let edit = r#"{"path":"a.rs","old_text":"one\ntwo\nthree\n","new_text":"one\n2\u001b[2J\nthree\n","all":true}"#;
        let lines = call_diff("edit_file", edit).expect("an edit is a change");
        let plain = Style::test(false, 80);
        assert_eq!(
            shown(&lines, true, plain),
            "  @ a.rs all: true\n   one\n  -two\n  +2\\u{1b}[2J\n   three\n"
        );
        let edit = r#"{"path":"a.rs","old_text":"x","new_text":"x\r\n"}"#;
        let lines = call_diff("edit_file", edit).expect("an edit is a change");
        assert_eq!(
            shown(&lines, true, plain),
            "  @ a.rs\n  -x\n  - (no line end here)\n  +x\\u{d}\n"
        );
        let write = call_diff(
            "write_file",
            &format!(r#"{{"path":"b","content":"{}"}}"#, "x\\n".repeat(30)),
        );
        let text = shown(&write.expect("it is one"), false, Style::test(true, 80));
        assert!(
            text.starts_with("  \x1b[1m@ b\x1b[0m\n  \x1b[32m+x\x1b[0m\n"),
            "{text}"
        );
        assert!(text.ends_with("… 7 more lines\x1b[0m\n"), "{text}");
        assert_eq!(call_diff("read_file", "{}"), None);
    }
}
