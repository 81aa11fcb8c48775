//! Converts the forms of a file to the normal form: agents in a list, and an entry agent.

use std::path::PathBuf;

use super::{
    include, merge, near,
    node::{Content, Key, Map, Node},
    problem::{Problem, Problems},
};

/// The fields that only a file has.
pub(super) const FILE_FIELDS: [&str; 2] = ["extends", "include"];
/// The fields of a manifest.
pub(super) const MANIFEST_FIELDS: [&str; 21] = [
    "adjutant",
    "name",
    "description",
    "labels",
    "entry_agent",
    "agents",
    "providers",
    "models",
    "process_tools",
    "mcp",
    "peers",
    "skill_folders",
    "a2a_push",
    "data",
    "sessions",
    "on_restart",
    "memory",
    "board",
    "notes",
    "environment",
    "budget",
];
/// The fields of an agent that are permitted next to the manifest's.
pub(super) const AGENT_FIELDS: [&str; 24] = [
    "model",
    "options",
    "instructions",
    "context",
    "toolboxes",
    "tools",
    "skills",
    "effects",
    "behavior",
    "middleware",
    "compaction",
    "floor",
    "access",
    "rules",
    "limits",
    "max_turns",
    "delegation",
    "transfers",
    "team",
    "reflections",
    "expertise",
    "estimated_cost",
    "max_concurrency",
    "prefix",
];

/// Returns every permitted top-level field of a file.
pub(super) fn fields() -> Vec<&'static str> {
    FILE_FIELDS
        .iter()
        .chain(&MANIFEST_FIELDS)
        .chain(&AGENT_FIELDS)
        .copied()
        .collect()
}

/// Converts a tree to the normal form; included files are added to the sources.
pub(super) fn normalise(root: &mut Node, sources: &mut Vec<PathBuf>, problems: &mut Problems) {
    let mark = root.mark.clone();
    let Some(map) = root.as_map_mut() else { return };
    let include = map
        .take("include")
        .map(|(_, node)| node)
        .filter(|node| !node.is_null());
    let included = include
        .map(|node| include::agents(&node, sources, problems))
        .unwrap_or_default();
    let own = shorthand(map);
    let listed = map.take("agents").filter(|(_, node)| !node.is_null());
    let (key, listed) = match (own, listed) {
        (Some(own), Some(_)) => {
            let field = own
                .as_map()
                .and_then(|own| own.entries.iter().find(|(key, _)| is_own(&key.text)));
            let Some((field, _)) = field else { return };
            let message = format!(
                "`{}` is a field of an agent, and stands beside `agents`",
                field.text
            );
            let hint = "move it to an agent, or leave `agents` out".to_owned();
            problems.push(Problem::new(&field.mark, message).hint(hint));
            return;
        }
        (Some(own), None) => (
            Key::new(&mark, "agents"),
            Node::new(&mark, Content::List(vec![own])),
        ),
        (None, Some((key, node))) => (key, node),
        (None, None) => (
            Key::new(&mark, "agents"),
            Node::new(&mark, Content::List(Vec::new())),
        ),
    };
    let agents = joined(listed, included);
    let names: Vec<&Node> = agents
        .as_list()
        .unwrap_or_default()
        .iter()
        .filter_map(|it| it.as_map()?.get("name"))
        .collect();
    if map.get("entry_agent").is_none_or(Node::is_null)
        && let [name] = names.as_slice()
    {
        let entry = (*name).clone();
        map.set(Key::new(&entry.mark, "entry_agent"), entry);
    }
    if problems.is_empty()
        && agents.as_list().is_some_and(<[Node]>::is_empty)
        && !map.entries.iter().any(|(key, _)| meant(&key.text))
    {
        let hint = "give it `instructions` or a `model`, or list several as `agents`".to_owned();
        problems.push(Problem::new(&mark, "it describes no agent").hint(hint));
    }
    map.set(key, agents);
}

/// Moves the fields of an agent out of the manifest's. Its name and description are the manifest's.
fn shorthand(map: &mut Map) -> Option<Node> {
    let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut map.entries)
        .into_iter()
        .partition(|(key, _)| is_own(&key.text));
    map.entries = rest;
    let (first, _) = own.first()?;
    let mark = first.mark.clone();
    let shared = ["name", "description"].into_iter().filter_map(|name| {
        let (key, node) = map.entries.iter().find(|(key, _)| key.text == name)?;
        Some((key.clone(), node.clone()))
    });
    let entries: Vec<_> = shared.chain(own).collect();
    let name = entries
        .first()
        .filter(|(key, _)| key.text == "name")
        .map(|(_, node)| node.clone());
    if let Some(name) = name.filter(|_| map.get("entry_agent").is_none_or(Node::is_null)) {
        map.set(Key::new(&name.mark, "entry_agent"), name);
    }
    Some(Node {
        mark,
        content: Content::Map(Map {
            entries,
            spoiled: Vec::new(),
        }),
    })
}

fn is_own(field: &str) -> bool {
    AGENT_FIELDS.contains(&field)
}

/// True if an unknown field is similar to a field of an agent, so that an agent is described.
fn meant(field: &str) -> bool {
    let known = fields();
    !known.contains(&field)
        && near::nearest(field, known)
            .is_some_and(|near| is_own(near) || near == "agents" || near == "include")
}

/// Merges listed agents with included ones; a listed agent with the name of an included one overrides its fields.
fn joined(mut listed: Node, included: Vec<Node>) -> Node {
    let Some(list) = listed.as_list_mut() else {
        return listed;
    };
    for agent in included {
        let name = agent
            .as_map()
            .and_then(|map| map.get("name")?.as_text())
            .unwrap_or_default();
        let same =
            |it: &&mut Node| it.as_map().and_then(|map| map.get("name")?.as_text()) == Some(name);
        match list.iter_mut().find(same) {
            Some(own) => *own = merge::agent(agent, own.clone()),
            None => list.push(agent),
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemars::{Schema, schema_for};

    use super::*;
    use crate::manifest::{AgentSpec, Manifest};

    fn fields(schema: &Schema) -> BTreeSet<&str> {
        let fields = schema
            .get("properties")
            .and_then(|it| it.as_object())
            .expect("it has fields");
        fields.keys().map(String::as_str).collect()
    }

    #[test]
    fn fields_are_those_of_the_types() {
        let (manifest, agent) = (schema_for!(Manifest), schema_for!(AgentSpec));
        assert_eq!(fields(&manifest), MANIFEST_FIELDS.into_iter().collect());
        let shared = ["name", "description", "budget"];
        assert_eq!(
            fields(&agent),
            AGENT_FIELDS.into_iter().chain(shared).collect()
        );
    }
}
