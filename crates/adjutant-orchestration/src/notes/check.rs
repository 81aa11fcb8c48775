//! The rules for the name of a note, and for the size of its body.

use super::{MAX_BODY_BYTES, MAX_NAME_BYTES};
use crate::{Error, ErrorKind, text};

/// The largest number of bytes of a refused name in an error.
const MAX_SHOWN_BYTES: usize = 80;

pub(super) fn name(name: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!(
        "a note cannot be called {:?}: a name is 1 to {MAX_NAME_BYTES} of the letters a-z and A-Z, digits, _ and -",
        text::cut(name, MAX_SHOWN_BYTES)
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Checks the body that a note is to have.
pub(super) fn body(name: &str, body: &str) -> Result<(), Error> {
    if body.len() <= MAX_BODY_BYTES {
        return Ok(());
    }
    let bytes = body.len();
    let message = format!(
        "note {name:?} would have {bytes} bytes; it may have {MAX_BODY_BYTES}. Nothing was written; hint: begin another note"
    );
    Err(Error::new(ErrorKind::Full, message))
}
