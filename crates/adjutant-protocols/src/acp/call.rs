//! A call in the form for editors: title, kind, locations and its change, derived from its name and arguments.
//!
//! The names belong to the built-in tools; other tools are described by their arguments alone.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::content::text_block;

/// The largest number of characters of a title.
const MAX_TITLE: usize = 200;
/// The arguments that describe a call.
const ABOUT: [&str; 7] = ["command", "argv", "path", "from", "pattern", "url", "query"];

/// The description of a call with these arguments, with paths relative to this folder.
pub(super) fn describe_call(id: &str, name: &str, args: &str, root: &Path) -> Map<String, Value> {
    let input = input(args);
    let mut told = Map::new();
    told.insert("toolCallId".into(), id.into());
    told.insert("title".into(), title(name, args).into());
    told.insert("kind".into(), kind(name).into());
    let place = |path: &Value| {
        let path: PathBuf = root.join(path.as_str()?).components().collect();
        Some(path.to_string_lossy().into_owned())
    };
    let line = &input["start_line"];
    let places = [
        (&input["path"], line),
        (&input["from"], &Value::Null),
        (&input["to"], &Value::Null),
    ];
    let places = places
        .into_iter()
        .filter_map(|(path, line)| Some(json!({"path": place(path)?, "line": line})));
    let places: Vec<Value> = places.collect();
    if !places.is_empty() && kind(name) != "other" {
        told.insert("locations".into(), places.into());
    }
    let content = match (name, place(&input["path"])) {
        ("write_file", Some(path)) => {
            Some(json!({"type": "diff", "path": path, "newText": input["content"]}))
        }
        ("edit_file", Some(path)) => Some(
            json!({"type": "diff", "path": path, "oldText": input["old_text"], "newText": input["new_text"]}),
        ),
        ("apply_patch", _) => input["patch"]
            .as_str()
            .map(|it| json!({"type": "content", "content": text_block(it)})),
        _ => None,
    };
    if let Some(content) = content.filter(|it| it["type"] != "diff" || it["newText"].is_string()) {
        told.insert("content".into(), json!([content]));
    }
    told.insert("rawInput".into(), input);
    told
}

/// True if the arguments of a call with this name contain its change: its result adds nothing.
pub(super) fn shows_change(name: &str) -> bool {
    matches!(name, "write_file" | "edit_file")
}

/// Invalid JSON is displayed as text.
fn input(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| args.into())
}

/// The name of a call and its subject, on one line.
pub(super) fn title(name: &str, args: &str) -> String {
    let input = input(args);
    let about = ABOUT
        .iter()
        .map(|about| &input[*about])
        .find_map(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(words) => Some(
                words
                    .iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            _ => None,
        });
    let words = about.iter().flat_map(|about| about.split_whitespace());
    let title = [name]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ");
    match title.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or_default()),
        None => title,
    }
}

pub(super) fn kind(name: &str) -> &'static str {
    match name {
        "read_file" | "command_output" | "git_status" | "git_diff" | "git_log" => "read",
        "list_files" | "search_text" => "search",
        "write_file" | "edit_file" | "apply_patch" => "edit",
        "delete_file" => "delete",
        "move_file" => "move",
        "run_command" | "run_in_terminal" | "stop_command" => "execute",
        "fetch" => "fetch",
        "update_plan" => "think",
        _ => "other",
    }
}
