//! From the text of a YAML file to a tree, within budgets: what would grow beyond them is refused.

use std::{collections::HashMap, sync::Arc};

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use super::{
    node::{Content, Form, Key, Map, Mark, Node, Scalar, Source},
    problem::{Problem, quoted},
};

/// The limits on what a file may hold.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    /// The number of values and keys, those that anchors and aliases repeat included.
    nodes: usize,
    /// The depth to which values may stand in each other.
    depth: usize,
    anchors: usize,
    aliases: usize,
}

/// The limits of a manifest.
pub(super) const MANIFEST: Budget = Budget { nodes: 50_000, depth: 32, anchors: 128, aliases: 512 };
/// The limits of the front matter of an agent.
pub(super) const AGENT: Budget = Budget { nodes: 2_000, depth: 8, anchors: 0, aliases: 0 };

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    source: &'a Arc<Source>,
    budget: Budget,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    aliases: usize,
}

type SpannedEvent<'a> = (Event<'a>, Span);

/// Reads a file that holds one document, a mapping; an empty one is an empty mapping.
///
/// # Errors
/// The first thing that is wrong: after it, nothing can be trusted.
pub(super) fn read(text: &str, source: &Arc<Source>, budget: Budget) -> Result<Node, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { parser, source, budget, anchors: HashMap::new(), nodes: 0, aliases: 0 };
    let root = reader.document()?;
    match root {
        Some(node) if node.as_map().is_some() => Ok(node),
        Some(node) if !node.is_null() => Err(Problem::new(&node.mark, "expected a mapping: fields and their values")),
        _ => Ok(Node::new(&Mark { source: Arc::clone(source), line: 1, column: 1 }, Content::Map(Map::default()))),
    }
}

impl<'a> Reader<'a> {
    /// The one document, if there is any.
    fn document(&mut self) -> Result<Option<Node>, Problem> {
        let mut root = None;
        loop {
            let (event, span) = self.step()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(self.problem(span, "a file is one document: there is a second one"));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.node((event, span), 0)?),
            }
        }
    }

    fn step(&mut self) -> Result<SpannedEvent<'a>, Problem> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span)),
            Some(Err(error)) => {
                let marker = error.marker();
                let mark = self.mark(marker.line(), marker.col());
                Err(Problem::new(&mark, format!("this is no YAML: {}", error.info())))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, (event, span): SpannedEvent<'a>, depth: usize) -> Result<Node, Problem> {
        self.count(1, span)?;
        if depth > self.budget.depth {
            let message = format!("values stand in each other more than {} levels deep", self.budget.depth);
            return Err(self.problem(span, message));
        }
        let mark = self.place(span);
        let (anchor, tag, content) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let form = match style {
                    ScalarStyle::Plain => Form::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Form::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Form::Block,
                };
                (anchor, tag, Content::Scalar(Scalar { text: text.into_owned(), form }))
            }
            Event::SequenceStart(_, anchor, tag) => (anchor, tag, self.list(depth)?),
            Event::MappingStart(_, anchor, tag) => (anchor, tag, self.map(depth)?),
            Event::Alias(id) => return self.repeat(id, span),
            _ => return Err(self.problem(span, "a value is expected here")),
        };
        if let Some(tag) = tag {
            return Err(self.problem(span, format!("tags are not used here: {}", quoted(&tag.original()))));
        }
        let node = Node { mark, content };
        if anchor > 0 {
            if self.anchors.len() >= self.budget.anchors {
                return Err(self.problem(span, format!("there are more than {} anchors", self.budget.anchors)));
            }
            self.count(size(&node), span)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Content, Problem> {
        let mut items = Vec::new();
        loop {
            match self.step()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                step => items.push(self.node(step, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Content, Problem> {
        let (mut map, mut lines) = (Map::default(), HashMap::new());
        loop {
            let (event, span) = self.step()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Content::Map(map));
            }
            let key = self.key(event, span)?;
            if let Some(line) = lines.insert(key.text.clone(), key.mark.line) {
                let message = format!("`{}` stands here twice: first in line {line}", key.text);
                return Err(Problem::new(&key.mark, message));
            }
            let value = self.step()?;
            let node = self.node(value, depth + 1)?;
            map.entries.push((key, node));
        }
    }

    fn key(&mut self, event: Event<'a>, span: Span) -> Result<Key, Problem> {
        self.count(1, span)?;
        match event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<" => {
                let hint = "`extends` takes over another manifest".to_owned();
                Err(self.problem(span, "merge keys are not used here").hint(hint))
            }
            Event::Scalar(text, _, _, None) => Ok(Key { text: text.into_owned(), mark: self.place(span) }),
            _ => Err(self.problem(span, "a key is a plain word or a quoted text")),
        }
    }

    /// A value that was named before.
    fn repeat(&mut self, id: usize, span: Span) -> Result<Node, Problem> {
        self.aliases += 1;
        if self.aliases > self.budget.aliases {
            return Err(self.problem(span, format!("there are more than {} aliases", self.budget.aliases)));
        }
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(self.problem(span, "an alias cannot stand for the value that it is in"));
        };
        self.count(size(&node), span)?;
        Ok(node)
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), Problem> {
        self.nodes += more;
        let most = self.budget.nodes;
        if self.nodes <= most {
            return Ok(());
        }
        let message = format!("there are more than {most} values, those that anchors and aliases repeat included");
        Err(self.problem(span, message))
    }

    fn problem(&self, span: Span, message: impl Into<String>) -> Problem {
        Problem::new(&self.place(span), message)
    }

    fn place(&self, span: Span) -> Mark {
        self.mark(span.start.line(), span.start.col())
    }

    fn mark(&self, line: usize, column: usize) -> Mark {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Mark { source: Arc::clone(self.source), line: number(line).max(1), column: number(column).saturating_add(1) }
    }
}

/// Returns the number of values and keys that a node has; aliases stand only for what is in the budget already. A long
/// text counts for more than one, because each alias copies it.
fn size(node: &Node) -> usize {
    match &node.content {
        Content::Scalar(scalar) => 1 + scalar.text.len() / 64,
        Content::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Content::Map(map) => 1 + map.entries.iter().map(|(_, node)| 1 + size(node)).sum::<usize>(),
    }
}
