//! The tool `list_files`.

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Cancel, Tool, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    ignored::Ignored,
    root::{Root, Target},
    show,
    walk::{Found, Kind, MAX_DEPTH, Walk},
    work,
};

/// How many levels are listed unless the model says otherwise.
const DEFAULT_DEPTH: u32 = 2;
/// How many entries are listed unless the model says otherwise.
const DEFAULT_LIMIT: u32 = 200;
/// How many entries are listed at most.
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
    /// How many levels to list; 2 if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 64))]
    depth: Option<u32>,
    /// How many entries to list; 200 if left out, 1000 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists what is below a directory.
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
        work::spec::<Args>("list_files").title("List files")
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let root = self.root.clone();
        work::blocking(&cx, move |stop| list(&root, &args, stop)).await
    }
}

fn list(root: &Root, args: &Args, stop: &Cancel) -> Result<CallResult, ToolError> {
    let asked = args.path.as_deref().unwrap_or_default();
    let opened = root.target(asked)?;
    let Target::Dir(dir) = opened.target else {
        let message = format!("{} is a file, not a directory; read_file shows it", show::quoted(asked));
        return Err(ToolError::failed(message));
    };
    let depth = args.depth.unwrap_or(DEFAULT_DEPTH) as usize;
    let above = Ignored::above(root.dir(), &opened.path);
    let walk = Walk::new(dir, opened.path, &above, depth.min(MAX_DEPTH));
    let mut walk = walk.map_err(|error| ToolError::failed(format!("cannot list {}: {}", show::quoted(asked), error.kind())))?;
    let mut found = Vec::new();
    while let Some(entry) = walk.next() {
        work::go_on(stop)?;
        found.push(entry);
    }
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
    Ok(render(found, limit, &walk, asked))
}

fn render(mut found: Vec<Found>, limit: usize, walk: &Walk, asked: &str) -> CallResult {
    let dirs = found.iter().filter(|it| it.kind == Kind::Dir).count();
    let files = found.len() - dirs;
    let left_out = found.len().saturating_sub(limit);
    keep_shallow(&mut found, limit);
    let mut text: String = found.iter().map(line).collect();
    if found.is_empty() {
        text = format!("{} holds nothing to show\n", show::quoted(asked));
    }
    text += &format!(
        "[{}, {}",
        show::count(files as u64, "file", "files"),
        show::count(dirs as u64, "directory", "directories")
    );
    if left_out > 0 {
        text += &format!("; {left_out} of them left out: list a directory below, or a smaller depth");
    }
    if walk.is_incomplete() {
        text += "; there is more: the folder is too large to be walked whole";
    }
    if walk.unreadable() > 0 {
        text += &format!("; {} could not be read", show::count(walk.unreadable(), "directory", "directories"));
    }
    text += "]";
    let truncated = left_out > 0 || walk.is_incomplete();
    let details = json!({
        "files": files, "directories": dirs, "shown": found.len(), "left_out": left_out,
        "unreadable": walk.unreadable(), "truncated": truncated,
    });
    CallResult::ok(text).details(details)
}

/// Keeps the entries nearest to the top, in the order they have.
fn keep_shallow(found: &mut Vec<Found>, limit: usize) {
    if found.len() <= limit {
        return;
    }
    let mut depths: Vec<usize> = found.iter().map(|it| it.depth).collect();
    depths.sort_unstable();
    let deepest = depths[limit];
    let mut room = limit - depths.partition_point(|depth| *depth < deepest);
    found.retain(|it| {
        let fits = it.depth < deepest || (it.depth == deepest && room > 0);
        room -= usize::from(fits && it.depth == deepest);
        fits
    });
}

fn line(found: &Found) -> String {
    let path = show::path(&found.path);
    let note = if found.path.to_str().is_some() { "" } else { "  (the name is no UTF-8, so it cannot be read)" };
    match found.kind {
        Kind::Dir => format!("{path}/{note}\n"),
        Kind::File => format!("{path}  {}{note}\n", show::size(found.size)),
        Kind::Link => format!("{path}  link{note}\n"),
        Kind::Other => format!("{path}  no regular file{note}\n"),
    }
}
