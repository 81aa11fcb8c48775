//! Tells an observer about one exchange. Only there if somebody looks on.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use adjutant_llm::{Error, ModelInfo, Request};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, response::Parts};

use crate::{
    body::Segmented,
    observe::{Exchange, Observe, Outgoing, Rewrite},
    sse::Frame,
};

/// An exchange, and who looks on.
pub(super) struct Watch {
    by: Arc<dyn Observe>,
    exchange: Exchange,
}

impl Watch {
    pub(super) fn new(by: &Arc<dyn Observe>, info: &ModelInfo, request: &Request) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let exchange = Exchange { number, model: info.id.clone(), turn: request.turn(), attempt: request.attempt };
        Self { by: Arc::clone(by), exchange }
    }

    /// Shows a request, and sends another body instead if that is wished.
    pub(super) fn request(&self, post: &mut reqwest::Request, body: Segmented) {
        let mut bytes = BytesMut::new();
        body.for_each(|piece| bytes.extend_from_slice(&piece));
        let body: Bytes = bytes.freeze();
        let outgoing = Outgoing { url: post.url().as_str(), headers: plain(post.headers()), body: &body };
        match self.by.request(&self.exchange, &outgoing) {
            Rewrite::Keep => {}
            Rewrite::Body(other) => *post.body_mut() = Some(other.into()),
        }
    }

    pub(super) fn response(&self, parts: &Parts) {
        self.by.response(&self.exchange, parts.status.as_u16(), &plain(&parts.headers));
    }

    pub(super) fn frame(&self, frame: Frame<'_>, key: Option<&str>) {
        match key.filter(|key| frame.data.contains(*key)) {
            Some(key) => self.by.frame(&self.exchange, frame.event, &frame.data.replace(key, "[key]")),
            None => self.by.frame(&self.exchange, frame.event, frame.data),
        }
    }

    pub(super) fn ended(&self, error: Option<&Error>) {
        self.by.ended(&self.exchange, error);
    }
}

/// The headers that are text and hold no secret.
fn plain(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let plain = headers.iter().filter(|(name, value)| !value.is_sensitive() && !name.as_str().contains("cookie"));
    plain.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect()
}
