//! Formats the entries of a walk for the model. If there are too many, the entries nearest to the root are kept.

use adjutant_llm::CallResult;
use serde_json::json;

use super::{
    show,
    walk::{Kind, Walk, WalkEntry},
};

/// Formats at most `limit` of the entries, with the total number.
pub(super) fn render(
    mut found: Vec<WalkEntry>,
    limit: usize,
    walk: &Walk,
    asked: &str,
) -> CallResult {
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
        text +=
            &format!("; {left_out} of them left out: list a directory below, or a smaller depth");
    }
    if walk.is_incomplete() {
        text += "; there is more: the folder is too large to be walked whole";
    }
    if walk.unreadable() > 0 {
        text += &format!(
            "; {} could not be read",
            show::count(walk.unreadable(), "directory", "directories")
        );
    }
    text += "]";
    let truncated = left_out > 0 || walk.is_incomplete();
    let details = json!({
        "files": files, "directories": dirs, "shown": found.len(), "left_out": left_out,
        "unreadable": walk.unreadable(), "truncated": truncated,
    });
    CallResult {
        details,
        ..CallResult::ok(text)
    }
}

/// Keeps the entries nearest to the root, in their order.
fn keep_shallow(found: &mut Vec<WalkEntry>, limit: usize) {
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

fn line(found: &WalkEntry) -> String {
    let path = show::path(&found.path);
    let note = if found.path.to_str().is_some() {
        ""
    } else {
        "  (the name is no UTF-8, so it cannot be read)"
    };
    match found.kind {
        Kind::Dir => format!("{path}/{note}\n"),
        Kind::File => format!("{path}  {}{note}\n", show::size(found.size)),
        Kind::Link => format!("{path}  link{note}\n"),
        Kind::Other => format!("{path}  no regular file{note}\n"),
    }
}
