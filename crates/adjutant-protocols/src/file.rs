//! Files in the messages of pages, editors and callers: a provider that cannot read one refuses all later requests of its session.

use std::sync::Arc;

use adjutant_llm::{Audio, Content, Document, Image, Source};
use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::error::Error;

/// The longest name of a media type.
const MAX_TYPE: usize = 127;

/// The content that a file is: an image, audio, or else a document. A `data:` URL is the bytes in it.
///
/// `part` is its name in errors. Parameters of the media type are dropped. The bytes are standard base64 with
/// padding.
pub(crate) fn content(
    part: &str,
    media_type: &str,
    name: Option<Arc<str>>,
    source: Source,
) -> Result<Content, Error> {
    let refuse = |why: &str| Err(Error::invalid(format!("{part}: {why}")));
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&it))
    };
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim_matches(' ')
        .to_ascii_lowercase();
    let (kind, sub) = essence.split_once('/').unwrap_or_default();
    if media_type.len() > MAX_TYPE || !is_word(kind) || !is_word(sub) {
        let shown: String = media_type.chars().take(40).collect();
        return refuse(&format!("{shown:?} is no media type"));
    }
    let source = match source {
        Source::Url { url }
            if url
                .get(..5)
                .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) =>
        {
            match url.split_once(',') {
                Some((head, data)) if head.to_ascii_lowercase().ends_with(";base64") => {
                    Source::Base64 { data: data.into() }
                }
                _ => return refuse("a data URL that is not base64"),
            }
        }
        Source::Url { url } if url.trim().is_empty() => return refuse("its URL is empty"),
        source => source,
    };
    if let Source::Base64 { data } = &source
        && (data.is_empty() || BASE64_STANDARD.decode(&**data).is_err())
    {
        return refuse(
            "its data is not base64: the standard alphabet, padded, without line breaks",
        );
    }
    let media_type = Arc::<str>::from(&*essence);
    Ok(match kind {
        "image" => Content::Image(Image { media_type, source }),
        "audio" => Content::Audio(Audio { media_type, source }),
        _ => Content::Document(Document {
            media_type,
            name,
            source,
        }),
    })
}
