//! YAML with small budgets, as fields with places. Scalars keep their spelling: a version of 1.0 is not 1.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DuplicateKeyPolicy, Location, MergeKeyPolicy, NonFiniteFloatPolicy, Options, Spanned};

/// How deep front matter may be nested.
const MAX_DEPTH: usize = 8;
/// How many values front matter may have.
const MAX_NODES: usize = 2_000;
/// How many anchors it may have, and how many places that repeat one.
const MAX_ANCHORS: usize = 16;
/// How many bytes all values may have, repeated ones counted again.
const MAX_SCALAR_BYTES: usize = 64 << 10;
/// How many characters of what the parser says are told.
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
    /// Where the value stands, in lines and columns of the file, counted from 1; 0 if that is not known.
    pub(crate) at: (u64, u64),
    /// Where the key stands.
    pub(crate) key_at: (u64, u64),
}

/// Why it is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) at: (u64, u64),
    pub(crate) message: String,
}

/// The fields of front matter, which begins in the second line of its file.
pub(crate) fn read(yaml: &str) -> Result<Vec<Field>, Wrong> {
    if yaml.trim().is_empty() {
        return Ok(Vec::new());
    }
    // So that places, and what the parser says of places, are those of the file.
    let yaml = &format!("\n{yaml}");
    let raw = serde_saphyr::from_str_with_options::<Spanned<Raw>>(yaml, options()).map_err(|error| wrong(&error))?;
    match raw.value {
        Raw::Map(fields) => fields.into_iter().map(|field| field_of(yaml, field)).collect(),
        // Comments alone.
        Raw::Null => Ok(Vec::new()),
        _ => Err(Wrong { at: place(raw.referenced), message: "the front matter is no mapping of fields".into() }),
    }
}

fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        flow_nesting_limit: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_events: 4 * MAX_NODES,
        max_anchors: MAX_ANCHORS,
        max_aliases: MAX_ANCHORS,
        max_recorded_anchor_events: MAX_NODES,
        max_recorded_anchor_bytes: MAX_SCALAR_BYTES,
        max_total_scalar_bytes: MAX_SCALAR_BYTES,
        max_documents: 1,
        max_merge_keys: 0,
        max_inclusion_depth: 0,
    };
    let aliases = serde_saphyr::alias_limits! {
        max_total_replayed_events: MAX_NODES,
        max_replay_stack_depth: MAX_DEPTH,
        max_alias_expansions_per_anchor: MAX_ANCHORS,
    };
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        alias_limits: aliases,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

/// A value as it was read; of one that is no text, the text of the file is the spelling.
enum Raw {
    Null,
    Text(String),
    /// A number or a truth value, and how it would be written.
    Plain(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn field_of(yaml: &str, (key, value): (Spanned<String>, Spanned<Raw>)) -> Result<Field, Wrong> {
    let (at, key_at) = (place(value.referenced), place(key.referenced));
    Ok(Field { key: key.value, value: node_of(yaml, value)?, at, key_at })
}

fn node_of(yaml: &str, raw: Spanned<Raw>) -> Result<Node, Wrong> {
    Ok(match raw.value {
        Raw::Null => Node::Null,
        Raw::Text(text) => Node::Text(text),
        Raw::Plain(shown) => Node::Text(spelling(yaml, raw.defined).unwrap_or(shown)),
        Raw::List(items) => Node::List(items.into_iter().map(|item| node_of(yaml, item)).collect::<Result<_, _>>()?),
        Raw::Map(fields) => Node::Map(fields.into_iter().map(|field| field_of(yaml, field)).collect::<Result<_, _>>()?),
    })
}

fn spelling(yaml: &str, at: Location) -> Option<String> {
    let span = at.span();
    let begin = usize::try_from(span.byte_offset()?).ok()?;
    let end = begin.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
    yaml.get(begin..end).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn place(at: Location) -> (u64, u64) {
    (at.line(), at.column())
}

fn wrong(error: &serde_saphyr::Error) -> Wrong {
    let said = error.without_snippet().to_string();
    let at = error.location().map_or((0, 0), place);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = said.trim_end_matches(&format!(" at line {}, column {}", at.0, at.1));
    let said: String = said.chars().filter(|c| !c.is_control()).take(MAX_SAID).collect();
    Wrong { at, message: format!("the front matter is not YAML: {said}") }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Raw, E> {
        Err(E::custom("binary values do not belong into front matter"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
            if list.len() > MAX_NODES {
                return Err(A::Error::custom("the list is too long"));
            }
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            fields.push(entry);
            if fields.len() > MAX_NODES {
                return Err(A::Error::custom("the mapping is too long"));
            }
        }
        Ok(Raw::Map(fields))
    }
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
