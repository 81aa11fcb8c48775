//! Bounds on what an act may leave behind.

use std::{any::Any, sync::Arc};

use adjutant_llm::{CallResult, Content};

/// How many bytes of a panic's message are kept.
const MAX_PANIC: usize = 1_000;

/// Cuts the text of a result to a number of bytes over all its pieces, and says so once.
pub(super) fn cut(mut result: CallResult, max: usize) -> CallResult {
    let whole: usize = result.content.iter().filter_map(Content::as_text).map(str::len).sum();
    let (mut kept, mut full) = (0, false);
    result.content.retain_mut(|content| {
        let Content::Text { text } = content else { return true };
        if full {
            return false;
        }
        let part = floor(text, max - kept);
        kept += part.len();
        if part.len() < text.len() {
            full = true;
            *text = Arc::from(format!("{part}\n[output cut: the first {kept} of {whole} bytes are shown]"));
        }
        true
    });
    result
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    floor(text.unwrap_or("no message"), MAX_PANIC).to_owned()
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
        let result = cut(CallResult::ok("añb"), 2);
        assert_eq!(result.text(), "a\n[output cut: the first 1 of 4 bytes are shown]");
        assert_eq!(cut(CallResult::ok("añb"), 4).text(), "añb");
    }

    #[test]
    fn cut_tells_once_when_many_pieces_are_too_long() {
        let content = vec![Content::text("ab"); 1_000];
        let result = cut(CallResult { content, ..CallResult::ok("") }, 3);
        assert_eq!(result.text(), "ab\na\n[output cut: the first 3 of 2000 bytes are shown]");
    }
}
