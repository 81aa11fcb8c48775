//! Records that older versions of the program wrote: each step makes the JSON of the next version.

use serde::de::Error as _;
use serde_json::{Error, Map, Value};

use super::Envelope;
use crate::{journal::Attachment, record::Record};

/// A step from one version to the next.
type Migration = fn(&mut Value) -> Result<(), Error>;

/// The step from version `n + 1` at place `n`.
const STEPS: &[Migration] = &[names_stand_outside];

/// Reads a record of an older version.
pub(super) fn read(
    bytes: &[u8],
    _: &[Attachment],
    version: u32,
) -> Result<Envelope<Record>, Error> {
    let mut value: Value = serde_json::from_slice(bytes)?;
    let done = usize::try_from(version)
        .ok()
        .and_then(|version| version.checked_sub(1));
    let steps = done
        .and_then(|done| STEPS.get(done..))
        .ok_or_else(|| Error::custom("there never was such a version"))?;
    steps.iter().try_for_each(|step| step(&mut value))?;
    serde_json::from_value(value)
}

/// Version 1 had the name of a record among its fields: `{"record":"began","run":1}`.
fn names_stand_outside(value: &mut Value) -> Result<(), Error> {
    let record = value
        .get_mut("record")
        .ok_or_else(|| Error::missing_field("record"))?;
    let Value::Object(fields) = record.take() else {
        return Err(Error::custom("the record is no object"));
    };
    let mut fields: Map<String, Value> = fields;
    // In order: the fields are compared with the written ones.
    let name = fields
        .shift_remove("record")
        .ok_or_else(|| Error::missing_field("record"))?;
    let Value::String(name) = name else {
        return Err(Error::custom("the name of the record is no text"));
    };
    *record = Value::Object(Map::from_iter([(name, Value::Object(fields))]));
    Ok(())
}
