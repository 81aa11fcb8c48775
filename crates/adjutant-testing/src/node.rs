//! A place in a JSON body, and what must stand there.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// A place in a JSON body; the path is for the refusal.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: String,
}

impl<'a> Node<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// The field of an object; `None` if it is absent or `null`.
    pub(crate) fn field(&self, key: &str) -> Option<Node<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Node {
            value,
            path: self.below(key),
        })
    }

    /// The field of an object, which must be there.
    pub(crate) fn need(&self, key: &str) -> Result<Node<'a>, Refusal> {
        self.field(key).ok_or_else(|| {
            let path = self.below(key);
            Refusal::invalid(format!("{path}: Field required")).param(path)
        })
    }

    /// The string that must stand here.
    pub(crate) fn text(&self) -> Result<&'a str, Refusal> {
        self.value
            .as_str()
            .ok_or_else(|| self.refuse("Input should be a valid string"))
    }

    /// The string that must stand here, with at least one character that is not blank.
    pub(crate) fn words(&self) -> Result<&'a str, Refusal> {
        let text = self.text()?;
        if text.trim().is_empty() {
            return Err(self.refuse("text content blocks must contain non-whitespace text"));
        }
        Ok(text)
    }

    /// The object that must stand here.
    pub(crate) fn object(&self) -> Result<&'a Map<String, Value>, Refusal> {
        self.value
            .as_object()
            .ok_or_else(|| self.refuse("Input should be a valid dictionary"))
    }

    /// The items of the array that must stand here.
    pub(crate) fn items(&self) -> Result<Vec<Node<'a>>, Refusal> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.refuse("Input should be a valid list"))?;
        let place = |(at, value)| Node {
            value,
            path: self.below(&format!("{at}")),
        };
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// The number from 1 up that must stand here.
    pub(crate) fn count(&self) -> Result<u64, Refusal> {
        let count = self.value.as_u64().filter(|count| *count > 0);
        count.ok_or_else(|| self.refuse("Input should be greater than or equal to 1"))
    }

    /// The number within these bounds that must stand here.
    pub(crate) fn within(&self, low: f64, high: f64) -> Result<f64, Refusal> {
        let number = self
            .value
            .as_f64()
            .filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| self.refuse(format!("range: {low}..{high}")))
    }

    /// The id or name that must stand here: letters, digits, `_` and `-`, up to a length.
    pub(crate) fn word(&self, longest: usize) -> Result<&'a str, Refusal> {
        let word = self.text()?;
        let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        if word.is_empty() || !word.chars().all(fits) {
            return Err(self.refuse("String should match pattern '^[a-zA-Z0-9_-]+$'"));
        }
        if word.len() > longest {
            return Err(self.refuse(format!("String should have at most {longest} characters")));
        }
        Ok(word)
    }

    pub(crate) fn refuse(&self, message: impl AsRef<str>) -> Refusal {
        let message = message.as_ref();
        Refusal::invalid(format!("{}: {message}", self.path)).param(self.path.clone())
    }

    fn below(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}
