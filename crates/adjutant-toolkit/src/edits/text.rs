//! The text of a file. A change keeps its encoding and line ends.

use crate::files::utf16;

/// A text with its encoding; here, lines end with a line feed only.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    pub(super) content: String,
    encoding: Encoding,
    /// True if all lines of the file end with a carriage return and a line feed.
    crlf: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Encoding {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
}

impl Text {
    /// Decodes the bytes of a file; `None` if they are not text.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (encoding, content) = match bytes {
            [0xEF, 0xBB, 0xBF, rest @ ..] => (
                Encoding::Utf8Marked,
                std::str::from_utf8(rest).ok()?.to_owned(),
            ),
            [0xFF, 0xFE, rest @ ..] => {
                (Encoding::Utf16Le, utf16::decode(rest, u16::from_le_bytes)?)
            }
            [0xFE, 0xFF, rest @ ..] => {
                (Encoding::Utf16Be, utf16::decode(rest, u16::from_be_bytes)?)
            }
            _ => (Encoding::Utf8, std::str::from_utf8(bytes).ok()?.to_owned()),
        };
        if content.contains('\0') {
            return None;
        }
        let feeds = content.matches('\n').count();
        let crlf = feeds > 0 && content.matches("\r\n").count() == feeds;
        let content = if crlf {
            content.replace("\r\n", "\n")
        } else {
            content
        };
        Some(Self {
            content,
            encoding,
            crlf,
        })
    }

    /// Returns a text with the same encoding and line ends. Lines of `content` that end with a carriage return stay
    /// unchanged.
    pub(super) fn with(&self, content: String) -> Self {
        let content = if self.crlf {
            content.replace("\r\n", "\n")
        } else {
            content
        };
        Self { content, ..*self }
    }

    /// Encodes the text as the bytes of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let ended = self.crlf.then(|| self.content.replace('\n', "\r\n"));
        let content = ended.as_ref().unwrap_or(&self.content);
        let units = |mark: [u8; 2], of: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain(content.encode_utf16().flat_map(of))
        };
        match self.encoding {
            Encoding::Utf8 => content.as_bytes().to_vec(),
            Encoding::Utf8Marked => [b"\xEF\xBB\xBF", content.as_bytes()].concat(),
            Encoding::Utf16Le => units([0xFF, 0xFE], u16::to_le_bytes).collect(),
            Encoding::Utf16Be => units([0xFE, 0xFF], u16::to_be_bytes).collect(),
        }
    }
}
