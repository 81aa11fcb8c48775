//! The things that can be broken about an answer. The code that breaks them is in `plan.rs` and `body.rs`.

use std::time::Duration;

use bytes::Bytes;

/// Something that is broken about an answer.
///
/// Offsets count the bytes of the body without faults, from 0, without HTTP's own framing. An offset beyond the end
/// of the body has no effect. Several faults of one request all apply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Closes the connection before a byte of the answer was sent.
    Hangup,
    /// Closes the connection after that many bytes of the body.
    CutAt(u64),
    /// Sends no more after that many bytes of the body, and keeps the connection open.
    StallAt(u64),
    /// Sends bytes that do not belong there.
    Garbage {
        /// The position of these bytes.
        at: FaultPosition,
        /// The bytes that are sent.
        bytes: Bytes,
    },
    /// Sends the body in pieces of that many bytes, each one in a separate chunk and write; 0 counts as 1.
    SplitEvery(usize),
    /// Answers with this status, without asking the model.
    ///
    /// A status of 529 is sent as 503 on the wires where it is not known: all but Messages.
    Status {
        /// The HTTP status.
        code: u16,
        /// Headers beside the wire's own.
        headers: Vec<(String, String)>,
        /// The body; `None` for the vendor's error of that status.
        body: Option<Bytes>,
    },
    /// Answers with status 200 and a web page, as proxies do, without asking the model.
    Html,
    /// Sends the vendor's error in the stream after that many frames, and ends the body.
    ErrorAfter {
        /// The number of frames that are sent before the error.
        frames: u64,
    },
    /// Sends one good frame and then a `data:` line without an end, until the client closes the connection.
    EndlessFrame,
    /// Leaves out the frames that finish a reply; the body ends as if all were well.
    MissingFinish,
    /// Sends `0xFF` in the place of a byte.
    InvalidUtf8 {
        /// The offset of the byte.
        at: u64,
    },
    /// Sends other bytes wherever these stand within a frame.
    Replace {
        /// The bytes that are looked for.
        what: Bytes,
        /// The bytes that are sent in their place.
        with: Bytes,
    },
    /// Sends the frame with the usage twice.
    DuplicateUsage,
    /// Keeps the connection open after the last frame, without the end of the body.
    SlowClose,
    /// Sends these bytes again and again before a frame, with a pause before each time; empty bytes are a silence.
    Pause {
        /// The frame that waits.
        before: Paused,
        /// The number of pauses.
        times: u32,
        /// The length of each pause.
        every: Duration,
        /// The bytes that are sent after each pause.
        bytes: Bytes,
    },
    /// Answers with this media type instead of the wire's own.
    ContentType(String),
}

/// The frame before which an answer pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Paused {
    /// The frame of this number, counted from 0.
    Frame(u64),
    /// The frames with the usage.
    Usage,
}

/// The position at which bytes are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultPosition {
    /// Before the byte of this offset.
    Byte(u64),
    /// Before the frame of this number, counted from 0.
    Frame(u64),
}

impl Fault {
    /// Status 429, with a `retry-after` header in seconds, or with what the wire has in its place.
    pub fn rate_limited(retry_after_seconds: u64) -> Self {
        let headers = vec![("retry-after".into(), retry_after_seconds.to_string())];
        Fault::Status {
            code: 429,
            headers,
            body: None,
        }
    }

    /// Status 401.
    pub fn auth_error() -> Self {
        Self::status(401)
    }

    /// Status 404.
    pub fn not_found() -> Self {
        Self::status(404)
    }

    /// Status 500.
    pub fn server_error() -> Self {
        Self::status(500)
    }

    /// Status 529 on the Messages wire, 503 on the others.
    pub fn overload_error() -> Self {
        Self::status(529)
    }

    /// This status, with the vendor's error as the body.
    pub fn status(code: u16) -> Self {
        Fault::Status {
            code,
            headers: Vec::new(),
            body: None,
        }
    }

    /// One fault of each kind, for tests that must cover all of them, without `Replace`, which depends on the
    /// content.
    pub fn all() -> Vec<Fault> {
        vec![
            Fault::Hangup,
            Fault::CutAt(40),
            Fault::StallAt(40),
            Fault::Garbage {
                at: FaultPosition::Frame(1),
                bytes: Bytes::from_static(b"data: {garbage\n\n"),
            },
            Fault::SplitEvery(1),
            Fault::rate_limited(1),
            Fault::Html,
            Fault::ErrorAfter { frames: 1 },
            Fault::EndlessFrame,
            Fault::MissingFinish,
            Fault::InvalidUtf8 { at: 40 },
            Fault::DuplicateUsage,
            Fault::SlowClose,
            Fault::Pause {
                before: Paused::Frame(1),
                times: 2,
                every: Duration::from_millis(1),
                bytes: Bytes::from_static(b": keep-alive\n\n"),
            },
            Fault::ContentType("text/plain".into()),
        ]
    }

    /// The name of the fault's kind, for example `cut_at`.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Hangup => "hangup",
            Fault::CutAt(_) => "cut_at",
            Fault::StallAt(_) => "stall_at",
            Fault::Garbage { .. } => "garbage",
            Fault::SplitEvery(_) => "split_every",
            Fault::Status { .. } => "status",
            Fault::Html => "html",
            Fault::ErrorAfter { .. } => "error_after",
            Fault::EndlessFrame => "endless_frame",
            Fault::MissingFinish => "missing_finish",
            Fault::InvalidUtf8 { .. } => "invalid_utf8",
            Fault::Replace { .. } => "replace",
            Fault::DuplicateUsage => "duplicate_usage",
            Fault::SlowClose => "slow_close",
            Fault::Pause { .. } => "pause",
            Fault::ContentType(_) => "content_type",
        }
    }
}
