//! The check of one piece of content, and the text in its place if it is unusable.

use std::{fmt, sync::Arc};

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};

use super::{
    format::{Format, sniff},
    picture,
};
use crate::{Audio, Content, Document, Image, Source};

/// The maximum number of pixels of the longer side of an admitted image.
///
/// Source: "Vision", platform.claude.com, 2026-11: at most 2,000 px if a request has more than 20 images.
pub const MAX_EDGE: u32 = 2_000;
/// The maximum number of bytes of an admitted image before base64.
///
/// Source: "Message" of Converse, docs.aws.amazon.com/bedrock, 2026-11: at most 3.75 MB.
pub const MAX_IMAGE_BYTES: usize = 3_750_000;
/// The maximum number of bytes of an admitted document or recording before base64.
const MAX_FILE_BYTES: usize = 20_000_000;
/// The maximum number of bytes of base64 that are decoded.
const MAX_ENCODED: usize = 64 * 1_024 * 1_024;
/// The formats of images that every vendor takes.
const TAKEN: &str = "PNG, JPEG, GIF and WebP are taken";

/// Content that cannot be sent to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfit {
    /// The kind of content: `image`, `document` or `recording`.
    pub kind: &'static str,
    /// The name, if the content has one.
    pub name: Option<Arc<str>>,
    /// The number of bytes: decoded, if it is base64.
    pub bytes: usize,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if let Some(name) = &self.name {
            write!(f, " {:?}", name.chars().take(100).collect::<String>())?;
        }
        write!(f, " of {} bytes: {}", self.bytes, self.reason)
    }
}

impl From<Unfit> for Content {
    /// The text in place of the content.
    fn from(unfit: Unfit) -> Self {
        Content::text(format!("[omitted {unfit}]"))
    }
}

/// Checks each piece of content, and replaces an unusable one by a text that names the reason.
///
/// Decodes images, so call it where blocking is allowed. Admitting twice changes nothing.
pub fn admit(contents: &mut [Content]) {
    for content in contents {
        if !matches!(content, Content::Text { .. }) {
            *content = check(content.clone()).unwrap_or_else(Content::from);
        }
    }
}

/// Returns the content as it can be sent: with its real type, and an image within the limits that all vendors share.
///
/// Content behind an address is not fetched. Decoding is bounded in pixels and memory.
///
/// # Errors
/// If the bytes are not what models take.
pub fn check(content: Content) -> Result<Content, Unfit> {
    let (kind, media_type, name, source) = match &content {
        Content::Image(image) => ("image", &image.media_type, None, &image.source),
        Content::Audio(audio) => ("recording", &audio.media_type, None, &audio.source),
        Content::Document(document) => (
            "document",
            &document.media_type,
            document.name.clone(),
            &document.source,
        ),
        Content::Text { .. } => return Ok(content),
    };
    let Some(data) = base64_data(source) else {
        return Ok(content);
    };
    let unfit = |bytes: usize, reason: String| Unfit {
        kind,
        name: name.clone(),
        bytes,
        reason,
    };
    let refuse = |bytes: usize, reason: &str| Err(unfit(bytes, reason.to_owned()));
    if data.len() > MAX_ENCODED {
        return refuse(data.len() / 4 * 3, "it is too large to be read");
    }
    let Some(bytes) = decode(data) else {
        return refuse(data.len() / 4 * 3, "its data is not base64");
    };
    let length = bytes.len();
    if bytes.is_empty() {
        return refuse(0, "it is empty");
    }
    let same = |bytes: &[u8]| -> Arc<str> {
        let is_canonical = matches!(source, Source::Base64 { .. })
            && data.len() == bytes.len().div_ceil(3) * 4
            && !data.contains(['-', '_']);
        match source {
            Source::Base64 { data } if is_canonical => Arc::clone(data),
            _ => general_purpose::STANDARD.encode(bytes).into(),
        }
    };
    // Text may start like anything, for example with the source code of an SVG.
    if kind == "document" && is_text(media_type) {
        return match str::from_utf8(&bytes) {
            Ok(_) if length > MAX_FILE_BYTES => Err(unfit(
                length,
                format!("at most {MAX_FILE_BYTES} bytes are taken"),
            )),
            Ok(_) => Ok(content.clone()),
            Err(_) => refuse(length, "it is not text in UTF-8"),
        };
    }
    let format = sniff(&bytes);
    if let Some(Format::Image(real)) = format {
        let data = same(&bytes);
        let fitted = picture::fit(&bytes, &data, real).map_err(|reason| unfit(length, reason))?;
        let (media_type, data) = match fitted {
            None => (real, data),
            Some((media_type, bytes)) => {
                (media_type, general_purpose::STANDARD.encode(bytes).into())
            }
        };
        return Ok(Content::Image(Image {
            media_type: media_type.into(),
            source: Source::Base64 { data },
        }));
    }
    if length > MAX_FILE_BYTES {
        let reason = format!("at most {MAX_FILE_BYTES} bytes are taken");
        return Err(unfit(length, reason));
    }
    let data = || Source::Base64 { data: same(&bytes) };
    match (format, &content) {
        (Some(Format::Pdf), _) => Ok(Content::Document(Document {
            media_type: "application/pdf".into(),
            name,
            source: data(),
        })),
        (Some(Format::OtherImage(format)), _) => {
            Err(unfit(length, format!("it is {format}; {TAKEN}")))
        }
        (Some(Format::Audio(types)), Content::Audio(_) | Content::Image(_)) => {
            let declared = types
                .iter()
                .find(|name| name.eq_ignore_ascii_case(media_type));
            Ok(Content::Audio(Audio {
                media_type: (*declared.unwrap_or(&types[0])).into(),
                source: data(),
            }))
        }
        (_, Content::Image(_)) => Err(unfit(length, format!("its format is unknown; {TAKEN}"))),
        (_, Content::Audio(_)) if !is_raw_sound(media_type) => {
            refuse(length, "its format is unknown")
        }
        (_, Content::Audio(audio)) => Ok(Content::Audio(Audio {
            source: data(),
            ..audio.clone()
        })),
        (_, Content::Document(_)) if media_type.eq_ignore_ascii_case("application/pdf") => {
            refuse(length, "it is not a PDF")
        }
        (_, Content::Document(document)) => Ok(Content::Document(Document {
            source: data(),
            ..document.clone()
        })),
        (_, Content::Text { .. }) => Ok(content.clone()),
    }
}

/// Returns the base64 of a source: its data, or the data of a `data:` URL; `None` if the bytes are elsewhere.
fn base64_data(source: &Source) -> Option<&str> {
    match source {
        Source::Base64 { data } => Some(data),
        Source::Url { url } => {
            let scheme = url.get(..5)?;
            let (head, data) = url.split_once(',')?;
            let is_data = scheme.eq_ignore_ascii_case("data:") && head.ends_with(";base64");
            is_data.then_some(data)
        }
    }
}

/// Decodes base64 of either alphabet, with or without padding and line breaks.
fn decode(data: &str) -> Option<Vec<u8>> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = if data.contains(['-', '_']) {
        URL_SAFE
    } else {
        STANDARD
    };
    let engine = GeneralPurpose::new(&alphabet, lenient);
    if data.contains(|letter: char| letter.is_ascii_whitespace()) {
        let joined: String = data.split_ascii_whitespace().collect();
        return engine.decode(joined).ok();
    }
    engine.decode(data).ok()
}

fn is_text(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type.starts_with("text/") || media_type.starts_with("application/json")
}

/// True if a recording has no header by which its type could be known.
fn is_raw_sound(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    ["audio/pcm", "audio/l16", "audio/basic"]
        .iter()
        .any(|raw| media_type.starts_with(raw))
}
