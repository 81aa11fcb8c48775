//! Parses a YAML file to a tree whose positions name the file.

use std::sync::Arc;

use adjutant_skills::yaml;

use super::{
    node::{Content, Form, Key, Map, Mark, Node, Scalar, Source},
    problem::Problem,
};

/// The limits of a manifest.
pub(super) const MANIFEST: yaml::Budget = yaml::Budget {
    nodes: 50_000,
    depth: 32,
    anchors: 128,
    aliases: 512,
};
/// The limits of the front matter of an agent.
pub(super) const AGENT: yaml::Budget = yaml::Budget {
    nodes: 2_000,
    depth: 8,
    anchors: 0,
    aliases: 0,
};

/// Parses a file with one document, a mapping; an empty file is an empty mapping.
///
/// # Errors
/// The first error only, because the rest cannot be parsed reliably after it.
pub(super) fn read(
    text: &str,
    source: &Arc<Source>,
    budget: yaml::Budget,
) -> Result<Node, Problem> {
    match yaml::read(text, budget) {
        Ok(node) => Ok(marked(node, source)),
        Err(wrong) => {
            let hint = wrong
                .merges
                .then(|| "`extends` takes over another manifest".to_owned());
            Err(Problem::new(&mark(wrong.at, source), wrong.message).hint(hint))
        }
    }
}

fn marked(node: yaml::Node, source: &Arc<Source>) -> Node {
    let content = match node.content {
        yaml::Content::Scalar(text, form) => {
            let form = match form {
                yaml::Form::Plain => Form::Plain,
                yaml::Form::Quoted => Form::Quoted,
                yaml::Form::Block => Form::Block,
            };
            Content::Scalar(Scalar { text, form })
        }
        yaml::Content::List(items) => {
            Content::List(items.into_iter().map(|item| marked(item, source)).collect())
        }
        yaml::Content::Map(entries) => {
            let entry = |(key, node): (yaml::Key, yaml::Node)| {
                (
                    Key {
                        text: key.text,
                        mark: mark(key.at, source),
                    },
                    marked(node, source),
                )
            };
            Content::Map(Map {
                entries: entries.into_iter().map(entry).collect(),
                spoiled: Vec::new(),
            })
        }
    };
    Node {
        mark: mark(node.at, source),
        content,
    }
}

fn mark(at: yaml::Position, source: &Arc<Source>) -> Mark {
    Mark {
        source: Arc::clone(source),
        line: at.line,
        column: at.column,
    }
}
