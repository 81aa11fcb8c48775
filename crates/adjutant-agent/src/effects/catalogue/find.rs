//! The tool `find_tools`: searches the tools of a catalogue by words, and loads them. Its result lists the loaded
//! tools.

use std::{cmp::Reverse, fmt::Write};

use adjutant_llm::{CallResult, ToolName};
use adjutant_tool::{
    Bound, ErasedTool, Replay, ToolError, ToolErrorKind, ToolHints, ToolSpec, tool_fn,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::clip::{clip, preview},
    Load, Shelf,
};

/// The name of the tool.
pub(crate) const FIND_TOOLS: &str = "find_tools";
/// The field of a result's details that names the tools which it loads.
pub(super) const LOADED: &str = "loaded";

/// The largest number of tools that are found at a time.
const MAX_FOUND: usize = 10;
/// The number of the best ones that are loaded without being named.
const BEST: usize = 5;
/// The largest number of tools that one call may name.
const MAX_NAMES: usize = 20;
/// The largest number of words of a query that are looked for.
const MAX_WORDS: usize = 16;
/// The largest number of characters of a description that are searched.
const MAX_SEARCHED: usize = 2_000;
/// The maximum number of characters of a description or a name in the result.
const MAX_ABOUT: usize = 200;
/// The maximum number of sources in the text for the model.
const MAX_SOURCES: usize = 20;

#[derive(Deserialize)]
struct Args {
    #[serde(default)]
    query: String,
    #[serde(default)]
    names: Vec<ToolName>,
}

pub(super) fn finder(shelf: Shelf, sources: &[String]) -> impl ErasedTool + 'static + use<> {
    let mut about =
        "Finds tools that are there but not listed, and loads them: from your next message on they are listed, \
                     stay, and can be called. Give words that tell what the tool should do, or the names of tools."
            .to_owned();
    let named: Vec<String> = sources
        .iter()
        .take(MAX_SOURCES)
        .map(|name| preview(name, MAX_ABOUT))
        .collect();
    if !named.is_empty() {
        let more = if sources.len() > MAX_SOURCES {
            ", and others"
        } else {
            ""
        };
        let _ = write!(about, " The tools come from: {}{more}.", named.join(", "));
    }
    let query =
        format!("Words to look for in names and descriptions. The best {BEST} tools are loaded.");
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": query },
            "names": {
                "type": "array", "items": { "type": "string" }, "maxItems": MAX_NAMES,
                "description": "The names of tools to load.",
            },
        },
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        title: Some("Find tools".into()),
        replay: Replay::Pure,
        hints: ToolHints {
            reads_only: Some(true),
            ..ToolHints::default()
        },
        ..ToolSpec::new(FIND_TOOLS, about, schema)
    };
    tool_fn(spec, move |args, _| {
        let found = find(shelf.clone(), args);
        async move { found }
    })
}

fn find(mut shelf: Shelf, args: Value) -> Result<CallResult, ToolError> {
    let wrong = |message: String| ToolError::new(ToolErrorKind::InvalidArguments, message);
    let Args { query, names } =
        serde_json::from_value(args).map_err(|error| wrong(error.to_string()))?;
    let words = words(&query);
    if words.is_empty() && names.is_empty() {
        return Err(wrong(
            "nothing to look for: give words as `query`, or `names`".to_owned(),
        ));
    }
    let found = search(&shelf, &words);
    let best = found.iter().take(if names.is_empty() { BEST } else { 0 });
    let wanted: Vec<ToolName> = names.iter().take(MAX_NAMES).chain(best).cloned().collect();
    let loads = shelf.load(&wanted);
    let came_to = |end: Load| -> Vec<&ToolName> {
        wanted
            .iter()
            .zip(&loads)
            .filter(|(_, load)| **load == end)
            .map(|(name, _)| name)
            .collect()
    };
    let loaded = came_to(Load::Done);
    let parts = [
        (
            "Loaded; they can be called from your next message on:",
            loaded.clone(),
        ),
        ("Loaded before; they can be called:", came_to(Load::Before)),
        (
            "Not loaded, because loaded tools may not take more room in this conversation:",
            came_to(Load::Full),
        ),
        (
            "There are no such tools; look for them by `query`:",
            came_to(Load::Missing),
        ),
        (
            "Also found; load what you need by `names`:",
            found.iter().filter(|name| !wanted.contains(name)).collect(),
        ),
    ];
    let mut text = String::new();
    for (what, names) in parts.into_iter().filter(|(_, names)| !names.is_empty()) {
        let lines: String = names
            .into_iter()
            .map(|name| format!("\n- {}", line(&shelf, name)))
            .collect();
        let _ = writeln!(text, "{what}{lines}");
    }
    if text.is_empty() {
        let _ = write!(
            text,
            "None of the {} tools has one of these words; try others.",
            shelf.all.iter().count()
        );
    }
    Ok(CallResult {
        details: json!({ LOADED: loaded }),
        ..CallResult::ok(text.trim_end())
    })
}

/// Returns a tool in one line: its name, and the first line of its description.
fn line(shelf: &Shelf, name: &ToolName) -> String {
    let about = shelf
        .all
        .get(name.as_str())
        .map_or("", |tool| &tool.spec().decl.description);
    let first = about.lines().map(str::trim).find(|line| !line.is_empty());
    let name = preview(name.as_str(), MAX_ABOUT);
    first.map_or_else(
        || name.clone(),
        |first| format!("{name}: {}", preview(first, MAX_ABOUT)),
    )
}

/// The tools that these words fit, best first.
fn search(shelf: &Shelf, words: &[String]) -> Vec<ToolName> {
    let scored = shelf
        .all
        .iter()
        .map(|tool| (score(tool, words), tool.spec().name()));
    let mut found: Vec<(usize, &ToolName)> = scored.filter(|(score, _)| *score > 0).collect();
    // Stable: of equal ones, the first of the catalogue stays first.
    found.sort_by_key(|(score, _)| Reverse(*score));
    found
        .into_iter()
        .take(MAX_FOUND)
        .map(|(_, name)| name.clone())
        .collect()
}

/// Returns how well words match a tool: the number of matches, weighted by their place.
fn score(tool: &Bound, words: &[String]) -> usize {
    let spec = tool.spec();
    let name = spec.name().as_str().to_lowercase();
    let title = spec.title.as_deref().unwrap_or_default().to_lowercase();
    let about = clip(&spec.decl.description, MAX_SEARCHED).to_lowercase();
    let of = |word: &String| match () {
        () if split(&name).any(|part| part == word) => 8,
        () if name.contains(word) || title.contains(word) => 6,
        () if about.contains(word) => 5,
        () => 0,
    };
    words.iter().map(of).sum()
}

/// The words of a query, in small letters, each once.
fn words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in split(clip(query, MAX_SEARCHED)).map(str::to_lowercase) {
        if words.len() < MAX_WORDS && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
