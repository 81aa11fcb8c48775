//! The checks that a memory makes before it looks: the same on every storage.

use super::{
    FactChange, FactId, MAX_FACT_BYTES, MAX_METADATA_BYTES, MemoryError, MemoryErrorKind, Metadata,
    NewFact, OwnerId,
};

/// The most bytes that the name of an owner or of a fact may have.
const MAX_NAME_BYTES: usize = 512;

impl OwnerId {
    /// Checks the length of the name.
    ///
    /// # Errors
    /// `Invalid` if it is empty or has more than 512 bytes.
    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        check_name("an owner", &self.0)
    }
}

impl FactId {
    /// Checks the length of the name.
    ///
    /// # Errors
    /// `Invalid` if it is empty or has more than 512 bytes.
    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        check_name("a fact", &self.0)
    }
}

impl NewFact {
    /// Checks its name, its text and its metadata.
    ///
    /// # Errors
    /// `Invalid` if something is too large or empty.
    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        self.id.check()?;
        check_text(&self.text)?;
        check_metadata(&self.metadata)
    }
}

impl FactChange {
    /// Checks its text. Its metadata can be checked when it has been merged, by [`check_metadata`].
    ///
    /// # Errors
    /// `Invalid` if the text is too large or empty.
    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        self.text
            .as_ref()
            .map_or(Ok(()), |(text, _)| check_text(text))
    }

    /// Returns the data that is kept with a fact after this change.
    ///
    /// # Errors
    /// `Invalid` if that is too large.
    pub(crate) fn merge_into(&self, mut metadata: Metadata) -> Result<Metadata, MemoryError> {
        for (name, value) in &self.metadata {
            if value.is_null() {
                metadata.remove(name);
            } else {
                metadata.insert(name.clone(), value.clone());
            }
        }
        check_metadata(&metadata)?;
        Ok(metadata)
    }
}

/// Checks how large the metadata of a fact is.
///
/// # Errors
/// `Invalid` if it has more than [`MAX_METADATA_BYTES`] bytes as JSON.
pub fn check_metadata(metadata: &Metadata) -> Result<(), MemoryError> {
    let bytes = serde_json::to_vec(metadata).map(|json| json.len());
    let bytes = bytes.map_err(|error| {
        invalid("the metadata of a fact is no JSON".to_owned()).with_source(error)
    })?;
    if bytes > MAX_METADATA_BYTES {
        return Err(invalid(format!(
            "the metadata of a fact has {bytes} bytes; it may have {MAX_METADATA_BYTES}"
        )));
    }
    Ok(())
}

fn check_text(text: &str) -> Result<(), MemoryError> {
    match text.len() {
        0 => Err(invalid("a fact needs a text".to_owned())),
        bytes if bytes > MAX_FACT_BYTES => Err(invalid(format!(
            "the text of a fact has {bytes} bytes; it may have {MAX_FACT_BYTES}"
        ))),
        _ => Ok(()),
    }
}

fn check_name(whose: &str, name: &str) -> Result<(), MemoryError> {
    match name.len() {
        0 => Err(invalid(format!("{whose} needs a name"))),
        bytes if bytes > MAX_NAME_BYTES => Err(invalid(format!(
            "the name of {whose} has {bytes} bytes; it may have {MAX_NAME_BYTES}"
        ))),
        _ => Ok(()),
    }
}

fn invalid(message: String) -> MemoryError {
    MemoryError::new(MemoryErrorKind::Invalid, message)
}
