//! Borrowed values inside a frame: texts without a copy, and lists of mostly one element without an allocation.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A text that is borrowed unless it holds escapes. A field of type `Option<Cow<str>>` would always copy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A text where some servers send something else, which is then not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Loose<'a>(pub(crate) Option<Cow<'a, str>>);

/// A list of mostly one element.
#[derive(Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or null")
    }

    fn visit_unit<E>(self) -> Result<Few<T>, E> {
        Ok(Few::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Few<T>, A::Error> {
        let mut few = Few { first: seq.next_element()?, more: Vec::new() };
        while let Some(next) = seq.next_element()? {
            few.more.push(next);
        }
        Ok(few)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or anything that is ignored")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Loose<'de>, E> {
        Ok(Loose(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose<'de>, E> {
        Ok(Loose(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Loose<'de>, E> {
        Ok(Loose(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose<'de>, E> {
        Ok(Loose(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Loose<'de>, E> {
        Ok(Loose(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Loose<'de>, E> {
        Ok(Loose(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Loose<'de>, E> {
        Ok(Loose(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Sample<'a> {
        #[serde(borrow, default)]
        text: Option<Text<'a>>,
        #[serde(borrow, default)]
        loose: Loose<'a>,
        #[serde(default)]
        few: Few<u8>,
    }

    #[test]
    fn text_is_borrowed_when_it_holds_no_escape() {
        let read = |json| serde_json::from_str::<Sample<'static>>(json).expect("JSON");
        let sample = read(r#"{"text":"plain","loose":"é","few":[1,2,3]}"#);
        assert!(matches!(sample.text, Some(Text(Cow::Borrowed("plain")))));
        assert_eq!(sample.loose, Loose(Some(Cow::Borrowed("é"))));
        assert_eq!(sample.few.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
        let sample = read(r#"{"text":"a\nb","loose":{"x":[1]},"few":null}"#);
        assert_eq!(sample.text, Some(Text(Cow::Owned("a\nb".to_owned()))));
        assert_eq!((sample.loose, sample.few.into_iter().count()), (Loose(None), 0));
        assert_eq!(read(r#"{"text":null,"few":[]}"#).text, None);
    }
}
