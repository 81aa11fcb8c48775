//! Characters that do not show: text that a person agrees to has them written out.

/// True if a character is a control, has no width, or is a blank other than the space.
///
/// These are control characters, characters that change the text direction, blanks other than U+0020, and fillers.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || c.is_whitespace() && c != ' '
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
        || matches!(c, '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text whole, in one line: what does not show is an escape like `\u{202e}`.
pub fn whole(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            whole.extend(c.escape_unicode())
        } else {
            whole.push(c)
        }
    }
    whole
}
