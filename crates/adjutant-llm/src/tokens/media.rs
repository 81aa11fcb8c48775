//! The sizes of pictures, documents and recordings in tokens, from a glance at their first bytes.

use crate::{Audio, Document, Image, Source};

/// Tokens of a picture whose size is not known, and of every large one.
///
/// Source: Anthropic, "Vision" (2025): pictures beyond about 1,600 tokens are scaled down.
const MAX_IMAGE_TOKENS: u64 = 1_600;
/// Pixels for a token. Source: Anthropic, "Vision" (2025): tokens = width × height / 750.
const PIXELS_PER_TOKEN: u64 = 750;
/// Pixels of the longer edge beyond which a picture is scaled down. Source: Anthropic, "Vision" (2025).
const MAX_EDGE: u64 = 1_568;
/// Tokens of a document whose size is not known.
const DOCUMENT_TOKENS: u64 = 4_000;
/// Bytes of a text document for a token.
const TEXT_BYTES_PER_TOKEN: u64 = 4;
/// Bytes of another document for a token: a page of text is about 30 KB in a PDF, and about 2,000 tokens.
const PAGE_BYTES_PER_TOKEN: u64 = 16;
/// Tokens of one page, and of as many pages as providers take.
const PAGE_TOKENS: (u64, u64) = (2_000, 200_000);
/// Tokens of a recording whose length is not known: a minute of it.
const AUDIO_TOKENS: u64 = 1_920;
/// Bytes of a recording for a token: 32 tokens are a second, of some 16 KB when it is packed.
///
/// Source: "Audio understanding", ai.google.dev, 2026: 32 tokens for a second.
const AUDIO_BYTES_PER_TOKEN: u64 = 500;
/// The largest number of segments of a JPEG that are looked at for its size.
const MAX_SEGMENTS: usize = 256;

/// The tokens of a picture: by its width and height if its head is readable.
pub(super) fn image(image: &Image) -> u64 {
    let size = match &image.source {
        Source::Base64 { data } => size(Base64(data.as_bytes())),
        Source::Url { .. } => None,
    };
    size.map_or(MAX_IMAGE_TOKENS, |(width, height)| {
        let edge = u64::from(width.max(height)).max(1);
        let scaled = |side: u32| u64::from(side) * MAX_EDGE.min(edge) / edge;
        (scaled(width) * scaled(height))
            .div_ceil(PIXELS_PER_TOKEN)
            .clamp(1, MAX_IMAGE_TOKENS)
    })
}

/// The tokens of a document: by its bytes.
pub(super) fn document(document: &Document) -> u64 {
    let Source::Base64 { data } = &document.source else {
        return DOCUMENT_TOKENS;
    };
    let bytes = data.len() as u64 / 4 * 3;
    if document.media_type.starts_with("text/") || &*document.media_type == "application/json" {
        return bytes.div_ceil(TEXT_BYTES_PER_TOKEN);
    }
    let (least, most) = PAGE_TOKENS;
    (bytes / PAGE_BYTES_PER_TOKEN).clamp(least, most)
}

/// The tokens of a recording: by its bytes.
pub(super) fn audio(audio: &Audio) -> u64 {
    match &audio.source {
        Source::Base64 { data } => (data.len() as u64 / 4 * 3).div_ceil(AUDIO_BYTES_PER_TOKEN),
        Source::Url { .. } => AUDIO_TOKENS,
    }
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

/// Goes from segment to segment to the frame header. Source: ITU-T T.81 (1992), annex B.
fn jpeg(bytes: Base64<'_>) -> Option<(u32, u32)> {
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
            0xC0..=0xCF => return Some((bytes.big(at + 7, 2)?, bytes.big(at + 5, 2)?)),
        }
    }
    None
}

/// Base64 that is decoded where it is looked at.
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
