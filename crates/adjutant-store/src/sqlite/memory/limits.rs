//! The limits for facts.

use adjutant_core::memory::{FactChange, FactId, MAX_FACT_BYTES, OwnerId, Vector};

use super::super::fault::Fault;

/// The most bytes that the name of an owner or of a fact may have.
const MAX_NAME_BYTES: usize = 512;
/// The most bytes that the name of a source may have.
const MAX_SOURCE_BYTES: usize = 1_024;
/// The most numbers that a vector may have.
const MAX_NUMBERS: usize = 65_536;

/// Fails if there cannot be such an owner.
pub(super) fn check_owner(owner: &OwnerId) -> Result<(), Fault> {
    check("the name of an owner", owner.0.len(), MAX_NAME_BYTES)
}

/// Fails if a fact cannot have that name.
pub(super) fn check_id(id: &FactId) -> Result<(), Fault> {
    check("the name of a fact", id.0.len(), MAX_NAME_BYTES)
}

/// Fails if a source cannot have that name.
pub(super) fn check_source(source: &str) -> Result<(), Fault> {
    check("the name of a source", source.len(), MAX_SOURCE_BYTES)
}

/// Fails if a fact cannot have that text.
pub(super) fn check_text(text: &str) -> Result<(), Fault> {
    check("the text of a fact", text.len(), MAX_FACT_BYTES)
}

/// Fails if a vector cannot be compared.
pub(super) fn check_vector(vector: &Vector) -> Result<(), Fault> {
    check("a vector", vector.numbers.len(), MAX_NUMBERS)?;
    match vector.numbers.iter().find(|number| !number.is_finite()) {
        Some(number) => Err(Fault::Invalid(format!("a vector has the number {number}"))),
        None => Ok(()),
    }
}

/// Fails if a fact cannot be changed so.
pub(super) fn check_change(change: &FactChange) -> Result<(), Fault> {
    let Some((text, vector)) = &change.text else {
        return Ok(());
    };
    check_text(text)?;
    vector.as_ref().map_or(Ok(()), check_vector)
}

fn check(what: &str, size: usize, most: usize) -> Result<(), Fault> {
    match size {
        0 => Err(Fault::Invalid(format!("{what} is empty"))),
        size if size > most => Err(Fault::Invalid(format!(
            "{what} has the size {size}; it may have {most}"
        ))),
        _ => Ok(()),
    }
}
