//! The tool `list_files`. The format of its result is in `listing.rs`.

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Cancel, Tool, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    listing,
    root::{PathTarget, Root},
    show,
    walk::Walk,
    work,
};

/// The default number of levels.
const DEFAULT_DEPTH: u32 = 2;
/// The default number of entries.
const DEFAULT_LIMIT: u32 = 200;
/// The maximum number of entries that are listed.
const MAX_LIMIT: u32 = 1_000;

/// Lists the files and directories below a directory, sorted, with sizes; a directory ends with a slash.
///
/// Hidden files and what .gitignore names are left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The directory, relative to the root; the root itself if left out.
    #[serde(default)]
    path: Option<String>,
    /// The number of levels to list; 2 if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 64))]
    depth: Option<u32>,
    /// The number of entries to list; 200 if left out, 1000 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// The tool that lists the entries below a directory.
#[derive(Debug)]
pub(super) struct ListFiles {
    root: Root,
}

impl ListFiles {
    pub(super) fn new(root: Root) -> Self {
        Self { root }
    }
}

impl Tool for ListFiles {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            title: Some("List files".into()),
            ..work::spec::<Args>("list_files")
        }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let root = self.root.clone();
        work::blocking(&cx, move |stop| list(&root, &args, stop)).await
    }
}

fn list(root: &Root, args: &Args, stop: &Cancel) -> Result<CallResult, ToolError> {
    let asked = args.path.as_deref().unwrap_or_default();
    let opened = root.target(asked)?;
    let PathTarget::Dir(dir) = opened.target else {
        let message = format!(
            "{} is a file, not a directory; read_file shows it",
            show::quoted(asked)
        );
        return Err(ToolError::failed(message));
    };
    let depth = args.depth.unwrap_or(DEFAULT_DEPTH) as usize;
    let mut walk = Walk::below(root, dir, &opened.path, asked, depth)?;
    let mut found = Vec::new();
    for entry in walk.by_ref() {
        work::go_on(stop)?;
        found.push(entry);
    }
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
    Ok(listing::render(found, limit, &walk, asked))
}
