//! Scalars without quotes: numbers, Booleans, null, or texts.

/// The type of a scalar without quotes, by YAML's core schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// A number that exceeds every type.
    Excess,
    Text,
}

/// Returns the type of a text without quotes.
pub(super) fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN"
        | ".NAN" => {
            return Plain::Excess;
        }
        _ => {}
    }
    let radix = [("0x", 16), ("0o", 8)]
        .into_iter()
        .find_map(|(start, radix)| Some((text.strip_prefix(start)?, radix)));
    if let Some((digits, radix)) = radix {
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        let number = u64::from_str_radix(digits, radix).map_or(Plain::Excess, Plain::Unsigned);
        return if is_number { number } else { Plain::Text };
    }
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+');
    if !bare.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !bare.chars().all(is_part) {
        return Plain::Text;
    }
    if bare.chars().all(|c| c.is_ascii_digit()) {
        let unsigned = text.parse().map(Plain::Unsigned).ok();
        return unsigned
            .or_else(|| text.parse().map(Plain::Signed).ok())
            .unwrap_or(Plain::Excess);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Plain::Float(number),
        Ok(_) => Plain::Excess,
        Err(_) => Plain::Text,
    }
}
