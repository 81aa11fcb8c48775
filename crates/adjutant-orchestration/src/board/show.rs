//! Tasks in the form for a model: JSON of bounded size, in which every text is clearly data.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{ListedTask, Task, TaskPage};
use crate::text::cut_with_size;

/// The largest number of bytes of a description and of a result.
const MAX_SHOWN_BYTES: usize = 8_000;
/// The largest number of bytes of a criterion, of evidence and of caveats.
const MAX_TEXT_BYTES: usize = 1_000;
/// The largest number of bytes of metadata; larger ones are replaced with their size.
const MAX_METADATA_BYTES: usize = 4_000;

/// A page of tasks, each with the data to choose one.
pub(super) fn page(page: &TaskPage) -> Value {
    let tasks: Vec<Value> = page
        .tasks
        .iter()
        .map(|it| Value::Object(line(it)))
        .collect();
    let mut shown = json!({ "tasks": tasks });
    if let Some(next) = &page.next {
        shown["more_after"] = json!(next);
    }
    shown
}

/// A task with all that there is to know.
pub(super) fn task(listed: &ListedTask) -> Value {
    let Task {
        description,
        acceptance_criteria,
        evidence,
        metadata,
        result,
        caveats,
        last_failure,
        ..
    } = &listed.task;
    let mut shown = line(listed);
    let mut put = |name: &str, text: Option<&str>, max: usize| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            shown.insert(name.to_owned(), json!(cut_with_size(text, max)));
        }
    };
    put("description", Some(description), MAX_SHOWN_BYTES);
    put("result", result.as_deref(), MAX_SHOWN_BYTES);
    put("caveats", caveats.as_deref(), MAX_TEXT_BYTES);
    put("last_failure", last_failure.as_deref(), MAX_TEXT_BYTES);
    if !acceptance_criteria.is_empty() {
        let criteria: Vec<String> = acceptance_criteria
            .iter()
            .map(|it| cut_with_size(it, MAX_TEXT_BYTES).into_owned())
            .collect();
        shown.insert("acceptance_criteria".to_owned(), json!(criteria));
    }
    if !evidence.is_empty() {
        let proofs = evidence.iter().map(
            |it| json!({ "criterion": cut_with_size(&it.criterion, MAX_TEXT_BYTES), "proof": cut_with_size(&it.proof, MAX_TEXT_BYTES) }),
        );
        shown.insert("evidence".to_owned(), proofs.collect());
    }
    if !metadata.is_empty() {
        let bytes = serde_json::to_vec(metadata).map_or(usize::MAX, |json| json.len());
        let fits = bytes <= MAX_METADATA_BYTES;
        shown.insert(
            "metadata".to_owned(),
            if fits {
                json!(metadata)
            } else {
                json!(format!("{bytes} bytes"))
            },
        );
    }
    Value::Object(shown)
}

fn line(listed: &ListedTask) -> Map<String, Value> {
    let Task {
        id,
        title,
        status,
        priority,
        assignee,
        dependencies,
        attempts,
        ..
    } = &listed.task;
    let mut shown = Map::new();
    shown.insert("id".to_owned(), json!(id));
    shown.insert("title".to_owned(), json!(title));
    shown.insert("status".to_owned(), json!(status));
    let mut put = |name: &str, is_worth: bool, value: Value| {
        if is_worth {
            shown.insert(name.to_owned(), value);
        }
    };
    put("priority", *priority != 0, json!(priority));
    put("assignee", assignee.is_some(), json!(assignee));
    put("attempts", *attempts > 1, json!(attempts));
    put(
        "dependencies",
        !dependencies.is_empty(),
        json!(dependencies),
    );
    let blockers = listed
        .blocked_by
        .iter()
        .map(|it| json!({ "id": it.id, "status": it.status }));
    put(
        "blocked_by",
        !listed.blocked_by.is_empty(),
        blockers.collect(),
    );
    shown
}

/// JSON whose strings contain no markup, control or invisible characters: all of these are escaped, so that nothing
/// is lost.
pub(super) fn escape_json(value: &Value) -> String {
    let json = value.to_string();
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if !is_active(character) {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

/// Characters that can begin markup, control a terminal, change the text direction, or are invisible. In JSON they
/// only occur inside strings.
fn is_active(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '<' | '>'
                | '\u{ad}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
