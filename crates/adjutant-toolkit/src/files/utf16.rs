//! Decodes UTF-16 text with a byte order mark.

/// Decodes a file that begins with a UTF-16 byte order mark; `None` without one, and for invalid text.
pub(super) fn of_file(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => decode(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => decode(rest, u16::from_be_bytes),
        _ => None,
    }
}

/// Decodes these units; `None` if they are invalid.
pub(crate) fn decode(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .ok()
}
