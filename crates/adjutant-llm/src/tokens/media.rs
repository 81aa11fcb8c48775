//! The sizes of pictures, documents and recordings in tokens.

use crate::{Audio, Document, Image, Source, media};

/// Tokens of an image with unknown size, and of every large one.
///
/// Source: Anthropic, "Vision" (2025): pictures beyond about 1,600 tokens are scaled down.
const MAX_IMAGE_TOKENS: u64 = 1_600;
/// Pixels for a token. Source: Anthropic, "Vision" (2025): tokens = width × height / 750.
const PIXELS_PER_TOKEN: u64 = 750;
/// Pixels of the longer edge beyond which a picture is scaled down. Source: Anthropic, "Vision" (2025).
const MAX_EDGE: u64 = 1_568;
/// Tokens of a document with unknown size.
const DOCUMENT_TOKENS: u64 = 4_000;
/// Bytes of a text document for a token.
const TEXT_BYTES_PER_TOKEN: u64 = 4;
/// Bytes of another document for a token: a page of text is about 30 KB in a PDF, and about 2,000 tokens.
const PAGE_BYTES_PER_TOKEN: u64 = 16;
/// Tokens of one page, and of as many pages as providers take.
const PAGE_TOKENS: (u64, u64) = (2_000, 200_000);
/// Tokens of a recording with unknown length: one minute.
const AUDIO_TOKENS: u64 = 1_920;
/// Bytes of a recording for a token: 32 tokens are a second, of some 16 KB when it is packed.
///
/// Source: "Audio understanding", ai.google.dev, 2026: 32 tokens for a second.
const AUDIO_BYTES_PER_TOKEN: u64 = 500;
/// The tokens of a picture: by its width and height if its head is readable.
pub(super) fn image(image: &Image) -> u64 {
    let size = match &image.source {
        Source::Base64 { data } => media::dimensions(data),
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
