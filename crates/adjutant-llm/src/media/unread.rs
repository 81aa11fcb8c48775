//! The check of an image without a decoder: its size, and whether its end is there.

use super::{admit::MAX_IMAGE_BYTES, size::dimensions};

/// The maximum number of pixels of a side. Source: "Vision", platform.claude.com, 2026-11: 8,000 px.
const MAX_SIDE: u32 = 8_000;
/// The number of bytes at the end in which the last marker must be.
const END: usize = 1_024;

/// Returns `None`: the image is sent as it is.
///
/// # Errors
/// The reason why it cannot be sent.
pub(super) fn fit(
    bytes: &[u8],
    base64: &str,
    media_type: &'static str,
) -> Result<Option<(&'static str, Vec<u8>)>, String> {
    let Some((width, height)) = dimensions(base64) else {
        return Err("it cannot be decoded: its size is not readable".to_owned());
    };
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(format!("at most {MAX_IMAGE_BYTES} bytes are taken"));
    }
    if width.max(height) > MAX_SIDE {
        return Err(format!(
            "it has {width} x {height} pixels, at most {MAX_SIDE} a side are taken"
        ));
    }
    let end = &bytes[bytes.len().saturating_sub(END)..];
    let has = |marker: &[u8]| end.windows(marker.len()).any(|window| window == marker);
    let is_whole = match media_type {
        "image/png" => has(b"IEND"),
        "image/jpeg" => has(b"\xFF\xD9"),
        "image/gif" => has(b";"),
        _ => bytes
            .get(4..8)
            .and_then(|size| <[u8; 4]>::try_from(size).ok())
            .is_some_and(|size| u32::from_le_bytes(size) as usize <= bytes.len() - 8),
    };
    if !is_whole {
        return Err("it cannot be decoded: its end is missing".to_owned());
    }
    Ok(None)
}
