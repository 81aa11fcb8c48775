//! From nodes to values: everything that is wrong is told at its place, as far as it can be looked at.

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

/// A value that was read, and a flag that is false if parts were left out that others may refer to.
/// A field that many look for, and the cure: a reference that nobody pulls would only look like a promise.
const IMAGE: &str = "image";
const NO_IMAGE: &str = "nothing pulls images: lay the files beside the manifest and name them in `data`, `context` or \
                        `skill_folders`, or move a whole agent with `adjutant agent export` and `import`; a word for people is a \
                        label";

pub(super) struct ReadValue<T> {
    pub(super) value: T,
    pub(super) is_whole: bool,
}

/// Reads a value of a node.
pub(super) fn one<T: de::DeserializeOwned>(node: &Node) -> Result<T, Problem> {
    T::deserialize(Reader(node)).map_err(|fault| fault.problem(&node.mark))
}

/// Reads a value, tells everything that is wrong with it, and takes that out of the tree, so that more can be looked at.
///
/// `fields` are names that may stand at the root beside those that the value knows.
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

/// True if a field is missing because its value was wrong.
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

/// Takes out what a fault is about; whether nothing else can refer to it. None if it is the whole.
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
