//! Files that somebody else has open, as an editor does: what is not saved yet counts, and what is written is shown there.
//!
//! Where paths lead is decided in `root.rs` before anyone is asked; lists and searches are those of the disk.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use async_trait::async_trait;
use tokio::{runtime::Handle, time::timeout};

use super::{MAX_FILE, show};

/// The time that whoever has the files open has for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whoever has files open, and may know them otherwise than the disk.
///
/// It is asked about regular files inside the root alone, whose bytes are UTF-8 without a mark. An answer has 30 s.
#[async_trait]
pub trait TextFiles: fmt::Debug + Send + Sync {
    /// The text of a file, by its path from the root; `None` if what is on the disk counts.
    async fn read(&self, path: &Path) -> Result<Option<String>, ToolError>;

    /// Writes a text in the place of a file, or as a new one whose folder is there; false if the disk shall be written instead.
    async fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError>;
}

/// Those who are asked, if there are some, while a call goes on.
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

    /// The text of a file that holds these bytes on the disk, if somebody knows it otherwise. On a thread that may block.
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

    /// Writes a text; false if it is to be written on the disk. On a thread that may block. A wish to stop is not heard:
    /// it would not be known what is there.
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

/// A text as it may be asked for elsewhere: in any other encoding its bytes would not be those that it was.
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
