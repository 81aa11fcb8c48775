//! Parts of a reply that were acknowledged while it was on its way.

use adjutant_llm::BlockKind;
use serde::{Deserialize, Serialize};

/// What was said in one block since the last time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeardPart {
    /// The block, counted from 0 in its reply.
    pub block: u32,
    /// What the block is.
    pub kind: BlockKind,
    /// What was said in it: text, thinking, or arguments as JSON text.
    pub text: String,
    /// Whether the block was finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

impl HeardPart {
    /// Joins what was said later to what is known; one part for each block.
    pub(crate) fn join(known: &mut Vec<HeardPart>, later: &[HeardPart]) {
        for part in later {
            match known.iter_mut().find(|it| it.block == part.block) {
                Some(it) => {
                    it.text.push_str(&part.text);
                    it.closed |= part.closed;
                }
                None => known.push(part.clone()),
            }
        }
    }
}
