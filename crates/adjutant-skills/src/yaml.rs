//! YAML as a tree with positions of values and keys, read within budgets: documents beyond them are refused. Scalars
//! keep their spelling: a version of 1.0 is not 1.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// The limits for a file.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The number of values and keys, including the ones that anchors and aliases repeat.
    pub nodes: usize,
    /// The depth to which values may stand in each other.
    pub depth: usize,
    /// The number of anchors.
    pub anchors: usize,
    /// The number of aliases.
    pub aliases: usize,
}

/// A place in a file: line and column in characters, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its position.
    pub at: Position,
    /// The value.
    pub content: Content,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text, a number, a Boolean or null: its form and the reader decide.
    Scalar(String, Form),
    /// Values in order.
    List(Vec<Node>),
    /// Values by key, in the order of the file, without duplicates.
    Map(Vec<(Key, Node)>),
}

/// The form in which a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Without quotes: it may be a number, a truth value or nothing.
    Plain,
    /// In quotes: a text.
    Quoted,
    /// As a block of lines: a text.
    Block,
}

/// A key and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its position.
    pub at: Position,
    /// The key.
    pub text: String,
}

/// The first thing that is wrong in a file: after it, nothing can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Wrong {
    /// Its position.
    pub at: Position,
    /// The error.
    pub message: String,
    /// True if it is a merge key, `<<`.
    pub merges: bool,
}

/// The start of a file.
pub const START: Position = Position { line: 1, column: 1 };

/// The largest number of characters of a tag in a message.
const MAX_TAG: usize = 60;

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    budget: Budget,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    aliases: usize,
}

/// Reads a file that holds one document, a mapping; an empty one is an empty mapping.
///
/// # Errors
/// Invalid YAML, a tag, a merge key, a duplicate key, a second document, a value that is not a mapping, or content
/// beyond the budget.
pub fn read(text: &str, budget: Budget) -> Result<Node, Wrong> {
    let parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reader = Reader {
        parser,
        budget,
        anchors: HashMap::new(),
        nodes: 0,
        aliases: 0,
    };
    match reader.document()? {
        Some(node) if matches!(node.content, Content::Map(_)) => Ok(node),
        Some(node) if !node.is_null() => Err(wrong(
            node.at,
            "expected a mapping: fields and their values",
        )),
        _ => Ok(Node {
            at: START,
            content: Content::Map(Vec::new()),
        }),
    }
}

impl Node {
    /// True if it is nothing: a plain `null` or `~`, or no text at all.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(text, Form::Plain) if is_null(text))
    }
}

/// True if a plain scalar of this text is nothing.
pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

impl<'a> Reader<'a> {
    /// The one document, if there is any.
    fn document(&mut self) -> Result<Option<Node>, Wrong> {
        let mut root = None;
        loop {
            let (event, at) = self.step()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(wrong(at, "a file is one document: there is a second one"));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.node((event, at), 0)?),
            }
        }
    }

    fn step(&mut self) -> Result<(Event<'a>, Position), Wrong> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, position(&span))),
            Some(Err(error)) => Err(wrong(
                position(&Span::empty(*error.marker())),
                format!("this is no YAML: {}", error.info()),
            )),
            None => Ok((Event::StreamEnd, START)),
        }
    }

    fn node(&mut self, (event, at): (Event<'a>, Position), depth: usize) -> Result<Node, Wrong> {
        self.count(1, at)?;
        if depth > self.budget.depth {
            let message = format!(
                "values stand in each other more than {} levels deep",
                self.budget.depth
            );
            return Err(wrong(at, message));
        }
        let (anchor, tag, content) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let form = match style {
                    ScalarStyle::Plain => Form::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Form::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Form::Block,
                };
                (anchor, tag, Content::Scalar(text.into_owned(), form))
            }
            Event::SequenceStart(_, anchor, tag) => (anchor, tag, self.list(depth)?),
            Event::MappingStart(_, anchor, tag) => (anchor, tag, self.map(depth)?),
            Event::Alias(id) => return self.repeat(id, at),
            _ => return Err(wrong(at, "a value is expected here")),
        };
        if let Some(tag) = tag {
            let tag: String = tag.original().chars().take(MAX_TAG).collect();
            return Err(wrong(at, format!("tags are not used here: {tag:?}")));
        }
        let node = Node { at, content };
        if anchor > 0 {
            if self.anchors.len() >= self.budget.anchors {
                return Err(wrong(
                    at,
                    format!("there are more than {} anchors", self.budget.anchors),
                ));
            }
            self.count(size(&node), at)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Content, Wrong> {
        let mut items = Vec::new();
        loop {
            match self.step()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                step => items.push(self.node(step, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Content, Wrong> {
        let (mut map, mut lines) = (Vec::new(), HashMap::new());
        loop {
            let (event, at) = self.step()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Content::Map(map));
            }
            let key = self.key(event, at)?;
            if let Some(line) = lines.insert(key.text.clone(), key.at.line) {
                return Err(wrong(
                    key.at,
                    format!("`{}` stands here twice: first in line {line}", key.text),
                ));
            }
            let value = self.step()?;
            map.push((key, self.node(value, depth + 1)?));
        }
    }

    fn key(&mut self, event: Event<'a>, at: Position) -> Result<Key, Wrong> {
        self.count(1, at)?;
        match event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<" => Err(Wrong {
                merges: true,
                ..wrong(at, "merge keys are not used here")
            }),
            Event::Scalar(text, _, _, None) => Ok(Key {
                text: text.into_owned(),
                at,
            }),
            _ => Err(wrong(at, "a key is a plain word or a quoted text")),
        }
    }

    /// A value that was named before.
    fn repeat(&mut self, id: usize, at: Position) -> Result<Node, Wrong> {
        self.aliases += 1;
        if self.aliases > self.budget.aliases {
            return Err(wrong(
                at,
                format!("there are more than {} aliases", self.budget.aliases),
            ));
        }
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(wrong(
                at,
                "an alias cannot stand for the value that it is in",
            ));
        };
        self.count(size(&node), at)?;
        Ok(node)
    }

    fn count(&mut self, more: usize, at: Position) -> Result<(), Wrong> {
        self.nodes += more;
        let most = self.budget.nodes;
        if self.nodes <= most {
            return Ok(());
        }
        let message = format!(
            "there are more than {most} values, those that anchors and aliases repeat included"
        );
        Err(wrong(at, message))
    }
}

/// Returns the number of values and keys of a node; aliases only refer to nodes that are already counted. A long text
/// counts more than once, because each alias copies it.
fn size(node: &Node) -> usize {
    match &node.content {
        Content::Scalar(text, _) => 1 + text.len() / 64,
        Content::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Content::Map(map) => 1 + map.iter().map(|(_, node)| 1 + size(node)).sum::<usize>(),
    }
}

fn position(span: &Span) -> Position {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Position {
        line: number(span.start.line()).max(1),
        column: number(span.start.col()).saturating_add(1),
    }
}

fn wrong(at: Position, message: impl Into<String>) -> Wrong {
    Wrong {
        at,
        message: message.into(),
        merges: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        nodes: 100,
        depth: 8,
        anchors: 1,
        aliases: 1,
    };

    fn fields(yaml: &str) -> Vec<(Key, Node)> {
        match read(yaml, BUDGET).expect("it is YAML").content {
            Content::Map(fields) => fields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn read_keeps_the_spelling_when_values_are_no_texts() {
        let fields = fields("a: 1.0\nb: yes\nc: 007\nd: \"x\"\ne: ~\nf: .nan\ng: 0x1F # note\n");
        let plain = |text: &str| Content::Scalar(text.into(), Form::Plain);
        let quoted = Content::Scalar("x".into(), Form::Quoted);
        let expect = [
            plain("1.0"),
            plain("yes"),
            plain("007"),
            quoted,
            plain("~"),
            plain(".nan"),
            plain("0x1F"),
        ];
        assert!(
            fields.iter().map(|(_, node)| &node.content).eq(&expect),
            "{fields:?}"
        );
        assert!(
            fields
                .iter()
                .map(|(_, node)| node.is_null())
                .eq([false, false, false, false, true, false, false])
        );
    }

    #[test]
    fn read_tells_where_values_stand() {
        let fields = fields("a: 1\nmap:\n  key: v\n");
        let place = |at: Position| (at.line, at.column);
        assert_eq!(
            (place(fields[0].1.at), place(fields[0].0.at)),
            ((1, 4), (1, 1))
        );
        let Content::Map(inner) = &fields[1].1.content else {
            panic!("{fields:?}")
        };
        assert_eq!(
            (inner[0].0.text.as_str(), place(inner[0].1.at)),
            ("key", (3, 8))
        );
    }

    #[test]
    fn read_refuses_when_it_is_no_plain_mapping() {
        let cases = [
            ("- a\n", (1, 1), "expected a mapping"),
            ("a: [1\n", (1, 4), "unclosed bracket '['"),
            (
                "a: 1\nb: 2\na: 3\n",
                (3, 1),
                "stands here twice: first in line 1",
            ),
            ("a: b: c\n", (1, 5), "no YAML"),
            ("a:\n\tb: c\n", (2, 2), "no YAML"),
            ("a: !!str b\n", (1, 10), "tags are not used here"),
            ("a: &a b\nc: &c d\n", (2, 7), "more than 1 anchors"),
            ("a: &a b\nc: *a\nd: *a\n", (3, 4), "more than 1 aliases"),
        ];
        for (yaml, at, part) in cases {
            let wrong = read(yaml, BUDGET).expect_err("it is refused");
            assert!(
                wrong.message.contains(part) && (wrong.at.line, wrong.at.column) == at,
                "{yaml:?}: {wrong:?}"
            );
        }
    }
}
