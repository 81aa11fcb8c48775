//! The bounds of a task.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::TaskId;
use crate::{Error, ErrorKind};

/// The most bytes of a title.
pub const MAX_TITLE_BYTES: usize = 512;
/// The most bytes of a description.
pub const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// The most bytes of a result.
pub const MAX_RESULT_BYTES: usize = 64 * 1024;
/// The most bytes of metadata, as JSON.
pub const MAX_METADATA_BYTES: usize = 64 * 1024;
/// The most bytes of a criterion, of what shows that it is met, and of caveats.
pub const MAX_TEXT_BYTES: usize = 8 * 1024;
/// The most bytes of an agent's name.
pub const MAX_AGENT_BYTES: usize = 256;
/// The most bytes of the name that a task is created by at most once.
pub const MAX_KEY_BYTES: usize = 1_000;
/// The most tasks that one may depend on.
pub const MAX_DEPENDENCIES: usize = 64;
/// The most criteria of a task.
pub const MAX_CRITERIA: usize = 32;

/// Ids without duplicates.
pub(super) fn each_once(ids: &[TaskId]) -> Vec<TaskId> {
    let mut each: Vec<TaskId> = Vec::with_capacity(ids.len());
    for id in ids {
        if !each.contains(id) {
            each.push(id.clone());
        }
    }
    each
}

pub(super) fn check_agent(agent: &str) -> Result<(), Error> {
    if agent.trim().is_empty() {
        return Err(invalid("an agent needs a name".to_owned()));
    }
    check_bytes("the name of an agent", agent, MAX_AGENT_BYTES)
}

pub(super) fn check_count(what: &str, count: usize, max: usize) -> Result<(), Error> {
    if count <= max {
        Ok(())
    } else {
        Err(invalid(format!(
            "there are {count} {what}; there may be {max}"
        )))
    }
}

pub(super) fn check_title(title: &str) -> Result<(), Error> {
    if title.trim().is_empty() {
        return Err(invalid("a task needs a title".to_owned()));
    }
    check_bytes("the title", title, MAX_TITLE_BYTES)
}

pub(super) fn check_criteria(criteria: &[Arc<str>]) -> Result<(), Error> {
    check_count("criteria", criteria.len(), MAX_CRITERIA)?;
    for (at, criterion) in criteria.iter().enumerate() {
        if criterion.trim().is_empty() {
            return Err(invalid("a criterion is blank".to_owned()));
        }
        if criteria
            .iter()
            .take(at)
            .any(|other| other.trim() == criterion.trim())
        {
            return Err(invalid(format!(
                "the criterion {:?} appears twice",
                short(criterion)
            )));
        }
        check_bytes("a criterion", criterion, MAX_TEXT_BYTES)?;
    }
    Ok(())
}

pub(super) fn check_metadata(metadata: &Map<String, Value>) -> Result<(), Error> {
    let bytes = serde_json::to_vec(metadata).map_or(usize::MAX, |json| json.len());
    if bytes <= MAX_METADATA_BYTES {
        return Ok(());
    }
    Err(invalid(format!(
        "the metadata has {bytes} bytes; it may have {MAX_METADATA_BYTES}"
    )))
}

pub(super) fn check_bytes(what: &str, text: &str, max: usize) -> Result<(), Error> {
    let bytes = text.len();
    if bytes <= max {
        Ok(())
    } else {
        Err(invalid(format!(
            "{what} has {bytes} bytes; it may have {max}"
        )))
    }
}

/// The beginning of a text, for an error.
pub(super) fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

pub(super) fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
