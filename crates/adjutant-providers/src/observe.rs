//! Looking at what goes over the wire: hooks for each attempt at a request. Nothing is collected without one.

use std::{fmt, sync::Arc};

use adjutant_llm::{Error, ModelId};
use bytes::Bytes;

/// Sees every attempt at a request below the wire, and may rewrite it. All methods do nothing by default.
///
/// It is called in the middle of the stream, so it must not block. Keys are never passed on: headers with keys are
/// omitted, and a key in a body, a header or an event is replaced by `[key]`. A key has at least eight characters.
pub trait Observe: Send + Sync + fmt::Debug {
    /// Sees a request before it is sent, and may replace its body. A retry starts from the original again.
    ///
    /// Not called if no request is made, because its key could not be had or its address is wrong.
    fn request(&self, exchange: &Exchange, request: &Outgoing<'_>) -> Rewrite {
        let _ = (exchange, request);
        Rewrite::Keep
    }

    /// Sees the status and the headers of an answer.
    fn response(&self, exchange: &Exchange, status: u16, headers: &[(&str, &str)]) {
        let _ = (exchange, status, headers);
    }

    /// Sees an event of an answer: its name, which may be empty, and its data.
    fn frame(&self, exchange: &Exchange, event: &str, data: &str) {
        let _ = (exchange, event, data);
    }

    /// Sees that an answer ended, and in what if it failed: `Cancelled` if the stream was dropped before its end.
    ///
    /// Called once for each request that was seen.
    fn finish(&self, exchange: &Exchange, error: Option<&Error>) {
        let _ = (exchange, error);
    }
}

impl<O: Observe + ?Sized> Observe for Arc<O> {
    fn request(&self, exchange: &Exchange, request: &Outgoing<'_>) -> Rewrite {
        (**self).request(exchange, request)
    }

    fn response(&self, exchange: &Exchange, status: u16, headers: &[(&str, &str)]) {
        (**self).response(exchange, status, headers);
    }

    fn frame(&self, exchange: &Exchange, event: &str, data: &str) {
        (**self).frame(exchange, event, data);
    }

    fn finish(&self, exchange: &Exchange, error: Option<&Error>) {
        (**self).finish(exchange, error);
    }
}

/// Names one attempt at a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// Its number in this process, from 0.
    pub number: u64,
    /// The model of the request.
    pub model: ModelId,
    /// The turn that the request is for.
    pub turn: u64,
    /// The attempt, counted from the request's.
    pub attempt: u32,
}

/// A request before it is sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outgoing<'a> {
    /// The address of the request.
    pub url: &'a str,
    /// Its headers, without headers that hold a key.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Its body: JSON as sent, with keys replaced.
    pub body: &'a Bytes,
}

/// The decision about the body of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rewrite {
    /// It is sent as it is.
    #[default]
    Keep,
    /// This one is sent instead.
    Body(Bytes),
}
