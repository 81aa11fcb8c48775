//! Agents of a manifest that stand in files of Markdown: their front matter is a part of what a manifest may say.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_orchestration::Definition;

use super::{
    file::{self, MAX_BYTES},
    near,
    node::{Content, Form, Key, Map, Mark, Node, Scalar, Source},
    path::{self, Kind},
    problem::{Problem, Problems, quoted},
};

/// How many agents may be included.
const MAX_FILES: usize = 256;

/// The agents that `include` names.
pub(super) fn agents(include: &Node, sources: &mut Vec<PathBuf>, problems: &mut Problems) -> Vec<Node> {
    let mut agents: Vec<Node> = Vec::new();
    let Some(items) = include.as_list() else {
        problems.tell(&include.mark, "expected a list of files, as [.adjutant/agents/*.md]");
        return agents;
    };
    for item in items {
        let Some(pattern) = item.as_text() else {
            problems.tell(&item.mark, "expected a file, or all of a folder, as .adjutant/agents/*.md");
            continue;
        };
        for (path, shown) in files(pattern, item, problems) {
            if agents.len() >= MAX_FILES {
                problems.tell(&item.mark, format!("more than {MAX_FILES} agents are included"));
                return agents;
            }
            let Some(agent) = agent(&path, shown, &item.mark, problems) else { continue };
            if !sources.contains(&path) {
                sources.push(path);
            }
            let name =
                |node: &Node| node.as_map().and_then(|map| map.get("name")?.as_text()).map(str::to_ascii_lowercase);
            match agents.iter().find(|it| name(it) == name(&agent)) {
                Some(other) => {
                    let (file, twin) = (&agent.mark.source.shown, &other.mark.source.shown);
                    problems.tell(&item.mark, format!("{file} and {twin} are agents of one name"));
                }
                None => agents.push(agent),
            }
        }
    }
    agents
}

/// The files that a pattern means, and how they are called in messages.
fn files(pattern: &str, item: &Node, problems: &mut Problems) -> Vec<(PathBuf, String)> {
    let folder = &item.mark.source.folder;
    let shown = |path: &str| Path::new(&*item.mark.source.shown).with_file_name("").join(path).display().to_string();
    let (place, is_all) = match pattern.strip_suffix("*.md") {
        Some(place) => (place.trim_end_matches('/'), true),
        None => (pattern, false),
    };
    let place = if is_all && place.is_empty() { "." } else { place };
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
    let entries = std::fs::read_dir(&found).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut names: Vec<String> = entries.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort_unstable();
    names.truncate(MAX_FILES + 1);
    if names.is_empty() {
        problems.tell(&item.mark, format!("{}: there is no such file", quoted(pattern)));
    }
    let mut files = Vec::new();
    for name in names {
        let written = Path::new(place).join(&name);
        match path::contained(folder, &written, Kind::Text) {
            Ok(path) => files.push((path, shown(&written.display().to_string()))),
            Err(message) => problems.tell(&item.mark, format!("{}: {message}", quoted(&written.display().to_string()))),
        }
    }
    files
}

/// Reads an agent; its fields stand where they stand in its file.
fn agent(path: &Path, shown: String, by: &Mark, problems: &mut Problems) -> Option<Node> {
    let source = Arc::new(Source { shown: shown.into(), folder: path.parent()?.to_owned() });
    let text = match file::text(path, MAX_BYTES) {
        Ok(text) => text,
        Err(message) => {
            problems.tell(by, format!("{}: {message}", source.shown));
            return None;
        }
    };
    match Definition::parse(&text, path) {
        Ok(definition) => Some(node(&definition, &text, &source)),
        Err(error) => {
            problems.push(problem(error.message(), path, &source));
            None
        }
    }
}

/// What is wrong with an agent's file: its message begins with the path, the line and the column.
fn problem(message: &str, path: &Path, source: &Arc<Source>) -> Problem {
    let rest = message.strip_prefix(&path.display().to_string()).unwrap_or(message).trim_start_matches([':', ' ']);
    let (message, hint) = rest.split_once("; hint: ").unwrap_or((rest, ""));
    let mut mark = Mark::whole(source);
    let mut parts = message.splitn(3, ':');
    let place = (|| Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)))();
    let message = match place {
        Some((line, column)) => {
            (mark.line, mark.column) = (line, column);
            parts.next().unwrap_or_default().trim_start()
        }
        None => message,
    };
    let message = message.split(" at line ").next().unwrap_or(message);
    if let Some((field, known)) = near::unknown_field(message) {
        return Problem::new(&mark, format!("there is no field `{field}` here")).hint(near::hint(field, &known));
    }
    Problem::new(&mark, message).hint((!hint.is_empty()).then(|| hint.to_owned()))
}

fn node(it: &Definition, text: &str, source: &Arc<Source>) -> Node {
    let whole = Mark { source: Arc::clone(source), line: 1, column: 1 };
    let mark = |field: &str| place(text, field, &whole);
    let mut map = Map::default();
    let mut set = |field: &str, content: Content| {
        let mark = mark(field);
        map.set(Key::new(&mark, field), Node { mark: mark.clone(), content });
    };
    let quoted = |text: &str| Content::Scalar(Scalar { text: text.to_owned(), form: Form::Quoted });
    let number = |number: u64| Content::Scalar(Scalar { text: number.to_string(), form: Form::Plain });
    set("name", quoted(&it.name));
    set("description", quoted(&it.description));
    for (field, value) in [("model", &it.model), ("estimated_cost", &it.estimated_cost), ("prefix", &it.prefix)] {
        value.iter().for_each(|value| set(field, quoted(value)));
    }
    for (field, list) in [("toolboxes", &it.toolboxes), ("skills", &it.skills), ("expertise", &it.expertise)] {
        if !list.is_empty() {
            let mark = mark(field);
            set(field, Content::List(list.iter().map(|text| Node::text(&mark, &**text)).collect()));
        }
    }
    it.max_turns.into_iter().for_each(|turns| set("max_turns", number(turns.into())));
    it.max_concurrency.into_iter().for_each(|most| set("max_concurrency", number(most as u64)));
    if it.depth > 0 || it.handoffs > 0 {
        let at = mark("delegation");
        let mut rules = Map::default();
        for (field, value) in [("depth", u64::from(it.depth)), ("handoffs", it.handoffs as u64)] {
            rules.set(Key::new(&at, field), Node { mark: at.clone(), content: number(value) });
        }
        set("delegation", Content::Map(rules));
    }
    if !it.instructions.is_empty() {
        set("instructions", quoted(&it.instructions));
    }
    Node { mark: whole, content: Content::Map(map) }
}

/// Where a field of the front matter stands; the beginning if it does not.
fn place(text: &str, field: &str, whole: &Mark) -> Mark {
    let front = text.lines().skip(1).take_while(|line| line.trim_end() != "---");
    let is_it = |line: &str| line.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let line = front.zip(2..).find(|(line, _)| is_it(line)).map_or(1, |(_, at)| at);
    Mark { line, ..whole.clone() }
}
