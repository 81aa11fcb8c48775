//! A file as a tree in which every value and key has a position.

use std::{path::PathBuf, sync::Arc};

use serde_json::Value as Json;

/// A file that nodes come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The file as it was named.
    pub(super) shown: Arc<str>,
    /// The base directory of its relative paths, without links.
    pub(super) folder: PathBuf,
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) source: Arc<Source>,
    /// From 1; 0 for the whole file.
    pub(super) line: u32,
    /// From 1, in characters.
    pub(super) column: u32,
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) mark: Mark,
    pub(super) content: Content,
}

/// The content of a node.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Map),
}

/// A text, a number, a Boolean or null: its form and the reader decide.
#[derive(Debug, Clone)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) form: Form,
}

/// The form in which a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Without quotes: a number, a Boolean, null or a text.
    Plain,
    /// In quotes: a text.
    Quoted,
    /// As a block of lines: a text.
    Block,
    /// Without quotes, with a variable: any type.
    Expanded,
    /// In quotes, with a variable: a text, unless a number or a Boolean is expected.
    Filled,
}

/// Values by their keys, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    pub(super) entries: Vec<(Key, Node)>,
    /// Keys whose values were removed because they are invalid.
    pub(super) spoiled: Vec<String>,
}

/// A key and its position.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) mark: Mark,
}

/// A position in a tree; if it does not exist, the nearest position above.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    node: Option<&'a Node>,
    pub(super) mark: &'a Mark,
}

impl Mark {
    /// Creates a mark for a whole file.
    pub(super) fn whole(source: &Arc<Source>) -> Self {
        Self {
            source: Arc::clone(source),
            line: 0,
            column: 0,
        }
    }
}

impl Map {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|(it, _)| it.text == key)
            .map(|(_, node)| node)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries
            .iter_mut()
            .find(|(it, _)| it.text == key)
            .map(|(_, node)| node)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<(Key, Node)> {
        let at = self.entries.iter().position(|(it, _)| it.text == key)?;
        Some(self.entries.remove(at))
    }

    /// Sets a value, replacing the one with that key or at the end.
    pub(super) fn set(&mut self, key: Key, node: Node) {
        match self.entries.iter_mut().find(|(it, _)| it.text == key.text) {
            Some(old) => *old = (key, node),
            None => self.entries.push((key, node)),
        }
    }
}

impl Node {
    pub(super) fn new(mark: &Mark, content: Content) -> Self {
        Self {
            mark: mark.clone(),
            content,
        }
    }

    /// Creates a quoted text.
    pub(super) fn text(mark: &Mark, text: impl Into<String>) -> Self {
        Self::new(
            mark,
            Content::Scalar(Scalar {
                text: text.into(),
                form: Form::Quoted,
            }),
        )
    }

    /// Converts a value from JSON.
    pub(super) fn from_json(mark: &Mark, value: &Json) -> Self {
        let plain = |text: String| {
            Content::Scalar(Scalar {
                text,
                form: Form::Plain,
            })
        };
        let content = match value {
            Json::String(text) => return Self::text(mark, text.as_str()),
            Json::Array(items) => Content::List(
                items
                    .iter()
                    .map(|item| Self::from_json(mark, item))
                    .collect(),
            ),
            Json::Object(map) => {
                let entry = |(key, value): (&String, &Json)| {
                    (Key::new(mark, key.as_str()), Self::from_json(mark, value))
                };
                Content::Map(Map {
                    entries: map.iter().map(entry).collect(),
                    spoiled: Vec::new(),
                })
            }
            Json::Null => plain("null".to_owned()),
            Json::Bool(_) | Json::Number(_) => plain(value.to_string()),
        };
        Self::new(mark, content)
    }

    pub(super) fn as_map(&self) -> Option<&Map> {
        if let Content::Map(map) = &self.content {
            Some(map)
        } else {
            None
        }
    }

    pub(super) fn as_map_mut(&mut self) -> Option<&mut Map> {
        if let Content::Map(map) = &mut self.content {
            Some(map)
        } else {
            None
        }
    }

    pub(super) fn as_list(&self) -> Option<&[Node]> {
        if let Content::List(items) = &self.content {
            Some(items)
        } else {
            None
        }
    }

    pub(super) fn as_list_mut(&mut self) -> Option<&mut Vec<Node>> {
        if let Content::List(items) = &mut self.content {
            Some(items)
        } else {
            None
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Content::Scalar(scalar) = &self.content {
            Some(&scalar.text)
        } else {
            None
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.is_null())
    }
}

impl Scalar {
    pub(super) fn is_null(&self) -> bool {
        self.form == Form::Plain
            && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Key {
    pub(super) fn new(mark: &Mark, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            mark: mark.clone(),
        }
    }
}

impl<'a> At<'a> {
    pub(super) fn root(node: &'a Node) -> Self {
        Self {
            node: Some(node),
            mark: &node.mark,
        }
    }

    /// Returns the position of the value of a key.
    pub(super) fn key(self, key: &str) -> Self {
        let found = self.node.and_then(|node| node.as_map()?.get(key));
        Self {
            node: found,
            mark: found.map_or(self.mark, |node| &node.mark),
        }
    }

    /// Returns the position of the key.
    pub(super) fn name_of(self, key: &str) -> &'a Mark {
        let map = self.node.and_then(Node::as_map);
        let found = map.and_then(|map| map.entries.iter().find(|(it, _)| it.text == key));
        found.map_or(self.mark, |(key, _)| &key.mark)
    }

    /// Returns the position of an element of a list.
    pub(super) fn item(self, at: usize) -> Self {
        let found = self.node.and_then(|node| node.as_list()?.get(at));
        Self {
            node: found,
            mark: found.map_or(self.mark, |node| &node.mark),
        }
    }

    pub(super) fn node(self) -> Option<&'a Node> {
        self.node
    }

    /// True if a value was removed because it is invalid, so that it is not missing.
    pub(super) fn is_spoiled(self, key: &str) -> bool {
        let map = self.node.and_then(Node::as_map);
        map.is_some_and(|map| map.spoiled.iter().any(|it| it == key))
    }
}
