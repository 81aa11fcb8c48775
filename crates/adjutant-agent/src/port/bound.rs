//! Bounds on what an act may leave behind.

use std::{any::Any, sync::Arc};

use adjutant_llm::{CallResult, Content};

/// How many bytes of a panic's message are kept.
const MAX_PANIC: usize = 1_000;

/// Cuts the text of a result to a number of bytes, and says so.
pub(super) fn cut(mut result: CallResult, max: usize) -> CallResult {
    let mut left = max;
    for content in &mut result.content {
        let Content::Text { text } = content else { continue };
        if text.len() <= left {
            left -= text.len();
            continue;
        }
        let (kept, whole) = (floor(text, left), text.len());
        left = 0;
        let notice = format!("\n[output cut: the first {} of {whole} bytes are shown]", kept.len());
        *text = Arc::from(format!("{kept}{notice}"));
    }
    result
}

/// The message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
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
}
