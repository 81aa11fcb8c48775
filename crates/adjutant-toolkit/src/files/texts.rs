//! Files that another program, such as an editor, has open: its unsaved changes count, and writes go to it.
//!
//! Paths are checked in `root.rs` first; lists and searches use the disk.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use async_trait::async_trait;
use tokio::{runtime::Handle, time::timeout};

use super::{MAX_FILE, show};

/// The timeout for an answer of the program.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program with open files, whose content can differ from the disk.
///
/// It is called only for regular files inside the root whose bytes are UTF-8 without a byte order mark. The timeout is
/// 30 s.
#[async_trait]
pub trait TextFiles: fmt::Debug + Send + Sync {
    /// Returns the text of a file, by its path relative to the root; `None` if the content on the disk counts.
    async fn read(&self, path: &Path) -> Result<Option<String>, ToolError>;

    /// Writes a text to an existing file, or to a new one whose directory exists; false if it must be written to the
    /// disk.
    async fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError>;
}

/// The programs with open files, if any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    lent: Option<Arc<dyn TextFiles>>,
    stop: Cancel,
}

impl Texts {
    pub(super) fn new(lent: Arc<dyn TextFiles>) -> Self {
        Self {
            lent: Some(lent),
            stop: Cancel::new(),
        }
    }

    /// Returns the programs for a call that may be stopped.
    pub(super) fn during(&self, stop: &Cancel) -> Self {
        Self {
            lent: self.lent.clone(),
            stop: stop.clone(),
        }
    }

    pub(crate) fn are_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// Returns the text of a file with these bytes on the disk, if a program has other content. Blocks the thread.
    pub(crate) fn read(&self, path: &Path, bytes: &[u8]) -> Result<Option<String>, ToolError> {
        let Some(lent) = self.lent.as_ref().filter(|_| plain(bytes).is_some()) else {
            return Ok(None);
        };
        let text = Handle::current().block_on(async {
            tokio::select! {
                text = timeout(PATIENCE, lent.read(path)) => text.unwrap_or_else(|_| Err(late(ToolErrorKind::TimedOut, ""))),
                () = self.stop.cancelled() => Err(ToolError::new(ToolErrorKind::Cancelled, "stopped while it was read")),
            }
        })?;
        match text {
            Some(text) if text.len() as u64 > MAX_FILE => {
                let (size, most) = (show::size(text.len() as u64), show::size(MAX_FILE));
                Err(ToolError::failed(format!(
                    "where it is open, {} has {size}: {most} at most",
                    show::path(path)
                )))
            }
            text => Ok(text),
        }
    }

    /// Writes a text; false if it must be written to the disk. Blocks the thread. Stop requests are ignored, because
    /// the content would be unknown afterwards.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError> {
        let Some(lent) = &self.lent else {
            return Ok(false);
        };
        let written =
            Handle::current().block_on(async { timeout(PATIENCE, lent.write(path, text)).await });
        written.unwrap_or_else(|_| {
            let unknown = format!(
                ": whether {} was written is not known; read it",
                show::quoted(&show::path(path))
            );
            Err(late(ToolErrorKind::OutcomeUnknown, &unknown))
        })
    }
}

/// Returns the text if other programs can handle it: they would change the bytes of other encodings.
pub(crate) fn plain(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text).filter(|text| !text.starts_with('\u{FEFF}') && !text.contains('\0'))
}

fn late(kind: ToolErrorKind, more: &str) -> ToolError {
    let seconds = PATIENCE.as_secs();
    ToolError::new(
        kind,
        format!("whoever has the file open did not answer within {seconds} s{more}"),
    )
}
