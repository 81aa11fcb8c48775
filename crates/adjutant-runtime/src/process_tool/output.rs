//! The exit of a program, and its output: truncated, with the number of omitted bytes.

use std::{collections::VecDeque, os::unix::process::ExitStatusExt, process::ExitStatus};

/// The maximum size of stored error output, in bytes.
pub(super) const MAX_ERRORS: usize = 8 << 10;

/// A finished program.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) ended: ProgramEnd,
    pub(super) output: TrimmedOutput,
    pub(super) errors: TrimmedOutput,
}

/// The way in which a program ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProgramEnd {
    Exit(ExitStatus),
    Lost,
    Late,
    Cancelled,
}

/// Describes how a program ended.
pub(super) fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        // The exit code of a shell that cannot start a program.
        (Some(126), _) => "the program ended with exit code 126: it may not be executed, or what it calls".to_owned(),
        (Some(127), _) => {
            "the program ended with exit code 127: it was not found, or the interpreter that it names, or what it calls"
                .to_owned()
        }
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(signal)) => format!("the program was ended by signal {signal}"),
        (None, None) => format!("the program ended: {status}"),
    }
}

impl Done {
    /// Returns its failure, with its output.
    pub(super) fn failure(&self, how: &str) -> String {
        let mut text = how.to_owned();
        for (name, kept) in [("output", &self.output), ("standard error", &self.errors)] {
            if !kept.is_empty() {
                text.push_str(&format!("\n{name}:\n{}", kept.text().trim_end()));
            }
        }
        text
    }
}

/// The start and the end of an output.
#[derive(Debug)]
pub(super) struct TrimmedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    max_head: usize,
    max_tail: usize,
    /// The total number of bytes written.
    total: u64,
}

impl TrimmedOutput {
    /// Keeps equal parts of the start and the end.
    pub(super) fn both(bytes: usize) -> Self {
        Self::new(bytes / 2, bytes - bytes / 2)
    }

    /// Keeps only the end.
    pub(super) fn end(bytes: usize) -> Self {
        Self::new(0, bytes)
    }

    fn new(max_head: usize, max_tail: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            max_head,
            max_tail,
            total: 0,
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.max_head - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = rest
            .get(rest.len().saturating_sub(self.max_tail)..)
            .unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(self.max_tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// True if nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the kept part as text, with notes about omitted parts and invalid UTF-8.
    pub(super) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let dropped = self.total - self.head.len() as u64 - tail.len() as u64;
        let (text, is_exact) = match dropped {
            0 => lossy(&[&self.head[..], &tail[..]].concat()),
            _ => {
                // A truncated character is omitted completely.
                let (head, tail) = (without_cut_end(&self.head), without_cut_start(&tail));
                let dropped = self.total - head.len() as u64 - tail.len() as u64;
                let ((head, one), (tail, other)) = (lossy(head), lossy(tail));
                let gap = if head.is_empty() { "" } else { "\n" };
                (
                    format!("{head}{gap}[{dropped} bytes left out]\n{tail}"),
                    one && other,
                )
            }
        };
        if is_exact {
            text
        } else {
            format!("{text}\n[it was not all UTF-8: \u{fffd} stands for what could not be read]")
        }
    }
}

/// Decodes a text; also returns whether it was valid.
fn lossy(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), true),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), false),
    }
}

fn without_cut_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        // Without an error length, the text ends within a character.
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or(bytes)
        }
        _ => bytes,
    }
}

fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let is_inner = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let inner = bytes.iter().take(3).take_while(is_inner).count();
    bytes.get(inner..).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut kept: TrimmedOutput, parts: &[&[u8]], expect: &str) {
        for part in parts {
            kept.add(part);
        }
        assert_eq!(kept.text(), expect);
    }

    #[test]
    fn output_is_whole_when_it_fits() {
        check(TrimmedOutput::both(8), &[b"abcd", b"efgh"], "abcdefgh");
        check(TrimmedOutput::both(8), &["äöüß".as_bytes()], "äöüß");
        check(TrimmedOutput::both(7), &["aäöü".as_bytes()], "aäöü");
        check(TrimmedOutput::both(8), &[], "");
    }

    #[test]
    fn output_keeps_beginning_and_end_and_tells_what_was_dropped() {
        check(
            TrimmedOutput::both(8),
            &[b"abcdefghijkl"],
            "abcd\n[4 bytes left out]\nijkl",
        );
        check(
            TrimmedOutput::both(8),
            &[b"a", b"bcdefg", b"hijklmnopqrstuv", b"wxyz"],
            "abcd\n[18 bytes left out]\nwxyz",
        );
        check(
            TrimmedOutput::end(3),
            &[b"abc", b"defg"],
            "[4 bytes left out]\nefg",
        );
    }

    #[test]
    fn character_that_was_cut_is_dropped_whole() {
        check(
            TrimmedOutput::both(6),
            &["aäöüß".as_bytes()],
            "aä\n[4 bytes left out]\nß",
        );
        check(
            TrimmedOutput::both(7),
            &["äöüäöü".as_bytes()],
            "ä\n[6 bytes left out]\nöü",
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_and_told() {
        let note = "\n[it was not all UTF-8: \u{fffd} stands for what could not be read]";
        check(
            TrimmedOutput::both(8),
            &[b"a\xffb"],
            &format!("a\u{fffd}b{note}"),
        );
        check(
            TrimmedOutput::both(4),
            &[b"\xff\xfe\xfdabc\xff"],
            &format!("\u{fffd}\u{fffd}\n[3 bytes left out]\nc\u{fffd}{note}"),
        );
    }
}
