//! Reads stored messages without a copy of their fields on the way.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

/// An enum with its tag among its fields.
pub(crate) trait Tagged<'de>: Sized {
    /// The field that holds the tag.
    const TAG: &'static str;
    /// The valid tags.
    const VARIANTS: &'static [&'static str];

    /// Reads the fields except the tag; `variant` is one of the variants.
    fn read<D: Deserializer<'de>>(variant: &'static str, fields: D) -> Result<Self, D::Error>;
}

/// Reads such an enum: in one pass if the tag comes first, as in all data written by this program.
pub(crate) fn read_tagged<'de, T: Tagged<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

/// Reads an enum from a map before its tag was found; `before` contains the fields so far.
pub(crate) fn late<'de, T: Tagged<'de>, A: MapAccess<'de>>(
    mut before: Map<String, Value>,
    mut map: A,
) -> Result<T, A::Error> {
    while let Some((name, value)) = map.next_entry()? {
        before.insert(name, value);
    }
    let tag = before
        .shift_remove(T::TAG)
        .ok_or_else(|| de::Error::missing_field(T::TAG))?;
    let variant = Name(T::VARIANTS)
        .deserialize(tag)
        .map_err(de::Error::custom)?;
    T::read(variant, Value::Object(before)).map_err(de::Error::custom)
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged<'de>> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the field {:?}", T::TAG)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        match map.next_key_seed(KnownKey(&[T::TAG]))? {
            None => Err(de::Error::missing_field(T::TAG)),
            Some(Ok(_)) => {
                let variant = map.next_value_seed(Name(T::VARIANTS))?;
                T::read(variant, MapAccessDeserializer::new(map))
            }
            Some(Err(other)) => {
                let before = Map::from_iter([(other, map.next_value()?)]);
                late(before, map)
            }
        }
    }
}

/// One of these names, or another one.
pub(crate) struct KnownKey(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = Result<&'static str, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KnownKey {
    type Value = Result<&'static str, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self
            .0
            .iter()
            .find(|name| **name == text)
            .copied()
            .ok_or_else(|| text.to_owned()))
    }
}

/// One of these names.
pub(crate) struct Name(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.0
            .iter()
            .find(|name| **name == text)
            .copied()
            .ok_or_else(|| E::unknown_variant(text, self.0))
    }
}

/// Reads a text that is shared: it is copied once.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    deserializer.deserialize_str(SharedStrVisitor)
}

/// The same, of a text that may be missing.
pub(crate) fn some_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<str>>, D::Error> {
    struct SharedText(Arc<str>);
    impl<'de> Deserialize<'de> for SharedText {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            text(deserializer).map(SharedText)
        }
    }
    Ok(Option::<SharedText>::deserialize(deserializer)?.map(|text| text.0))
}

struct SharedStrVisitor;

impl Visitor<'_> for SharedStrVisitor {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Block, Content, Edit, Entry, EntryId, Origin, Stored, UserMessage};

    #[track_caller]
    fn check<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        value: &T,
    ) {
        let json = serde_json::to_value(value).expect("it is JSON");
        assert_eq!(
            &serde_json::from_value::<T>(json.clone()).expect("the tag comes first"),
            value
        );
        let mut fields: Vec<_> = json
            .as_object()
            .expect("an object")
            .clone()
            .into_iter()
            .collect();
        fields.reverse();
        fields.insert(1, ("unknown".into(), json!([1, {"two": null}])));
        let turned = serde_json::Value::Object(fields.into_iter().collect()).to_string();
        assert_eq!(
            &serde_json::from_str::<T>(&turned).expect("the tag comes late"),
            value,
            "{turned}"
        );
    }

    #[test]
    fn tagged_values_read_back_when_their_tag_stands_anywhere() {
        let entry = Entry::User(UserMessage {
            origin: Origin::Reminder { by: "b".into() },
            ..UserMessage::text("a\n\u{1f980}")
        });
        check(&entry);
        check(&Edit::Replace {
            at: EntryId(3),
            with: entry.clone(),
        });
        check(&Stored {
            id: EntryId(7),
            tokens: 11,
            entry,
        });
        check(&Content::text("line\tone"));
        check(&Block::Opaque {
            issuer: "vendor".into(),
            value: json!({"type": "x", "n": [1, 2.5]}),
        });
    }

    #[test]
    fn tagged_values_are_refused_when_their_tag_is_missing_or_unknown() {
        let why = |json: &str| {
            serde_json::from_str::<Content>(json)
                .expect_err("no content")
                .to_string()
        };
        assert_eq!(
            why(r#"{"text":"a"}"#),
            "missing field `type` at line 1 column 12"
        );
        assert!(
            why(r#"{"type":"sound","text":"a"}"#)
                .starts_with("unknown variant `sound`, expected one of")
        );
        assert!(
            why(r#"{"text":"a","type":"sound"}"#)
                .starts_with("unknown variant `sound`, expected one of")
        );
        assert!(why("{}").starts_with("missing field `type`"));
        assert!(why("3").starts_with("invalid type: integer `3`, expected an object"));
    }
}
