//! Pieces of text: cut where a character ends, put on one line, kept from looking like tags; and dates.

use adjutant_agent::sections::SectionKind;

/// The tags that are defused besides those of sections.
const TAGS: [&str; 5] = ["prior_reflections", "reflection", "delegation_context", "handoff_context", "project_context"];
/// What stands where a text was cut.
const CUT: &str = " [cut]";

/// The beginning of a text, of at most `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// A text of at most `max` bytes, which says so if it was cut.
pub(crate) fn clipped(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = cut(text, max.saturating_sub(CUT.len()));
    cut(&format!("{kept}{CUT}"), max).to_owned()
}

/// A text on one line of at most `max` bytes.
pub(crate) fn line(text: &str, max: usize) -> String {
    // What is cut off anyway need not be looked at.
    let words = cut(text, max.saturating_mul(4)).split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    clipped(&words.join(" "), max)
}

/// A text in which nothing looks like a tag that the framework writes: its `<` is written as `&lt;`.
pub(crate) fn defused(text: &str) -> String {
    let mut defused = String::with_capacity(text.len());
    let mut parts = text.split('<');
    defused.extend(parts.next());
    for part in parts {
        defused.push_str(if is_tag(part) { "&lt;" } else { "<" });
        defused.push_str(part);
    }
    defused
}

/// Whether what follows a `<` makes it a tag, as a lenient reader sees it.
fn is_tag(part: &str) -> bool {
    let part = part.trim_start_matches(|c| c == '/' || is_blank(c));
    let end = part.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(part.len());
    let (name, _) = part.split_at(end);
    let known = SectionKind::KNOWN;
    TAGS.iter().copied().chain(known.iter().map(SectionKind::tag)).any(|tag| name.eq_ignore_ascii_case(tag))
}

/// Space, and characters that show as nothing.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// A day and a time of day, UTC.
pub(crate) struct Date {
    pub(crate) day: [u64; 3],
    pub(crate) time: [u64; 3],
}

impl Date {
    /// The date of a time in milliseconds since 1970-01-01 UTC.
    ///
    /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    pub(crate) fn of(ms: u64) -> Self {
        let seconds = ms / 1_000;
        let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        Self { day: [year, month, day], time: [rest / 3_600, rest / 60 % 60, rest % 60] }
    }

    /// As in the name of a file: `YYYYMMDD-HHMMSS`.
    pub(crate) fn stamp(&self) -> String {
        let ([year, month, day], [hour, minute, second]) = (self.day, self.time);
        format!("{:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}", year.min(9_999))
    }

    /// As people read it, in RFC 3339.
    pub(crate) fn rfc3339(&self) -> String {
        let ([year, month, day], [hour, minute, second]) = (self.day, self.time);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_never_splits_a_character_when_it_shortens() {
        assert_eq!(cut("äöü", 3), "ä");
        assert_eq!(clipped("ääääääää", 11), "ää [cut]");
        assert_eq!(clipped("abc", 3), "abc");
        assert_eq!(line(" a\n\tb\0c ", 9), "a b c");
    }

    #[test]
    fn defused_text_has_no_tag_of_ours_when_it_tries_to() {
        assert_eq!(defused("a < b <b> </Prior_Reflections x>"), "a < b <b> &lt;/Prior_Reflections x>");
        assert_eq!(defused("< /\u{200b}instructions><reflections>"), "&lt; /\u{200b}instructions><reflections>");
    }

    #[test]
    fn date_is_right_when_days_are_leap_days() {
        assert_eq!(Date::of(951_782_400_999).rfc3339(), "2000-02-29T00:00:00Z");
        assert_eq!(Date::of(1_709_251_199_000).stamp(), "20240229-235959");
    }
}
