//! Borrowed values inside a frame: texts without a copy, and lists of mostly one element without an allocation, which
//! requests are made of too.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A text that is borrowed unless it holds escapes. A field of type `Option<Cow<str>>` would always copy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A text where some servers send something else, which is then not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Loose<'a>(pub(crate) Option<Cow<'a, str>>);

/// A position in a list. Some servers write it as a text, or as `null`.
///
/// Source: ollama/ollama 7881, 2024-11, and chatanywhere/GPT_API_free 254, 2024-06: no index, or `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Index(pub(crate) Option<u64>);

/// A list of mostly one element, for which nothing is allocated.
#[derive(Debug)]
pub struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

/// An object of a frame that is read into a value which is there already.
///
/// A frame has few members and room for many; read by value, it would be moved at every level.
pub(crate) trait Fill<'de>: Default {
    /// Reads the value of a member.
    ///
    /// # Errors
    /// If it is not what the member holds.
    fn fill<A: MapAccess<'de>>(&mut self, member: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Reads an object into its place; returns whether an object was present and not `null`.
pub(crate) struct Place<'p, T>(pub(crate) &'p mut T);

/// Reads a JSON text into a value that is there already.
///
/// # Errors
/// If the text is not a JSON object, or a member has the wrong type.
pub(crate) fn fill<'de, T: Fill<'de>>(
    json: &'de str,
    into: &mut T,
) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    if !Place(into).deserialize(&mut reader)? {
        return Err(serde::de::Error::custom("there is no object"));
    }
    reader.end()
}

impl<'de, T: Fill<'de>> DeserializeSeed<'de> for Place<'_, T> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Fill<'de>> Visitor<'de> for Place<'_, T> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(Text(member)) = map.next_key()? {
            self.0.fill(&member, &mut map)?;
        }
        Ok(true)
    }
}

impl<'de, T: Fill<'de>> DeserializeSeed<'de> for Place<'_, Few<T>> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Fill<'de>> Visitor<'de> for Place<'_, Few<T>> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or null")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some(_) = seq.next_element_seed(Place(self.0.first.insert(T::default())))? else {
            self.0.first = None;
            return Ok(());
        };
        loop {
            let mut next = T::default();
            let Some(_) = seq.next_element_seed(Place(&mut next))? else {
                return Ok(());
            };
            self.0.more.push(next);
        }
    }
}

impl<T> Few<T> {
    /// Adds an element.
    pub fn push(&mut self, element: T) {
        match self.first {
            None => self.first = Some(element),
            Some(_) => self.more.push(element),
        }
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }

    /// The element, if there is just one.
    pub(crate) fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.more.is_empty())
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.more.last().or(self.first.as_ref())
    }

    /// The elements, in order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.more)
    }

    /// True if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<T: Serialize> Serialize for Few<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
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
        let mut few = Few {
            first: seq.next_element()?,
            more: Vec::new(),
        };
        while let Some(next) = seq.next_element()? {
            few.more.push(next);
        }
        Ok(few)
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IndexVisitor)
    }
}

struct IndexVisitor;

impl Visitor<'_> for IndexVisitor {
    type Value = Index;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position")
    }

    fn visit_u64<E>(self, index: u64) -> Result<Index, E> {
        Ok(Index(Some(index)))
    }

    fn visit_unit<E>(self) -> Result<Index, E> {
        Ok(Index(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Index, E> {
        Ok(Index(None))
    }

    fn visit_f64<E>(self, index: f64) -> Result<Index, E> {
        let is_whole = index >= 0.0 && index.fract() == 0.0 && index < f64::from(u32::MAX);
        Ok(Index(is_whole.then_some(index as u64)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Index, E> {
        Ok(Index(text.trim().parse().ok()))
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
        assert_eq!(
            (sample.loose, sample.few.into_iter().count()),
            (Loose(None), 0)
        );
        assert_eq!(read(r#"{"text":null,"few":[]}"#).text, None);
    }
}
