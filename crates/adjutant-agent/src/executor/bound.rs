//! Bounds on the data that an activity may leave behind.

use std::sync::Arc;

use adjutant_llm::{CallResult, Content};

/// The maximum number of bytes of a result's text that are stored, whatever part the model receives.
const HARD_RESULT_BYTES: usize = 4 * 1024 * 1024;

/// Returns the stored part of a result, and the part for the model if that is smaller.
///
/// `max` is the limit for the model, in bytes of text; `more` creates the note about the rest.
pub(super) fn limit_result(
    result: CallResult,
    max: usize,
    more: impl FnOnce() -> String,
) -> (Arc<CallResult>, Option<Arc<CallResult>>) {
    let whole = size(&result);
    if whole <= max {
        return (Arc::new(result), None);
    }
    let shown = cut(result.clone(), max, &format!("shown{}", more()));
    let kept = if whole > HARD_RESULT_BYTES {
        cut(result, HARD_RESULT_BYTES.max(max), "kept")
    } else {
        result
    };
    (Arc::new(kept), Some(Arc::new(shown)))
}

fn size(result: &CallResult) -> usize {
    result
        .content
        .iter()
        .filter_map(Content::as_text)
        .map(str::len)
        .sum()
}

/// Cuts the text of a result to a number of bytes over all its pieces, with one note.
fn cut(mut result: CallResult, max: usize, how: &str) -> CallResult {
    let whole = size(&result);
    let (mut kept, mut full) = (0, false);
    result.content.retain_mut(|content| {
        let Content::Text { text } = content else {
            return true;
        };
        if full {
            return false;
        }
        let part = floor(text, max - kept);
        kept += part.len();
        if part.len() < text.len() {
            full = true;
            *text = Arc::from(format!(
                "{part}\n[output cut: the first {kept} of {whole} bytes are {how}]"
            ));
        }
        true
    });
    result
}

/// The longest start of a text of at most `max` bytes that ends between two characters.
fn floor(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_keeps_characters_whole_when_the_limit_is_inside_one() {
        let result = cut(CallResult::ok("añb"), 2, "shown");
        assert_eq!(
            result.text(),
            "a\n[output cut: the first 1 of 4 bytes are shown]"
        );
        assert_eq!(cut(CallResult::ok("añb"), 4, "shown").text(), "añb");
    }

    #[test]
    fn cut_tells_once_when_many_pieces_are_too_long() {
        let content = vec![Content::text("ab"); 1_000];
        let result = cut(
            CallResult {
                content,
                ..CallResult::ok("")
            },
            3,
            "shown",
        );
        assert_eq!(
            result.text(),
            "ab\na\n[output cut: the first 3 of 2000 bytes are shown]"
        );
    }

    #[test]
    fn result_is_kept_whole_when_the_model_is_shown_less() {
        let (kept, shown) = limit_result(CallResult::ok("abcd"), 3, || "; there is more".into());
        assert_eq!(kept.text(), "abcd");
        let shown = shown.expect("less is shown").text();
        assert_eq!(
            shown,
            "abc\n[output cut: the first 3 of 4 bytes are shown; there is more]"
        );
        let (kept, _) = limit_result(
            CallResult::ok("x".repeat(HARD_RESULT_BYTES + 1)),
            3,
            String::new,
        );
        let notice = "\n[output cut: the first 4194304 of 4194305 bytes are kept]";
        assert_eq!(kept.text().split_at(HARD_RESULT_BYTES).1, notice);
        assert_eq!(limit_result(CallResult::ok("abc"), 3, String::new).1, None);
    }
}
