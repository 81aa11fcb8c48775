//! Overrides of a manifest for a new agent.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Overrides,
    merge::NAMED,
    near,
    node::{Content, Key, Map, Mark, Node, Source},
    problem::{Problem, Problems, quoted},
    shape::{AGENT_FIELDS, MANIFEST_FIELDS},
};

/// Applies overrides to a tree in the normal form.
pub(super) fn overrides(root: &mut Node, overrides: &Overrides, problems: &mut Problems) {
    let folder = root.mark.source.folder.clone();
    let mark = |what: &str| {
        let source = Source {
            shown: format!("override {what}").into(),
            folder: folder.clone(),
        };
        Mark::whole(&Arc::new(source))
    };
    if let Some(name) = &overrides.name {
        rename(root, name, &mark("name"));
    }
    for (field, entries) in [
        ("labels", &overrides.labels),
        ("environment", &overrides.environment),
    ] {
        for (key, value) in entries {
            let mark = mark(&format!("{field}.{key}"));
            if let Err(problem) = into(root, &[field, key], &Value::from(value.as_str()), &mark) {
                problems.push(problem);
            }
        }
    }
    for (path, value) in &overrides.set {
        let mark = mark(path);
        let path: Vec<&str> = path.split('.').collect();
        if let Err(problem) = one(root, &path, value, &mark) {
            problems.push(problem);
        }
    }
    if let Some(model) = &overrides.model {
        let mark = mark("model");
        if let Err(problem) = one(root, &["model"], &Value::from(&**model), &mark) {
            problems.push(problem);
        }
    }
}

/// Renames the manifest; with one agent, also that agent.
fn rename(root: &mut Node, name: &str, mark: &Mark) {
    let Some(map) = root.as_map_mut() else { return };
    let new = Node::text(mark, name);
    let old = map
        .get("name")
        .and_then(|node| node.as_text().map(str::to_owned));
    map.set(Key::new(mark, "name"), new.clone());
    let Some(
        [
            Node {
                content: Content::Map(agent),
                ..
            },
        ],
    ) = map
        .get_mut("agents")
        .and_then(|it| it.as_list_mut())
        .map(Vec::as_mut_slice)
    else {
        return;
    };
    if agent.get("name").and_then(Node::as_text) == old.as_deref() {
        agent.set(Key::new(mark, "name"), new.clone());
        map.set(Key::new(mark, "entry_agent"), new);
    }
}

/// Sets one field. Fields that only agents have belong to the entry agent.
fn one(root: &mut Node, path: &[&str], value: &Value, mark: &Mark) -> Result<(), Problem> {
    let first = path.first().copied().unwrap_or_default();
    if AGENT_FIELDS.contains(&first) {
        let entry = root
            .as_map()
            .and_then(|map| map.get("entry_agent")?.as_text())
            .unwrap_or_default()
            .to_owned();
        let path: Vec<&str> = ["agents", &entry]
            .into_iter()
            .chain(path.iter().copied())
            .collect();
        return into(root, &path, value, mark);
    }
    if !MANIFEST_FIELDS.contains(&first) {
        let known: Vec<&str> = MANIFEST_FIELDS
            .iter()
            .chain(&AGENT_FIELDS)
            .copied()
            .collect();
        let hint = near::nearest(first, known).map(|near| format!("the nearest is `{near}`"));
        return Err(Problem::new(mark, format!("there is no field {}", quoted(first))).hint(hint));
    }
    into(root, path, value, mark)
}

/// Descends to the field, and creates missing mappings. Fields are never removed.
fn into(node: &mut Node, path: &[&str], value: &Value, mark: &Mark) -> Result<(), Problem> {
    let Some((first, rest)) = path.split_first() else {
        *node = Node::from_json(mark, value);
        return Ok(());
    };
    if first.is_empty() {
        return Err(Problem::new(
            mark,
            "a path is words with dots between them, as `budget.tokens`",
        ));
    }
    if let Content::Scalar(_) = node.content {
        // A short form becomes a mapping with that one field.
        let short = (!node.is_null()).then(|| node.clone());
        let entries = short
            .map(|it| (Key::new(mark, "name"), it))
            .into_iter()
            .collect();
        *node = Node::new(
            mark,
            Content::Map(Map {
                entries,
                spoiled: Vec::new(),
            }),
        );
    }
    if let Content::List(_) = node.content {
        return Err(Problem::new(
            mark,
            format!("{} is no element of a list here", quoted(first)),
        ));
    }
    let Some(map) = node.as_map_mut() else {
        return Ok(());
    };
    if rest.is_empty() && value.is_null() {
        map.take(first);
        return Ok(());
    }
    if map.get(first).is_none_or(Node::is_null) {
        map.set(
            Key::new(mark, *first),
            Node::new(mark, Content::Map(Map::default())),
        );
    }
    let Some(inner) = map.get_mut(first) else {
        return Ok(());
    };
    match rest.split_first() {
        Some((element, rest)) if inner.as_list().is_some() => {
            into(element_of(inner, first, element, mark)?, rest, value, mark)
        }
        _ => into(inner, rest, value, mark),
    }
}

/// Finds an element of a list by its name or its index.
fn element_of<'n>(
    list: &'n mut Node,
    field: &str,
    element: &str,
    mark: &Mark,
) -> Result<&'n mut Node, Problem> {
    let by = NAMED
        .iter()
        .find(|(name, _)| *name == field)
        .map_or("name", |(_, by)| by);
    let name = |node: &Node| match node.as_map() {
        Some(map) => map.get(by).and_then(Node::as_text).map(str::to_owned),
        None => node.as_text().map(str::to_owned),
    };
    let items = list.as_list().unwrap_or_default();
    let names: Vec<String> = items.iter().filter_map(name).collect();
    let found = items
        .iter()
        .position(|node| name(node).as_deref() == Some(element));
    let found = found.or_else(|| element.parse().ok().filter(|at| *at < items.len()));
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let missing = || {
        let message = format!("`{field}` has no {}", quoted(element));
        Problem::new(mark, message).hint(near::hint(element, &known))
    };
    let at = found.ok_or_else(missing)?;
    list.as_list_mut()
        .and_then(|items| items.get_mut(at))
        .ok_or_else(missing)
}
