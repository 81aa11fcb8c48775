//! The stop reasons of a reply, and the common rule for unknown ones.

use std::collections::VecDeque;

use adjutant_llm::{Chunk, Error, ErrorKind, FinishReason, Reply, Warning, WarningKind};

/// The largest number of characters of a provider's word that stand in a message.
const MAX_WORD: usize = 120;

/// The meaning of a wire's stop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The reply is whole: whether it holds calls decides.
    Whole,
    /// The word means this.
    As(FinishReason),
    /// The word is not known.
    Unknown {
        /// True if a block was cut off when the reply stopped.
        open: bool,
    },
}

impl Finish {
    /// Settles how a reply with all its blocks has stopped; its `raw_stop` is the word.
    ///
    /// A reply with an unknown stop reason is accepted, with a warning that names the reason. Its calls run, unless a
    /// block was cut off.
    ///
    /// # Errors
    /// `Protocol`, which is not retried, if the stop reason is unknown and the reply is empty.
    pub fn settle(self, mut reply: Reply, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        reply.stop = match self {
            Finish::As(stop) => stop,
            Finish::Unknown { open: true } => FinishReason::Length,
            Finish::Whole | Finish::Unknown { open: false } if reply.calls().next().is_some() => {
                FinishReason::Calls
            }
            Finish::Whole | Finish::Unknown { open: false } => FinishReason::End,
        };
        if let Finish::Unknown { open } = self {
            let word: String = reply
                .raw_stop
                .iter()
                .flat_map(|word| word.chars())
                .take(MAX_WORD)
                .collect();
            let why = format!("stopped for a reason that is not known: {word:?}");
            if reply.is_silent() {
                let text = format!("{} said nothing and {why}", reply.model);
                return Err(Error::new(ErrorKind::Protocol, text).with(|it| {
                    it.code = Some(word.into());
                    it.should_retry = Some(false);
                }));
            }
            let taken = if open {
                "the reply was cut off, so its calls do not run"
            } else {
                "the reply is accepted as it is"
            };
            let text = format!("{} {why}; {taken}", reply.model);
            out.push_back(Chunk::Warned {
                warning: Warning {
                    kind: WarningKind::UnknownStop,
                    message: text.into(),
                },
            });
        }
        Ok(reply)
    }
}
