//! The tool `read_file`. What it shows of a file is in `part.rs`.

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Cancel, Tool, ToolError, ToolErrorKind, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    part::FileExcerpt,
    root::{PathTarget, Root},
    show, work,
};

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
}

/// Reads a text file.
#[derive(Debug)]
pub(super) struct ReadFile {
    root: Root,
}

impl ReadFile {
    pub(super) fn new(root: Root) -> Self {
        Self { root }
    }
}

impl Tool for ReadFile {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        ToolSpec { title: Some("Read a file".into()), ..work::spec::<Args>("read_file") }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let root = self.root.clone();
        work::blocking(&cx, move |stop| read(&root, &args, stop)).await
    }
}

fn read(root: &Root, args: &Args, stop: &Cancel) -> Result<CallResult, ToolError> {
    let first = args.start_line.unwrap_or(1).max(1);
    let last = args.end_line.unwrap_or(u64::MAX);
    if last < first {
        let message = format!("end_line {last} stands before start_line {first}");
        return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
    }
    match root.target(&args.path)?.target {
        PathTarget::File(file, size) => FileExcerpt::new(&args.path, size, first, last).take(file, stop),
        PathTarget::Dir(_) => {
            Err(ToolError::failed(format!("{} is a directory; list_files shows it", show::quoted(&args.path))))
        }
    }
}
