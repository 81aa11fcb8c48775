//! Parses server-sent events. Each byte is scanned once, however long a line is and in how many chunks it arrives.

use bytes::{Buf, Bytes, BytesMut};

/// The maximum number of bytes of one frame, and of a response without frames.
pub(super) const MAX_FRAME_BYTES: usize = 256 * 1024 * 1024;

/// Parses bytes into frames.
///
/// Source: WHATWG HTML, "Server-sent events" (2025). A single carriage return as a line end is not supported, because
/// the routes never write one.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: BytesMut,
    /// The number of bytes that contain no line end.
    seen: usize,
    frame: Frame,
}

/// A frame: its name and its data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) event: String,
    pub(super) data: Vec<u8>,
}

/// A frame exceeds the maximum size.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Frames {
    /// Takes more bytes.
    pub(super) fn push(&mut self, bytes: &Bytes) -> Result<(), TooLong> {
        if self.bytes.len() + self.frame.data.len() + bytes.len() > MAX_FRAME_BYTES {
            return Err(TooLong);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next complete frame, if there is one.
    pub(super) fn next(&mut self) -> Option<Frame> {
        loop {
            let rest = self.bytes.get(self.seen..).unwrap_or_default();
            let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
                self.seen = self.bytes.len();
                return None;
            };
            let line = self.bytes.split_to(self.seen + at);
            self.bytes.advance(1);
            self.seen = 0;
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                let frame = std::mem::take(&mut self.frame);
                if !frame.data.is_empty() {
                    return Some(frame);
                }
            } else {
                self.frame.field(line);
            }
        }
    }
}

impl Frame {
    fn field(&mut self, line: &[u8]) {
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            // Comments, ids and unknown fields.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str)]) {
        for size in 1..=text.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for part in text.as_bytes().chunks(size) {
                frames
                    .push(&Bytes::copy_from_slice(part))
                    .expect("it is short");
                found.extend(std::iter::from_fn(|| frames.next()));
            }
            let found: Vec<(String, String)> = found
                .into_iter()
                .map(|it| (it.event, String::from_utf8_lossy(&it.data).into_owned()))
                .collect();
            let expect: Vec<(String, String)> = expect
                .iter()
                .map(|(event, data)| ((*event).to_owned(), (*data).to_owned()))
                .collect();
            assert_eq!(found, expect, "in parts of {size}");
        }
    }

    #[test]
    fn frames_are_the_same_in_whatever_parts_they_come() {
        check(
            "id: 5\nevent: a\ndata: {\"x\":\"ü\"}\n\n",
            &[("a", "{\"x\":\"ü\"}")],
        );
        check(
            "data:1\r\n\r\nevent:b\r\ndata: 2\r\n\r\n",
            &[("", "1"), ("b", "2")],
        );
        check(": comment\n\n:\n\ndata: 1\ndata: 2\n\n", &[("", "1\n2")]);
        check("event: a\n\ndata: 1\n\n", &[("", "1")]);
        check(
            "data: 1\nodd\nevent: x\n\nrest: 5\ndata: cut",
            &[("x", "1")],
        );
    }

    #[test]
    fn push_refuses_a_frame_that_never_ends() {
        let (mut frames, part) = (Frames::default(), Bytes::from(vec![b'x'; 64 << 20]));
        let pushed: Vec<bool> = (0..5).map(|_| frames.push(&part).is_ok()).collect();
        assert_eq!(pushed, [true, true, true, true, false]);
    }
}
