//! A deserialization error: its position, the expected type, and the most similar word.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::manifest::{
    near,
    node::Mark,
    problem::{Problem, quoted},
};

/// A deserialization error.
#[derive(Debug)]
pub(in crate::manifest) struct ReadFault(pub(super) Box<FaultDetail>);

#[derive(Debug, Default)]
pub(super) struct FaultDetail {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) mark: Option<Mark>,
    /// The steps from the error up to the root.
    pub(super) path: Vec<PathStep>,
    pub(super) what: What,
}

/// The kind of an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum What {
    #[default]
    Value,
    /// A field that is missing.
    Missing(&'static str),
    /// An unknown field.
    Unknown(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(usize),
    Item(usize),
}

impl ReadFault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(FaultDetail {
            message: message.into(),
            ..FaultDetail::default()
        }))
    }

    pub(super) fn hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// Sets the position, if it is not known yet.
    pub(super) fn at(mut self, mark: &Mark) -> Self {
        self.0.mark.get_or_insert_with(|| mark.clone());
        self
    }

    pub(super) fn below(mut self, step: PathStep) -> Self {
        self.0.path.push(step);
        self
    }

    pub(super) fn problem(&self, whole: &Mark) -> Problem {
        Problem::new(
            self.0.mark.as_ref().unwrap_or(whole),
            self.0.message.clone(),
        )
        .hint(self.0.hint.clone())
    }
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ReadFault {}

impl de::Error for ReadFault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "expected {}, found {}",
            told(expected),
            shown(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "expected {}, found {length} values",
            told(expected)
        ))
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        let hint = near::nearest(found, known.iter().copied())
            .map(|near| format!("the nearest is `{near}`"));
        Self::new(format!(
            "{} is none of {}",
            quoted(found),
            near::list(known)
        ))
        .hint(hint)
    }

    fn unknown_field(found: &str, known: &'static [&'static str]) -> Self {
        let mut fault =
            Self::new(format!("there is no field `{found}` here")).hint(near::hint(found, known));
        fault.0.what = What::Unknown(found.to_owned());
        fault
    }

    fn missing_field(field: &'static str) -> Self {
        let mut fault = Self::new(format!("`{field}` is missing"));
        fault.0.what = What::Missing(field);
        fault
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` stands here twice"))
    }
}

/// Returns the expected type as text.
fn told(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    match text.as_str() {
        "u8" => whole(u8::MAX.into()),
        "u16" => whole(u16::MAX.into()),
        "u32" => whole(u32::MAX.into()),
        "u64" | "usize" => whole(u64::MAX),
        "i64" | "i32" => "a whole number".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "path string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        _ if text.starts_with("struct ") => "a mapping".to_owned(),
        _ if text.starts_with("enum ") => "a word".to_owned(),
        _ => text,
    }
}

fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(it) => it.to_string(),
        Unexpected::Unsigned(it) => it.to_string(),
        Unexpected::Signed(it) => it.to_string(),
        Unexpected::Float(it) => it.to_string(),
        Unexpected::Str(it) => quoted(it),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}
