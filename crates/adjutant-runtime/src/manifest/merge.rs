//! Merges a manifest with its parent from `extends`.

use super::node::{Content, Map, Node};

/// Top-level lists whose elements are identified by a field.
pub(super) const NAMED: [(&str, &str); 6] = [
    ("agents", "name"),
    ("process_tools", "name"),
    ("peers", "name"),
    ("providers", "name"),
    ("models", "id"),
    ("toolboxes", "name"),
];

/// The place of a value, which selects the merge rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Agent,
    Below,
}

/// Merges a child into its parent: scalars of the child take precedence, maps are merged by key, named elements by
/// name, other lists are replaced, and `null` removes a field.
pub(super) fn over(parent: Node, child: Node) -> Node {
    node(parent, child, Level::Root)
}

/// Merges an agent with overriding fields.
pub(super) fn agent(below: Node, above: Node) -> Node {
    node(below, above, Level::Agent)
}

fn node(parent: Node, child: Node, level: Level) -> Node {
    let Node { mark, content } = child;
    match (parent.content, content) {
        (Content::Map(parent), Content::Map(child)) => Node {
            mark,
            content: Content::Map(map(parent, child, level)),
        },
        (_, content) => Node { mark, content },
    }
}

fn map(mut parent: Map, child: Map, level: Level) -> Map {
    parent.spoiled.extend(child.spoiled);
    for (key, value) in child.entries {
        if value.is_null() {
            parent.take(&key.text);
            continue;
        }
        let merged = match parent.get(&key.text).cloned() {
            Some(old) => field(&key.text, old, value, level),
            None => value,
        };
        parent.set(key, merged);
    }
    parent
}

fn field(key: &str, old: Node, new: Node, level: Level) -> Node {
    let by = NAMED
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, by)| *by);
    match by {
        Some(by) if level == Level::Root || level == Level::Agent && key == "toolboxes" => {
            let inner = if key == "agents" {
                Level::Agent
            } else {
                Level::Below
            };
            return named(old, new, by, inner);
        }
        _ => {}
    }
    match key {
        // A merge of two schemas would be invalid.
        "parameters" => new,
        // A model in the short form is a mapping with only a name.
        "model" if level != Level::Below && new.as_map().is_some() && old.as_text().is_some() => {
            node(spelled(old, "name"), new, Level::Below)
        }
        _ => node(old, new, Level::Below),
    }
}

/// Merges two lists by the names of their elements; the parent's come first.
fn named(old: Node, new: Node, by: &str, level: Level) -> Node {
    let Node { mark, content } = new;
    let (Content::List(mut list), Content::List(news)) = (old.content, content.clone()) else {
        return Node { mark, content };
    };
    for new in news {
        let same = |old: &&mut Node| name(old, by).is_some() && name(old, by) == name(&new, by);
        match list.iter_mut().find(same) {
            // A plain name changes nothing.
            Some(_) if new.as_text().is_some() => {}
            Some(old) => *old = node(spelled(old.clone(), by), new, level),
            None => list.push(new),
        }
    }
    Node {
        mark,
        content: Content::List(list),
    }
}

/// Returns the name of an element: a field of it, or the text itself.
fn name<'a>(node: &'a Node, by: &str) -> Option<&'a str> {
    match node.as_map() {
        Some(map) => map.get(by)?.as_text(),
        None => node.as_text(),
    }
}

/// Returns a short form as a mapping with that one field.
fn spelled(node: Node, field: &str) -> Node {
    if node.as_text().is_none() {
        return node;
    }
    let mark = node.mark.clone();
    let entries = vec![(super::node::Key::new(&mark, field), node)];
    Node {
        mark,
        content: Content::Map(Map {
            entries,
            spoiled: Vec::new(),
        }),
    }
}
