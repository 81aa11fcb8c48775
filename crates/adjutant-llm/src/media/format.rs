//! The real type of media, from their first bytes.

/// The format of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// An image that every vendor takes, with its MIME type.
    Image(&'static str),
    /// An image that vendors refuse, with its name.
    OtherImage(&'static str),
    /// A PDF.
    Pdf,
    /// A recording, with its MIME types; the first one is the registered one.
    Audio(&'static [&'static str]),
}

/// The brands of ISO media files that are images. Source: ISO/IEC 23008-12 (HEIF), AVIF 1.1, 2026-11.
const HEIF: [&[u8]; 6] = [b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif"];

/// The number of bytes in which the start of an SVG or of a PDF is searched. Source: PDF 1.7, annex H: 1,024 bytes.
const HEAD: usize = 1_024;

/// Returns the format of these bytes, or `None` if they do not start like a known one.
pub(super) fn sniff(bytes: &[u8]) -> Option<Format> {
    let at = |offset: usize, magic: &[u8]| {
        bytes
            .get(offset..)
            .is_some_and(|rest| rest.starts_with(magic))
    };
    let head = &bytes[..bytes.len().min(HEAD)];
    let has = |magic: &[u8]| head.windows(magic.len()).any(|window| window == magic);
    let format = match bytes {
        [0x89, b'P', b'N', b'G', ..] => Format::Image("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Format::Image("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Format::Image("image/gif"),
        [b'R', b'I', b'F', b'F', ..] if at(8, b"WEBP") => Format::Image("image/webp"),
        [b'R', b'I', b'F', b'F', ..] if at(8, b"WAVE") => {
            Format::Audio(&["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"])
        }
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Format::OtherImage("BMP"),
        [b'I', b'I', 0x2A, 0, ..] | [b'M', b'M', 0, 0x2A, ..] => Format::OtherImage("TIFF"),
        [0, 0, 1, 0, ..] => Format::OtherImage("ICO"),
        _ if at(4, b"ftyp") && HEIF.iter().any(|brand| at(8, brand)) => {
            Format::OtherImage("HEIC or AVIF")
        }
        _ if at(4, b"ftyp") => {
            Format::Audio(&["audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac"])
        }
        [b'O', b'g', b'g', b'S', ..] => Format::Audio(&["audio/ogg", "audio/opus", "audio/vorbis"]),
        [b'f', b'L', b'a', b'C', ..] => Format::Audio(&["audio/flac", "audio/x-flac"]),
        [b'F', b'O', b'R', b'M', ..] if at(8, b"AIF") => {
            Format::Audio(&["audio/aiff", "audio/x-aiff"])
        }
        [0x1A, 0x45, 0xDF, 0xA3, ..] => Format::Audio(&["audio/webm"]),
        // ADTS has a layer of zero where MPEG audio has another one.
        [0xFF, second, ..] if second & 0xF6 == 0xF0 => Format::Audio(&["audio/aac"]),
        [b'I', b'D', b'3', ..] => Format::Audio(&["audio/mpeg", "audio/mp3"]),
        [0xFF, second, ..] if second & 0xE0 == 0xE0 => Format::Audio(&["audio/mpeg", "audio/mp3"]),
        _ if has(b"%PDF-") => Format::Pdf,
        _ if has(b"<svg") => Format::OtherImage("SVG"),
        _ => return None,
    };
    Some(format)
}
