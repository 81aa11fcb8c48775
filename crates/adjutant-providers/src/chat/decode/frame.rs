//! The fields around the choices of an event: most events of a stream repeat them, and they are read once.

use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny},
};
use serde_json::{Deserializer, value::RawValue};

use crate::{
    chat::wire::{Choice, Completion},
    text::{Few, Place},
};

/// The largest number of bytes of an event that is remembered.
const MAX_BYTES: usize = 4_096;
/// The number of events that are read as a whole before one is remembered: a short stream gains nothing by it.
const MIN_READ: u8 = 8;
/// The number of events that may be remembered or read twice without success before the comparison stops.
const MAX_MISSES: u8 = 8;

/// The text before and after the choices of an event without other content.
#[derive(Debug, Default)]
pub(super) struct Around {
    head: Box<str>,
    tail: Box<str>,
    /// The number of events that were read as a whole, up to [`MIN_READ`].
    read: u8,
    misses: u8,
}

#[derive(Deserialize)]
struct Located<'a> {
    #[serde(borrow)]
    choices: &'a RawValue,
}

impl Around {
    /// Reads the choices of an event that repeats the known fields; the result counts only if it returns true.
    pub(super) fn read<'a>(&mut self, data: &'a str, choices: &mut Few<Choice<'a>>) -> bool {
        let Some(rest) = data
            .strip_prefix(&*self.head)
            .filter(|_| !self.head.is_empty())
        else {
            return false;
        };
        let mut reader = Deserializer::from_str(rest);
        let is_read = Place(choices).deserialize(&mut reader).is_ok();
        if is_read && rest[reader.into_iter::<IgnoredAny>().byte_offset()..] == *self.tail {
            return true;
        }
        // It is read again as a whole.
        (self.head, self.misses) = (Box::default(), self.misses + 1);
        false
    }

    /// Remembers a fully parsed event, if it is small, has no content besides its choices, and the stream is long
    /// enough.
    pub(super) fn learn(&mut self, data: &str, completion: &Completion<'_>) {
        if self.read < MIN_READ {
            self.read += 1;
            return;
        }
        if self.misses >= MAX_MISSES || data.len() > MAX_BYTES || completion.says_more() {
            return;
        }
        self.misses += 1;
        let Ok(Located { choices }) = serde_json::from_str(data) else {
            return;
        };
        // They are a part of the event's text, and borrowed from it.
        let at = choices.get().as_ptr().addr() - data.as_ptr().addr();
        (self.head, self.tail) = (data[..at].into(), data[at + choices.get().len()..].into());
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, sync::Arc};

    use adjutant_llm::{Chunk, ModelInfo};

    use super::super::Decoder;
    use crate::{blocks::CallIdSeed, dialect::Dialect, driver::Decode, sse::Frame};

    /// What a stream of events says, each read with what is known of those before it, or by a decoder of its own.
    fn said(events: &[String], alone: bool) -> (String, bool) {
        let new = || {
            Decoder::new(
                Arc::new(ModelInfo::new("test/model")),
                Dialect::for_provider("openai"),
                CallIdSeed {
                    turn: 1,
                    attempt: 0,
                },
            )
        };
        let (mut decoder, mut out, mut is_broken) = (new(), VecDeque::new(), false);
        for data in events {
            if alone {
                decoder.around = super::Around::default();
            }
            is_broken |= decoder.frame(Frame { event: "", data }, &mut out).is_err();
        }
        let deltas = out.into_iter().map(|chunk| match chunk {
            Chunk::Delta { text, .. } => text,
            Chunk::Usage { usage, .. } => format!("<{}>", usage.output),
            _ => String::new(),
        });
        (deltas.collect(), is_broken)
    }

    #[test]
    fn event_says_the_same_when_those_before_it_are_known() {
        let event = |head: &str, text: &str, tail: &str| {
            format!(
                r#"{{"id":"a",{head}"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]{tail}}}"#
            )
        };
        let plain = |text| event("", text, r#","usage":null"#);
        let spent = r#","usage":{"completion_tokens":7}"#;
        let streams = [
            vec![plain("a"), plain("b"), plain("c")],
            vec![
                plain("a"),
                event("", "b", spent),
                plain("c"),
                event("", "d", spent),
            ],
            vec![
                plain("a"),
                event("", "b", r#","choices":[{"delta":{"content":"B"}}]"#),
                plain("c"),
            ],
            vec![
                event(r#""usage":{"completion_tokens":3},"#, "a", ""),
                event("", "b", ""),
                event("", "c", ""),
            ],
            vec![
                plain("a"),
                plain("b"),
                event("", "c", r#","error":{"message":"no"}"#),
            ],
            vec![
                plain("a"),
                plain("b").replace("]", "]]"),
                plain("c").replace("[", ""),
            ],
            vec![
                plain("a"),
                r#"{"id":"a","choices":null,"usage":null}"#.into(),
                plain("b"),
            ],
            (0..40)
                .map(|n| event("", &n.to_string(), &format!(r#","obfuscation":"{n}""#)))
                .collect(),
        ];
        for stream in streams {
            let events: Vec<_> = (0..=super::MIN_READ)
                .map(|_| plain("-"))
                .chain(stream)
                .collect();
            assert_eq!(said(&events, false), said(&events, true), "{events:?}");
        }
    }
}
