//! The conversation that an answer follows: what its thinking is bound to.

use std::sync::Mutex;

/// The conversation that an answer follows: what its thinking is bound to.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    pub(crate) digest: u64,
    /// The thinking before, in the conversation or in this answer.
    pub(crate) previous: Mutex<Option<String>>,
}

impl Prefix {
    pub(crate) fn new(digest: u64, previous: Option<&str>) -> Self {
        Self {
            digest,
            previous: Mutex::new(previous.map(str::to_owned)),
        }
    }
}
