//! Agents of a manifest in Markdown files: their front matter is a part of a manifest.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_orchestration::Definition;

use super::{
    file::{self, MAX_BYTES},
    node::{Key, Mark, Node, Source},
    path::{self, Kind},
    problem::{Problem, Problems, quoted},
    read, yaml,
};

/// The maximum number of included agents.
const MAX_FILES: usize = 256;

/// Reads the agents that `include` names.
pub(super) fn agents(
    include: &Node,
    sources: &mut Vec<PathBuf>,
    problems: &mut Problems,
) -> Vec<Node> {
    let mut agents: Vec<Node> = Vec::new();
    let Some(items) = include.as_list() else {
        problems.tell(
            &include.mark,
            "expected a list of files, as [.adjutant/agents/*.md]",
        );
        return agents;
    };
    for item in items {
        let Some(pattern) = item.as_text() else {
            problems.tell(
                &item.mark,
                "expected a file, or all of a folder, as .adjutant/agents/*.md",
            );
            continue;
        };
        for (path, shown) in files(pattern, item, problems) {
            if agents.len() >= MAX_FILES {
                problems.tell(
                    &item.mark,
                    format!("more than {MAX_FILES} agents are included"),
                );
                return agents;
            }
            let Some(agent) = agent(&path, shown, &item.mark, problems) else {
                continue;
            };
            if !sources.contains(&path) {
                sources.push(path);
            }
            let name = |node: &Node| {
                node.as_map()
                    .and_then(|map| map.get("name")?.as_text())
                    .map(str::to_ascii_lowercase)
            };
            match agents.iter().find(|it| name(it) == name(&agent)) {
                Some(other) => {
                    let (file, twin) = (&agent.mark.source.shown, &other.mark.source.shown);
                    problems.tell(
                        &item.mark,
                        format!("{file} and {twin} are agents of one name"),
                    );
                }
                None => agents.push(agent),
            }
        }
    }
    agents
}

/// Returns the files that match a pattern, with their names for messages.
fn files(pattern: &str, item: &Node, problems: &mut Problems) -> Vec<(PathBuf, String)> {
    let folder = &item.mark.source.folder;
    let shown = |path: &str| {
        Path::new(&*item.mark.source.shown)
            .with_file_name("")
            .join(path)
            .display()
            .to_string()
    };
    let (place, is_all) = match pattern.strip_suffix("*.md") {
        Some(place) => (place.trim_end_matches('/'), true),
        None => (pattern, false),
    };
    let place = if is_all && place.is_empty() {
        "."
    } else {
        place
    };
    let kind = if is_all { Kind::Folder } else { Kind::Text };
    let found = match path::contained(folder, Path::new(place), kind) {
        Ok(found) => found,
        Err(message) => {
            problems.tell(&item.mark, format!("{}: {message}", quoted(pattern)));
            return Vec::new();
        }
    };
    if !is_all {
        return vec![(found, shown(pattern))];
    }
    let entries = std::fs::read_dir(&found)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut names: Vec<String> = entries.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort_unstable();
    names.truncate(MAX_FILES + 1);
    if names.is_empty() {
        problems.tell(
            &item.mark,
            format!("{}: there is no such file", quoted(pattern)),
        );
    }
    let mut files = Vec::new();
    for name in names {
        let written = Path::new(place).join(&name);
        match path::contained(folder, &written, Kind::Text) {
            Ok(path) => files.push((path, shown(&written.display().to_string()))),
            Err(message) => problems.tell(
                &item.mark,
                format!("{}: {message}", quoted(&written.display().to_string())),
            ),
        }
    }
    files
}

/// Reads an agent; its fields keep their positions in its file.
fn agent(path: &Path, shown: String, by: &Mark, problems: &mut Problems) -> Option<Node> {
    let source = Arc::new(Source {
        shown: shown.into(),
        folder: path.parent()?.to_owned(),
    });
    let text = match file::text(path, MAX_BYTES) {
        Ok(text) => text,
        Err(message) => {
            problems.tell(by, format!("{}: {message}", source.shown));
            return None;
        }
    };
    let read = node(&text, path, &source);
    read.map_err(|problem| problems.push(problem)).ok()
}

/// Returns the fields of an agent's file, with implied ones: its name, and its text.
fn node(text: &str, path: &Path, source: &Arc<Source>) -> Result<Node, Problem> {
    let whole = Mark {
        source: Arc::clone(source),
        line: 1,
        column: 1,
    };
    let (front, instructions) =
        Definition::split(text).map_err(|error| Problem::new(&whole, error.message()))?;
    let mut node = yaml::read(&front, source, yaml::AGENT)?;
    // A file can only have the fields of a definition; their values are validated with the manifest's.
    read::one::<Definition>(&node)?;
    node.mark = whole.clone();
    let Some(map) = node.as_map_mut() else {
        return Ok(node);
    };
    if map
        .get("description")
        .and_then(Node::as_text)
        .is_none_or(|text| text.trim().is_empty())
    {
        let mark = map.get("description").map_or(&whole, |node| &node.mark);
        return Err(Problem::new(
            mark,
            "`description` is missing: others choose the agent by it",
        ));
    }
    if map.get("name").is_none_or(Node::is_null) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        map.set(Key::new(&whole, "name"), Node::text(&whole, stem));
    }
    if !instructions.is_empty() {
        map.set(
            Key::new(&whole, "instructions"),
            Node::text(&whole, instructions),
        );
    }
    Ok(node)
}
