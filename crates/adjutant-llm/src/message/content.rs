//! The content of a user message or a tool result. The blocks of a model's reply are in `reply.rs`.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::reading::{self, Tagged};

/// A piece of a user message or of a tool result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: Arc<str>,
    },
    /// A picture.
    Image(Image),
    /// A document, for example a PDF.
    Document(Document),
    /// A recording of sound.
    Audio(Audio),
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// The MIME type, for example `image/png`.
    pub media_type: Arc<str>,
    /// The place of the bytes.
    pub source: Source,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The MIME type, for example `application/pdf`.
    pub media_type: Arc<str>,
    /// The file name for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The place of the bytes.
    pub source: Source,
}

/// A recording of sound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audio {
    /// The MIME type, for example `audio/wav`.
    pub media_type: Arc<str>,
    /// The place of the bytes.
    pub source: Source,
}

/// The place of the bytes of an image, a document or a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// In the message. Shape: standard base64 with padding.
    Base64 {
        /// The encoded bytes.
        data: Arc<str>,
    },
    /// At an address that the provider fetches.
    Url {
        /// The address.
        url: Arc<str>,
    },
}

impl Content {
    /// Plain text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Content::Text { text: text.into() }
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Content::Text { text } => Some(text),
            Content::Image(_) | Content::Document(_) | Content::Audio(_) => None,
        }
    }
}

impl<'de> Tagged<'de> for Content {
    const TAG: &'static str = "type";
    const VARIANTS: &'static [&'static str] = &["text", "image", "document", "audio"];

    fn read<D: Deserializer<'de>>(variant: &'static str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct TextFields {
            #[serde(deserialize_with = "reading::text")]
            text: Arc<str>,
        }
        match variant {
            "text" => {
                TextFields::deserialize(fields).map(|TextFields { text }| Content::Text { text })
            }
            "image" => Image::deserialize(fields).map(Content::Image),
            "document" => Document::deserialize(fields).map(Content::Document),
            _ => Audio::deserialize(fields).map(Content::Audio),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        reading::read_tagged(deserializer)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content::text(text)
    }
}
