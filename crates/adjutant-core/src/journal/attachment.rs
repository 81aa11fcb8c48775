//! Large parts of records, which are stored separately.

use bytes::Bytes;

use crate::digest::Digest;

/// A large part of a record, stored once however many records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The digest of the bytes.
    pub digest: Digest,
    /// The part: UTF-8.
    pub bytes: Bytes,
}
