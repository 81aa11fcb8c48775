//! The tool `read_file`. The excerpt of a file is in `part.rs`.

use std::io::{Read, Seek};

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Cancel, Tool, ToolError, ToolErrorKind, ToolSpec};
use cap_std::fs::File;
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_FILE;
use super::{
    encoding::{Encoding, NotText},
    part::FileExcerpt,
    root::{PathTarget, Root},
    seen::{Seen, tell},
    show,
    texts::Texts,
    work,
};
use crate::digest::Digest;

/// Reads a text file; every line is shown with its number. A long file is shown in parts: read on where it says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file, relative to the root.
    path: String,
    /// The first line to show, counted from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// The last line to show.
    #[serde(default)]
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// The encoding, if the detected one is wrong: `windows-1252`, `gbk`, `shift_jis` or another label of the WHATWG.
    #[serde(default)]
    encoding: Option<String>,
}

/// The tool that reads a text file.
#[derive(Debug)]
pub(super) struct ReadFile {
    root: Root,
    seen: Seen,
    texts: Texts,
}

impl ReadFile {
    pub(super) fn new(root: Root, seen: Seen, texts: Texts) -> Self {
        Self { root, seen, texts }
    }
}

impl Tool for ReadFile {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            title: Some("Read a file".into()),
            ..work::spec::<Args>("read_file")
        }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let (root, seen, texts) = (self.root.clone(), self.seen.clone(), self.texts.clone());
        work::blocking(&cx, move |stop| {
            read(&root, &seen, &texts.during(stop), &args, stop)
        })
        .await
    }
}

fn read(
    root: &Root,
    seen: &Seen,
    texts: &Texts,
    args: &Args,
    stop: &Cancel,
) -> Result<CallResult, ToolError> {
    let first = args.start_line.unwrap_or(1).max(1);
    let last = args.end_line.unwrap_or(u64::MAX);
    if last < first {
        let message = format!("end_line {last} stands before start_line {first}");
        return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
    }
    let set = args.encoding.as_deref().map(|label| {
        Encoding::from_label(label).ok_or_else(|| {
            let message = format!("no encoding has the label {}", show::quoted(label));
            ToolError::new(ToolErrorKind::InvalidArguments, message)
        })
    });
    let set = set.transpose()?;
    let opened = root.target(&args.path)?;
    match opened.target {
        PathTarget::File(mut file, size) => {
            // Read before the excerpt: the next edit detects a change in between.
            let bytes = small(&mut file, size);
            let known = bytes
                .as_deref()
                .map_or(Ok(None), |bytes| texts.read(&opened.path, bytes))?;
            if let Some(text) = known {
                let excerpt = FileExcerpt::new(&args.path, text.len() as u64, first, last);
                let mut shown = excerpt.take(text.as_bytes(), stop)?;
                let digest = Some(Digest::compute(text.as_bytes()));
                let note = (&*opened.path, digest.clone(), None);
                tell(&mut shown, [note].into_iter());
                seen.note(opened.path, digest, None);
                return Ok(shown);
            }
            let excerpt = FileExcerpt::new(&args.path, size, first, last);
            let is_plain = |bytes: &[u8]| set.is_none() && std::str::from_utf8(bytes).is_ok();
            let read = match bytes.as_deref().filter(|bytes| !is_plain(bytes)) {
                Some(bytes) => match Encoding::read(bytes, set) {
                    Ok(read) => Some(read),
                    Err(NotText::Binary) => None,
                    Err(why) => return Err(not_text(&args.path, why)),
                },
                None => None,
            };
            let encoding = read.as_ref().map(|(encoding, _)| *encoding);
            let mut shown = match &read {
                Some((encoding, text)) => excerpt.encoded(*encoding).take(text.as_bytes(), stop)?,
                None => excerpt.take(file, stop)?,
            };
            let digest = bytes.map(|bytes| Digest::compute(&bytes));
            let note = (&*opened.path, digest.clone(), encoding);
            tell(&mut shown, [note].into_iter());
            seen.note(opened.path, digest, encoding);
            Ok(shown)
        }
        PathTarget::Dir(_) => Err(ToolError::failed(format!(
            "{} is a directory; list_files shows it",
            show::quoted(&args.path)
        ))),
    }
}

/// The error for a file that is not read as text, and so is not edited either.
pub(crate) fn not_text(asked: &str, why: NotText) -> ToolError {
    let hint = match why {
        NotText::Binary => "a command can read or change it",
        _ => "read_file reads it in another `encoding`, a command can change its bytes",
    };
    ToolError::failed(format!("{} {why}; hint: {hint}", show::quoted(asked)))
}

/// Returns the content of a file that is small enough to be edited, and rewinds the file.
fn small(file: &mut File, size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if size > MAX_FILE {
        None
    } else {
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()
    };
    file.rewind().ok()?;
    read.map(|_| bytes)
}
