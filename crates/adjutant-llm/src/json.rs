//! JSON of strangers: read like any, but an object that names a key twice is refused instead of keeping the last one.
//!
//! Stored data is read by serde_json itself: a log opens whatever its content.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{
    Deserializer, Map, Value,
    de::{Read, SliceRead, StrRead},
    map,
};

/// The largest number of bytes that are kept of a path.
const MAX_PATH: usize = 400;

/// The reason why a text is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Misread {
    /// An object names a key twice.
    #[error("a key appears twice in an object: {path}")]
    Twice {
        /// The place of the key, as a JSON pointer; everything beyond 400 bytes is cut.
        path: String,
    },
    /// The text is not JSON, or is nested deeper than 127 levels.
    #[error("{0}")]
    NotJson(serde_json::Error),
}

/// Reads a text that holds one JSON value in which no object names a key twice.
///
/// # Errors
/// The place of a duplicate key, or the reason why the text is not JSON.
///
/// # Example
/// ```
/// let read = adjutant_llm::json::from_str(r#"{"files": [{"path": "a.txt", "path": "b.txt"}]}"#);
/// assert_eq!(read.expect_err("a key appears twice").to_string(), "a key appears twice in an object: /files/0/path");
/// ```
pub fn from_str(text: &str) -> Result<Value, Misread> {
    read(Deserializer::new(StrRead::new(text)))
}

/// Reads bytes like [`from_str`].
///
/// # Errors
/// The place of a duplicate key, or the reason why the bytes are not JSON.
pub fn from_slice(bytes: &[u8]) -> Result<Value, Misread> {
    read(Deserializer::new(SliceRead::new(bytes)))
}

fn read<'de>(mut from: Deserializer<impl Read<'de>>) -> Result<Value, Misread> {
    let twice = Cell::new(None);
    let value = LocatedValue {
        place: None,
        twice: &twice,
    }
    .deserialize(&mut from);
    match (
        value.and_then(|value| from.end().map(|()| value)),
        twice.into_inner(),
    ) {
        (Ok(value), _) => Ok(value),
        (Err(_), Some(path)) => Err(Misread::Twice { path }),
        (Err(error), None) => Err(Misread::NotJson(error)),
    }
}

/// A value while it is read, and its place.
struct LocatedValue<'a> {
    place: Option<&'a JsonPath<'a>>,
    /// The place of a duplicate key, once it is known: an error of the parser cannot hold it.
    twice: &'a Cell<Option<String>>,
}

struct JsonPath<'a> {
    above: Option<&'a JsonPath<'a>>,
    at: At<'a>,
}

#[derive(Clone, Copy)]
enum At<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'de> DeserializeSeed<'de> for LocatedValue<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LocatedValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = JsonPath {
                above: self.place,
                at: At::Index(items.len()),
            };
            match list.next_element_seed(LocatedValue {
                place: Some(&place),
                twice: self.twice,
            })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let place = JsonPath {
                above: self.place,
                at: At::Key(&key),
            };
            let value = object.next_value_seed(LocatedValue {
                place: Some(&place),
                twice: self.twice,
            })?;
            match members.entry(key) {
                map::Entry::Vacant(free) => drop(free.insert(value)),
                map::Entry::Occupied(known) => {
                    let place = JsonPath {
                        above: self.place,
                        at: At::Key(known.key()),
                    };
                    self.twice.set(Some(place.pointer()));
                    return Err(A::Error::custom("a key appears twice"));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

impl JsonPath<'_> {
    fn pointer(&self) -> String {
        let steps: Vec<At<'_>> = std::iter::successors(Some(self), |place| place.above)
            .map(|place| place.at)
            .collect();
        let mut path = String::new();
        for step in steps.iter().rev() {
            path.push('/');
            match step {
                At::Key(key) => path.push_str(&key.replace('~', "~0").replace('/', "~1")),
                At::Index(index) => path.push_str(&index.to_string()),
            }
        }
        if path.len() > MAX_PATH {
            path.truncate(path.floor_char_boundary(MAX_PATH));
            path.push('…');
        }
        path
    }
}
