//! Validates the names of sessions and the sizes of pages.

use adjutant_agent::LogId;

use super::{MAX_PAGE, MAX_SESSION_CHARS, PAGE};
use crate::{Error, ErrorKind};

/// The reserved prefix of internal names.
const RESERVED: &str = "adjutant:";

/// Returns the log of a session, if the name is valid: 1 to 128 characters without control characters.
///
/// A name is data, never a path, so it can be any other text.
///
/// # Errors
/// `Invalid` if the name is not valid.
pub fn check(name: &str) -> Result<LogId, Error> {
    let refuse = |why: &str| {
        Err(Error::new(
            ErrorKind::Invalid,
            format!("a session cannot have this name: {why}"),
        ))
    };
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > 4 * MAX_SESSION_CHARS || name.chars().count() > MAX_SESSION_CHARS {
        return refuse(&format!("it has more than {MAX_SESSION_CHARS} characters"));
    }
    if name
        .chars()
        .any(|it| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}'))
    {
        return refuse("it has a control character");
    }
    if name.starts_with(RESERVED) {
        return refuse(&format!("it begins with {RESERVED:?}"));
    }
    Ok(LogId::from(name))
}

/// Returns the number of items in a page.
pub(super) fn page(limit: Option<u32>) -> Result<usize, Error> {
    match limit.unwrap_or(PAGE) {
        limit @ 1..=MAX_PAGE => Ok(limit as usize),
        limit => {
            let message = format!("the limit of a page is from 1 to {MAX_PAGE}: {limit}");
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_takes_any_text_but_empty_long_reserved_and_with_controls() {
        for name in [
            "a",
            "../../etc/passwd",
            "日本語",
            "a b",
            ".",
            "..",
            "CON",
            "a/b\\c",
            "%2e%2e",
            &"ü".repeat(128),
        ] {
            assert_eq!(
                check(name)
                    .map(|log| log.0.to_string())
                    .map_err(|error| error.to_string()),
                Ok(name.to_owned())
            );
        }
        for name in [
            "",
            "a\0",
            "a\nb",
            "\u{1b}[31m",
            "\u{85}",
            "a\u{2028}",
            "adjutant:half-made/1",
            &"a".repeat(129),
        ] {
            assert_eq!(
                check(name).map_err(|error| error.kind()),
                Err(ErrorKind::Invalid),
                "{name:?}"
            );
        }
    }

    #[test]
    fn page_is_fifty_without_a_limit_and_refuses_none_and_too_many() {
        let limits = [None, Some(1), Some(1000), Some(0), Some(1001)];
        let pages = limits.map(|limit| page(limit).ok());
        assert_eq!(pages, [Some(50), Some(1), Some(1000), None, None]);
    }
}
