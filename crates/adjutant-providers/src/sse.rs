//! Splits the bytes of a stream into events or lines, without copying.
//!
//! Plain events (one `data:` line, at most one `event:` line) are sliced in place. All others go to eventsource-stream,
//! one whole event at a time: on raw chunks it panics on a byte-order mark and is quadratic on a giant line. Events of
//! many lines are joined here, because it is quadratic in those too.

use std::{
    convert::Infallible,
    ops::Range,
    pin::pin,
    task::{Context, Poll, Waker},
};

use adjutant_llm::{Error, ErrorKind};
use eventsource_stream::EventStream;
use futures_core::Stream;

/// The largest number of bytes that one event may have: a whole inline image fits.
pub(crate) const MAX_EVENT: usize = 16 * 1024 * 1024;
/// The largest number of lines that an event may have for the full parser.
const MAX_LINES: usize = 256;
/// A larger buffer is released when it is empty.
const KEPT_CAPACITY: usize = 64 * 1024;
/// Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html>, 2026-08: one leading mark is ignored.
const MARK: char = '\u{feff}';

/// The form in which an answer is cut into frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events.
    #[default]
    Events,
    /// Lines of JSON; blank ones are passed over.
    ///
    /// Source: "Streaming", docs.ollama.com, 2026: `application/x-ndjson`.
    Lines,
}

/// One event or one line, lent out of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The name of the event; empty if it has none, as lines never have.
    pub event: &'a str,
    /// The data of the event, or the line.
    pub data: &'a str,
}

/// Splits a stream into events.
///
/// Invariant: how the stream is cut into chunks makes no difference.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    framing: Framing,
    buffer: String,
    /// The first bytes of an incomplete character.
    partial: [u8; 4],
    partial_len: usize,
    /// The offset at which the event at hand begins.
    begin: usize,
    /// The offset at which the line at hand begins.
    line: usize,
    /// Up to where the line at hand was searched for its end.
    scanned: usize,
    event: Option<Range<usize>>,
    data: Option<Range<usize>>,
    /// True if the event at hand needs the full parser.
    odd: bool,
    /// True if the last line ended in CR, so that an LF right after it belongs to it.
    after_cr: bool,
    /// True if the beginning of the stream was checked.
    begun: bool,
    parsed: (String, String),
}

/// The place of the event that has just ended.
enum EventSpan {
    Buffer(Range<usize>, Range<usize>),
    Parsed,
}

impl Splitter {
    /// A splitter of streams of this form.
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            ..Self::default()
        }
    }

    /// Adds the next bytes. Invalid UTF-8 is replaced, as `String::from_utf8_lossy` does.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.compact();
        while let (1.., Some((byte, rest))) = (self.partial_len, bytes.split_first()) {
            self.partial[self.partial_len] = *byte;
            match std::str::from_utf8(&self.partial[..=self.partial_len]) {
                Ok(character) => {
                    self.buffer.push_str(character);
                    self.partial_len = 0;
                }
                Err(error) if error.error_len().is_none() => self.partial_len += 1,
                // The byte belongs to what follows.
                Err(_) => {
                    self.buffer.push(char::REPLACEMENT_CHARACTER);
                    self.partial_len = 0;
                    continue;
                }
            }
            bytes = rest;
        }
        // Whole text is the rule, and this check is several times faster than looking for the first bad byte.
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.buffer.push_str(text);
            return;
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.buffer.push_str(chunk.valid());
            let bad = chunk.invalid();
            let is_cut = std::str::from_utf8(bad).is_err_and(|error| error.error_len().is_none());
            if is_cut && chunks.peek().is_none() {
                self.partial[..bad.len()].copy_from_slice(bad);
                self.partial_len = bad.len();
            } else if !bad.is_empty() {
                self.buffer.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// The next whole event, if there is one.
    ///
    /// # Errors
    /// `Protocol` if an event is larger than 16 MiB.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Error> {
        if !self.begun {
            let Some(first) = self.buffer.chars().next() else {
                return Ok(None);
            };
            self.begun = true;
            if first == MARK {
                self.restart(MARK.len_utf8());
            }
        }
        while let Some((end, next)) = self.line_end() {
            let line = self.line..end;
            (self.line, self.scanned) = (next, next);
            if self.framing == Framing::Lines {
                self.check_size_at(end)?;
                self.begin = next;
                if self.buffer[line.clone()].trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(self.lend(EventSpan::Buffer(0..0, line))));
            }
            if line.is_empty() {
                if let Some(place) = self.dispatch()? {
                    return Ok(Some(self.lend(place)));
                }
            } else {
                self.field(line);
            }
        }
        self.check_size()?;
        Ok(None)
    }

    /// The event that the end of the stream cut off before its blank line, if there is one.
    ///
    /// The standard drops it; servers that end on `data: [DONE]` without a blank line mean it.
    pub(crate) fn last(&mut self) -> Result<Option<Frame<'_>>, Error> {
        if self.partial_len > 0 || self.begin == self.buffer.len() {
            return Ok(None);
        }
        self.buffer.push_str("\n\n");
        self.next()
    }

    /// Returns the end of the line at hand, and the beginning of the next one.
    fn line_end(&mut self) -> Option<(usize, usize)> {
        let bytes = self.buffer.as_bytes();
        if self.after_cr {
            match bytes.get(self.line) {
                None => return None,
                Some(b'\n') => {
                    self.line += 1;
                    self.scanned = self.scanned.max(self.line);
                    if self.begin + 1 == self.line {
                        self.begin = self.line;
                    }
                }
                Some(_) => {}
            }
            self.after_cr = false;
        }
        // Every other line of a plain event is blank.
        if bytes.get(self.scanned) == Some(&b'\n') {
            return Some((self.scanned, self.scanned + 1));
        }
        match memchr::memchr2(b'\n', b'\r', &bytes[self.scanned..]) {
            None => {
                self.scanned = bytes.len();
                None
            }
            Some(at) => {
                let end = self.scanned + at;
                self.after_cr = bytes[end] == b'\r';
                Some((end, end + 1))
            }
        }
    }

    fn field(&mut self, line: Range<usize>) {
        let text = &self.buffer.as_bytes()[line.clone()];
        let (slot, value) = if let Some(value) = text.strip_prefix(b"data:") {
            (&mut self.data, value)
        } else if let Some(value) = text.strip_prefix(b"event:") {
            (&mut self.event, value)
        } else if self.data.is_none() && text.starts_with(b"error: {") {
            // llama-server wrote its errors as a field until 2025-10: `server_sent_event` in `tools/server/utils.hpp`.
            self.event = Some(line.start..line.start + "error".len());
            (&mut self.data, &text["error:".len()..])
        } else {
            self.odd = true;
            return;
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if slot.replace(line.end - value.len()..line.end).is_some() {
            self.odd = true;
        }
    }

    /// Ends the event at hand at the line at hand.
    fn dispatch(&mut self) -> Result<Option<EventSpan>, Error> {
        self.check_size_at(self.line)?;
        let whole = self.begin..self.line;
        let (event, data) = (self.event.take(), self.data.take());
        let odd = std::mem::take(&mut self.odd);
        self.begin = self.line;
        if odd {
            return Ok(self.parse(whole)?.then_some(EventSpan::Parsed));
        }
        Ok(data.map(|data| EventSpan::Buffer(event.unwrap_or(0..0), data)))
    }

    /// Has the full parser read one whole event; whether it found one.
    fn parse(&mut self, whole: Range<usize>) -> Result<bool, Error> {
        let lines = self.buffer[whole.clone()]
            .bytes()
            .filter(|byte| matches!(byte, b'\n' | b'\r'));
        if lines.take(MAX_LINES + 1).count() > MAX_LINES {
            return Ok(self.join(whole));
        }
        // A comment comes first, because the parser takes a mark at the beginning for its own and panics.
        let mut text = String::with_capacity(whole.len() + 4);
        text.push_str(":\n");
        for line in self.buffer[whole]
            .split(['\r', '\n'])
            .filter(|line| !line.is_empty())
        {
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
        let mut events = pin!(EventStream::new(Once(Some(text))));
        let Poll::Ready(Some(event)) = events
            .as_mut()
            .poll_next(&mut Context::from_waker(Waker::noop()))
        else {
            return Ok(false);
        };
        let event = event.map_err(|error| {
            Error::new(
                ErrorKind::Protocol,
                "the stream holds an event that cannot be read",
            )
            .with_source(error)
        })?;
        self.parsed = (event.event, event.data);
        Ok(true)
    }

    /// Reads one whole event of many lines, for which the full parser takes time that grows with their square.
    fn join(&mut self, whole: Range<usize>) -> bool {
        let (mut event, mut data) = (String::new(), None::<String>);
        for line in self.buffer[whole]
            .split(['\r', '\n'])
            .filter(|line| !line.is_empty())
        {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match (name, &mut data) {
                ("data", Some(data)) => {
                    data.push('\n');
                    data.push_str(value);
                }
                ("data", None) => data = Some(value.to_owned()),
                ("event", _) => value.clone_into(&mut event),
                _ => {}
            }
        }
        let Some(data) = data else { return false };
        self.parsed = (
            if event.is_empty() {
                "message".to_owned()
            } else {
                event
            },
            data,
        );
        true
    }

    fn lend(&self, place: EventSpan) -> Frame<'_> {
        match place {
            EventSpan::Buffer(event, data) => Frame {
                event: &self.buffer[event],
                data: &self.buffer[data],
            },
            EventSpan::Parsed => Frame {
                event: &self.parsed.0,
                data: &self.parsed.1,
            },
        }
    }

    fn check_size(&self) -> Result<(), Error> {
        self.check_size_at(self.buffer.len())
    }

    fn check_size_at(&self, end: usize) -> Result<(), Error> {
        if end - self.begin > MAX_EVENT {
            return Err(Error::new(
                ErrorKind::Protocol,
                "the stream holds an event of more than 16 MiB",
            ));
        }
        Ok(())
    }

    fn restart(&mut self, at: usize) {
        (self.begin, self.line, self.scanned) = (at, at, at);
    }

    /// Drops the consumed frames.
    fn compact(&mut self) {
        let gone = std::mem::take(&mut self.begin);
        if gone == 0 {
            return;
        }
        if gone == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_CAPACITY);
        } else {
            self.buffer.drain(..gone);
        }
        self.line -= gone;
        self.scanned -= gone;
        for range in [&mut self.event, &mut self.data].into_iter().flatten() {
            *range = range.start - gone..range.end - gone;
        }
    }
}

/// A stream of one text.
struct Once(Option<String>);

impl Stream for Once {
    type Item = Result<String, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

#[cfg(test)]
mod tests;
