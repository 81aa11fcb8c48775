//! What a call changes, in a few coloured lines: told from its arguments, so that it can be judged before it is done.

use serde_json::Value;

use crate::{paper::style::Style, plain};

/// The largest number of lines that are shown of a change that nobody is asked about.
const MAX_LINES: usize = 24;

/// The change that a call makes, as lines; none if it is no change of a text.
pub(crate) fn of_call(tool: &str, args: &str) -> Option<Vec<String>> {
    let args: Value = serde_json::from_str(args).ok()?;
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let signed = |sign: &str, text: &str| text.lines().map(|line| format!("{sign}{line}")).collect::<Vec<_>>();
    match tool {
        "edit_file" => {
            let (old, new) = (text("old_text")?, text("new_text")?);
            Some([vec![format!("@ {}", text("path")?)], changed(&signed("-", old), &signed("+", new))].concat())
        }
        "write_file" => Some([vec![format!("@ {}", text("path")?)], signed("+", text("content")?)].concat()),
        "apply_patch" => Some(signed("", text("patch")?)),
        _ => None,
    }
}

/// Old and new lines; those that begin or end both stand once.
fn changed(old: &[String], new: &[String]) -> Vec<String> {
    let same = |(one, other): &(&String, &String)| one[1..] == other[1..];
    let head = old.iter().zip(new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let kept = |lines: &[String]| lines.iter().map(|line| format!(" {}", &line[1..])).collect::<Vec<_>>();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    [kept(&old[..head]), old[head..old_end].to_vec(), new[head..new_end].to_vec(), kept(&old[old_end..])].concat()
}

/// The lines with colours, harmless, each with its line end; all of them, or so many that it stays short.
pub(crate) fn shown(lines: &[String], is_whole: bool, style: Style) -> String {
    let most = if is_whole { usize::MAX } else { MAX_LINES };
    let mut text = String::new();
    for line in lines.iter().take(most) {
        // A tab steers nothing.
        let safe: String = line.split('\t').map(plain::whole).collect::<Vec<_>>().join("\t");
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
        let edit = r#"{"path":"a.rs","old_text":"one\ntwo\nthree","new_text":"one\n2\u001b[2J\nthree"}"#;
        let lines = of_call("edit_file", edit).expect("an edit is a change");
        let plain = Style::test(false, 80);
        assert_eq!(shown(&lines, true, plain), "  @ a.rs\n   one\n  -two\n  +2\\u{1b}[2J\n   three\n");
        let write = of_call("write_file", &format!(r#"{{"path":"b","content":"{}"}}"#, "x\\n".repeat(30)));
        let text = shown(&write.expect("it is one"), false, Style::test(true, 80));
        assert!(text.starts_with("  \x1b[1m@ b\x1b[0m\n  \x1b[32m+x\x1b[0m\n"), "{text}");
        assert!(text.ends_with("… 7 more lines\x1b[0m\n"), "{text}");
        assert_eq!(of_call("read_file", "{}"), None);
    }
}
