//! UTF-16: what a file with such a mark of byte order says.

/// The text of a file that begins with a mark of UTF-16; `None` if it does not, or is none.
pub(super) fn of_file(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => decode(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => decode(rest, u16::from_be_bytes),
        _ => None,
    }
}

/// The text of these units; `None` if it is none.
pub(crate) fn decode(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .ok()
}
