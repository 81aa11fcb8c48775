//! The formats of names, digests and other words.

/// True for letters, digits, `_` and `-`, at most 64.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_part)
}

/// True for 64 lowercase hexadecimal digits.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

/// True for a text in one line that is not blank.
pub(crate) fn is_line(text: &str, most: usize) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= most
        && !text.contains(|c: char| c.is_control())
}

/// True for the key of a label.
pub(super) fn is_label(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let ends = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&key.len())
        && key.chars().all(is_part)
        && key.starts_with(ends)
        && key.ends_with(ends)
}

/// True for the name of an HTTP header.
pub(super) fn is_header(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.len() <= 128 && name.chars().all(is_part)
}

/// True for headers that contain credentials.
pub(super) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let whole = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "api-key",
        "apikey",
        "x-api-key",
        "x-goog-api-key",
    ];
    whole.contains(&name.as_str()) || crate::manifest::vars::is_credential(&name.replace('-', "_"))
}

/// True for a pattern of names of tools.
pub(super) fn is_pattern(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_part)
}

/// Returns the names in braces in a word that may be names of arguments.
pub(super) fn places(word: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let inner = word
        .split('{')
        .skip(1)
        .filter_map(|part| Some(part.split_once('}')?.0));
    inner.filter(move |name| !name.is_empty() && name.chars().all(is_part))
}
