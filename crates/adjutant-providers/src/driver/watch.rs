//! Notifies an observer about one exchange. Exists only if an observer is set.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use adjutant_llm::{Error, ErrorKind, ModelInfo, Request};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, response::Parts};

use crate::{
    body::Segmented,
    credentials::Secrets,
    observe::{Exchange, Observe, Outgoing, Rewrite},
    sse::Frame,
};

/// An exchange, and who looks on.
///
/// Invariant: an observer that received a request receives its end, once, even if the stream is dropped.
pub(super) struct Watch {
    by: Arc<dyn Observe>,
    exchange: Exchange,
    /// True if the observer received a request but not yet its end.
    open: bool,
}

impl Watch {
    pub(super) fn new(by: &Arc<dyn Observe>, info: &ModelInfo, request: &Request) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let exchange = Exchange {
            number,
            model: info.id.clone(),
            turn: request.turn(),
            attempt: request.attempt,
        };
        Self {
            by: Arc::clone(by),
            exchange,
            open: false,
        }
    }

    /// Passes a request to the observer, and sends the body that it returns, if any.
    pub(super) fn request(
        &mut self,
        post: &mut reqwest::Request,
        body: Segmented,
        secrets: &Secrets,
    ) {
        let mut bytes = BytesMut::new();
        body.for_each(|piece| bytes.extend_from_slice(&piece));
        let mut body: Bytes = bytes.freeze();
        if let Ok(Cow::Owned(clean)) = std::str::from_utf8(&body).map(|text| secrets.clean(text)) {
            body = clean.into();
        }
        self.open = true;
        let headers = plain(post.headers(), secrets);
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let outgoing = Outgoing {
            url: post.url().as_str(),
            headers,
            body: &body,
        };
        match self.by.request(&self.exchange, &outgoing) {
            Rewrite::Keep => {}
            Rewrite::Body(other) => *post.body_mut() = Some(other.into()),
        }
    }

    pub(super) fn response(&self, parts: &Parts, secrets: &Secrets) {
        let headers = plain(&parts.headers, secrets);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        self.by
            .response(&self.exchange, parts.status.as_u16(), &headers);
    }

    pub(super) fn frame(&self, frame: Frame<'_>, secrets: &Secrets) {
        self.by.frame(
            &self.exchange,
            &secrets.clean(frame.event),
            &secrets.clean(frame.data),
        );
    }

    pub(super) fn finish(mut self, error: Option<&Error>) {
        self.end(error);
    }

    fn end(&mut self, error: Option<&Error>) {
        if std::mem::take(&mut self.open) {
            self.by.finish(&self.exchange, error);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.open {
            let text = format!(
                "the answer of {} was dropped before it ended",
                self.exchange.model
            );
            self.end(Some(&Error::new(ErrorKind::Cancelled, text)));
        }
    }
}

/// The headers that are text and hold no secret.
fn plain<'a>(headers: &'a HeaderMap, secrets: &Secrets) -> Vec<(&'a str, Cow<'a, str>)> {
    let plain = headers
        .iter()
        .filter(|(name, value)| !value.is_sensitive() && !name.as_str().contains("cookie"));
    plain
        .filter_map(|(name, value)| Some((name.as_str(), secrets.clean(value.to_str().ok()?))))
        .collect()
}
