//! The width and height of an image, from its first bytes, without decoding it.

/// The maximum number of segments of a JPEG that are read to find its size.
const MAX_SEGMENTS: usize = 256;

/// Returns the width and height in pixels of a PNG, GIF, WebP or JPEG in base64, or `None` if its head is not readable.
pub fn dimensions(base64: &str) -> Option<(u32, u32)> {
    size(Base64(base64.as_bytes()))
}

/// Returns the number of color components of a JPEG in base64; four of them are CMYK.
#[cfg(feature = "images")]
pub(super) fn jpeg_components(base64: &str) -> Option<u8> {
    let bytes = Base64(base64.as_bytes());
    bytes.at(frame_header(bytes)? + 9)
}

/// Width and height in pixels, from the head of a PNG, GIF, WebP or JPEG.
fn size(bytes: Base64<'_>) -> Option<(u32, u32)> {
    let head = [bytes.at(0)?, bytes.at(1)?, bytes.at(2)?, bytes.at(3)?];
    let size = match &head {
        b"\x89PNG" => (bytes.big(16, 4)?, bytes.big(20, 4)?),
        b"GIF8" => (bytes.little(6, 2)?, bytes.little(8, 2)?),
        b"RIFF" => webp(bytes)?,
        [0xFF, 0xD8, ..] => jpeg(bytes)?,
        _ => return None,
    };
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Source: Google, "WebP Container Specification" and "WebP Lossless Bitstream" (2023); RFC 6386, section 9.1.
fn webp(bytes: Base64<'_>) -> Option<(u32, u32)> {
    match bytes.big(12, 4)?.to_be_bytes() {
        [b'V', b'P', b'8', b' '] => {
            Some((bytes.little(26, 2)? & 0x3FFF, bytes.little(28, 2)? & 0x3FFF))
        }
        [b'V', b'P', b'8', b'L'] => {
            let bits = bytes.little(21, 4)?;
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        [b'V', b'P', b'8', b'X'] => Some((bytes.little(24, 3)? + 1, bytes.little(27, 3)? + 1)),
        _ => None,
    }
}

fn jpeg(bytes: Base64<'_>) -> Option<(u32, u32)> {
    let at = frame_header(bytes)?;
    Some((bytes.big(at + 7, 2)?, bytes.big(at + 5, 2)?))
}

/// Returns the offset of the frame header. Source: ITU-T T.81 (1992), annex B.
fn frame_header(bytes: Base64<'_>) -> Option<usize> {
    let mut at = 2;
    for _ in 0..MAX_SEGMENTS {
        if bytes.at(at)? != 0xFF {
            return None;
        }
        match bytes.at(at + 1)? {
            // A fill byte, and markers that stand alone.
            0xFF => at += 1,
            0x01 | 0xD0..=0xD9 => at += 2,
            0xC4 | 0xC8 | 0xCC | 0x00..=0xBF | 0xDA..=0xFE => {
                at += 2 + bytes.big(at + 2, 2)? as usize
            }
            0xC0..=0xCF => return Some(at),
        }
    }
    None
}

/// Base64 that is decoded at the positions that are read.
#[derive(Clone, Copy)]
struct Base64<'a>(&'a [u8]);

impl Base64<'_> {
    fn at(self, at: usize) -> Option<u8> {
        let digit = |place: usize| digit(*self.0.get(at / 3 * 4 + place)?);
        match at % 3 {
            0 => Some(digit(0)? << 2 | digit(1)? >> 4),
            1 => Some(digit(1)? << 4 | digit(2)? >> 2),
            _ => Some(digit(2)? << 6 | digit(3)?),
        }
    }

    fn big(self, at: usize, bytes: usize) -> Option<u32> {
        (at..at + bytes).try_fold(0, |sum, at| Some(sum << 8 | u32::from(self.at(at)?)))
    }

    fn little(self, at: usize, bytes: usize) -> Option<u32> {
        (at..at + bytes)
            .rev()
            .try_fold(0, |sum, at| Some(sum << 8 | u32::from(self.at(at)?)))
    }
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}
