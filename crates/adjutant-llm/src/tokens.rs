//! Estimates of sizes in tokens. Exact counting belongs to providers and to crates that carry vocabularies.

mod media;
mod script;
#[cfg(feature = "tiktoken")]
mod tiktoken;

#[cfg(feature = "tiktoken")]
pub use tiktoken::Tiktoken;

use crate::{Block, CallResult, Content, entry::Entry};

/// The estimated number of tokens of a message's frame.
const FRAME_TOKENS: u64 = 4;
/// The smallest difference between an estimate and a provider's count that may come from a cut request.
const LEAST_CUT: u64 = 1_000;
/// The smallest count that may be a window. A smaller one counts something else, such as the part that no cache served.
const LEAST_WINDOW: u64 = 512;

/// Counts by the script of each character, without a vocabulary.
///
/// A token is four characters of ASCII or of Latin with diacritics, two of most other scripts, one of Chinese,
/// Japanese and Korean, and half an emoji. One pass; ASCII is counted by its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate;

impl Estimate {
    /// Returns the estimated number of tokens of a text.
    pub fn count(self, text: &str) -> u64 {
        script::quarters(text).div_ceil(4)
    }

    /// True if a provider counted so much less than the estimate that it may have cut off the request: less than 60 %, and
    /// at least 1,000 tokens less.
    pub fn is_undercounted(estimate: u64, counted: u64) -> bool {
        counted >= LEAST_WINDOW
            && u128::from(counted) * 10 < u128::from(estimate) * 6
            && estimate - counted >= LEAST_CUT
    }

    /// The estimated size of a text, a picture, a document or a recording.
    pub fn content(content: &Content) -> u64 {
        match content {
            Content::Text { text } => Estimate.count(text),
            Content::Image(image) => media::image(image),
            Content::Document(document) => media::document(document),
            Content::Audio(audio) => media::audio(audio),
        }
    }

    /// The estimated size of an entry: its texts, calls, results and attachments, with a few tokens of framing.
    pub fn entry(entry: &Entry) -> u64 {
        match entry {
            Entry::User(message) => FRAME_TOKENS + contents(&message.content),
            Entry::Summary(summary) => FRAME_TOKENS + Estimate.count(&summary.text),
            Entry::Custom(_) => 0,
            Entry::Turn(turn) => {
                let said: u64 = turn.reply().blocks.iter().map(|it| block(it)).sum();
                FRAME_TOKENS + said + turn.results().iter().map(|it| result(it)).sum::<u64>()
            }
        }
    }
}

fn contents(contents: &[Content]) -> u64 {
    contents.iter().map(Estimate::content).sum()
}

/// Returns the number of tokens that the result of a call counts as.
pub(crate) fn result(result: &CallResult) -> u64 {
    FRAME_TOKENS + contents(&result.content)
}

fn block(block: &Block) -> u64 {
    match block {
        Block::Text(said) => Estimate.count(&said.text),
        Block::Thinking(thinking) => Estimate.count(&thinking.text),
        Block::Call(call) => {
            FRAME_TOKENS + Estimate.count(call.name.as_str()) + Estimate.count(&call.args)
        }
        Block::Opaque { value, .. } => Estimate.count(&value.to_string()),
    }
}
