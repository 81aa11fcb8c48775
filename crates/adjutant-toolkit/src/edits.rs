//! Tools that change the files below one directory. `change.rs` writes the changes.

mod patch;
mod replace;
mod text;
mod tools;

use std::{path::PathBuf, sync::Arc};

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Conversation, ToolError, Tools, serde_json::json};
use similar::TextDiff;
use tokio::sync::Mutex;

use crate::{
    Files,
    change::{CHANGED, Change, Present, current, place, write_all},
    digest::Digest,
    files::{encoding::Encoding, read::not_text, seen, show, work},
    undo::Undo,
};

/// The maximum number of bytes of a diff in a result.
const MAX_DIFF: usize = 16 * 1024;
/// The maximum number of files that one patch may change.
const MAX_FILES: usize = 200;

/// Tools that change the files of a [`Files`]: `write_file`, `edit_file`, `apply_patch`, `delete_file`, `move_file`.
///
/// Nothing is written outside of the directory, in `.git`, in `.adjutant`, or through a link: only the named path is
/// changed. An existing file must have been read in its current state, by `read_file` of the same `Files`, or in the
/// conversation of the call by any process: changes by other programs are never overwritten, moved or deleted. Files
/// are replaced as a whole, so that readers never see a partial one; permissions, line ends, byte order marks and
/// encodings are kept. The other names of a file with several hard links keep the old text. The maximum size of a file
/// is 8 MiB.
#[derive(Debug, Clone)]
pub struct Edits {
    files: Files,
    undo: Option<Undo>,
    /// Serializes changes, so that the checked file is the written one.
    turn: Arc<Mutex<()>>,
}

/// The files, and their known states: from this process and from the conversation.
struct KnownFiles {
    files: Files,
    conversation: Option<Arc<Conversation>>,
}

/// The planned edit of a tool.
struct PlannedEdit {
    changes: Vec<Change>,
    /// The text of the result.
    said: String,
}

impl Edits {
    /// Creates the tools for this directory.
    pub fn new(files: &Files) -> Self {
        Self {
            files: files.clone(),
            undo: None,
            turn: Arc::default(),
        }
    }

    /// Saves the previous content of changed files, so that it can be restored.
    #[must_use]
    pub fn undo(self, undo: Undo) -> Self {
        Self {
            undo: Some(undo),
            ..self
        }
    }

    /// The toolbox `edits`. Each change is recorded in the log as `file.changed` before it is made.
    pub fn toolbox(&self) -> Tools {
        tools::all(self)
    }

    /// Only plans the edit. Edits of files that another program has open are not checked.
    fn check(
        &self,
        conversation: &Conversation,
        plan: impl FnOnce(&KnownFiles) -> Result<PlannedEdit, ToolError>,
    ) -> Result<(), ToolError> {
        if self.files.texts().are_lent() {
            return Ok(());
        }
        let known = KnownFiles {
            files: self.files.clone(),
            conversation: Some(Arc::new(conversation.clone())),
        };
        plan(&known).map(drop)
    }

    /// Plans the edit, saves the previous content, records the change in the log, and makes it.
    async fn perform(
        &self,
        cx: &CallContext,
        plan: impl FnOnce(&KnownFiles) -> Result<PlannedEdit, ToolError> + Send + 'static,
    ) -> Result<CallResult, ToolError> {
        let _turn = self.turn.lock().await;
        let (files, undo) = (self.files.clone(), self.undo.clone());
        let conversation = cx.get();
        let planned = work::blocking(cx, move |stop| {
            let known = KnownFiles {
                files: files.clone().during(stop),
                conversation,
            };
            let mut plan = plan(&known)?;
            plan.changes.retain(|change| {
                change.before.as_ref().map(|it| &it.bytes) != change.after.as_ref()
            });
            if plan.changes.len() > MAX_FILES {
                return Err(ToolError::failed(format!(
                    "more than {MAX_FILES} files at a time are not changed"
                )));
            }
            undo.iter().try_for_each(|undo| undo.keep(&plan.changes))?;
            let told: Vec<_> = plan
                .changes
                .iter()
                .map(|change| change.told(files.root()))
                .collect();
            Ok((plan, told))
        });
        let (plan, told) = planned.await?;
        for change in &told {
            // Recorded before the change, so that a crash in between loses nothing.
            cx.note(CHANGED, json!(change)).await?;
        }
        let files = self.files.clone();
        work::blocking(cx, move |stop| {
            write_all(&files.clone().during(stop), &plan.changes)?;
            for change in &plan.changes {
                files.seen(
                    change.path.clone(),
                    change.after.as_ref().map(|bytes| Digest::compute(bytes)),
                    change.encoding(),
                );
            }
            Ok(plan.result())
        })
        .await
    }
}

impl PlannedEdit {
    fn result(self) -> CallResult {
        let mut diff = String::new();
        for change in &self.changes {
            change.differences(&mut diff);
        }
        let cut = show::floor(&diff, MAX_DIFF);
        let more = diff.len() - cut;
        diff.truncate(cut);
        if more > 0 {
            diff.push_str(&format!("\n[{more} bytes more]\n"));
        }
        let files: Vec<String> = self
            .changes
            .iter()
            .map(|change| show::path(&change.path))
            .collect();
        let said = if self.changes.is_empty() {
            "nothing is to be changed".to_owned()
        } else {
            self.said
        };
        let text = if diff.is_empty() {
            said
        } else {
            format!("{said}\n{diff}")
        };
        let mut result = CallResult {
            details: json!({ "files": files, "diff": diff }),
            ..CallResult::ok(text)
        };
        let left = |change: &Change| change.after.as_ref().map(|bytes| Digest::compute(bytes));
        seen::tell(
            &mut result,
            self.changes
                .iter()
                .map(|change| (&*change.path, left(change), change.encoding())),
        );
        result
    }
}

impl Change {
    /// The encoding in which the file was read.
    fn encoding(&self) -> Option<Encoding> {
        self.before.as_ref()?.encoding
    }

    /// Returns the diff in the format of `diff -u`; empty for binary content.
    fn differences(&self, diff: &mut String) {
        let text = |bytes: Option<&Vec<u8>>| match bytes {
            None => Some(String::new()),
            Some(bytes) => text::Text::read(bytes, self.encoding())
                .ok()
                .map(|text| text.content),
        };
        let (before, after) = (
            text(self.before.as_ref().map(|it| &it.bytes)),
            text(self.after.as_ref()),
        );
        let path = show::path(&self.path);
        let (Some(before), Some(after)) = (before, after) else {
            return diff.push_str(&format!("[{path} is no text]\n"));
        };
        if diff.len() > MAX_DIFF || self.after.is_none() {
            return diff.push_str(&format!("[{path}]\n"));
        }
        let lines = TextDiff::configure()
            .timeout(std::time::Duration::from_millis(500))
            .diff_lines(&before, &after);
        let name = |there: bool, side: &str| {
            if there {
                format!("{side}/{path}")
            } else {
                "/dev/null".to_owned()
            }
        };
        let (old, new) = (
            name(self.before.is_some(), "a"),
            name(self.after.is_some(), "b"),
        );
        diff.push_str(
            &lines
                .unified_diff()
                .context_radius(2)
                .header(&old, &new)
                .to_string(),
        );
    }
}

impl KnownFiles {
    /// Checks a file before a change. If it must have been read, it must also be unchanged since then.
    fn before(&self, asked: &str, must: MustBe) -> Result<(PathBuf, Option<Present>), ToolError> {
        let path = place(self.files.root(), asked)?;
        let mut before = current(&self.files, &path)?;
        if let Some(before) = &mut before {
            let told = || seen::encoding(self.conversation.as_ref()?, &path);
            before.encoding = self.files.encoding(&path).or_else(told);
        }
        if let Some(before) = &before {
            let shown = show::quoted(asked);
            // Another process may have read the file in this conversation after this process did.
            let told = || seen::told(self.conversation.as_ref()?, &path);
            let is_known = |digest: &Digest| *digest == before.digest;
            let seen = self.files.was_seen(&path);
            match seen.clone().filter(is_known).or_else(told).or(seen) {
                Some(known) if is_known(&known) => {}
                Some(_) => {
                    return Err(ToolError::failed(format!(
                        "{shown} was changed since it was read; read it again"
                    )));
                }
                None if must.has_to_be_read(before) => {
                    // A file that cannot be read cannot be read first.
                    text_of(before, asked)?;
                    return Err(ToolError::failed(format!(
                        "{shown} is there and was not read; read it first"
                    )));
                }
                None => {}
            }
        }
        Ok((path, before))
    }
}

/// The text of a file.
fn text_of(file: &Present, asked: &str) -> Result<text::Text, ToolError> {
    text::Text::read(&file.bytes, file.encoding).map_err(|why| not_text(asked, why))
}

/// The rule for existing files: they must have been read, or not.
#[derive(Debug, Clone, Copy)]
enum MustBe {
    Read,
    /// `read_file` can read only text files.
    ReadIfText,
    AsRead,
}

impl MustBe {
    fn has_to_be_read(self, file: &Present) -> bool {
        match self {
            Self::Read => true,
            Self::ReadIfText => text::Text::read(&file.bytes, file.encoding).is_ok(),
            Self::AsRead => false,
        }
    }
}
