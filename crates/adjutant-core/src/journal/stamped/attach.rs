//! Large texts of a record, stored separately.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Envelope;
use crate::{
    digest::Digest,
    journal::{Attachment, JournalError, JournalErrorKind},
    record::Record,
};

/// A longer text is stored separately from its record, in bytes.
pub(super) const LARGE: usize = 64 * 1024;

/// An attachment that belongs to a place of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attached {
    /// The place: a JSON pointer from the record.
    pub(super) at: String,
    /// The digest of the text.
    pub(super) digest: Digest,
}

/// Extracts the large texts of a record.
pub(super) fn detach(
    record: &Record,
) -> Result<(Value, Vec<Attached>, Vec<Attachment>), serde_json::Error> {
    let mut value = serde_json::to_value(record)?;
    let (mut attached, mut attachments) = (Vec::new(), Vec::<Attachment>::new());
    take(&mut value, &mut String::new(), &mut |at, text| {
        let digest = Digest::compute(text.as_bytes());
        attached.push(Attached {
            at: at.to_owned(),
            digest,
        });
        if attachments.iter().all(|known| known.digest != digest) {
            attachments.push(Attachment {
                digest,
                bytes: text.into(),
            });
        }
    });
    Ok((value, attached, attachments))
}

/// Gives each large text below this place to `keep`, and leaves an empty one.
fn take(value: &mut Value, at: &mut String, keep: &mut impl FnMut(&str, String)) {
    let here = at.len();
    match value {
        Value::String(text) if text.len() > LARGE => keep(at, std::mem::take(text)),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                // Writing to a text does not fail.
                let _ = write!(at, "/{index}");
                take(item, at, keep);
                at.truncate(here);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                at.push('/');
                at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                take(field, at, keep);
                at.truncate(here);
            }
        }
        _ => {}
    }
}

/// Reads a record whose large texts are attachments.
pub(super) fn read(
    bytes: &[u8],
    attachments: &[Attachment],
) -> Result<Envelope<Record>, JournalError> {
    let corrupt = |why: String| JournalError::new(JournalErrorKind::Corrupt, why);
    let unread =
        |error| corrupt("a record with attachments cannot be read".into()).with_source(error);
    let mut envelope: Envelope<Value> = serde_json::from_slice(bytes).map_err(unread)?;
    let seq = envelope.seq;
    for Attached { at, digest } in &envelope.attached {
        let found = attachments.iter().find(|known| known.digest == *digest);
        let missing = || corrupt(format!("record {seq} misses its attachment {digest}"));
        let text = String::from_utf8(found.ok_or_else(missing)?.bytes.to_vec());
        let no_text = |error| {
            corrupt(format!("attachment {digest} of record {seq} is no text")).with_source(error)
        };
        let place = envelope.record.pointer_mut(at);
        *place.ok_or_else(|| corrupt(format!("record {seq} has no place {at:?}")))? =
            Value::String(text.map_err(no_text)?);
    }
    let Envelope {
        v,
        at_ms,
        thread,
        attached,
        ..
    } = envelope;
    let record = serde_json::from_value(envelope.record).map_err(unread)?;
    Ok(Envelope {
        v,
        seq,
        at_ms,
        thread,
        record,
        attached,
    })
}
