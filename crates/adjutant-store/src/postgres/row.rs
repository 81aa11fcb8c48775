//! Columns of rows and their meaning.

use std::sync::Arc;

use adjutant_core::Digest;
use tokio_postgres::Row;

use super::fault::Fault;

/// A number in the database's type; larger ones become its maximum.
pub(super) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of which the database never has a negative one.
pub(super) fn read_u64(row: &Row, column: usize) -> Result<u64, Fault> {
    u64::try_from(row.try_get::<_, i64>(column)?).map_err(|_| Fault::Stored("a number"))
}

/// A text that is stored as its bytes.
pub(super) fn text(row: &Row, column: usize) -> Result<Arc<str>, Fault> {
    let text = std::str::from_utf8(row.try_get(column)?).map_err(|_| Fault::Stored("a text"))?;
    Ok(text.into())
}

/// A digest.
pub(super) fn digest(row: &Row, column: usize) -> Result<Digest, Fault> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes
        .try_into()
        .map(Digest)
        .map_err(|_| Fault::Stored("a digest"))
}

/// The least bytes after all with this prefix; `None` without an upper bound.
pub(super) fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut behind = prefix[..=kept].to_vec();
    behind[kept] += 1;
    Some(behind)
}
