//! The text of a file. A change keeps its encoding and line ends.

use crate::files::encoding::{Encoding, NotText};

/// A text with its encoding; here, lines end with a line feed only.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    pub(super) content: String,
    encoding: Encoding,
    /// True if all lines of the file end with a carriage return and a line feed.
    crlf: bool,
}

impl Text {
    /// Decodes the bytes of a file, in this encoding if one was set.
    pub(super) fn read(bytes: &[u8], set: Option<Encoding>) -> Result<Self, NotText> {
        let (encoding, content) = Encoding::read(bytes, set)?;
        if content.contains('\0') {
            return Err(NotText::Binary);
        }
        let feeds = content.matches('\n').count();
        let crlf = feeds > 0 && content.matches("\r\n").count() == feeds;
        let content = if crlf {
            content.replace("\r\n", "\n")
        } else {
            content
        };
        Ok(Self {
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
    ///
    /// # Errors
    /// The reason why the encoding of the file cannot hold the text.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        let ended = self.crlf.then(|| self.content.replace('\n', "\r\n"));
        let content = ended.as_ref().unwrap_or(&self.content);
        self.encoding.write(content).map_err(|missing| {
            let name = self.encoding.name();
            format!("its encoding {name} has no character {missing:?}; hint: write another one")
        })
    }
}
