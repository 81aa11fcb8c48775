//! The tools that change files.

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Conversation, Replay, Tool, ToolError, ToolSpec, Tools};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Edits, KnownFiles, MustBe, PlannedEdit,
    patch::{self, FilePatch, Patch},
    replace::replace,
    text::Text,
    text_of,
};
use crate::{
    change::{Change, Present},
    files::{show, work},
};

/// Writes a whole file, new or in place of the one that is there; folders above it are made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// The file, relative to the root.
    path: String,
    /// The whole text.
    content: String,
}

/// Replaces a text in a file that was read. `old_text` must stand in it exactly once: take enough lines around it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFile {
    /// The file, relative to the root.
    path: String,
    /// The text that is there, without line numbers.
    old_text: String,
    /// The text that takes its place, with its indentation.
    new_text: String,
    /// True if all places are meant; false if left out.
    #[serde(default)]
    all: Option<bool>,
}

/// Adds, updates, moves and deletes files by a patch: `*** Begin Patch`, then for each file `*** Add File: path`,
/// `*** Update File: path` (with `*** Move to: path` if it moves) or `*** Delete File: path`, then `*** End Patch`.
/// Parts of an update begin with `@@`, then lines that begin with a blank (as it is), `-` (goes) or `+` (comes).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyPatch {
    /// The patch.
    patch: String,
}

/// Deletes a file that was read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteFile {
    /// The file, relative to the root.
    path: String,
}

/// Moves a file that was read, or gives it another name; nothing may be there yet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MoveFile {
    /// The file, relative to the root.
    from: String,
    /// Its new place, relative to the root.
    to: String,
}

/// The arguments of a tool that changes files.
trait Planned: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &str;
    const TITLE: &str;

    fn plan(self, files: &KnownFiles) -> Result<PlannedEdit, ToolError>;
}

struct EditTool<A> {
    edits: Edits,
    args: std::marker::PhantomData<fn() -> A>,
}

pub(super) fn all(edits: &Edits) -> Tools {
    fn tool<A: Planned>(edits: &Edits) -> EditTool<A> {
        EditTool {
            edits: edits.clone(),
            args: std::marker::PhantomData,
        }
    }
    Tools::new("edits")
        .tool(tool::<WriteFile>(edits))
        .tool(tool::<EditFile>(edits))
        .tool(tool::<ApplyPatch>(edits))
        .tool(tool::<DeleteFile>(edits))
        .tool(tool::<MoveFile>(edits))
}

impl<A: Planned> Tool for EditTool<A> {
    type Args = A;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        let spec = work::spec::<A>(A::NAME);
        let hints = work::CHANGES;
        ToolSpec {
            title: Some(A::TITLE.into()),
            replay: Replay::Once,
            sequential: true,
            hints,
            ..spec
        }
    }

    fn check(&self, args: &Value, conversation: &Conversation) -> Result<(), ToolError> {
        let Ok(args) = A::deserialize(args) else {
            return Ok(());
        };
        self.edits.check(conversation, |files| args.plan(files))
    }

    async fn call(&self, args: A, cx: CallContext) -> Result<CallResult, ToolError> {
        self.edits.perform(&cx, move |files| args.plan(files)).await
    }
}

impl Planned for WriteFile {
    const NAME: &str = "write_file";
    const TITLE: &str = "Write a file";

    fn plan(self, files: &KnownFiles) -> Result<PlannedEdit, ToolError> {
        let (path, before) = files.before(&self.path, MustBe::Read)?;
        let known = before
            .as_ref()
            .and_then(|before| Text::read(&before.bytes, before.encoding).ok());
        let after = match known {
            Some(text) => encoded(&text.with(self.content), &self.path)?,
            None => self.content.into_bytes(),
        };
        let done = if before.is_some() {
            "written"
        } else {
            "created"
        };
        let said = format!(
            "{} is {done}: {}",
            show::quoted(&self.path),
            show::size(after.len() as u64)
        );
        Ok(PlannedEdit {
            changes: vec![Change::new(path, before, Some(after))],
            said,
        })
    }
}

impl Planned for EditFile {
    const NAME: &str = "edit_file";
    const TITLE: &str = "Edit a file";

    fn plan(self, files: &KnownFiles) -> Result<PlannedEdit, ToolError> {
        let (path, before) = files.before(&self.path, MustBe::Read)?;
        let asked = show::quoted(&self.path);
        let Some(before) = before else {
            return Err(ToolError::failed(format!("there is no {asked}")));
        };
        let text = text_of(&before, &self.path)?;
        let (old, new) = (
            text.with(self.old_text).content,
            text.with(self.new_text).content,
        );
        let content = replace(&text.content, &old, &new, self.all.unwrap_or(false));
        let content =
            content.map_err(|why| ToolError::failed(format!("{asked} is as it was: {why}")))?;
        let after = encoded(&text.with(content), &self.path)?;
        let said = format!("{asked} is changed");
        Ok(PlannedEdit {
            changes: vec![Change::new(path, Some(before), Some(after))],
            said,
        })
    }
}

impl Planned for ApplyPatch {
    const NAME: &str = "apply_patch";
    const TITLE: &str = "Apply a patch";

    fn plan(self, files: &KnownFiles) -> Result<PlannedEdit, ToolError> {
        let failed = |why: String| ToolError::failed(format!("no file was changed: {why}"));
        let patch = Patch::read(&self.patch).map_err(failed)?;
        let mut changes: Vec<Change> = Vec::new();
        for (asked, file) in patch.files {
            // The lines of an update contain the expected text.
            let must = if matches!(file, FilePatch::Delete) {
                MustBe::ReadIfText
            } else {
                MustBe::AsRead
            };
            let (path, before) = files.before(&asked, must)?;
            let missing = || failed(format!("there is no {}", show::quoted(&asked)));
            match file {
                FilePatch::Add(_) if before.is_some() => {
                    return Err(failed(format!(
                        "{} is there already; update it",
                        show::quoted(&asked)
                    )));
                }
                FilePatch::Add(content) => {
                    changes.push(Change::new(path, before, Some(content.into_bytes())))
                }
                FilePatch::Delete => {
                    changes.push(Change::new(path, Some(before.ok_or_else(missing)?), None))
                }
                FilePatch::Update { to, chunks } => {
                    let before = before.ok_or_else(missing)?;
                    let text = text_of(&before, &asked)?;
                    let content = patch::apply(&text.content, &chunks);
                    let content = content
                        .map_err(|why| failed(format!("{}: {why}", show::quoted(&asked))))?;
                    let after = Some(encoded(&text.with(content), &asked)?);
                    match to {
                        None => changes.push(Change::new(path, Some(before), after)),
                        Some(to) => changes.extend(moved(files, (path, before), &to, after)?),
                    }
                }
            }
        }
        let mut places: Vec<_> = changes.iter().map(|change| &change.path).collect();
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(failed(
                "two parts of the patch are about one file".to_owned(),
            ));
        }
        let said = format!(
            "the patch is applied: {}",
            show::count(changes.len() as u64, "file", "files")
        );
        Ok(PlannedEdit { changes, said })
    }
}

impl Planned for DeleteFile {
    const NAME: &str = "delete_file";
    const TITLE: &str = "Delete a file";

    fn plan(self, files: &KnownFiles) -> Result<PlannedEdit, ToolError> {
        let (path, before) = files.before(&self.path, MustBe::ReadIfText)?;
        let asked = show::quoted(&self.path);
        let Some(before) = before else {
            return Err(ToolError::failed(format!("there is no {asked}")));
        };
        Ok(PlannedEdit {
            changes: vec![Change::new(path, Some(before), None)],
            said: format!("{asked} is deleted"),
        })
    }
}

impl Planned for MoveFile {
    const NAME: &str = "move_file";
    const TITLE: &str = "Move a file";

    fn plan(self, files: &KnownFiles) -> Result<PlannedEdit, ToolError> {
        let (path, before) = files.before(&self.from, MustBe::ReadIfText)?;
        let (from, to) = (show::quoted(&self.from), show::quoted(&self.to));
        let Some(before) = before else {
            return Err(ToolError::failed(format!("there is no {from}")));
        };
        let bytes = Some(before.bytes.clone());
        let changes = moved(files, (path, before), &self.to, bytes)?;
        Ok(PlannedEdit {
            changes: changes.into(),
            said: format!("{from} is {to} now"),
        })
    }
}

/// The destination is written first: after a failure in between, the text exists at least once.
fn moved(
    files: &KnownFiles,
    (path, before): (std::path::PathBuf, Present),
    to: &str,
    after: Option<Vec<u8>>,
) -> Result<[Change; 2], ToolError> {
    let (place, there) = files.before(to, MustBe::AsRead)?;
    if there.is_some() {
        return Err(ToolError::failed(format!(
            "{} is there already",
            show::quoted(to)
        )));
    }
    Ok([
        Change::new(place, None, after).like(&before),
        Change::new(path, Some(before), None),
    ])
}

/// The bytes of a text in the encoding of its file.
fn encoded(text: &Text, asked: &str) -> Result<Vec<u8>, ToolError> {
    let failed = |why| ToolError::failed(format!("{} is as it was: {why}", show::quoted(asked)));
    text.bytes().map_err(failed)
}
