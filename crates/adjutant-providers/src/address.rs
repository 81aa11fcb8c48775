//! The address of the bytes of a picture or a document, as the wires of OpenAI write it.

use std::fmt;

use serde::{Serialize, Serializer};

/// An address, or bytes as a `data:` address.
#[derive(Debug)]
pub(crate) enum Address<'a> {
    Url(&'a str),
    Data { media_type: &'a str, data: &'a str },
}

impl Serialize for Address<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Url(url) => f.write_str(url),
            Address::Data { media_type, data } => write!(f, "data:{media_type};base64,{data}"),
        }
    }
}
