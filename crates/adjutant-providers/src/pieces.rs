//! The treatment of content and calls that both wires need: media that the model cannot take, and the arguments that
//! really ran.

use std::{borrow::Cow, fmt, sync::Arc};

use adjutant_llm::{
    Audio, Call, CallResult, Content, Document, Image, Inputs, Source, Warning, WarningKind,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Value, json, value::RawValue};

use crate::text::Few;

const NO_IMAGES: &str = "[image omitted: this model takes no images]";
const NO_DOCUMENTS: &str = "[document omitted: this model takes no documents]";
pub(crate) const NO_AUDIO: &str = "[recording omitted: this model takes no audio]";
const EMPTY_AUDIO: &str = "[recording omitted: it is empty]";
const OTHER_IMAGE: &str = "[image omitted: models accept only JPEG, PNG, GIF and WebP]";
const OTHER_DOCUMENT: &str = "[document omitted: models accept only PDF and text]";
const EMPTY_IMAGE: &str = "[image omitted: it is empty]";
const EMPTY_DOCUMENT: &str = "[document omitted: it is empty]";
const NAMELESS_DOCUMENT: &str = "[document omitted: its name is blank]";

/// The member of a call's `extra` that holds its arguments as the model wrote them, if property keys were renamed.
const DECLARED_ARGS: &str = "declared_args";

/// The media types of images that every vendor takes, as vendors spell them.
///
/// Source: the guides to vision of Anthropic, OpenAI and Google, 2026-11.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A piece of content that the model can take.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// A text that is not blank.
    Text(&'a str),
    /// An image that is not empty, of a media type that every vendor takes.
    Image(&'a Image),
    /// A document that is not empty: PDF or text, unless it is behind an address.
    Document(&'a Document),
    /// A recording that is not empty.
    Audio(&'a Audio),
}

/// The content without blank texts; what the model cannot take becomes a text, one for a run of the same kind.
pub(crate) fn pieces<'a>(
    content: &'a [Content],
    inputs: Inputs,
    warnings: &mut Vec<Warning>,
) -> Few<Piece<'a>> {
    let mut pieces = Few::default();
    for it in content {
        let piece = match it {
            Content::Text { text } if text.trim().is_empty() => continue,
            Content::Text { text } => Ok(Piece::Text(text)),
            Content::Image(it) => image(it, inputs).map_or(Ok(Piece::Image(it)), Err),
            Content::Document(it) => document(it, inputs).map_or(Ok(Piece::Document(it)), Err),
            Content::Audio(_) if !inputs.audio => Err(NO_AUDIO),
            Content::Audio(it) if is_empty(&it.source) => Err(EMPTY_AUDIO),
            Content::Audio(it) => Ok(Piece::Audio(it)),
            _ => continue,
        };
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(text) => {
                warn_changed(warnings, text);
                if pieces.last() != Some(&Piece::Text(text)) {
                    pieces.push(Piece::Text(text));
                }
            }
        }
    }
    pieces
}

/// Returns the reason why an image is left out, if it is.
fn image(image: &Image, inputs: Inputs) -> Option<&'static str> {
    let media_type = media_type(&image.media_type);
    // Only the fetcher of an address sees the content behind it.
    let is_unsaid = media_type.is_empty() && matches!(image.source, Source::Url { .. });
    match () {
        () if !inputs.images => Some(NO_IMAGES),
        () if is_empty(&image.source) => Some(EMPTY_IMAGE),
        () if !is_unsaid && !IMAGES.contains(&media_type) => Some(OTHER_IMAGE),
        () => None,
    }
}

/// Returns the reason why a document is left out, if it is.
fn document(document: &Document, inputs: Inputs) -> Option<&'static str> {
    // As the wires look for them: in small letters.
    let is_known =
        document.media_type.starts_with("text/") || *document.media_type == *"application/pdf";
    match () {
        () if !inputs.documents => Some(NO_DOCUMENTS),
        () if is_empty(&document.source) => Some(EMPTY_DOCUMENT),
        () if document
            .name
            .as_ref()
            .is_some_and(|it| it.trim().is_empty()) =>
        {
            Some(NAMELESS_DOCUMENT)
        }
        () if !is_known && matches!(document.source, Source::Base64 { .. }) => Some(OTHER_DOCUMENT),
        () => None,
    }
}

fn is_empty(source: &Source) -> bool {
    match source {
        Source::Base64 { data: text } | Source::Url { url: text } => text.trim().is_empty(),
        _ => false,
    }
}

/// Normalizes a media type as vendors spell it: image types in lower case, `image/jpg` as `image/jpeg`.
pub fn media_type(media_type: &str) -> &str {
    let media_type = media_type.trim();
    let is = |it: &str| it.eq_ignore_ascii_case(media_type);
    if is("image/jpg") || is("image/pjpeg") {
        return IMAGES[0];
    }
    IMAGES.into_iter().find(|it| is(it)).unwrap_or(media_type)
}

/// Adds one warning that content was changed before it was sent.
pub fn warn_changed(warnings: &mut Vec<Warning>, text: &str) {
    let warning = Warning {
        kind: WarningKind::ContentChanged,
        message: text.into(),
    };
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// The name of a format as vendors accept it: the same characters, at most 64; `answer` if it is empty.
pub(crate) fn format_name(name: &str) -> Cow<'_, str> {
    clean(name, 64, "answer")
}

fn clean<'a>(name: &'a str, longest: usize, empty: &'a str) -> Cow<'a, str> {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if name.is_empty() {
        return Cow::Borrowed(empty);
    }
    if name.len() <= longest && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(
        name.chars()
            .map(|it| if fits(it) { it } else { '_' })
            .take(longest)
            .collect(),
    )
}

/// JSON that can be read as a value: its texts, numbers and depth are valid. The value is discarded.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Sound)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Sound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Sound, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Sound, A::Error> {
        while seq.next_element::<Sound>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sound, A::Error> {
        while map.next_entry::<Sound, Sound>()?.is_some() {}
        Ok(self)
    }
}

/// The arguments of a call as they are sent: what really ran. Serialized it is a JSON object, whatever the model wrote.
#[derive(Debug, Clone, Copy)]
pub enum Args<'a> {
    /// Nothing was written.
    Empty,
    /// A JSON object.
    Object(&'a RawValue),
    /// Something else.
    Invalid(&'a str),
}

impl<'a> Args<'a> {
    /// Returns the executed arguments, if they are known, else the arguments that the model wrote, with their declared keys.
    pub(crate) fn from_call(call: &'a Call, result: &'a CallResult) -> Self {
        let declared = call.extra.get(DECLARED_ARGS).and_then(Value::as_str);
        let raw = match &result.args {
            Some(args) => args,
            None => declared.unwrap_or(&call.args),
        };
        let raw = raw.trim();
        if raw.is_empty() {
            return Args::Empty;
        }
        match serde_json::from_str::<&RawValue>(raw) {
            // A raw value lets lone surrogates, any depth and numbers beyond all bounds through; vendors do not.
            Ok(value)
                if value.get().starts_with('{') && serde_json::from_str::<Sound>(raw).is_ok() =>
            {
                Args::Object(value)
            }
            Ok(_) | Err(_) => Args::Invalid(raw),
        }
    }
}

/// Replaces the arguments of a call whose keys the model does not know. Its original arguments are sent back to it.
pub(crate) fn set_args(call: &mut Call, args: Arc<str>) {
    let written = std::mem::replace(&mut call.args, args);
    let mut extra = call.extra.as_object().cloned().unwrap_or_default();
    extra.insert(DECLARED_ARGS.to_owned(), json!(written));
    call.extra = Value::Object(extra).into();
}

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Args::Empty => serializer.serialize_map(Some(0))?.end(),
            Args::Object(raw) => raw.serialize(serializer),
            Args::Invalid(raw) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("INVALID_JSON", raw)?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests;
