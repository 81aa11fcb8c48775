//! The next step: which tools to call now, or that it is time to answer.

use adjutant_llm::Request;
use serde_json::json;

use super::{
    answer,
    evidence::{self, Evidence},
    manifest,
    shapes::ListEntry,
    tools::{self, ArgumentSlot, Offered, Planned, Role},
    wish::Wish,
};

/// The maximum number of requests for one task; the last one answers.
const MAX_TURNS: usize = 4;
/// The largest number of calls that one reply makes.
const MAX_CALLS: usize = 32;
/// The depth to which a directory is listed for its description.
const DEPTH: u64 = 4;
/// The depth to which a directory is listed to find a file.
const FIND_DEPTH: u64 = 12;
/// The number of entries that a list call requests.
const LIMIT: u64 = 1_000;
/// The number of matches that a search call requests.
const MATCHES: u64 = 200;
/// The number of lines of a manifest or a README that are read.
const HEAD_LINES: u64 = 300;

/// The next thing to do.
#[derive(Debug)]
pub(super) enum PlannedStep {
    Call(Vec<Planned>),
    Say(String),
}

/// Decides from the request only: performs one task after the other, then answers all of them.
pub(super) fn next(request: &Request) -> PlannedStep {
    let offered = Offered::from_tools(&request.tools);
    let (question, turns) = evidence::since_question(request);
    let (wishes, mut turns) = (Wish::all(&question), turns.into_iter());
    let mut answers: Vec<String> = Vec::new();
    for wish in &wishes {
        let mut seen = Evidence::default();
        loop {
            let calls = calls(wish, &offered, &seen);
            if calls.is_empty() {
                break;
            }
            match turns.next() {
                Some(turn) => seen.turn(turn, &offered),
                None => return PlannedStep::Call(calls),
            }
        }
        answers.push(answer::compose(wish, &seen, &offered, &request.tools));
    }
    answers.dedup();
    PlannedStep::Say(answer::join(&answers))
}

fn calls(wish: &Wish, offered: &Offered<'_>, seen: &Evidence) -> Vec<Planned> {
    let mut calls = match wish {
        _ if seen.turns + 1 >= MAX_TURNS => Vec::new(),
        Wish::Describe { .. } => describe(offered, seen),
        Wish::Find { words, within } => find(offered, seen, words, within.as_deref()),
        Wish::Read { path, .. } => read(offered, seen, path),
        Wish::Edit { path, old, new } => edit(offered, seen, (path, old, new)),
        Wish::Run { command } => run(offered, seen, command),
    };
    // A repeated call would return the same result.
    calls.retain(|it| {
        !seen
            .calls
            .iter()
            .any(|(tool, args)| *tool == it.tool.as_str() && args.as_object() == Some(&it.args))
    });
    calls.truncate(MAX_CALLS);
    calls
}

/// A file is read before it is changed.
fn edit(
    offered: &Offered<'_>,
    seen: &Evidence,
    (path, old, new): (&str, &str, &str),
) -> Vec<Planned> {
    let Some(decl) = offered.edit else {
        return Vec::new();
    };
    match (seen.turns, offered.read) {
        (0, Some(_)) => whole(offered, path),
        (0, None) | (1, Some(_)) if seen.failures.is_empty() => {
            let args = [
                (ArgumentSlot::Path, path),
                (ArgumentSlot::Old, old),
                (ArgumentSlot::New, new),
            ];
            vec![tools::call(
                decl,
                args.map(|(slot, text)| (slot, json!(text))),
            )]
        }
        _ => Vec::new(),
    }
}

fn run(offered: &Offered<'_>, seen: &Evidence, command: &str) -> Vec<Planned> {
    let decl = offered.run.filter(|_| seen.turns == 0);
    decl.map(|decl| tools::call(decl, [(ArgumentSlot::Command, json!(command))]))
        .into_iter()
        .collect()
}

fn describe(offered: &Offered<'_>, seen: &Evidence) -> Vec<Planned> {
    match (seen.turns, offered.list) {
        (0, Some(_)) => list(offered, ".", DEPTH),
        (0, None) => heads(offered, manifest::LIKELY.iter().map(|it| (*it).to_owned())),
        (1, Some(_)) if seen.lists.is_empty() => {
            heads(offered, manifest::LIKELY.iter().map(|it| (*it).to_owned()))
        }
        (1, Some(_)) => heads(
            offered,
            manifest::worth_reading(&seen.entries()).into_iter(),
        ),
        _ => Vec::new(),
    }
}

fn find(
    offered: &Offered<'_>,
    seen: &Evidence,
    words: &[String],
    within: Option<&str>,
) -> Vec<Planned> {
    let none = seen.searches.iter().all(|it| it.places.is_empty());
    match (seen.turns, offered.search) {
        (0, Some(_)) => {
            let mut calls = search(offered, words, within, false);
            if within.is_none() {
                calls.extend(list(offered, ".", FIND_DEPTH));
            }
            calls
        }
        (0, None) => list(offered, ".", FIND_DEPTH),
        (1, Some(decl))
            if none
                && !seen.has_failed(Role::Search)
                && tools::takes(decl, ArgumentSlot::IgnoreCase).is_some() =>
        {
            search(offered, words, within, true)
        }
        _ => Vec::new(),
    }
}

fn read(offered: &Offered<'_>, seen: &Evidence, path: &str) -> Vec<Planned> {
    match seen.turns {
        0 if offered.read.is_some() => whole(offered, path),
        0 => list(offered, path, DEPTH),
        1 if seen.files.is_empty() => list(offered, ".", FIND_DEPTH),
        2 if seen.files.is_empty() => match namesake(&seen.entries(), path) {
            Some(found) => whole(offered, found),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The file that was probably meant: the same name elsewhere, or the same name without its extension.
fn namesake<'a>(entries: &[&'a ListEntry], path: &str) -> Option<&'a str> {
    let path = path.trim_matches('/').to_lowercase();
    let is_named = |entry: &ListEntry, exactly: bool| {
        let full = entry.path.to_lowercase();
        let name = full.rsplit('/').next().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        full == path
            || full.ends_with(&format!("/{path}"))
            || (!exactly && stem == path && !stem.is_empty())
    };
    if entries.iter().any(|it| it.is_dir && is_named(it, true)) {
        return None;
    }
    let files = entries
        .iter()
        .filter(|it| !it.is_dir && is_named(it, false));
    files
        .map(|it| it.path.as_str())
        .min_by_key(|it| (it.matches('/').count(), it.len(), *it))
}

fn list(offered: &Offered<'_>, path: &str, depth: u64) -> Vec<Planned> {
    let args = [
        (ArgumentSlot::Path, json!(path)),
        (ArgumentSlot::Depth, json!(depth)),
        (ArgumentSlot::Limit, json!(LIMIT)),
    ];
    offered
        .list
        .map(|decl| tools::call(decl, args))
        .into_iter()
        .collect()
}

fn whole(offered: &Offered<'_>, path: &str) -> Vec<Planned> {
    offered
        .read
        .map(|decl| tools::call(decl, [(ArgumentSlot::Path, json!(path))]))
        .into_iter()
        .collect()
}

fn heads(offered: &Offered<'_>, paths: impl Iterator<Item = String>) -> Vec<Planned> {
    let Some(decl) = offered.read else {
        return Vec::new();
    };
    let head = |path| {
        tools::call(
            decl,
            [
                (ArgumentSlot::Path, json!(path)),
                (ArgumentSlot::LastLine, json!(HEAD_LINES)),
            ],
        )
    };
    paths.take(MAX_CALLS).map(head).collect()
}

fn search(
    offered: &Offered<'_>,
    words: &[String],
    within: Option<&str>,
    ignore_case: bool,
) -> Vec<Planned> {
    let Some(decl) = offered.search else {
        return Vec::new();
    };
    let is_regex = matches!(
        tools::takes(decl, ArgumentSlot::Pattern),
        Some("pattern" | "regex")
    );
    let pattern = if is_regex {
        let words: Vec<String> = words.iter().map(|it| escape(it)).collect();
        words.join(r"[\s_-]*")
    } else {
        words.join(" ")
    };
    let mut args = vec![
        (ArgumentSlot::Pattern, json!(pattern)),
        (ArgumentSlot::Limit, json!(MATCHES)),
    ];
    let path_is_required = decl.schema["required"].as_array().is_some_and(|it| {
        tools::takes(decl, ArgumentSlot::Path)
            .is_some_and(|name| it.iter().any(|required| required == name))
    });
    if let Some(path) = within.or(path_is_required.then_some(".")) {
        args.push((ArgumentSlot::Path, json!(path)));
    }
    if ignore_case {
        args.push((ArgumentSlot::IgnoreCase, json!(true)));
    }
    vec![tools::call(decl, args)]
}

/// Returns a regular expression for this text; empty brackets at the end of a name also match their content.
fn escape(text: &str) -> String {
    let name = text.strip_suffix("()").unwrap_or(text);
    let mut escaped = String::new();
    for character in name.chars() {
        if r"\.+*?()|[]{}^$#&-~/".contains(character) && character != '/' {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    if name.len() < text.len() {
        format!(r"{escaped}\s*\(")
    } else {
        escaped
    }
}
