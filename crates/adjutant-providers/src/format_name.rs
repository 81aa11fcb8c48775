//! The name of a format as vendors take it. Pure.

use std::borrow::Cow;

/// How many characters a name may have. Source: `json_schema.name` in openai-python, 2026-08.
const MAX_NAME: usize = 64;
/// What a format without a name is called.
const DEFAULT: &str = "answer";

/// The name of a format: letters, digits, `_` and `-`; anything else becomes `_`, and what is too long is cut.
///
/// Source: `json_schema.name` in openai-python, 2026-08.
pub(crate) fn format_name(name: &str) -> Cow<'_, str> {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if name.is_empty() {
        return Cow::Borrowed(DEFAULT);
    }
    if name.len() <= MAX_NAME && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(|it| if fits(it) { it } else { '_' }).take(MAX_NAME).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_name_is_as_vendors_take_it_when_it_is_anything() {
        assert_eq!(format_name("in-voice_2"), Cow::Borrowed("in-voice_2"));
        assert_eq!(format_name(""), "answer");
        assert_eq!(format_name("Große Rechnung.v1"), "Gro_e_Rechnung_v1");
        assert_eq!(format_name(&"é".repeat(70)), "_".repeat(64));
        assert_eq!(format_name(&"x".repeat(65)), "x".repeat(64));
    }
}
