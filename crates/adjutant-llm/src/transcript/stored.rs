//! Deserializes entries of a log, and entries of a transcript with their places.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Map;

use super::Stored;
use crate::{
    EntryId, UserMessage,
    entry::{Custom, Entry, Summary, Turn},
    reading::{self, KnownKey, Name, Tagged},
};

impl<'de> Tagged<'de> for Entry {
    const TAG: &'static str = "entry";
    const VARIANTS: &'static [&'static str] = &["user", "turn", "summary", "custom"];

    fn read<D: Deserializer<'de>>(variant: &'static str, fields: D) -> Result<Self, D::Error> {
        match variant {
            "user" => UserMessage::deserialize(fields).map(Entry::User),
            "turn" => Turn::deserialize(fields).map(Entry::Turn),
            "summary" => Summary::deserialize(fields).map(Entry::Summary),
            _ => Custom::deserialize(fields).map(Entry::Custom),
        }
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        reading::read_tagged(deserializer)
    }
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StoredVisitor)
    }
}

struct StoredVisitor;

impl<'de> Visitor<'de> for StoredVisitor {
    type Value = Stored;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with its place")
    }

    /// In one pass if the place comes first, then the tag, as it is written.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Stored, A::Error> {
        let (mut id, mut tokens) = (None, None);
        loop {
            match map.next_key_seed(KnownKey(&["id", "tokens", Entry::TAG]))? {
                None => return Err(de::Error::missing_field(Entry::TAG)),
                Some(Ok("id")) => id = Some(map.next_value::<EntryId>()?),
                Some(Ok("tokens")) => tokens = Some(map.next_value::<u64>()?),
                Some(Ok(_)) => {
                    let (Some(id), Some(tokens)) = (id, tokens) else {
                        let before = Map::from_iter([(Entry::TAG.to_owned(), map.next_value()?)]);
                        return read_any_order(id, tokens, before, map);
                    };
                    let variant = map.next_value_seed(Name(Entry::VARIANTS))?;
                    let entry = Entry::read(variant, MapAccessDeserializer::new(map))?;
                    return Ok(Stored { id, tokens, entry });
                }
                Some(Err(other)) => {
                    let before = Map::from_iter([(other, map.next_value()?)]);
                    return read_any_order(id, tokens, before, map);
                }
            }
        }
    }
}

/// The fields in another order.
fn read_any_order<'de, A: MapAccess<'de>>(
    mut id: Option<EntryId>,
    mut tokens: Option<u64>,
    mut before: Map<String, serde_json::Value>,
    mut map: A,
) -> Result<Stored, A::Error> {
    while let Some(name) = map.next_key::<String>()? {
        match &*name {
            "id" => id = Some(map.next_value()?),
            "tokens" => tokens = Some(map.next_value()?),
            _ => {
                before.insert(name, map.next_value()?);
            }
        }
    }
    let id = id.ok_or_else(|| de::Error::missing_field("id"))?;
    let tokens = tokens.ok_or_else(|| de::Error::missing_field("tokens"))?;
    let entry =
        reading::read_tagged(serde_json::Value::Object(before)).map_err(de::Error::custom)?;
    Ok(Stored { id, tokens, entry })
}
