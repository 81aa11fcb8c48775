//! The faults of one request, sorted by the place where they act.

use std::time::Duration;

use bytes::Bytes;

use crate::fault::{Fault, FaultPosition, Paused};

/// The faults of one answer; the default breaks nothing.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) instead: Option<Instead>,
    pub(crate) frames: FramePlan,
    pub(crate) bytes: BytePlan,
    pub(crate) split: Option<usize>,
    pub(crate) slow_close: bool,
    pub(crate) content_type: Option<String>,
}

/// A pause within an answer, with the bytes that are sent in the meantime.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    pub(crate) before: Paused,
    pub(crate) times: u32,
    pub(crate) every: Duration,
    pub(crate) bytes: Bytes,
}

/// The thing that is sent in the place of an answer.
#[derive(Debug)]
pub(crate) enum Instead {
    Hangup,
    Html,
    Status {
        code: u16,
        headers: Vec<(String, String)>,
        body: Option<Bytes>,
    },
}

/// The faults of whole frames.
#[derive(Debug, Default)]
pub(crate) struct FramePlan {
    pub(crate) garbage: Vec<(u64, Bytes)>,
    pub(crate) replace: Vec<(Bytes, Bytes)>,
    pub(crate) error_after: Option<u64>,
    pub(crate) endless: bool,
    pub(crate) missing_finish: bool,
    pub(crate) duplicate_usage: bool,
    pub(crate) pauses: Vec<Pause>,
}

/// The faults of single bytes.
#[derive(Debug, Default)]
pub(crate) struct BytePlan {
    pub(crate) garbage: Vec<(u64, Bytes)>,
    pub(crate) invalid: Vec<u64>,
    pub(crate) cut: Option<u64>,
    pub(crate) stall: Option<u64>,
}

impl Plan {
    pub(crate) fn from_faults<'a>(faults: impl Iterator<Item = &'a Fault>) -> Self {
        let mut plan = Plan::default();
        faults.for_each(|fault| plan.add(fault));
        plan
    }

    /// True if the answer goes out exactly as it was made.
    pub(crate) fn is_empty(&self) -> bool {
        self.instead.is_none()
            && self.split.is_none()
            && !self.slow_close
            && self.content_type.is_none()
            && self.frames.is_empty()
            && self.bytes.is_empty()
    }

    fn add(&mut self, fault: &Fault) {
        match fault {
            Fault::Hangup => self.instead = Some(Instead::Hangup),
            Fault::Html => self.instead = Some(Instead::Html),
            Fault::Status {
                code,
                headers,
                body,
            } => {
                let (code, headers, body) = (*code, headers.clone(), body.clone());
                self.instead = Some(Instead::Status {
                    code,
                    headers,
                    body,
                });
            }
            Fault::CutAt(at) => self.bytes.cut = Some(*at),
            Fault::StallAt(at) => self.bytes.stall = Some(*at),
            Fault::Garbage {
                at: FaultPosition::Byte(at),
                bytes,
            } => self.bytes.garbage.push((*at, bytes.clone())),
            Fault::Garbage {
                at: FaultPosition::Frame(at),
                bytes,
            } => self.frames.garbage.push((*at, bytes.clone())),
            Fault::SplitEvery(size) => self.split = Some((*size).max(1)),
            Fault::ErrorAfter { frames } => self.frames.error_after = Some(*frames),
            Fault::EndlessFrame => self.frames.endless = true,
            Fault::MissingFinish => self.frames.missing_finish = true,
            Fault::InvalidUtf8 { at } => self.bytes.invalid.push(*at),
            Fault::Replace { what, with } => self.frames.replace.push((what.clone(), with.clone())),
            Fault::DuplicateUsage => self.frames.duplicate_usage = true,
            Fault::SlowClose => self.slow_close = true,
            Fault::Pause {
                before,
                times,
                every,
                bytes,
            } => self.frames.pauses.push(Pause {
                before: *before,
                times: *times,
                every: *every,
                bytes: bytes.clone(),
            }),
            Fault::ContentType(media_type) => self.content_type = Some(media_type.clone()),
        }
    }
}

impl FramePlan {
    fn is_empty(&self) -> bool {
        self.garbage.is_empty()
            && self.replace.is_empty()
            && self.error_after.is_none()
            && !self.endless
            && !self.missing_finish
            && !self.duplicate_usage
            && self.pauses.is_empty()
    }
}

impl BytePlan {
    pub(crate) fn is_empty(&self) -> bool {
        self.garbage.is_empty()
            && self.invalid.is_empty()
            && self.cut.is_none()
            && self.stall.is_none()
    }
}
