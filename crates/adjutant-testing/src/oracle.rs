//! The server side of a custom wire: an independent second implementation, against which the wire is tested.
//!
//! Write it from the vendor's documentation and not from your own encoder, because an error in both would not be
//! found. It must refuse everything that the vendor refuses. [`Setup::oracle`](crate::Setup::oracle) adds it to a
//! server, and [`FnSubject::oracle`](crate::conformance::FnSubject::oracle) to the conformance suite.

use std::{fmt, sync::Arc};

use adjutant_llm::{Chunk, RateLimits, Request};
use serde_json::Value;

use crate::{
    encode::{Encoder, ErrorAt, push_data},
    received::Received,
};

pub use crate::{
    body::{Body, Frame},
    history::{History, Misplaced, call},
    refusal::Refusal,
};

/// The media type of lines of JSON.
pub(crate) const LINES: &str = "application/x-ndjson";

/// A server's side of a wire.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how a server speaks its wire",
    note = "implement `path`, `read` and `error`"
)]
pub trait Oracle: fmt::Debug + Send + Sync {
    /// The path of requests for a reply, without a query; they are posted.
    fn path(&self) -> &str;

    /// Reads a request, and gives what writes its answer.
    ///
    /// # Errors
    /// The refusal of the vendor.
    fn read(&self, received: &Received) -> Result<(Request, Box<dyn Speaker>), Refusal>;

    /// The vendor's error, as a body and as a frame of a stream.
    fn error(&self, refusal: &Refusal) -> Value;

    /// True if an answer is lines of JSON; otherwise it is server-sent events.
    fn is_lines(&self) -> bool {
        true
    }
}

/// Writes one answer.
pub trait Speaker: Send {
    /// Takes a chunk of the served model, and adds the frames that it becomes.
    ///
    /// # Errors
    /// If the wire has no form for it, as for arguments of a call that are no JSON.
    fn chunk(&mut self, chunk: &Chunk, body: &mut Body) -> Result<(), Refusal>;
}

/// An answer between the encoders of the four wires.
pub(crate) struct Foreign {
    pub(crate) answer: Box<dyn Speaker>,
    pub(crate) oracle: Arc<dyn Oracle>,
}

impl Encoder for Foreign {
    fn chunk(&mut self, chunk: &Chunk, body: &mut Body) -> Result<(), Refusal> {
        self.answer.chunk(chunk, body)
    }

    fn error(&self, refusal: &Refusal, _: ErrorAt) -> Vec<u8> {
        let (error, mut frame) = (self.oracle.error(refusal), Vec::new());
        if self.oracle.is_lines() {
            frame.extend_from_slice(error.to_string().as_bytes());
            frame.push(b'\n');
        } else {
            push_data(&error, &mut frame);
        }
        frame
    }

    fn headers(&self, _: &RateLimits) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
