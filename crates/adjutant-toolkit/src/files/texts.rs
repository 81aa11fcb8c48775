//! Files that another program such as an editor has open: its unsaved changes count, and writes go to it.
//!
//! Paths are checked in `root.rs` first; lists and searches use the disk.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use async_trait::async_trait;
use tokio::{runtime::Handle, time::timeout};

use super::{MAX_FILE, show};

/// The timeout for an answer of the program with open files.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program with open files, whose content can differ from the disk.
///
/// It is only asked about regular files inside the root, whose bytes are UTF-8 without a byte order mark. The timeout
/// is 30 s.
#[async_trait]
pub trait TextFiles: fmt::Debug + Send + Sync {
    /// The text of a file, by its path relative to the root; `None` if the content on the disk counts.
    async fn read(&self, path: &Path) -> Result<Option<String>, ToolError>;

    /// Writes a text in the place of a file, or as a new one whose folder is there; false if the disk shall be written instead.
    async fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError>;
}

/// The programs to ask during a call, if there are some.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    lent: Option<Arc<dyn TextFiles>>,
    stop: Cancel,
}

impl Texts {
    pub(super) fn of(lent: Arc<dyn TextFiles>) -> Self {
        Self {
            lent: Some(lent),
            stop: Cancel::new(),
        }
    }

    /// The same, for a call that may be stopped.
    pub(super) fn during(&self, stop: &Cancel) -> Self {
        Self {
            lent: self.lent.clone(),
            stop: stop.clone(),
        }
    }

    pub(crate) fn are_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// The text of a file with these bytes on the disk, if a program has other content. On a thread that may block.
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

    /// Writes a text; false if it must be written to the disk. On a thread that may block. Stop requests are ignored,
    /// because the content would be unknown afterwards.
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

/// A text that other programs can handle: in another encoding its bytes would change.
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
