//! Estimates of sizes in tokens. Exact counting belongs to providers and to crates that carry vocabularies.

use crate::{Block, Content, Entry};

/// Tokens that one picture is taken for.
const IMAGE_TOKENS: u64 = 1_600;
/// Tokens that one document is taken for.
const DOCUMENT_TOKENS: u64 = 4_000;
/// Tokens that the frame of one message is taken for.
const FRAME_TOKENS: u64 = 4;

/// Counts the tokens of a text.
pub trait TokenCounter: Send + Sync + std::fmt::Debug {
    /// How many tokens the text has, as near as this counter can tell.
    fn count(&self, text: &str) -> u64;
}

/// Counts four ASCII characters, or one character of another script, as a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn count(&self, text: &str) -> u64 {
        if text.is_ascii() {
            return (text.len() as u64).div_ceil(4);
        }
        let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
        let other = text.bytes().filter(|byte| byte & 0b1100_0000 == 0b1100_0000).count() as u64;
        ascii.div_ceil(4) + other
    }
}

impl Estimate {
    /// The estimated size of an entry: its texts, calls, results and attachments, with a few tokens of framing.
    pub fn entry(entry: &Entry) -> u64 {
        match entry {
            Entry::User(message) => FRAME_TOKENS + contents(&message.content),
            Entry::Summary(summary) => FRAME_TOKENS + Estimate.count(&summary.text),
            Entry::Custom(_) => 0,
            Entry::Turn(turn) => {
                let said: u64 = turn.reply().blocks.iter().map(|it| block(it)).sum();
                let results: u64 = turn.results().iter().map(|it| FRAME_TOKENS + contents(&it.content)).sum();
                FRAME_TOKENS + said + results
            }
        }
    }
}

fn contents(contents: &[Content]) -> u64 {
    let one = |content: &Content| match content {
        Content::Text { text } => Estimate.count(text),
        Content::Image(_) => IMAGE_TOKENS,
        Content::Document(_) => DOCUMENT_TOKENS,
    };
    contents.iter().map(one).sum()
}

fn block(block: &Block) -> u64 {
    match block {
        Block::Text(said) => Estimate.count(&said.text),
        Block::Thinking(thinking) => Estimate.count(&thinking.text),
        Block::Call(call) => FRAME_TOKENS + Estimate.count(call.name.as_str()) + Estimate.count(&call.args),
        Block::Opaque { value, .. } => Estimate.count(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_counts_scripts_apart_when_mixed() {
        let count = |text| Estimate.count(text);
        assert_eq!([count(""), count("abcd"), count("abcde"), count("日本"), count("ab日本")], [0, 1, 2, 2, 3]);
    }
}
