//! The deserializer over nodes.

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Unexpected, Visitor};

use super::{
    fault::{PathStep, ReadFault},
    plain::{Plain, plain},
};
use crate::manifest::{
    near,
    node::{Content, Form, Key, Map, Node, Scalar},
};

/// The deserializer of one node.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a Node);

impl<'a> Reader<'a> {
    fn scalar<'de, V: Visitor<'de>>(scalar: &Scalar, visitor: V) -> Result<V::Value, ReadFault> {
        let text = &scalar.text;
        let found = match scalar.form {
            Form::Plain => plain(text),
            Form::Expanded if !text.is_empty() => match plain(text) {
                Plain::Null => Plain::Text,
                other => other,
            },
            _ => Plain::Text,
        };
        match found {
            Plain::Null => visitor.visit_unit(),
            Plain::Bool(it) => visitor.visit_bool(it),
            Plain::Unsigned(it) => visitor.visit_u64(it),
            Plain::Signed(it) => visitor.visit_i64(it),
            Plain::Float(it) => visitor.visit_f64(it),
            Plain::Excess => Err(ReadFault::new(format!("no number can be {text}"))),
            Plain::Text => visitor.visit_str(text),
        }
    }

    fn any<'de, V: Visitor<'de>>(self, visitor: V, nulls: Nulls) -> Result<V::Value, ReadFault> {
        let Node { mark, content } = self.0;
        let found = match content {
            Content::Scalar(scalar) => Self::scalar(scalar, visitor),
            // Positional lists of field values are not supported.
            Content::List(_) if nulls == Nulls::Absent => {
                Err(de::Error::invalid_type(Unexpected::Seq, &visitor))
            }
            Content::List(items) => visitor.visit_seq(Items { items, at: 0 }),
            Content::Map(map) => visitor.visit_map(Entries { map, at: 0, nulls }),
        };
        found.map_err(|fault| fault.at(mark))
    }

    /// Reads a text; a scalar that has another type without quotes is refused with a hint.
    fn string<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        let Content::Scalar(scalar) = &self.0.content else {
            return self.any(visitor, Nulls::Kept);
        };
        let text = &scalar.text;
        let is_text =
            scalar.form != Form::Plain || matches!(plain(text), Plain::Text | Plain::Excess);
        let found = if is_text {
            visitor.visit_str(text)
        } else if scalar.is_null() {
            Err(ReadFault::new("expected a text, found nothing"))
        } else {
            Err(ReadFault::new(format!("expected a text, found {text}"))
                .hint(format!("put it in quotes: \"{text}\"")))
        };
        found.map_err(|fault| fault.at(&self.0.mark))
    }
}

/// The meaning of a field without a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// The same as a missing field.
    Absent,
    Kept,
}

macro_rules! forward_values {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
            match &self.0.content {
                Content::Scalar(scalar) if scalar.form == Form::Filled => {
                    let scalar = Scalar { form: Form::Expanded, ..scalar.clone() };
                    Self::scalar(&scalar, visitor).map_err(|fault| fault.at(&self.0.mark))
                }
                _ => self.any(visitor, Nulls::Kept),
            }
        }
    )*};
}

macro_rules! forward {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
            self.any(visitor, Nulls::Kept)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ReadFault;

    forward_values! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }

    forward! {
        deserialize_any deserialize_unit deserialize_bytes deserialize_byte_buf deserialize_seq deserialize_map
        deserialize_ignored_any
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        self.string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        self.string(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        self.string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        self.string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        self.any(visitor, Nulls::Absent)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        let mark = &self.0.mark;
        let found = match self.0.as_text() {
            Some(text) if !self.0.is_null() => visitor.visit_enum(text.into_deserializer()),
            _ => Err(ReadFault::new(format!(
                "expected one of {}",
                near::list(known)
            ))),
        };
        found.map_err(|fault: ReadFault| fault.at(mark))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        self.any(visitor, Nulls::Kept)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        self.any(visitor, Nulls::Kept)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        self.any(visitor, Nulls::Kept)
    }
}

impl<'de> IntoDeserializer<'de, ReadFault> for Reader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

struct Items<'a> {
    items: &'a [Node],
    at: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = ReadFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadFault> {
        let Some(node) = self.items.get(self.at) else {
            return Ok(None);
        };
        let step = PathStep::Item(self.at);
        self.at += 1;
        seed.deserialize(Reader(node))
            .map(Some)
            .map_err(|fault| fault.at(&node.mark).below(step))
    }
}

struct Entries<'a> {
    map: &'a Map,
    at: usize,
    nulls: Nulls,
}

impl<'a> Entries<'a> {
    fn entry(&self) -> Option<&'a (Key, Node)> {
        self.map.entries.get(self.at)
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = ReadFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadFault> {
        while self.nulls == Nulls::Absent && self.entry().is_some_and(|(_, node)| node.is_null()) {
            self.at += 1;
        }
        let Some((key, _)) = self.entry() else {
            return Ok(None);
        };
        let text = key.text.as_str().into_deserializer();
        seed.deserialize(text)
            .map(Some)
            .map_err(|fault: ReadFault| fault.at(&key.mark).below(PathStep::Key(self.at)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadFault> {
        let Some((_, node)) = self.entry() else {
            return Err(ReadFault::new("a value is missing"));
        };
        let step = PathStep::Key(self.at);
        self.at += 1;
        seed.deserialize(Reader(node))
            .map_err(|fault| fault.at(&node.mark).below(step))
    }
}
