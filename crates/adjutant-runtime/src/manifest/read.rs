//! Deserializes nodes. Every error is reported at its position.

mod fault;
mod plain;
mod reader;

use serde::de;

use self::{
    fault::{PathStep, What},
    reader::Reader,
};
use super::{
    near,
    node::{Content, Node},
    problem::{Problem, Problems},
};

/// A field that many users expect, and its hint: an ignored reference would look like a guarantee.
const IMAGE: &str = "image";
const NO_IMAGE: &str = "nothing pulls images: lay the files beside the manifest and name them in `data`, `context` or \
                        `skill_folders`, or move a whole agent with `adjutant agent export` and `import`; a word for people is a \
                        label";

pub(super) struct ReadValue<T> {
    pub(super) value: T,
    pub(super) is_whole: bool,
}

/// Deserializes a node.
pub(super) fn one<T: de::DeserializeOwned>(node: &Node) -> Result<T, Problem> {
    T::deserialize(Reader(node)).map_err(|fault| fault.problem(&node.mark))
}

/// Deserializes a node, reports all errors, and removes the invalid parts from the tree, so that the rest can be
/// checked.
///
/// `fields` are additional names that are permitted at the root.
pub(super) fn all<T: de::DeserializeOwned>(
    tree: &mut Node,
    fields: &[&str],
    problems: &mut Problems,
) -> Option<ReadValue<T>> {
    let mut is_whole = true;
    loop {
        let fault = match T::deserialize(Reader(tree)) {
            Ok(value) => return Some(ReadValue { value, is_whole }),
            Err(fault) => fault,
        };
        let path: Vec<PathStep> = fault.0.path.iter().rev().copied().collect();
        if !is_follow_up(tree, &path, &fault.0.what) {
            let mut problem = fault.problem(&tree.mark);
            if let (What::Unknown(name), [_]) = (&fault.0.what, path.as_slice()) {
                let near = near::nearest(name, fields.iter().copied())
                    .map(|it| format!("the nearest is `{it}`"));
                problem.hint = if name == IMAGE {
                    Some(NO_IMAGE.to_owned())
                } else {
                    near
                };
            }
            problems.push(problem);
        }
        is_whole &= take_out(tree, &path, &fault.0.what)?;
        if problems.is_full() {
            return None;
        }
    }
}

/// True if a field is missing only because its value was invalid.
fn is_follow_up(tree: &Node, path: &[PathStep], what: &What) -> bool {
    let What::Missing(field) = what else {
        return false;
    };
    let node = path.iter().try_fold(tree, |node, step| match step {
        PathStep::Key(at) => node.as_map()?.entries.get(*at).map(|(_, node)| node),
        PathStep::Item(at) => node.as_list()?.get(*at),
    });
    node.and_then(Node::as_map)
        .is_some_and(|map| map.spoiled.iter().any(|it| it == field))
}

/// Removes the cause of a fault; returns whether nothing else can refer to it. `None` if it is the whole value.
fn take_out(tree: &mut Node, path: &[PathStep], what: &What) -> Option<bool> {
    let (last, above) = path.split_last()?;
    let parent = above.iter().try_fold(tree, |node, step| match step {
        PathStep::Key(at) => node
            .as_map_mut()?
            .entries
            .get_mut(*at)
            .map(|(_, node)| node),
        PathStep::Item(at) => node.as_list_mut()?.get_mut(*at),
    })?;
    match last {
        PathStep::Key(at) => {
            let map = parent.as_map_mut()?;
            let (key, node) = (*at < map.entries.len()).then(|| map.entries.remove(*at))?;
            if matches!(what, What::Unknown(_)) {
                return Some(true);
            }
            map.spoiled.push(key.text);
            Some(matches!(node.content, Content::Scalar(_)))
        }
        PathStep::Item(at) => {
            let items = parent.as_list_mut()?;
            (*at < items.len()).then(|| items.remove(*at))?;
            Some(false)
        }
    }
}
