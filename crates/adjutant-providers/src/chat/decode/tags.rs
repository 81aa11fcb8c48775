//! Thinking that a model writes in tags at the start of its text, if its server does not separate it.
//!
//! Source: DeepSeek-R1's and Qwen3's model cards, huggingface.co, 2026; "Reasoning" (`raw` format), console.groq.com/docs,
//! 2026-11; ollama/ollama 8528 and lmstudio-ai/lmstudio-bug-tracker 723, 2025.

use std::{borrow::Cow, collections::VecDeque};

use adjutant_llm::{Chunk, Error};

use super::{Decoder, IN_TAGS, Kind};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// The largest number of buffered bytes.
const MAX_HELD: usize = 4_096;

/// The place in a text that may start with thinking in tags. The split of the text into pieces makes no difference.
#[derive(Debug, Default)]
pub(super) enum Tags {
    /// Tags are text.
    #[default]
    Text,
    /// The text so far may be the start of the opening tag.
    Start(String),
    /// In the thinking; the held text may be the start of the closing tag, or blank.
    Thinking(String),
    /// After the closing tag, where blanks are dropped.
    Closed,
}

impl Decoder {
    /// Adds text while the tags are open.
    #[cold]
    pub(super) fn say_tagged(
        &mut self,
        text: Cow<'_, str>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        match std::mem::take(&mut self.tags) {
            Tags::Text => self.say(Kind::Text, None, text, out),
            Tags::Closed => {
                let rest = text.trim_start();
                if rest.is_empty() {
                    self.tags = Tags::Closed;
                    return Ok(());
                }
                self.say(Kind::Text, None, Cow::Borrowed(rest), out)
            }
            Tags::Start(mut held) => {
                held.push_str(&text);
                let start = held.trim_start();
                if let Some(rest) = start.strip_prefix(OPEN) {
                    self.tags = Tags::Thinking(String::new());
                    return self.say_tagged(Cow::Borrowed(rest), out);
                }
                if OPEN.starts_with(start) && held.len() <= MAX_HELD {
                    self.tags = Tags::Start(held);
                    return Ok(());
                }
                self.say(Kind::Text, None, Cow::Owned(held), out)
            }
            Tags::Thinking(mut held) => {
                held.push_str(&text);
                if let Some((thought, rest)) = held.split_once(CLOSE) {
                    self.think(thought, out)?;
                    self.tags = Tags::Closed;
                    return self.say_tagged(Cow::Borrowed(rest), out);
                }
                let is_blank = self.said.is_none() && held.trim_start().is_empty();
                let end = if is_blank && held.len() <= MAX_HELD {
                    0
                } else {
                    (1..CLOSE.len())
                        .rev()
                        .find(|len| held.ends_with(&CLOSE[..*len]))
                        .map_or(held.len(), |len| held.len() - len)
                };
                self.think(&held[..end], out)?;
                held.drain(..end);
                self.tags = Tags::Thinking(held);
                Ok(())
            }
        }
    }

    /// Closes the tags: the buffered text becomes text, or thinking without an end.
    #[cold]
    pub(super) fn settle_tags(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        match std::mem::take(&mut self.tags) {
            Tags::Start(held) => self.say(Kind::Text, None, Cow::Owned(held), out),
            Tags::Thinking(held) => self.think(&held, out),
            Tags::Text | Tags::Closed => Ok(()),
        }
    }

    fn think(&mut self, text: &str, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if self.said.is_none() && text.trim_start().is_empty() {
            return Ok(());
        }
        self.say(Kind::Thinking, Some(IN_TAGS), Cow::Borrowed(text), out)
    }
}
