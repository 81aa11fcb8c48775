//! YAML with small budgets, as fields with places. Scalars keep their spelling: a version of 1.0 is not 1.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// The greatest depth to which front matter may be nested.
const MAX_DEPTH: usize = 8;
/// The largest number of values that front matter may have, repeated ones counted again.
const MAX_NODES: usize = 2_000;
/// The largest number of anchors that it may have, and of places that repeat one.
const MAX_ANCHORS: usize = 16;
/// The largest number of bytes that all values may have, repeated ones counted again.
const MAX_SCALAR_BYTES: usize = 64 << 10;
/// The largest number of characters of a parser's message that are told.
const MAX_SAID: usize = 300;

/// A value, as far as front matter needs to tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<Field>),
}

/// A field of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) value: Node,
    /// The place of the value, in lines and columns of the file, counted from 1.
    pub(crate) at: (u64, u64),
    /// The place of the key.
    pub(crate) key_at: (u64, u64),
}

/// The reason why it is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) at: (u64, u64),
    pub(crate) message: String,
}

/// The fields of front matter, which begins in the second line of its file.
pub(crate) fn read(yaml: &str) -> Result<Vec<Field>, Wrong> {
    // So that places are those of the file.
    let yaml = format!("\n{yaml}");
    let parser = Parser::new_from_str(&yaml);
    let mut reader = Reader { parser, anchors: HashMap::new(), aliases: 0, nodes: 0, bytes: 0 };
    let (mut root, mut documents) = (None, 0);
    loop {
        let (event, span) = reader.step()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(..) if documents > 0 => return Err(wrong(span, "there is a second document")),
            Event::DocumentStart(..) => documents += 1,
            Event::StreamStart | Event::DocumentEnd => {}
            event => root = Some((reader.node(event, span, 1)?, place(span))),
        }
    }
    match root {
        Some((Node::Map(fields), _)) => Ok(fields),
        // There is nothing, or there are comments alone.
        None | Some((Node::Null, _)) => Ok(Vec::new()),
        Some((_, at)) => Err(Wrong { at, message: "the front matter is no mapping of fields".into() }),
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Values that may be repeated, each with how many values and bytes it has.
    anchors: HashMap<usize, (Node, usize, usize)>,
    aliases: usize,
    nodes: usize,
    bytes: usize,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> Result<(Event<'a>, Span), Wrong> {
        match self.parser.next_event() {
            Some(Ok(step)) => Ok(step),
            Some(Err(error)) => Err(wrong(Span::empty(*error.marker()), &error.info())),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Wrong> {
        if depth > MAX_DEPTH {
            return Err(wrong(span, &format!("values stand in each other more than {MAX_DEPTH} levels deep")));
        }
        let (nodes, bytes) = (self.nodes, self.bytes);
        let (anchor, tag, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, text.len(), span)?;
                let is_bare = style == ScalarStyle::Plain && tag.is_none();
                let is_null = is_bare && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                (anchor, tag, if is_null { Node::Null } else { Node::Text(text.into_owned()) })
            }
            Event::SequenceStart(_, anchor, tag) => (anchor, tag, self.list(span, depth)?),
            Event::MappingStart(_, anchor, tag) => (anchor, tag, self.map(span, depth)?),
            Event::Alias(id) => return self.repeat(id, span),
            _ => return Err(wrong(span, "a value is expected here")),
        };
        if tag.is_some_and(|tag| tag.suffix() == "binary") {
            return Err(wrong(span, "binary values do not belong into front matter"));
        }
        if anchor > 0 {
            if self.anchors.len() >= MAX_ANCHORS {
                return Err(wrong(span, &format!("there are more than {MAX_ANCHORS} anchors")));
            }
            self.anchors.insert(anchor, (node.clone(), self.nodes - nodes, self.bytes - bytes));
        }
        Ok(node)
    }

    fn list(&mut self, span: Span, depth: usize) -> Result<Node, Wrong> {
        self.count(1, 0, span)?;
        let mut items = Vec::new();
        loop {
            match self.step()? {
                (Event::SequenceEnd, _) => return Ok(Node::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, span: Span, depth: usize) -> Result<Node, Wrong> {
        self.count(1, 0, span)?;
        let mut fields: Vec<Field> = Vec::new();
        loop {
            let (key, key_at) = match self.step()? {
                (Event::MappingEnd, _) => return Ok(Node::Map(fields)),
                (Event::Scalar(key, style, ..), span) if !(key == "<<" && style == ScalarStyle::Plain) => (key, span),
                (Event::Scalar(..), span) => return Err(wrong(span, "merge keys are not used in front matter")),
                (_, span) => return Err(wrong(span, "a key is a plain word or a quoted text")),
            };
            self.count(1, key.len(), key_at)?;
            if fields.iter().any(|field| field.key == key) {
                return Err(wrong(key_at, &format!("duplicate key: {key}")));
            }
            let (event, span) = self.step()?;
            let value = self.node(event, span, depth + 1)?;
            fields.push(Field { key: key.into_owned(), value, at: place(span), key_at: place(key_at) });
        }
    }

    /// A value that was named before.
    fn repeat(&mut self, id: usize, span: Span) -> Result<Node, Wrong> {
        self.aliases += 1;
        if self.aliases > MAX_ANCHORS {
            return Err(wrong(span, &format!("there are more than {MAX_ANCHORS} aliases")));
        }
        let Some((node, nodes, bytes)) = self.anchors.get(&id).cloned() else {
            return Err(wrong(span, "an alias cannot stand for the value that it is in"));
        };
        self.count(nodes, bytes, span)?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize, bytes: usize, span: Span) -> Result<(), Wrong> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes <= MAX_NODES && self.bytes <= MAX_SCALAR_BYTES {
            return Ok(());
        }
        Err(wrong(span, &format!("there are more than {MAX_NODES} values, or {MAX_SCALAR_BYTES} bytes of them")))
    }
}

fn place(span: Span) -> (u64, u64) {
    (span.start.line() as u64, span.start.col() as u64 + 1)
}

fn wrong(span: Span, said: &str) -> Wrong {
    let said: String = said.chars().filter(|c| !c.is_control()).take(MAX_SAID).collect();
    Wrong { at: place(span), message: format!("the front matter is not YAML: {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Node {
        Node::Text(value.into())
    }

    #[test]
    fn read_keeps_the_spelling_when_values_are_no_texts() {
        let fields = read("a: 1.0\nb: yes\nc: 007\nd: \"x\"\ne: ~\nf: .nan\ng: 0x1F # note\n").expect("it is YAML");
        let values: Vec<Node> = fields.into_iter().map(|field| field.value).collect();
        let expect = [text("1.0"), text("yes"), text("007"), text("x"), Node::Null, text(".nan"), text("0x1F")];
        assert_eq!(values, expect);
    }

    #[test]
    fn read_tells_where_values_stand() {
        let fields = read("a: 1\nmap:\n  key: v\nlist: [x, 2]\n").expect("it is YAML");
        assert_eq!(fields.iter().map(|field| (field.at, field.key_at)).collect::<Vec<_>>()[0], ((2, 4), (2, 1)));
        let Node::Map(inner) = &fields[1].value else { panic!("{fields:?}") };
        assert_eq!((inner[0].key.as_str(), inner[0].at), ("key", (4, 8)));
        assert_eq!(fields[2].value, Node::List(vec![text("x"), text("2")]));
    }

    #[track_caller]
    fn refused(yaml: &str, at: (u64, u64), part: &str) {
        let wrong = read(yaml).expect_err("it is refused");
        assert!(wrong.message.contains(part) && wrong.at == at, "{wrong:?}");
    }

    #[test]
    fn read_refuses_when_it_is_no_plain_mapping() {
        refused("- a\n", (2, 1), "no mapping");
        refused("a: [1\n", (2, 4), "not YAML: unclosed bracket '['");
        refused("a: 1\nb: 2\na: 3\n", (4, 1), "duplicate");
        refused("a: b: c\n", (2, 5), "not YAML");
        refused("a:\n\tb: c\n", (3, 2), "not YAML");
    }
}
