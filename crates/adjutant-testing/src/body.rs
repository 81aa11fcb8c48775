//! The body of a streamed answer: it converts frames to bytes and applies the planned faults. No I/O.

use crate::{
    fault::Paused,
    plan::{Pause, Plan},
};

/// The body of a streamed answer that is being made, with what breaks in it.
#[derive(Debug)]
pub struct Body {
    plan: Plan,
    error_frame: Vec<u8>,
    untouched: bool,
    pending: Vec<u8>,
    /// The pauses within the pending bytes, each with its offset.
    pauses: Vec<(usize, Pause)>,
    offset: u64,
    frames: u64,
    broken: Option<Break>,
}

/// The kind of a frame, for faults that depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// It contains neither usage nor a stop reason.
    Content,
    /// It contains the usage.
    Usage,
    /// It contains the stop reason, or ends the stream.
    Finish,
    /// It contains the usage and the stop reason.
    UsageAndFinish,
}

/// The reason why nothing more of the reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// The connection is closed.
    Cut,
    /// The connection stays open and silent.
    Stall,
    /// The body ends as if it were whole.
    End,
    /// The line has no end.
    Endless,
}

impl Body {
    /// A body with the planned faults; `error_frame` is the vendor's error within a stream.
    pub(crate) fn new(plan: Plan, error_frame: Vec<u8>) -> Self {
        let untouched = plan.is_empty();
        Self {
            plan,
            error_frame,
            untouched,
            pending: Vec::new(),
            pauses: Vec::new(),
            offset: 0,
            frames: 0,
            broken: None,
        }
    }

    /// Adds a frame; `write` appends its bytes, the end of it included: a blank line after an event.
    pub fn frame(&mut self, frame: Frame, write: impl FnOnce(&mut Vec<u8>)) {
        if self.untouched {
            write(&mut self.pending);
            return;
        }
        let mut bytes = Vec::new();
        write(&mut bytes);
        for (what, with) in &self.plan.frames.replace {
            bytes = replace_bytes(&bytes, what, with);
        }
        self.break_frame(frame, &bytes);
    }

    /// Returns the bytes that were made and not yet taken.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Returns the pauses within the pending bytes, each with its offset, and forgets them.
    pub(crate) fn take_pauses(&mut self) -> Vec<(usize, Pause)> {
        std::mem::take(&mut self.pauses)
    }

    /// True if the pending bytes have a pause.
    pub(crate) fn has_pauses(&self) -> bool {
        !self.pauses.is_empty()
    }

    /// Removes the bytes that were taken.
    pub(crate) fn clear_pending(&mut self) {
        self.pending.clear();
    }

    /// Returns the reason why nothing more is sent, if there is one.
    pub(crate) fn broken(&self) -> Option<Break> {
        self.broken
    }

    /// Returns the size of the pieces in which the body is sent, if it is split.
    pub(crate) fn split(&self) -> Option<usize> {
        self.plan.split
    }

    /// True if the end of the body is withheld.
    pub(crate) fn closes_slowly(&self) -> bool {
        self.plan.slow_close
    }

    fn break_frame(&mut self, frame: Frame, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        let plan = &self.plan.frames;
        let finishes = matches!(frame, Frame::Finish | Frame::UsageAndFinish);
        if plan.missing_finish && finishes {
            return;
        }
        if plan.error_after == Some(self.frames) {
            let error = std::mem::take(&mut self.error_frame);
            self.break_bytes(&error);
            self.broken.get_or_insert(Break::End);
            return;
        }
        if plan.endless && self.frames == 1 {
            self.break_bytes(b"data: ");
            self.broken.get_or_insert(Break::Endless);
            return;
        }
        let holds_usage = matches!(frame, Frame::Usage | Frame::UsageAndFinish);
        let twice = plan.duplicate_usage && holds_usage;
        for pause in &plan.pauses {
            let is_here = match pause.before {
                Paused::Frame(at) => at == self.frames,
                Paused::Usage => holds_usage,
            };
            if is_here {
                self.pauses.push((self.pending.len(), pause.clone()));
            }
        }
        for (_, garbage) in plan.garbage.iter().filter(|(at, _)| *at == self.frames) {
            self.pending.extend_from_slice(garbage);
        }
        self.frames += 1;
        self.break_bytes(bytes);
        if twice {
            self.break_bytes(bytes);
        }
    }

    fn break_bytes(&mut self, bytes: &[u8]) {
        let plan = &self.plan.bytes;
        if plan.is_empty() {
            self.pending.extend_from_slice(bytes);
            return;
        }
        for byte in bytes {
            if plan.cut == Some(self.offset) {
                self.broken = Some(Break::Cut);
                return;
            }
            if plan.stall == Some(self.offset) {
                self.broken = Some(Break::Stall);
                return;
            }
            for (_, garbage) in plan.garbage.iter().filter(|(at, _)| *at == self.offset) {
                self.pending.extend_from_slice(garbage);
            }
            self.pending.push(if plan.invalid.contains(&self.offset) {
                0xFF
            } else {
                *byte
            });
            self.offset += 1;
        }
    }
}

/// The bytes with other bytes wherever these stand.
fn replace_bytes(bytes: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    let mut left = bytes;
    while let Some(at) = left.windows(what.len().max(1)).position(|it| it == what) {
        result.extend_from_slice(&left[..at]);
        result.extend_from_slice(with);
        left = &left[at + what.len()..];
    }
    result.extend_from_slice(left);
    result
}
