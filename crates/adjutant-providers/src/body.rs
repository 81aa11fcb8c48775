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
#[derive(Debug, Clone)]
pub(crate) struct Segmented {
    head: Bytes,
    /// The shared segments, and how many of them are sent.
    segments: Arc<Vec<Bytes>>,
    sent: usize,
    /// How many bytes of the first segment are left out: the comma before the first message.
    skip: usize,
    tail: Bytes,
    left: u64,
}

impl Segmented {
    /// A body of these pieces; `skip` bytes of the first segment are left out.
    pub(crate) fn new(head: Bytes, segments: Arc<Vec<Bytes>>, skip: usize, tail: Bytes) -> Self {
        let sealed: usize = segments.iter().map(Bytes::len).sum();
        let skip = if segments.is_empty() { 0 } else { skip };
        let left = (head.len() + sealed - skip + tail.len()) as u64;
        Self { head, segments, sent: 0, skip, tail, left }
    }

    /// The pieces as one, for tests.
    #[cfg(test)]
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut this = self.clone();
        std::iter::from_fn(move || this.piece()).flatten().collect()
    }

    fn piece(&mut self) -> Option<Bytes> {
        let piece = if !self.head.is_empty() {
            std::mem::take(&mut self.head)
        } else if let Some(segment) = self.segments.get(self.sent) {
            self.sent += 1;
            segment.slice(std::mem::take(&mut self.skip)..)
        } else if !self.tail.is_empty() {
            std::mem::take(&mut self.tail)
        } else {
            return None;
        };
        self.left -= piece.len() as u64;
        Some(piece)
    }
}

impl Body for Segmented {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().piece().map(|piece| Ok(Frame::data(piece))))
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
    fn check(segments: &[&'static str], skip: usize, expect: &str) {
        let segments = segments.iter().map(|it| Bytes::from_static(it.as_bytes())).collect();
        let mut body = Segmented::new("head[".into(), Arc::new(segments), skip, "tail]".into());
        assert_eq!(body.size_hint().exact(), Some(expect.len() as u64));
        let mut sent = Vec::new();
        while let Some(piece) = body.piece() {
            sent.extend_from_slice(&piece);
            assert_eq!(body.size_hint().exact(), Some((expect.len() - sent.len()) as u64));
        }
        assert_eq!(String::from_utf8(sent).expect("text"), expect);
        assert!(body.is_end_stream());
    }

    #[test]
    fn body_knows_its_length_when_it_is_sent() {
        check(&[], 1, "head[tail]");
        check(&[",a", ",b"], 1, "head[a,btail]");
        check(&[",a", ",b"], 0, "head[,a,btail]");
    }
}
