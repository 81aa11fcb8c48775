//! The tool `search_text`. The search of one file is in `grep.rs`, of all files in `sweep.rs`.

use std::path::Path;

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Cancel, Tool, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    glob::Glob,
    grep::Grep,
    hits::Hits,
    root::{PathTarget, Root},
    sweep,
    walk::{MAX_DEPTH, Walk},
    work,
};

/// The default number of matching lines.
const DEFAULT_RESULTS: u32 = 100;
/// The maximum number of matching lines.
const MAX_RESULTS: u32 = 1_000;
/// The maximum number of context lines around a match.
const MAX_CONTEXT: u32 = 10;

/// Searches the text of files for a regular expression, line by line; shows `path:line: text` for every match.
///
/// Hidden, binary and ignored files are left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A regular expression; it matches within one line.
    pattern: String,
    /// The directory or file to search, relative to the root; the root itself if left out.
    #[serde(default)]
    path: Option<String>,
    /// The files to search, for example `*.rs` or `src/**/*.ts`; `!` before it inverts.
    #[serde(default)]
    glob: Option<String>,
    /// The number of lines to show before and after each match; 0 if left out, 10 at most.
    #[serde(default)]
    #[schemars(range(max = 10))]
    context_lines: Option<u32>,
    /// True if upper and lower case are the same; false if left out.
    #[serde(default)]
    ignore_case: Option<bool>,
    /// The number of matching lines to show; 100 if left out, 1000 at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<u32>,
}

/// The tool that searches the text of files.
#[derive(Debug)]
pub(super) struct SearchText {
    root: Root,
}

impl SearchText {
    pub(super) fn new(root: Root) -> Self {
        Self { root }
    }
}

impl Tool for SearchText {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            title: Some("Search text".into()),
            ..work::spec::<Args>("search_text")
        }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let root = self.root.clone();
        work::blocking(&cx, move |stop| search(&root, &args, stop)).await
    }
}

fn search(root: &Root, args: &Args, stop: &Cancel) -> Result<CallResult, ToolError> {
    let glob = args
        .glob
        .as_deref()
        .filter(|it| !it.trim().is_empty())
        .map(Glob::new)
        .transpose()?;
    let context = args.context_lines.unwrap_or(0).min(MAX_CONTEXT) as usize;
    let limit = u64::from(
        args.max_results
            .unwrap_or(DEFAULT_RESULTS)
            .clamp(1, MAX_RESULTS),
    );
    let mut grep = Grep::new(
        &args.pattern,
        args.ignore_case.unwrap_or(false),
        context,
        limit,
    )?;
    let mut hits = Hits::new(context, limit);
    let asked = args.path.as_deref().unwrap_or_default();
    let opened = root.target(asked)?;
    match opened.target {
        PathTarget::File(file, _) => {
            hits.add(&opened.path, grep.search(file, stop)?);
            Ok(hits.finish(&args.pattern, false))
        }
        PathTarget::Dir(dir) => {
            let walk = Walk::below(root, dir, &opened.path, asked, MAX_DEPTH)?;
            let wanted = |path: &Path| glob.as_ref().is_none_or(|it| it.wants(path, &opened.path));
            let (hits, incomplete) = sweep::all(walk, grep, hits, wanted, stop)?;
            Ok(hits.finish(&args.pattern, incomplete))
        }
    }
}
