//! A request body made of bytes that already exist: a head, shared segments, and a tail.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body of known length that is sent in a few large pieces.
///
/// The messages are the segments and then the tail, without the first bytes; marks are inserted at offsets of the
/// messages.
#[derive(Debug, Clone)]
pub(crate) struct Segmented {
    head: Bytes,
    segments: Arc<Vec<Bytes>>,
    tail: Bytes,
    marks: Marks,
    /// The piece of the messages that is sent next: a segment, or the tail.
    piece: usize,
    /// The number of its bytes that are sent already.
    within: usize,
    /// The offset of the messages up to which they are sent.
    at: u64,
    left: u64,
}

/// The bytes that are inserted at offsets of the messages, ascending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    pub(crate) bytes: Bytes,
    pub(crate) at: [Option<u64>; 2],
}

impl Iterator for Segmented {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let piece = if self.head.is_empty() {
            self.message()?
        } else {
            std::mem::take(&mut self.head)
        };
        self.left = self.left.saturating_sub(piece.len() as u64);
        Some(piece)
    }
}

impl Segmented {
    /// A body of these pieces; `skip` bytes of the messages are left out at their beginning.
    pub(crate) fn new(
        head: Bytes,
        segments: Arc<Vec<Bytes>>,
        tail: Bytes,
        skip: usize,
        marks: Marks,
    ) -> Self {
        let messages = segments.iter().map(Bytes::len).sum::<usize>() + tail.len();
        let skip = skip.min(segments.first().unwrap_or(&tail).len());
        let marked = marks.at.iter().flatten().count() * marks.bytes.len();
        let left = (head.len() + messages - skip + marked) as u64;
        Self {
            head,
            segments,
            tail,
            marks,
            piece: 0,
            within: skip,
            at: skip as u64,
            left,
        }
    }

    /// Returns the bytes as one.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.clone().flatten().collect()
    }

    /// The pieces as one without the marks, for tests.
    #[cfg(test)]
    pub(crate) fn to_unmarked(&self) -> Vec<u8> {
        Self {
            marks: Marks::default(),
            ..self.clone()
        }
        .to_vec()
    }

    /// The next piece of the messages: up to the next mark, or that mark.
    fn message(&mut self) -> Option<Bytes> {
        loop {
            let mark = self.marks.at.iter_mut().find(|it| it.is_some());
            let until = match mark {
                Some(at) if at.is_some_and(|at| at <= self.at) => {
                    *at = None;
                    return Some(self.marks.bytes.clone());
                }
                Some(at) => *at,
                None => None,
            };
            let whole = match self.segments.get(self.piece) {
                Some(segment) => segment,
                None if self.piece == self.segments.len() => &self.tail,
                None => return None,
            };
            let room = until.map_or(u64::MAX, |until| until - self.at);
            let end = (whole.len() as u64).min((self.within as u64).saturating_add(room)) as usize;
            let part = whole.slice(self.within..end);
            self.at += part.len() as u64;
            self.within = end;
            if end == whole.len() {
                (self.piece, self.within) = (self.piece + 1, 0);
            }
            if !part.is_empty() {
                return Some(part);
            }
        }
    }
}

impl Body for Segmented {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(segments: &[&'static str], skip: usize, marks: [Option<u64>; 2], expect: &str) {
        let segments = segments
            .iter()
            .map(|it| Bytes::from_static(it.as_bytes()))
            .collect();
        let marks = Marks {
            bytes: "!".into(),
            at: marks,
        };
        let mut body = Segmented::new(
            "head[".into(),
            Arc::new(segments),
            "tail]".into(),
            skip,
            marks,
        );
        assert_eq!(
            String::from_utf8(body.to_unmarked()).expect("text"),
            expect.replace('!', "")
        );
        assert_eq!(Body::size_hint(&body).exact(), Some(expect.len() as u64));
        let mut sent = Vec::new();
        while let Some(piece) = body.next() {
            sent.extend_from_slice(&piece);
            assert_eq!(
                Body::size_hint(&body).exact(),
                Some((expect.len() - sent.len()) as u64)
            );
        }
        assert_eq!(String::from_utf8(sent).expect("text"), expect);
        assert!(body.is_end_stream());
    }

    #[test]
    fn body_knows_its_length_when_it_is_sent() {
        check(&[], 1, [None, None], "head[ail]");
        check(&[",a", ",b"], 1, [None, None], "head[a,btail]");
        check(&[",a", ",b"], 0, [None, None], "head[,a,btail]");
    }

    #[test]
    fn body_holds_marks_when_they_are_set() {
        check(&[",a", ",b"], 1, [Some(2), Some(4)], "head[a!,b!tail]");
        check(&[",a", ",b"], 1, [Some(1), Some(6)], "head[!a,bta!il]");
        check(&[], 0, [Some(3), None], "head[tai!l]");
        check(&[], 0, [None, Some(5)], "head[tail]!");
    }
}
