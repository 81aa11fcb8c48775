//! How a drive begins.

use adjutant_core::{Answered, Limits};
use adjutant_llm::Entry;

/// How a drive begins.
pub(crate) enum Begin {
    /// A new run; without prompts it goes on with what is there.
    Run { prompts: Vec<Entry>, limits: Limits },
    /// The run that is open, with these answers.
    Resume { answers: Vec<Answered> },
    /// The end of the run that is open.
    Cancel,
}
