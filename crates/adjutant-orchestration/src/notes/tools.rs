//! The tools for notes: `write_note`, `read_note`, `list_notes` and `search_notes`. Their results are bounded.

use std::{fmt::Write, sync::Arc};

use adjutant_agent::{
    LogId,
    kv::{Version, When},
};
use adjutant_llm::{CallResult, Utc};
use adjutant_tool::{
    CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, Toolbox, Tools, tool_fn,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    MAX_BODY_BYTES, MAX_FOUND, MAX_NAME_BYTES, MAX_PAGE, Mode, Note, NoteInfo, Notes, Writing,
};
use crate::{Error, ErrorKind, reflection::telling, text};

/// The largest number of bytes of a body that one call shows.
const MAX_SHOWN_BYTES: usize = 32 * 1024;
/// The largest number of bytes of a body that a search shows.
const MAX_SNIPPET_BYTES: usize = 240;
/// The largest number of bytes of an author's path.
const MAX_PATH_BYTES: usize = 120;
/// The default number of notes in a list.
const PAGE: usize = 50;
/// The largest number of notes that a search shows.
const FOUND: usize = 10;

/// The arguments of any of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    name: Arc<str>,
    content: Arc<str>,
    mode: Mode,
    version: Option<u64>,
    offset: usize,
    after: Option<Arc<str>>,
    limit: Option<usize>,
    query: Arc<str>,
}

/// One call.
struct NoteCall {
    notes: Notes,
    args: Args,
    cx: CallContext,
}

impl Notes {
    /// The toolbox `notes`: `write_note`, `read_note`, `list_notes` and `search_notes`.
    ///
    /// Read-only tools are pure. A write can be repeated after a crash: its key is derived from its call.
    pub fn toolbox(&self) -> impl Toolbox + 'static + use<> {
        Tools::new("notes")
            .tool(tool(self, write_spec(), |task| async move {
                task.write().await
            }))
            .tool(tool(
                self,
                read_spec(),
                |task| async move { task.read().await },
            ))
            .tool(tool(
                self,
                list_spec(),
                |task| async move { task.list().await },
            ))
            .tool(tool(self, search_spec(), |task| async move {
                task.search().await
            }))
    }
}

fn tool<F, Fut>(notes: &Notes, spec: ToolSpec, run: F) -> impl ErasedTool + 'static
where
    F: Fn(NoteCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, Error>> + Send + 'static,
{
    let notes = notes.clone();
    tool_fn(spec, move |args, cx| {
        let parsed = serde_json::from_value::<Args>(args);
        let work = parsed.map(|args| {
            run(NoteCall {
                notes: notes.clone(),
                args,
                cx,
            })
        });
        async move {
            let work = work.map_err(|error| {
                ToolError::new(ToolErrorKind::InvalidArguments, error.to_string())
            })?;
            work.await.map_err(ToolError::from)
        }
    })
}

impl NoteCall {
    async fn write(self) -> Result<CallResult, Error> {
        let Args {
            name,
            content,
            mode,
            version,
            ..
        } = &self.args;
        let when = match version {
            // There is no write of version 0.
            Some(0) => When::Absent,
            Some(version) => When::Is(Version(*version)),
            None => When::Any,
        };
        let mut writing = Writing::replace(Arc::clone(name), Arc::clone(content)).when(when);
        (writing.mode, writing.key) = (*mode, self.key());
        let info = self.notes.write(writing, &self.cx.who).await?;
        let said = format!(
            "Wrote note {name}: it has {} bytes, version {}.",
            info.bytes, info.version
        );
        Ok(CallResult {
            details: json!(info),
            ..CallResult::ok(said)
        })
    }

    async fn read(self) -> Result<CallResult, Error> {
        let Args { name, offset, .. } = &self.args;
        let Some(Note { info, body }) = self.notes.read(name).await? else {
            let message = format!(
                "there is no note {:?}; hint: list_notes shows which there are",
                text::line(name, MAX_NAME_BYTES)
            );
            return Err(Error::new(ErrorKind::Missing, message));
        };
        let from = (0..=(*offset).min(body.len()))
            .rev()
            .find(|at| body.is_char_boundary(*at))
            .unwrap_or_default();
        let shown = text::cut(body.get(from..).unwrap_or_default(), MAX_SHOWN_BYTES);
        let to = from + shown.len();
        let mut said = line(&info);
        if from > 0 || to < body.len() {
            let _ = write!(said, "\nBytes {from} to {to} of {}", body.len());
            said.push_str(&if to < body.len() {
                format!("; go on with offset {to}:")
            } else {
                ":".to_owned()
            });
        }
        let _ = write!(said, "\n\n{shown}");
        Ok(CallResult {
            details: json!(info),
            ..CallResult::ok(said)
        })
    }

    async fn list(self) -> Result<CallResult, Error> {
        let limit = self.args.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        let mut infos = self.notes.list(self.args.after.as_deref(), limit).await?;
        let mut lines: Vec<String> = infos.iter().map(line).collect();
        if infos.is_empty() {
            lines.push("There are no notes here.".to_owned());
        }
        let last = infos.pop().filter(|_| lines.len() == limit);
        lines.extend(last.map(|last| format!("There may be more: go on after {}.", last.name)));
        Ok(CallResult::ok(lines.join("\n")))
    }

    async fn search(self) -> Result<CallResult, Error> {
        let found = self
            .notes
            .search(&self.args.query, FOUND.min(MAX_FOUND))
            .await?;
        if found.is_empty() {
            return Ok(CallResult::ok("No note fits."));
        }
        let words = telling(&self.args.query);
        let one = |note: &Note| format!("{}\n  {}", line(&note.info), snippet(&note.body, &words));
        Ok(CallResult::ok(
            found.iter().map(one).collect::<Vec<_>>().join("\n"),
        ))
    }

    /// Returns the key that identifies this call; `None` outside a run.
    fn key(&self) -> Option<Arc<str>> {
        let (who, call) = (&self.cx.who, self.cx.who.call?);
        let log = self.cx.get::<LogId>().filter(|log| !log.0.is_empty());
        let log = log.map_or_else(|| Arc::clone(&who.agent_id), |log| Arc::clone(&log.0));
        Some(format!("{log}/{}/{call}", who.thread).into())
    }
}

/// Returns the facts about a note, on one line.
fn line(info: &NoteInfo) -> String {
    let (by, when) = (
        text::line(&info.changed_by.path, MAX_PATH_BYTES),
        Utc::from_ms(info.changed_ms),
    );
    format!(
        "{} ({} bytes, version {}, by {by} at {when})",
        info.name, info.bytes, info.version
    )
}

/// The part of a body that has the first of the words, on one line.
fn snippet(body: &str, words: &[String]) -> String {
    let fits = |line: &&str| telling(line).iter().any(|word| words.contains(word));
    let found = body
        .lines()
        .find(fits)
        .or_else(|| body.lines().find(|line| !line.trim().is_empty()));
    let line = found.unwrap_or_default();
    // The excerpt of a long line starts shortly before the word.
    let at = words
        .iter()
        .filter_map(|word| line.to_ascii_lowercase().find(word.as_str()))
        .min()
        .unwrap_or_default();
    let room = at.saturating_sub(MAX_SNIPPET_BYTES / 4);
    let from = (0..=room)
        .rev()
        .find(|at| line.is_char_boundary(*at))
        .unwrap_or_default();
    text::line(line.get(from..).unwrap_or_default(), MAX_SNIPPET_BYTES)
}

fn write_spec() -> ToolSpec {
    let about = "Writes a note that other agents can read. Replaces the note, or appends to it.";
    let fields = json!({
        "name": name(),
        "content": text_of(&format!("The text, of at most {MAX_BODY_BYTES} bytes.")),
        "mode": {
            "type": "string", "enum": ["replace", "append"],
            "description": "Whether the text takes the place of the note or follows what it has. replace without it.",
        },
        "version": {
            "type": "integer", "minimum": 0,
            "description": "Write only if the note still has this version, as it was shown; 0: only if there is no such note.",
        },
    });
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec("write_note", about, fields, &["name", "content"])
    }
}

fn read_spec() -> ToolSpec {
    let about = "Reads a note: who changed it last, its version, and its text.";
    let offset = "At which byte to begin, if the text was too long to be shown at once.";
    let fields = json!({ "name": name(), "offset": number(0, None, offset) });
    ToolSpec {
        replay: Replay::Pure,
        ..spec("read_note", about, fields, &["name"])
    }
}

fn list_spec() -> ToolSpec {
    let about = "Lists the notes by name: their sizes and versions, and who changed them when.";
    let fields = json!({
        "after": text_of("Only notes whose names come after this one."),
        "limit": number(1, Some(MAX_PAGE), &format!("How many at most; {PAGE} without it.")),
    });
    ToolSpec {
        replay: Replay::Pure,
        ..spec("list_notes", about, fields, &[])
    }
}

fn search_spec() -> ToolSpec {
    let about = "Finds the notes that fit some words best, with a line of each.";
    ToolSpec {
        replay: Replay::Pure,
        ..spec(
            "search_notes",
            about,
            json!({ "query": text_of("What to look for.") }),
            &["query"],
        )
    }
}

fn spec(name: &str, about: &str, fields: Value, required: &[&str]) -> ToolSpec {
    let schema = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    ToolSpec::new(name, about, schema)
}

fn text_of(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn number(from: usize, to: Option<usize>, about: &str) -> Value {
    let mut number = json!({ "type": "integer", "minimum": from, "description": about });
    if let (Some(to), Some(number)) = (to, number.as_object_mut()) {
        number.insert("maximum".to_owned(), json!(to));
    }
    number
}

fn name() -> Value {
    text_of(&format!(
        "The name of the note: up to {MAX_NAME_BYTES} letters, digits, _ and -."
    ))
}
